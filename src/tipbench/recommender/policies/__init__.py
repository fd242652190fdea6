"""Policies choose candidates and learn from rewards. One module each; catalog.py lists those served and compared."""
