"""Model files: estimators and pipelines in files that run no code when they are read."""

from __future__ import annotations

from ._archive import load, save

__all__ = ["load", "save"]
