"""The admin server: jobs, pages and API."""
