"""Summaries of the columns and the target of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..tables import Table, Target

# The number of frequent values that are named for a column of text.
MAX_VALUES = 3
# The largest number of classes that are listed.
MAX_CLASSES = 40
# The largest number of columns that are summarised.
MAX_COLUMNS = 500


def column_rows(table: Table, kinds: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Return the name, kind, share of gaps, number of values and a summary of each column."""
    names = list(kinds)[:MAX_COLUMNS]
    frame = table.frame(names)
    return tuple(_row(name, kinds[name], frame[name]) for name in names)


def _row(name: str, kind: str, column: Any) -> tuple[str, ...]:
    if kind == "number":
        column = pd.to_numeric(column, errors="coerce")
    elif column.dtype.kind not in "fM":
        column = column.where(column.str.strip() != "")
    values = column.dropna()
    gaps = f"{100 * (1 - len(values) / max(len(column), 1)):.1f} %"
    return (name, kind, gaps, str(values.nunique()), _summary(kind, values) if len(values) else "-")


def _summary(kind: str, column: Any) -> str:
    if kind == "number":
        low, middle, high = np.quantile(column.to_numpy(float), [0.0, 0.5, 1.0])
        return f"{low:.4g} to {high:.4g}, median {middle:.4g}"
    if kind == "date":
        return f"{column.min()!s:.19} to {column.max()!s:.19}"
    counts = column.value_counts()
    frequent = ", ".join(f"{value!s:.20} ({n})" for value, n in counts.head(MAX_VALUES).items())
    return frequent + (", ..." if len(counts) > MAX_VALUES else "")


def target_rows(target: Target) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return a header, and rows for the classes or the quantiles of a target."""
    if target.task == "regression":
        quantiles = np.quantile(target.y, [0.0, 0.25, 0.5, 0.75, 1.0])
        header = ("minimum", "lower quartile", "median", "upper quartile", "maximum")
        return header, (tuple(f"{each:.6g}" for each in quantiles),)
    names, counts = np.unique(target.y, return_counts=True)
    order, n = np.argsort(-counts, kind="stable")[:MAX_CLASSES], len(target.y)
    rows = ((str(names[k]), str(counts[k]), f"{100 * counts[k] / n:.1f} %") for k in order)
    return ("class", "rows", "share"), tuple(rows)
