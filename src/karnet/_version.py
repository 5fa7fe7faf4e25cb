"""The version of karnet."""

__version__ = "0.1.0"
