"""The admin pages, one module per topic; templates and static files are beside them."""
