"""Feature vectors of candidates, as policies see them. One module per version; catalog.py lists them."""
