"""Collects answers: generates the cells of a grid one after the other, and stores each as it is done."""
