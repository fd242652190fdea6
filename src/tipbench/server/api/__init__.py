"""The admin API: one module a resource."""
