"""The problems on which contenders are compared, and their folds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import (
    load_diabetes,
    make_friedman1,
    make_friedman2,
    make_friedman3,
    make_regression,
)
from sklearn.model_selection import KFold

from karnet import datasets
from karnet.paper.protocol import Coding, Fold, MixedRows, inputs, one_hot, parts

Array = NDArray[Any]
Kind = Literal["classification", "regression"]

N_FOLDS = 5
N_GENERATED = 1000
# Numbers of repeats and of folds of each, by the largest number of rows.
EXTENTS = ((1500, (2, N_FOLDS)), (3500, (1, N_FOLDS)))
EXTENT_OF_THE_LARGEST = (1, 2)
# Contenders scale the inputs themselves.
arrays = Coding(one_hot, scaler=None)


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set and its target.

    Parameters
    ----------
    name : str
        What it is called.
    kind : {"classification", "regression"}
        Whether the target is a class, named by an integer from 0 on, or a number.
    inputs : MixedRows
        Categories and numbers of each row.
    y : array
        The targets.
    split : callable
        From the number of a repeat to its folds.
    """

    name: str
    kind: Kind
    inputs: MixedRows
    y: Array
    split: Callable[[int], list[Fold]]

    @property
    def n_rows(self) -> int:
        """The number of cross-validated rows."""
        return sum(len(part.test) for part in self.split(0))

    @property
    def n_classes(self) -> int:
        """The number of classes; 0 for a regression."""
        return len(np.unique(self.y)) if self.kind == "classification" else 0


def extent(n_rows: int) -> tuple[int, int]:
    """Return the number of repeats and of folds of each for a problem with so many rows."""
    return next((done for most, done in EXTENTS if n_rows <= most), EXTENT_OF_THE_LARGEST)


def load(name: str) -> Problem:
    """Return a problem by its name, or raise FileNotFoundError if its file is missing."""
    return PROBLEMS[name](name)


def _classes(name: str) -> Problem:
    """Return one of the paper's sets; its given split is not used, as README.md explains."""
    loaded = datasets.load(name)
    if datasets.DATASETS[name].fixed_split:
        loaded = replace(loaded, split=None)
    codes = np.unique(loaded.y, return_inverse=True)[1]
    return Problem(
        name,
        "classification",
        inputs(loaded.X),
        codes,
        lambda repeat: parts(loaded, repeat, N_FOLDS, seed=0),
    )


def _numbers(name: str, X: Any, y: Any) -> Problem:
    def split(repeat: int) -> list[Fold]:
        folds = KFold(N_FOLDS, shuffle=True, random_state=repeat).split(y)
        return [Fold(train, test) for train, test in folds]

    return Problem(name, "regression", inputs(pd.DataFrame(X)), np.asarray(y, float), split)


def _from_file(name: str, file: str) -> Problem:
    """Return the problem in a CSV file of the folder KARNET_DATA; the target is the last column."""
    path = Path(os.environ.get("KARNET_DATA", "."), file).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"{file} is not in the folder that KARNET_DATA names")
    table = pd.read_csv(path)
    X = table.drop(columns=["target", "split"], errors="ignore")
    return _numbers(name, with_categories(X), table["target"])


def with_categories(X: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose columns that are not numbers are categories."""
    named = X.select_dtypes(exclude="number").columns
    return X.astype(dict.fromkeys(named, "category"))


def _made(name: str, make: Callable[..., tuple[Array, Array]], **options: Any) -> Problem:
    return _numbers(name, *make(n_samples=N_GENERATED, random_state=0, **options))


def _diabetes(name: str) -> Problem:
    return _numbers(name, *load_diabetes(return_X_y=True))


PROBLEMS: Mapping[str, Callable[[str], Problem]] = MappingProxyType(
    dict.fromkeys(datasets.DATASETS, _classes)
    | {
        "boston-medv": partial(_from_file, file="boston-housing-medv.csv"),
        "abalone-rings": partial(_from_file, file="abalone-rings.csv"),
        "diabetes": _diabetes,
        # The usual noise, as in R's mlbench.
        "friedman1": partial(_made, make=make_friedman1, noise=1.0),
        "friedman2": partial(_made, make=make_friedman2, noise=125.0),
        "friedman3": partial(_made, make=make_friedman3, noise=0.1),
        "linear": partial(_made, make=make_regression, n_features=20, noise=50.0),
    }
)
