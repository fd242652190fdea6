"""tipbench: which small local model, with which prompt, writes the best short texts."""

__version__ = "0.1.0"
