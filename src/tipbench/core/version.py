"""The version of this package, which is stored with every run."""

__version__ = "0.1.0"
