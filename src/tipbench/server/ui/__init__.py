"""The admin pages: one module a subject, templates and static files beside them."""
