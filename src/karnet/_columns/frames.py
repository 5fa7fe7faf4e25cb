"""Columns of data frames: numbers, dates and labels, with gaps.

A column is an array of one of three types: float64 with NaN for gaps, datetime64 with NaT for gaps,
or objects, which are text, or None for gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]

# The type of dates, in microseconds.
DATE = np.dtype("datetime64[us]")
# Names of the types of values that pandas has for gaps.
GAPS = ("NAType", "NaTType")


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame of pandas or polars."""
    return type(X).__module__.partition(".")[0] in ("pandas", "polars") and hasattr(X, "columns")


def holds_numbers_only(frame: Any) -> bool:
    """Return whether all columns of a data frame are plain numbers; there may be NaN."""
    if type(frame).__module__.startswith("polars"):
        return all(each.is_numeric() for each in frame.dtypes) and not any(
            frame.to_series(k).null_count() for k in range(frame.shape[1])
        )
    return all(isinstance(each, np.dtype) and each.kind in "fiub" for each in frame.dtypes)


def columns_of(X: Any, names: Sequence[str]) -> list[Column]:
    """Return the columns of a data frame, or of an array of two dimensions.

    The names of the columns are those in errors.
    """
    if not is_frame(X):
        table = np.asarray(X)
        return [_of_values(table[:, k], name) for k, name in enumerate(names)]
    if type(X).__module__.startswith("polars"):
        return [_of_polars(X.to_series(k), name) for k, name in enumerate(names)]
    return [_of_pandas(X.iloc[:, k], name) for k, name in enumerate(names)]


def _of_pandas(series: Any, name: str) -> Column:
    from pandas import CategoricalDtype
    from pandas.api import types

    kind = series.dtype
    if isinstance(kind, CategoricalDtype):
        return _labels(series.astype(object).to_numpy(), name)
    if types.is_numeric_dtype(kind) and not types.is_complex_dtype(kind):
        return np.asarray(series.to_numpy(np.float64, na_value=np.nan))
    if types.is_datetime64_any_dtype(kind):
        if getattr(kind, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return np.asarray(series.to_numpy()).astype(DATE)
    if types.is_timedelta64_dtype(kind):
        return np.asarray(series.dt.total_seconds().to_numpy(np.float64))
    return _of_values(series.astype(object).to_numpy(), name)


def _of_polars(series: Any, name: str) -> Column:
    import polars as pl

    kind = series.dtype
    if kind.is_numeric() or kind == pl.Boolean:
        return np.asarray(series.cast(pl.Float64).fill_null(np.nan).to_numpy(), dtype=np.float64)
    if kind in (pl.Date, pl.Datetime):
        return np.asarray(series.cast(pl.Datetime("us")).to_numpy()).astype(DATE)
    if kind == pl.Duration:
        seconds = series.dt.total_microseconds().cast(pl.Float64) / 1e6
        return np.asarray(seconds.fill_null(np.nan).to_numpy())
    values = np.empty(len(series), dtype=object)
    values[:] = series.to_list()
    if kind in (pl.Categorical, pl.Enum):
        return _labels(values, name)
    return _of_values(values, name)


def _of_values(values: Column, name: str) -> Column:
    """Return a column of any values: numbers if all are, or dates if all are, or labels."""
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if values.dtype.kind == "M":
        return values.astype(DATE)
    gaps = _gaps(values)
    known = values[~gaps]
    try:
        if len(known) and all(isinstance(each, date | np.datetime64) for each in known):
            return _filled(known, gaps, np.array("NaT", DATE))
        if all(isinstance(each, Real | str | Decimal | np.number) for each in known):
            return _filled(known, gaps, np.array(np.nan))
    except (ValueError, TypeError, OverflowError):
        pass
    return _labels(values, name)


def _filled(known: Column, gaps: NDArray[np.bool_], gap: Column) -> Column:
    column = np.full(len(gaps), gap, dtype=gap.dtype)
    column[~gaps] = known.astype(gap.dtype)
    return column


def _gaps(values: Column) -> NDArray[np.bool_]:
    return np.array([_is_gap(each) for each in values], dtype=bool)


def _is_gap(value: Any) -> bool:
    if value is None or type(value).__name__ in GAPS:
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _labels(values: Column, name: str) -> Column:
    """Return a column of text, with None for gaps."""
    column = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        column[k] = None if _is_gap(value) else label(value, name)
    return column


def label(value: Any, name: str) -> str:
    """Return a value of a categorical column as text; whole numbers have no decimal point."""
    if isinstance(value, str):
        return value
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, Real | Decimal | date | bytes | np.generic):
        return str(value)
    raise ValueError(
        f"column {name} of X holds {type(value).__name__}: give numbers, text, categories or dates."
    )
