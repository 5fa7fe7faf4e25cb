"""Conversion of cells, from any source, to checked features, labels and split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._util.extras import require
from ._catalogue import DataSet

Source = Literal["folder", "built-in", "cache", "openml"]
# Returns an error for a reason.
Refuse = Callable[[str], ValueError]

# The name of a gap that counts as a value; alphabetically it is between n and y.
NEITHER = "neither"
# Integers below this one are exact as float64.
EXACT_INTEGERS = 2**53


@dataclass(frozen=True)
class Cells:
    """Cells of a data set: the features, then `split` if there is one, then `target`.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    values : array of objects, one row per sample
        Text or numbers; empty text is a missing value.
    """

    names: Sequence[str]
    values: NDArray[np.object_]


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
    source: Source


def pandas() -> Any:
    """Return the module pandas, an optional library."""
    require("karnet.datasets", "paper", "pandas")
    return import_module("pandas")


def refusal(data: DataSet, where: str, why: str) -> ValueError:
    """Return an error that says why a source does not hold this data set."""
    return ValueError(f"{where} is refused as the data set {data.name!r}: {why}.")


def tidy(data: DataSet, cells: Cells, source: Source, where: str) -> Loaded:
    """Return the data set in the cells, or refuse them.

    After the treatment of missing values and of the class that is left out, the numbers of rows,
    features and classes, and the split, must be those of `DATASETS`.
    """
    refuse = partial(refusal, data, where)
    _check_names(data, cells.names, refuse)
    values = _without_gaps(data, cells, refuse)
    values = values[values[:, -1] != data.left_out]
    n = data.here.features
    y = _plain(values[:, -1])
    _check_size(data, y, source == "built-in", refuse)
    split = _split(data, values[:, n], refuse) if len(cells.names) > n + 1 else None
    if split is None and data.fixed_split and data.test_rows:
        raise refuse("it needs a column 'split' just before 'target'")
    X = {
        name: _feature(k in data.categorical, name, values[:, k], refuse)
        for k, name in enumerate(cells.names[:n])
    }
    return Loaded(data.name, pandas().DataFrame(X), y, split, source)


def _check_names(data: DataSet, names: Sequence[str], refuse: Refuse) -> None:
    if not names or names[-1] != "target":
        raise refuse("its last column must be called 'target'")
    n = len(names) - (2 if "split" in names[-2:-1] else 1)
    if n != data.here.features:
        raise refuse(f"it has {n} features and should have {data.here.features}")
    if len(set(names)) != len(names):
        raise refuse("two of its columns have the same name")


def _without_gaps(data: DataSet, cells: Cells, refuse: Refuse) -> NDArray[np.object_]:
    gaps: NDArray[np.bool_] = cells.values == ""
    wrong = gaps.copy()
    if data.missing != "no":
        wrong[:, : data.here.features] = False
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        name = cells.names[column]
        raise refuse(f"column {name!r} is empty in row {row + 1}, where a value should be")
    if data.missing == "value":
        return np.where(gaps, NEITHER, cells.values)
    return cells.values[~gaps.any(axis=1)]


def _check_size(data: DataSet, y: NDArray[Any], built_in: bool, refuse: Refuse) -> None:
    expected = data.built_in if built_in else data.here.rows
    if len(y) != expected:
        raise refuse(f"it has {len(y)} usable rows and should have {expected}")
    sizes = sorted(np.unique(y, return_counts=True)[1].tolist(), reverse=True)
    if len(sizes) != data.here.classes:
        raise refuse(f"it has {len(sizes)} classes and should have {data.here.classes}")
    if not built_in and data.class_sizes and tuple(sizes) != data.class_sizes:
        found, wanted = (", ".join(map(str, each)) for each in (sizes, data.class_sizes))
        raise refuse(f"its classes have {found} rows and should have {wanted}")


def _split(data: DataSet, values: NDArray[np.object_], refuse: Refuse) -> NDArray[np.bool_]:
    test: NDArray[np.bool_] = values == "test"
    if not (test | (values == "train")).all():
        raise refuse("its column 'split' must say train or test in every row")
    n, wanted = int(test.sum()), data.test_rows
    if n != wanted:
        raise refuse(f"its test part has {n} rows and should have {wanted or 'none'}")
    return test


def _feature(categorical: bool, name: str, values: NDArray[np.object_], refuse: Refuse) -> Any:
    plain = _plain(values)
    if categorical:
        return pandas().Categorical(plain)
    if plain.dtype.kind == "U":
        text = next(str(cell[0]) for cell in values[:, None] if _plain(cell).dtype.kind == "U")
        raise refuse(f"column {name!r} holds {text!r} where a number should be")
    return plain


def _plain(values: NDArray[np.object_]) -> NDArray[Any]:
    """Return int64 if all values are integers, float64 if all are numbers, and text otherwise."""
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        return values.astype(str)
    if not np.isfinite(numbers).all():
        return values.astype(str)
    whole = ((numbers == np.rint(numbers)) & (np.abs(numbers) < EXACT_INTEGERS)).all()
    return numbers.astype(np.int64) if whole else numbers
