"""The version of this package, which is stored with every run."""

__version__ = "0.2.0"
