"""Engines run models and generate with them. One interface, one module for each engine."""
