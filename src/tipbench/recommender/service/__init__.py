"""The recommender over HTTP: one module a resource."""
