"""Collect: the grid of cells, generated one after the other, each stored as it is done."""
