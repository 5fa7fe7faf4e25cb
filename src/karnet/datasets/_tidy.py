"""Conversion of cells, from any source, to checked features, labels and split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._util.extras import require
from ._catalogue import DataSet

SourceName = Literal["folder", "built-in", "cache", "openml"]
# The name of a gap that counts as a value; alphabetically it is between n and y.
NEITHER = "neither"
# Integers below this one are exact as float64.
EXACT_INTEGERS = 2**53


class RefusalError(ValueError):
    """The reason why cells are not those of a data set."""


class Cells(NamedTuple):
    """Cells of a data set: the features, then `split` if there is one, then `target`."""

    names: Sequence[str]
    values: NDArray[np.object_]  # one row per sample; empty text is a missing value


@dataclass(frozen=True, eq=False)
class Loaded:
    """A loaded data set.

    Parameters
    ----------
    name : str
        Its name in `DATASETS`.
    X : pandas.DataFrame
        The features: int64 if all values are integers, else float64, or category. The names of the
        columns are those of the source.
    y : array of int or str
        The labels.
    split : array of bool or None
        Whether each row is a test row; None if the source has no split.
    source : {"folder", "built-in", "cache", "openml"}
        The source of the data.
    """

    name: str
    X: Any
    y: NDArray[Any]
    split: NDArray[np.bool_] | None
    source: SourceName


def pandas() -> Any:
    """Return the module pandas, an optional library."""
    require("karnet.datasets", "paper", "pandas")
    return import_module("pandas")


def tidy(data: DataSet, cells: Cells, source: SourceName) -> Loaded:
    """Return the data set in the cells, or raise a `RefusalError`.

    After the treatment of missing values and of the class that is left out, the numbers of rows,
    features and classes, and the split, must be those of `DATASETS`.
    """
    _check_names(data, cells.names)
    values = _without_gaps(data, cells)
    values = values[values[:, -1] != data.left_out]
    n = data.here.features
    y = _plain(values[:, -1])
    _check_size(data, y, source == "built-in")
    split = _split(data, values[:, n]) if len(cells.names) > n + 1 else None
    if split is None and data.fixed_split and data.test_rows:
        raise RefusalError("it needs a column 'split' just before 'target'")
    columns = enumerate(cells.names[:n])
    X = {name: _feature(name, values[:, k], k in data.categorical) for k, name in columns}
    return Loaded(data.name, pandas().DataFrame(X), y, split, source)


def _check_names(data: DataSet, names: Sequence[str]) -> None:
    if not names or names[-1] != "target":
        raise RefusalError("its last column must be called 'target'")
    n = len(names) - (2 if "split" in names[-2:-1] else 1)
    if n != data.here.features:
        raise RefusalError(f"it has {n} features and should have {data.here.features}")
    if len(set(names)) != len(names):
        raise RefusalError("two of its columns have the same name")


def _without_gaps(data: DataSet, cells: Cells) -> NDArray[np.object_]:
    gaps: NDArray[np.bool_] = cells.values == ""
    first = 0 if data.missing == "no" else data.here.features
    wrong = np.argwhere(gaps[:, first:])
    if len(wrong):
        row, name = wrong[0][0], cells.names[first + wrong[0][1]]
        raise RefusalError(f"column {name!r} is empty in row {row + 1}, where a value should be")
    if data.missing == "value":
        return np.where(gaps, NEITHER, cells.values)
    return cells.values[~gaps.any(axis=1)]


def _check_size(data: DataSet, y: NDArray[Any], built_in: bool) -> None:
    expected = data.built_in if built_in else data.here.rows
    if len(y) != expected:
        raise RefusalError(f"it has {len(y)} usable rows and should have {expected}")
    sizes = sorted(np.unique(y, return_counts=True)[1].tolist(), reverse=True)
    if len(sizes) != data.here.classes:
        raise RefusalError(f"it has {len(sizes)} classes and should have {data.here.classes}")
    if not built_in and data.class_sizes and tuple(sizes) != data.class_sizes:
        found, wanted = (", ".join(map(str, each)) for each in (sizes, data.class_sizes))
        raise RefusalError(f"its classes have {found} rows and should have {wanted}")


def _split(data: DataSet, values: NDArray[np.object_]) -> NDArray[np.bool_]:
    test: NDArray[np.bool_] = values == "test"
    if not (test | (values == "train")).all():
        raise RefusalError("its column 'split' must say train or test in every row")
    if test.sum() != data.test_rows:
        wanted = data.test_rows or "none"
        raise RefusalError(f"its test part has {test.sum()} rows and should have {wanted}")
    return test


def _feature(name: str, values: NDArray[np.object_], categorical: bool) -> Any:
    plain = _plain(values)
    if categorical:
        return pandas().Categorical(plain)
    if plain.dtype.kind == "U":
        text = next(str(cell[0]) for cell in values[:, None] if _plain(cell).dtype.kind == "U")
        raise RefusalError(f"column {name!r} holds {text!r} where a number should be")
    return plain


def _plain(values: NDArray[np.object_]) -> NDArray[Any]:
    """Return int64 if all values are integers, float64 if all are numbers, and text otherwise."""
    try:
        numbers = np.asarray_chkfinite(values, np.float64)
    except (TypeError, ValueError):
        return values.astype(str)
    whole = ((numbers == np.rint(numbers)) & (np.abs(numbers) < EXACT_INTEGERS)).all()
    return numbers.astype(np.int64) if whole else numbers
