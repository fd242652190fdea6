"""Measurements, each one command that prints a table and a ratio; see README.md."""
