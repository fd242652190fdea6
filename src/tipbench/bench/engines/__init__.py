"""Engines: what holds a model and generates with it. One interface, one file for each."""
