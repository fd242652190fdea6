"""Automatic judges. They fill in the same file as a person, and their scores are applied in the same way."""
