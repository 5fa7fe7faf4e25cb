"""The effect of rounding: networks fitted to the same rows in other orders."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import minmax_scale

from .._util.text_table import TextTable
from ..estimators import KARClassifier

# How many other orders of the rows are tried.
N_ORDERS = 20
# The networks that are fitted, by name.
NETWORKS = {
    "pull-back, 10": KARClassifier((10,), random_state=0),
    "pull-back, 100": KARClassifier((100,), random_state=0),
    "pull-back, 20-10": KARClassifier((20, 10), random_state=0),
    "pull-back, 100, ridge 1e-6": KARClassifier((100,), alpha=1e-6, random_state=0),
    "pull-back, 20-10, ridge 1e-6": KARClassifier((20, 10), alpha=1e-6, random_state=0),
    "random, 10": KARClassifier((10,), hidden="random", random_state=0),
    "random, 100": KARClassifier((100,), hidden="random", random_state=0),
}


def tables() -> list[TextTable]:
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
    return [
        TextTable(
            f"Iris, all rows in {N_ORDERS} other orders: changes of the fitted network",
            ("network", "accuracy", "output, median", "output, largest", "rows of another class"),
            tuple(rows),
            "A pulled-back layer is numerically singular, so rounding errors are amplified once "
            "per layer; a ridge or random hidden layers avoid this.",
        )
    ]
