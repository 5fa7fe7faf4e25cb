"""Checks of rows that need no model: equal rows, and numbers far outside their column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._columns.frames import Column
from .._util.types import Array, Mask
from ._findings import Suspect, codes_of, groups_of_equal, number

# Distances from the median, in units of the spread of the middle half, beyond which numbers are far
# outside: on the scale of the numbers, and on a logarithmic scale.
FAR = 10.0
FAR_ON_LOG_SCALE = 5.0
# The largest share of the rows that can be far outside: more have a heavy tail.
LARGEST_SHARE = 0.005
# The spread of the middle half of a normal distribution over its standard deviation.
NORMAL_SPREAD = 1.349


def equal_rows(
    columns: Sequence[Column],
    y: NDArray[np.generic],
    classes: bool,
    row_names: Sequence[Any],
) -> Iterator[Suspect]:
    """Yield rows that repeat an earlier row, and equal rows with different classes."""
    codes = np.column_stack([codes_of(column) for column in columns])
    target = np.unique(y, return_inverse=True)[1]
    for rows in groups_of_equal(codes):
        if classes and len(np.unique(target[rows])) > 1:
            labels = ", ".join(sorted({str(y[row]) for row in rows}))
            for row in rows:
                detail = f"{len(rows)} equal rows have different classes: {labels}"
                yield Suspect(int(row), "conflict", detail)
            continue
        seen: dict[int, int] = {}
        for row in rows:
            first = seen.setdefault(int(target[row]), int(row))
            if first != row:
                yield Suspect(
                    int(row), "duplicate", f"the same as row {row_names[first]}, target included"
                )


def far_outside(names: Sequence[str], columns: Sequence[Column]) -> Iterator[Suspect]:
    """Yield rows with a number far outside its column."""
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind != "f":
            continue
        far = _far(column)
        if not far.any() or far.sum() > max(LARGEST_SHARE * len(column), 1):
            continue
        low, high = np.quantile(column[~far & ~np.isnan(column)], [0.0, 1.0])
        for row in np.flatnonzero(far):
            others = f"all others are from {number(low)} to {number(high)}"
            yield Suspect(int(row), "far outside", f"{name} is {number(column[row])}, {others}")


def _far(column: Array) -> Mask:
    """Return which numbers are far outside, on both scales if all are positive."""
    known = ~np.isnan(column)
    far = _beyond(column, known, FAR)
    if known.any() and column[known].min() > 0.0:
        with np.errstate(invalid="ignore"):
            far &= _beyond(np.log(column), known, FAR_ON_LOG_SCALE)
    return far


def _beyond(column: Array, known: Mask, most: float) -> Mask:
    """Return which numbers are more than `most` spreads from the median."""
    if not known.any():
        return known
    low, middle, high = np.quantile(column[known], [0.25, 0.5, 0.75])
    spread = (high - low) / NORMAL_SPREAD
    with np.errstate(invalid="ignore"):
        return known & (spread > 0.0) & (np.abs(column - middle) > most * spread)
