"""Iris, 90 rows for training and 60 for testing: the representation theorem at work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from sklearn.preprocessing import minmax_scale

from ..estimators import KARClassifier
from .table import Table

__all__ = ["Split", "network", "split", "sum_of_squares", "tables"]

WIDTHS = range(79, 94)
N_TRIALS = 10


@dataclass(frozen=True)
class Split:
    """Iris, inputs scaled to [0, 1], with 30 rows of each class for training."""

    X: NDArray[np.float64]
    y: NDArray[np.intp]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.intp]


def split(seed: int) -> Split:
    """Return a random split whose 90 training rows are distinct (Iris repeats some rows)."""
    X, y = load_iris(return_X_y=True)
    X = minmax_scale(X)
    rng = np.random.RandomState(seed)
    while True:
        train = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:30] for c in range(3)])
        if len(np.unique(X[train], axis=0)) == len(train):
            test = np.setdiff1d(np.arange(len(y)), train)
            return Split(X[train], y[train], X[test], y[test])


def network(sizes: tuple[int, ...], bias: bool, seed: int) -> KARClassifier:
    """Return a network with random hidden layers, the output layer with or without a bias."""
    return KARClassifier(sizes, hidden="random", fit_intercept=bias, random_state=seed)


def sum_of_squares(net: KARClassifier, data: Split) -> float:
    """Return the sum of squared differences between outputs and the class indicator."""
    return float(np.sum((net.decision_function(data.X) - np.eye(3)[data.y]) ** 2))


def tables() -> list[Table]:
    """Return sums of squared errors and error rates around h = 90, in two layers and in five."""
    return [_table("two-layer", 1), _table("five-layer", 4)]


def _table(name: str, n_hidden: int) -> Table:
    rows = []
    for h in WIDTHS:
        row = [str(h)]
        for bias in (False, True):
            sse, error = [], []
            for seed in range(N_TRIALS):
                data = split(seed)
                net = network((h,) * n_hidden, bias, seed).fit(data.X, data.y)
                sse.append(sum_of_squares(net, data))
                error.append(1.0 - net.score(data.X_test, data.y_test))
            row += [f"{min(sse):.0e} .. {max(sse):.0e}", f"{100 * np.mean(error):.1f} %"]
        rows.append(tuple(row))
    header = ("h", "SSE, no output bias", "test error", "SSE, output bias", "test error")
    return Table(
        f"Iris 90/60, {name} network with random hidden layers, {N_TRIALS} trials",
        header,
        tuple(rows),
        "Zero up to rounding from h = 90 on, where 90 rows meet 90 weights; "
        "an output bias is one more weight and moves the step to 89.",
    )
