"""Checks of columns, of the classes and of the order of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from .._columns.frames import Column
from .._util.types import Array, Indices
from ._findings import Finding, codes_of, gaps_of

# The share of gaps from which a column is nearly all missing, and of one value nearly constant.
MISSING_SHARE = 0.95
CONSTANT_SHARE = 0.995
# The share of the error that may be left if a single column gives the target away.
LEFT_SHARE = 0.02
# Neighbours on each side by whose targets a single column predicts.
N_NEIGHBOURS = 2
# The mean number of equal values from which rows with the same value predict each other.
FEWEST_EQUAL = 10
# Fewest rows of a class.
FEWEST_ROWS = 5
# The share of the rows at either end of the table that drift compares, and the largest statistic of
# Kolmogorov and Smirnov, and its least p-value, that are no drift.
END_SHARE = 1.0 / 3.0
DRIFT = 0.15
DRIFT_P = 1e-6
# Fewest rows at either end.
FEWEST_ROWS_OF_DRIFT = 50


def unusable(names: Sequence[str], columns: Sequence[Column]) -> Iterator[Finding]:
    """Yield columns that are constant, nearly all missing, row numbers or names of rows."""
    for name, column in zip(names, columns, strict=True):
        gaps = gaps_of(column)
        known = column[~gaps]
        if gaps.mean() >= MISSING_SHARE:
            share = f"{100 * gaps.mean():.1f} % of its values are missing"
            yield Finding(name, "nearly all missing", share)
            continue
        counts = np.bincount(codes_of(known))
        if counts.max() >= CONSTANT_SHARE * len(known) and not gaps.any():
            same = "all its values are equal"
            if counts.max() < len(known):
                same = f"{100 * counts.max() / len(known):.1f} % of its values are equal"
            yield Finding(name, "constant", same)
        elif _are_row_numbers(column):
            yield Finding(name, "row numbers", "its values grow by the same amount in every row")
        elif column.dtype.kind == "O" and len(known) > FEWEST_ROWS and counts.max() == 1:
            yield Finding(name, "names of rows", "every row has another value")


def _are_row_numbers(column: Column) -> bool:
    if column.dtype.kind != "f" or len(column) <= FEWEST_ROWS:
        return False
    steps = np.diff(column)
    return bool(steps[0] != 0.0 and np.all(steps == steps[0]))


def giving_away(
    names: Sequence[str], columns: Sequence[Column], targets: Array
) -> Iterator[Finding]:
    """Yield columns that alone predict nearly all of the targets.

    Targets are indicators of classes, or numbers in one column. A categorical column predicts the
    mean target of the other rows of its category, and others that of the nearest rows.
    """
    spread = np.sum((targets - targets.mean(axis=0)) ** 2)
    for name, column in zip(names, columns, strict=True):
        categorical = column.dtype.kind == "O"
        codes = codes_of(column)
        predicted = (_by_category if categorical else _by_neighbours)(codes, targets)
        left = np.sum((targets - predicted) ** 2) / (spread or 1.0)
        if spread > 0.0 and left < LEFT_SHARE:
            detail = f"alone it explains {100 * (1.0 - left):.1f} % of the variance of the target"
            yield Finding(name, "gives the target away", detail)


def _by_category(codes: Indices, targets: Array) -> Array:
    """Return the mean target of the other rows with the same code."""
    counts, sums = np.bincount(codes), np.zeros((codes.max() + 1, targets.shape[1]))
    np.add.at(sums, codes, targets)
    others = np.maximum(counts[codes] - 1, 1)[:, None]
    mean = targets.mean(axis=0)
    return np.where(counts[codes][:, None] > 1, (sums[codes] - targets) / others, mean)


def _by_neighbours(codes: Indices, targets: Array) -> Array:
    """Return the mean target of the nearest rows in the order of codes, or of the same code."""
    if codes.max() < len(codes) // FEWEST_EQUAL:
        return _by_category(codes, targets)
    order = np.argsort(codes, kind="stable")
    ordered, total, count = targets[order], np.zeros_like(targets), np.zeros((len(targets), 1))
    for step in range(1, min(N_NEIGHBOURS, len(targets) - 1) + 1):
        later, earlier = slice(step, None), slice(None, -step)
        total[later] += ordered[earlier]
        total[earlier] += ordered[later]
        count[later] += 1.0
        count[earlier] += 1.0
    predicted = np.empty_like(targets)
    predicted[order] = total / np.maximum(count, 1.0)
    return predicted


def small_classes(y: NDArray[np.generic]) -> Iterator[Finding]:
    """Yield classes with too few rows."""
    for name, count in zip(*np.unique(y, return_counts=True), strict=True):
        if count < FEWEST_ROWS:
            rows = "one row" if count == 1 else f"{count} rows"
            yield Finding(str(name), "class with few rows", f"it has {rows}")


def drifts(
    names: Sequence[str], columns: Sequence[Column], y: NDArray[np.generic], classes: bool
) -> Iterator[Finding]:
    """Yield columns whose values differ between the first and the last rows.

    If the target does, the columns that it depends on do too, and only the target is named.
    """
    n = int(END_SHARE * len(y))
    if n < FEWEST_ROWS_OF_DRIFT:
        return
    target = np.unique(y, return_inverse=True)[1] if classes else y
    for name, column in [("target", target), *zip(names, columns, strict=True)]:
        codes = _in_order(column)
        test = ks_2samp(codes[:n], codes[-n:], method="asymp")
        if test.statistic > DRIFT and test.pvalue < DRIFT_P:
            detail = (
                f"its values in the first and in the last {n} rows differ (statistic of Kolmogorov "
                f"and Smirnov {test.statistic:.2f})"
            )
            yield Finding(name, "drift", detail)
            if column is target:
                return


def _in_order(column: Column) -> Indices:
    """Return the ranks of the values of a column; gaps come last, categories by frequency."""
    codes = codes_of(column)
    if column.dtype.kind != "O":
        return codes
    rank = np.empty(codes.max() + 1, dtype=np.intp)
    rank[np.argsort(-np.bincount(codes), kind="stable")] = np.arange(len(rank))
    return rank[codes]
