"""The version of this package; it is stored with every run."""

__version__ = "0.1.0"
