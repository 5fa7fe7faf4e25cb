"""The paper's experiments, run with the public estimators."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from .._util.text_table import TextTable
from . import iris, rounding, xor

__all__ = ["EXPERIMENTS", "TextTable"]

# The experiments that need no data files, by name; each returns its tables.
EXPERIMENTS: MappingProxyType[str, Callable[[], list[TextTable]]] = MappingProxyType(
    {"xor": xor.tables, "iris": iris.tables, "rounding": rounding.tables}
)
