"""The columns of a table in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tables import Table, Target

__all__ = ["column_rows", "target_rows"]

# Values that are named at most, and classes that are listed.
NAMED, LISTED = 3, 40
# Columns beyond which none is described.
MOST = 500


def column_rows(table: Table, kinds: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Return for each column: name, kind, share of gaps, different values, and what it holds."""
    names = list(kinds)[:MOST]
    frame = table.frame(names)
    return tuple(_row(name, kinds[name], frame[name]) for name in names)


def _row(name: str, kind: str, column: Any) -> tuple[str, ...]:
    import pandas as pd

    if kind == "number":
        column = pd.to_numeric(column, errors="coerce")
    elif column.dtype.kind not in "fM":
        column = column.where(column.str.strip() != "")
    there = column.dropna()
    gaps = f"{100 * (1 - len(there) / max(len(column), 1)):.1f} %"
    return (name, kind, gaps, str(there.nunique()), _held(kind, there) if len(there) else "-")


def _held(kind: str, column: Any) -> str:
    if kind == "number":
        low, middle, high = np.quantile(column.to_numpy(float), [0.0, 0.5, 1.0])
        return f"{low:.4g} to {high:.4g}, median {middle:.4g}"
    if kind == "date":
        return f"{column.min()!s:.19} to {column.max()!s:.19}"
    counts = column.value_counts()
    shown = ", ".join(f"{value!s:.20} ({n})" for value, n in counts.head(NAMED).items())
    return shown + (", ..." if len(counts) > NAMED else "")


def target_rows(target: Target) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return a header, and rows for the classes or the quantiles of a target."""
    if target.task == "classification":
        return ("class", "rows", "share"), _classes(target.y)
    marks = np.quantile(target.y, [0.0, 0.25, 0.5, 0.75, 1.0])
    header = ("least", "lower quartile", "median", "upper quartile", "most")
    return header, (tuple(f"{mark:.6g}" for mark in marks),)


def _classes(y: NDArray[Any]) -> tuple[tuple[str, ...], ...]:
    names, counts = np.unique(y, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:LISTED]
    return tuple(
        (str(names[k]), str(counts[k]), f"{100 * counts[k] / len(y):.1f} %") for k in order
    )
