"""The columns of a table as numbers: gaps are filled, categories and dates become numbers.

No target has a part in the encoding. A column of numbers with gaps is filled with its median, and
an indicator of gaps follows. A categorical column becomes an indicator for each category, so that
two rows differ in it by the same amount whatever their categories are. A category that was not seen
has none of the indicators. A date becomes the time since 1970, the month, the day of the week and
the hour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .._util.types import Array, Indices, Mask
from .frames import DATE, Column, label

# Largest number of categories of a column with an indicator each; all rarer ones share one.
MOST_LABELS = 100
# The days since 1970 of a Monday.
MONDAY = 4


@dataclass(frozen=True)
class Numbers:
    """A column of numbers."""

    fill: float  # the median, which stands for gaps
    has_gaps: bool  # whether an indicator of gaps follows

    @classmethod
    def of(cls, values: Array, weight: Array) -> Numbers:
        """Return the encoding of these values."""
        known = ~np.isnan(values)
        return cls(_median(values[known], weight[known]), not known.all())

    @property
    def width(self) -> int:
        """The number of columns that it becomes."""
        return 1 + self.has_gaps

    def __call__(self, values: Array) -> list[Array]:
        """Return the columns."""
        gaps = np.isnan(values)
        filled = np.where(gaps, self.fill, values)
        return [filled, gaps.astype(np.float64)] if self.has_gaps else [filled]


@dataclass(frozen=True)
class Labels:
    """A categorical column."""

    labels: Column  # the categories with an indicator of their own, sorted
    rare: Column  # the categories that share an indicator, sorted
    has_gaps: bool  # whether an indicator of gaps follows

    @classmethod
    def of(cls, values: Column, weight: Array) -> Labels:
        """Return the encoding of these values."""
        known = _known(values)
        labels, codes = np.unique(values[known].astype(str), return_inverse=True)
        order = np.argsort(-np.bincount(codes, weight[known], len(labels)), kind="stable")
        first, rest = np.sort(order[:MOST_LABELS]), np.sort(order[MOST_LABELS:])
        return cls(labels[first], labels[rest], not known.all())

    @property
    def width(self) -> int:
        """The number of columns that it becomes."""
        return len(self.labels) + bool(len(self.rare)) + self.has_gaps

    def __call__(self, values: Column) -> list[Array]:
        """Return the columns."""
        known = _known(values)
        text = np.array([each or "" for each in values], dtype=str)
        columns = [(text == each) & known for each in self.labels]
        if len(self.rare):
            columns.append(np.isin(text, self.rare) & known)
        if self.has_gaps:
            columns.append(~known)
        return [column.astype(np.float64) for column in columns]


def _known(values: Column) -> Mask:
    """Return which values of a categorical column are no gaps."""
    return np.array([each is not None for each in values], dtype=bool)


@dataclass(frozen=True)
class Dates:
    """A column of dates."""

    parts: tuple[Numbers, ...]

    @classmethod
    def of(cls, values: Column, weight: Array) -> Dates:
        """Return the encoding of these values; only the first part has an indicator of gaps."""
        parts = [Numbers.of(part, weight) for part in _parts_of_dates(values)]
        return cls((parts[0], *(Numbers(part.fill, False) for part in parts[1:])))

    @property
    def width(self) -> int:
        """The number of columns that it becomes."""
        return sum(part.width for part in self.parts)

    def __call__(self, values: Column) -> list[Array]:
        """Return the columns."""
        pairs = zip(self.parts, _parts_of_dates(values), strict=True)
        return [column for part, numbers in pairs for column in part(numbers)]


def _parts_of_dates(values: Column) -> list[Array]:
    """Return days since 1970, month, day of the week and hour of day, with NaN for gaps."""
    gaps, days = np.isnat(values), values.astype("datetime64[D]")
    hours = (values - days) / np.timedelta64(1, "h")
    numbers = (
        (values - np.array(0, DATE)) / np.timedelta64(1, "D"),
        values.astype("datetime64[M]").astype(np.int64) % 12,
        (days.astype(np.int64) + 7 - MONDAY) % 7,
        hours,
    )
    return [np.where(gaps, np.nan, part) for part in numbers]


def _median(values: Array, weight: Array) -> float:
    """Return the median of values with weights, that count as repeats; 0 for no values."""
    if not len(values):
        return 0.0
    order = np.argsort(values)
    upto = np.cumsum(weight[order])
    low, high = np.searchsorted(upto, upto[-1] * np.array([0.5 - 1e-12, 0.5 + 1e-12]))
    ends = values[order[[low, min(high, len(order) - 1)]]]
    return float(0.5 * ends[0] + 0.5 * ends[1])


Encoding = Numbers | Labels | Dates
# The encoding of each kind of column.
KINDS: dict[str, Callable[[Column, Array], Encoding]] = {
    "f": Numbers.of,
    "O": Labels.of,
    "M": Dates.of,
}


@dataclass(frozen=True)
class TableEncoder:
    """The map from the columns of a table to numbers."""

    columns: tuple[Encoding, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], weight: Array) -> TableEncoder:
        """Return the encoding of these columns, whose rows have weights."""
        return cls(tuple(KINDS[column.dtype.kind](column, weight) for column in columns))

    @property
    def origins(self) -> Indices:
        """For each column of numbers, the index of its column in the table."""
        widths = [column.width for column in self.columns]
        return np.repeat(np.arange(len(widths)), widths)

    def __call__(self, columns: Sequence[Column], names: Iterable[str]) -> Array:
        """Return the numbers of columns of these names."""
        encoded = [
            part
            for encoding, column, name in zip(self.columns, columns, names, strict=True)
            for part in encoding(_as_fitted(encoding, column, name))
        ]
        n_rows = len(columns[0]) if columns else 0
        return np.column_stack(encoded) if encoded else np.empty((n_rows, 0))


def _as_fitted(encoding: Encoding, column: Column, name: str) -> Column:
    """Return a column in the type of the column in `fit`."""
    if isinstance(encoding, Labels):
        if column.dtype.kind == "O":
            return column
        text = np.empty(len(column), dtype=object)
        text[:] = [None if each != each else label(each, name) for each in column]
        return text
    kind, described = ("f", "numbers") if isinstance(encoding, Numbers) else ("M", "dates")
    no_text = column.dtype.kind == "O" and not _known(column).any()
    if no_text or (column.dtype.kind == "f" and np.isnan(column).all()):
        return np.full(len(column), np.nan if kind == "f" else np.array("NaT", DATE))
    if column.dtype.kind != kind:
        shown = next(each for each in column if each is not None and each == each)
        raise ValueError(
            f"column {name} of X held {described} in fit, but now holds {str(shown)!r}."
        )
    return column
