"""The recommender's HTTP service, one module per resource."""
