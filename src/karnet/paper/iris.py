"""Iris: the representation theorem on 90 training rows, and the effect of rounding."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from sklearn.preprocessing import minmax_scale

from .._util.text_table import TextTable
from ..estimators import KARClassifier

# Widths around 90, the number of training rows.
WIDTHS = tuple(range(79, 94))
# A sum of squares of 270 errors below this is zero up to rounding.
ZERO_SUM = 1e-12
# How many other orders of the rows are tried.
N_ORDERS = 20
# The networks that are fitted to these orders, by name.
NETWORKS = {
    "pull-back, 10": KARClassifier((10,), random_state=0),
    "pull-back, 100": KARClassifier((100,), random_state=0),
    "pull-back, 20-10": KARClassifier((20, 10), random_state=0),
    "pull-back, 100, ridge 1e-6": KARClassifier((100,), alpha=1e-6, random_state=0),
    "pull-back, 20-10, ridge 1e-6": KARClassifier((20, 10), alpha=1e-6, random_state=0),
    "random, 10": KARClassifier((10,), hidden="random", random_state=0),
    "random, 100": KARClassifier((100,), hidden="random", random_state=0),
}


class Split(NamedTuple):
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
    """Return a network with random hidden layers, and an output layer with or without a bias."""
    return KARClassifier(sizes, hidden="random", fit_intercept=bias, random_state=seed)


def sum_of_squares(net: KARClassifier, data: Split) -> float:
    """Return the sum of squared differences between outputs and the class indicator."""
    return float(np.sum((net.decision_function(data.X) - np.eye(3)[data.y]) ** 2))


class Fitted(NamedTuple):
    """Targets and outputs, each of shape (90, 3), of one two-layer network without output bias."""

    width: int
    targets: NDArray[np.float64]
    outputs: NDArray[np.float64]


def fitted(width: int) -> Fitted:
    """Return the targets of one split's training rows and the outputs of a network for them."""
    data = split(0)
    net = network((width,), False, 0).fit(data.X, data.y)
    return Fitted(width, np.eye(3)[data.y], net.decision_function(data.X))


class Sweep(NamedTuple):
    """Sums of squared errors and error rates for all `WIDTHS`, of shape (n_widths, n_trials)."""

    n_layers: int  # all layers but the last are random
    bias: bool  # whether the output layer has a bias
    sse: NDArray[np.float64]  # sums of squares on the training rows
    train_error: NDArray[np.float64]
    test_error: NDArray[np.float64]

    @property
    def step(self) -> int | None:
        """The least width from which the sum of squares is zero in every trial, if any."""
        exact = np.all(self.sse < ZERO_SUM, axis=1)
        n = len(exact) if exact.all() else int(np.argmin(exact[::-1]))
        return WIDTHS[-n] if n else None


def sweep(n_layers: int, bias: bool, n_trials: int) -> Sweep:
    """Fit networks of all widths, each trial on a split of its own."""
    results = np.empty((3, len(WIDTHS), n_trials))
    for trial in range(n_trials):
        data = split(trial)
        for k, width in enumerate(WIDTHS):
            net = network((width,) * (n_layers - 1), bias, trial).fit(data.X, data.y)
            accuracies = net.score(data.X, data.y), net.score(data.X_test, data.y_test)
            results[:, k, trial] = sum_of_squares(net, data), *(1.0 - each for each in accuracies)
    return Sweep(n_layers, bias, *results)


@cache
def sweeps(n_layers: int, n_trials: int = 10) -> tuple[Sweep, Sweep]:
    """Return the sweeps without an output bias and with it."""
    return sweep(n_layers, False, n_trials), sweep(n_layers, True, n_trials)


def table(pair: tuple[Sweep, Sweep]) -> TextTable:
    """Return the sums of squares and error rates without an output bias and with it."""
    rows = []
    for k, width in enumerate(WIDTHS):
        row = [str(width)]
        for each in pair:
            errors = (100 * error[k].mean() for error in (each.train_error, each.test_error))
            sums = f"{each.sse[k].min():.0e} .. {each.sse[k].max():.0e}"
            row += [sums, *(f"{error:.1f} %" for error in errors)]
        rows.append(tuple(row))
    name = {2: "two-layer", 5: "five-layer"}[pair[0].n_layers]
    rates = ("train error", "test error")
    return TextTable(
        f"Iris 90/60, {name} network with random hidden layers, {pair[0].sse.shape[1]} trials",
        ("h", "SSE, no output bias", *rates, "SSE, output bias", *rates),
        tuple(rows),
        "The sum of squares (SSE) is zero up to rounding from h = 90 on, where there are as many "
        "weights as rows; an output bias is one more weight, and zero is reached at h = 89.",
    )


def rounding() -> TextTable:
    """Return how much the outputs for Iris change when its rows are reordered."""
    X, y = load_iris(return_X_y=True)
    X = minmax_scale(X)
    rng = np.random.RandomState(0)
    orders = [rng.permutation(len(y)) for _ in range(N_ORDERS)]
    rows = []
    for name, net in NETWORKS.items():
        G, classes = net.fit(X, y).decision_function(X), net.predict(X)
        changes, moved = [], []
        for order in orders:
            net.fit(X[order], y[order])
            changes.append(np.abs(net.decision_function(X) - G).max())
            moved.append(np.mean(net.predict(X) != classes))
        accuracy, worst = (f"{100 * share:.1f} %" for share in (np.mean(classes == y), max(moved)))
        rows.append((name, accuracy, f"{np.median(changes):.0e}", f"{max(changes):.0e}", worst))
    return TextTable(
        f"Iris, all rows in {N_ORDERS} other orders: changes of the fitted network",
        ("network", "accuracy", "output, median", "output, largest", "rows of another class"),
        tuple(rows),
        "A pulled-back layer is numerically singular, so rounding errors are amplified once per "
        "layer; a ridge or random hidden layers avoid this.",
    )
