"""Checks of a table before a model of it is trusted: rows, labels and columns that look wrong."""

from ._audit import Audit, audit
from ._findings import Finding, Suspect

__all__ = ["Audit", "Finding", "Suspect", "audit"]
