"""The paper's experiments, run with the public estimators."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .._util.text_table import TextTable
from . import iris, xor

__all__ = ["EXPERIMENTS", "TextTable"]

# The experiments that need no data files, by name; each returns its tables.
EXPERIMENTS: Mapping[str, Callable[[], list[TextTable]]] = {
    "xor": lambda: [xor.table(xor.study())],
    "iris": lambda: [iris.table(iris.sweeps(n_layers)) for n_layers in (2, 5)],
    "rounding": lambda: [iris.rounding()],
}
