"""The bench: collects, judges and compares answers of models over a grid of cells."""
