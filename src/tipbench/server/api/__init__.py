"""The admin API, one module per resource."""
