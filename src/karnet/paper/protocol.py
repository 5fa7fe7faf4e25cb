"""How a network is measured on a data set: splits, coding, scaling, choice of the width.

No test row is seen by encoding, scaling or selection.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OrdinalEncoder

from ..datasets import DATASETS, Loaded

__all__ = ["WIDTHS", "Part", "choose_width", "coding", "parts"]

# The widths that the paper searches over.
WIDTHS = (1, 2, 3, 5, 10, 20, 30, 50, 80, 100, 200, 500)
N_INNER_FOLDS = 10

Array = NDArray[Any]
# From training and test inputs to arrays of numbers.
Coding = Callable[[Any, Any], tuple[Array, Array]]
# From a width and a seed to an unfitted network.
MakeNetwork = Callable[[int], Any]


@dataclass(frozen=True)
class Part:
    """Positions of the rows to train on and of those to test on."""

    train: Array
    test: Array


def parts(data: Loaded, trial: int, n_folds: int, seed: int) -> list[Part]:
    """Return the fixed split where the paper uses one, else the folds of one trial."""
    spec = DATASETS[data.name]
    rows = np.arange(len(data.y))
    if data.split is not None:
        if spec.fixed_split:
            return [Part(rows[~data.split], rows[data.split])]
        if np.sum(~data.split) == spec.paper.rows:
            rows = rows[~data.split]
    folds = _stratified(n_folds, seed + trial, rows, data.y[rows])
    return [Part(rows[train], rows[test]) for train, test in folds]


def _stratified(n: int, seed: int, rows: Array, y: Array) -> Iterator[tuple[Array, Array]]:
    splitter = StratifiedKFold(min(n, len(rows)), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # Some classes have fewer rows than there are folds, in the paper too.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        yield from splitter.split(rows, y)


def coding(train: Any, test: Any) -> tuple[Array, Array]:
    """Return both tables with categories as integers and every column of the first in [0, 1]."""
    encoder = make_column_transformer(
        (
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
            make_column_selector(dtype_include="category"),
        ),
        remainder="passthrough",
    )
    both = make_pipeline(encoder, MinMaxScaler()).fit(train)
    return both.transform(train), both.transform(test)


def choose_width(
    make: MakeNetwork, X: Any, y: Array, seed: int, code: Coding, widths: Sequence[int] = WIDTHS
) -> int:
    """Return the width with the best accuracy over ten folds of these rows; of equals the least."""
    right = np.zeros(len(widths))
    for train, test in _stratified(N_INNER_FOLDS, seed, np.arange(len(y)), y):
        X_train, X_test = code(X.iloc[train], X.iloc[test])
        for k, width in enumerate(widths):
            net = make(width).fit(X_train, y[train])
            right[k] += np.sum(net.predict(X_test) == y[test])
    return widths[int(np.argmax(right))]
