"""Groups of rows for which a model is wrong more often, or by more, than for all rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import tables
from .._util.types import Array
from ..tables import Table, TableFit
from ._held_out import HeldOut

# The smallest number of rows of a group.
MIN_ROWS = 20
# Held-out rows are used if the quarters of a column have enough of them.
MIN_HELD_OUT = 4 * MIN_ROWS
# The label of rows without a value.
MISSING = "missing"


@dataclass(frozen=True)
class RowErrors:
    """The errors of predictions for rows that the predicting networks were not fitted on."""

    table: Table
    errors: Array  # 1 for a wrong class and 0 for the right one, or absolute errors
    words: str  # which rows and predictions these are


@dataclass(frozen=True)
class Group:
    """The rows with some values of a column, and the mean of their errors."""

    column: str
    values: str
    n: int
    error: float
    excess: float  # over the error of all rows, in standard errors


def row_errors(table: Table, fitted: TableFit, other: HeldOut | None) -> RowErrors | None:
    """Return the errors for held-out rows or, if these are few, of left-out predictions."""
    if other is None or len(other.y) < MIN_HELD_OUT:
        left_out = _left_out_errors(table, fitted)
        if left_out is not None:
            return left_out
    if other is None:
        return None
    if other.classes is None:
        errors = np.abs(np.asarray(other.predictions - other.y, dtype=np.float64))
    else:
        errors = (~other.correct).astype(np.float64)
    return RowErrors(other.table, errors, f"{len(other.y)} held-out rows")


def _left_out_errors(table: Table, fitted: TableFit) -> RowErrors | None:
    network, y = tables.network_of(fitted.model), fitted.target.y
    scores = getattr(network, "loo_decision_function_", None)
    if scores is None or fitted.left_out is not None:
        return None
    known = ~np.isnan(scores if scores.ndim == 1 else scores[:, 0])
    rows = np.flatnonzero(fitted.target.known)[known]
    if not len(rows):
        return None
    if fitted.target.task == "regression":
        errors = np.abs(scores - y)[known]
    else:
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        errors = (network.classes_[codes] != y)[known].astype(np.float64)
    return RowErrors(table.take(rows), errors, f"left-out predictions of {len(rows)} rows")


def worst_groups(model: Any, rows: RowErrors) -> tuple[list[Group], int]:
    """Return the eight groups with the largest excess of errors, and how many groups there are."""
    groups = all_groups(model, rows)
    worse = sorted((each for each in groups if each.excess > 0.0), key=lambda each: -each.excess)
    return worse[:8], len(groups)


def all_groups(model: Any, rows: RowErrors) -> list[Group]:
    """Return the groups by the categories of each column, or by the quarters of its numbers.

    The excess is in units of the standard error of the mean error of as many rows drawn at random.
    """
    frame, errors, groups = tables.frame_of(model, rows.table), rows.errors, []
    n, spread = len(errors), float(np.std(errors))
    for name, kind in tables.kinds_of(model).items():
        for values, members in _parts(kind, frame, name):
            size = int(members.sum())
            if MIN_ROWS <= size < n and spread > 0.0:
                error = float(errors[members].mean())
                unit = spread * np.sqrt(1.0 / size - 1.0 / n)
                groups.append(Group(name, values, size, error, (error - errors.mean()) / unit))
    return groups


def _parts(kind: str, frame: Any, name: str) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the values and the rows of each group of a column."""
    if kind == "number":
        yield from _parts_of_numbers(frame[name].to_numpy(np.float64, na_value=np.nan))
    elif kind == "category":
        labels = frame[name].astype(object)
        yield MISSING, labels.isna().to_numpy()
        for label in labels.dropna().unique():
            yield str(label), (labels == label).to_numpy()


def _parts_of_numbers(values: Array) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the quarters of a column of numbers, or a group for each of up to eight values."""
    gaps = np.isnan(values)
    yield MISSING, gaps
    known = values[~gaps]
    if not len(known):
        return
    distinct = np.unique(known)
    if len(distinct) <= 8:
        yield from ((f"{value:.4g}", values == value) for value in distinct)
        return
    quarter = np.digitize(values, np.unique(np.quantile(known, [0.25, 0.5, 0.75])), right=True)
    for k in np.unique(quarter[~gaps]):
        members = ~gaps & (quarter == k)
        yield f"{values[members].min():.4g} to {values[members].max():.4g}", members
