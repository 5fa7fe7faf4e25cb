"""The version of karnet."""

__version__ = "0.2.0"
