"""Estimators and pipelines as files that run no code when they are read."""

from __future__ import annotations

from ._archive import load, save

__all__ = ["load", "save"]
