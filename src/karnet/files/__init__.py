"""Model files: estimators and pipelines in files that run no code when they are read."""

from ._archive import load, save

__all__ = ["load", "save"]
