"""The bench: collect, judge and compare answers of models over a grid of cells."""
