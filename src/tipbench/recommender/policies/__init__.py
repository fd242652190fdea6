"""Policies: two verbs, choose and learn. A file each; catalog.py names those that are served and compared."""
