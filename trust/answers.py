"""Predictions of a set of networks with fixed seeds: `python -m trust.answers FILE.json`.

Without a file name the stored predictions in `golden.json` are written again. Do that only where
predictions change on purpose, and say so in CHANGELOG.md. The program needs only karnet's core, so
that it runs with other versions of NumPy, SciPy and scikit-learn.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV

Array = NDArray[np.float64]
# Rows that are predicted.
N_PREDICTED = 12


def scaled(X: Array) -> Array:
    return (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))


def classes() -> tuple[Array, Array]:
    X, y = load_wine(return_X_y=True)
    return scaled(X), y


def numbers() -> tuple[Array, Array]:
    X, y = load_diabetes(return_X_y=True)
    return scaled(X), scaled(y)


def many_rows() -> tuple[Array, Array]:
    """Return enough rows for several blocks, which threads share."""
    X, y = load_breast_cancer(return_X_y=True)
    noise = np.random.RandomState(0).standard_normal((80 * len(X), X.shape[1]))
    return np.tile(scaled(X), (80, 1)) + 0.1 * noise, np.tile(y, 80)


def first(n: int, data) -> tuple[Array, Array]:
    X, y = data()
    return X[:n], y[:n]


def fitted_in_parts() -> Array:
    """Return predictions after `partial_fit`, `merge` and `forget`."""
    X, y = numbers()
    parts = [slice(0, 200), slice(200, 300), slice(300, None)]
    net, other = (KARRegressor((60,), hidden="random", alpha=1e-3, random_state=0) for _ in "ab")
    net.partial_fit(X[parts[0]], y[parts[0]]).partial_fit(X[parts[1]], y[parts[1]])
    net.merge(other.partial_fit(X[parts[2]], y[parts[2]]))
    return net.forget(X[:20], y[:20]).predict(X[:N_PREDICTED])


def case(net, data) -> Callable[[], Array]:
    """Return a function that fits a network and returns its predictions for the first rows."""

    def fit_and_predict() -> Array:
        X, y = data()
        net.set_params(random_state=0).fit(X, y)
        predict = net.decision_function if hasattr(net, "classes_") else net.predict
        return predict(X[:N_PREDICTED])

    return fit_and_predict


RANDOM = {"hidden": "random", "alpha": 1e-3}
# Random layers or a ridge: predictions agree to `STEADY_TO` on every machine.
STEADY: dict[str, Callable[[], Array]] = {
    "random, classification": case(KARClassifier((100,), **RANDOM), classes),
    "random, regression": case(KARRegressor((100,), **RANDOM), numbers),
    "random, two layers, tanh": case(KARClassifier((60, 30), activation="tanh", **RANDOM), classes),
    "random, no ridge": case(KARRegressor((30,), hidden="random"), numbers),
    "random, 45520 rows": case(KARClassifier((200,), **RANDOM), many_rows),
    "random, 1200 wide": case(KARClassifier((1200,), **RANDOM), lambda: first(3000, many_rows)),
    "random, Cauchy": case(KARClassifier((100,), init="cauchy", **RANDOM), classes),
    "infinitely wide": case(KARClassifier((np.inf,), activation="relu", **RANDOM), classes),
    "input metric": case(KARRegressor((60,), hidden="metric", alpha=1e-3), numbers),
    "pulled back, ridge, classification": case(KARClassifier((20,), alpha=1e-2), classes),
    "pulled back, ridge, regression": case(KARRegressor((20,), alpha=1e-2), numbers),
    "pulled back, ridge, 45520 rows": case(KARClassifier((20,), alpha=1e-2), many_rows),
    "rows added, merged, removed": fitted_in_parts,
    "all hyper-parameters selected, classification": case(
        KARClassifierCV(n_estimators=2, width=300), classes
    ),
}
# Leaves of trees are solved in single precision.
LEAVES: dict[str, Callable[[], Array]] = {
    "all hyper-parameters selected, regression": case(
        KARRegressorCV(n_estimators=2, width=300), numbers
    ),
}
# Pulled-back layers without a ridge: they are numerically singular and amplify rounding.
PLAIN: dict[str, Callable[[], Array]] = {
    "pulled back, classification": case(KARClassifier((20,)), classes),
    "pulled back, regression": case(KARRegressor((20,)), numbers),
    "pulled back, two layers": case(KARClassifier((20, 10)), classes),
    "pulled back, 45520 rows": case(KARClassifier((20,)), many_rows),
}
CASES = STEADY | LEAVES | PLAIN


# The stored predictions, by which a change of the predictions is noticed.
GOLDEN = Path(__file__).with_name("golden.json")
# Largest relative difference between two machines of the cases in `STEADY`.
STEADY_TO = 1e-8
# The same for the cases in `LEAVES`.
LEAVES_TO = 1e-3
# The same for a single pulled-back layer without a ridge.
PLAIN_TO = 1e-4
# The same for two pulled-back layers without a ridge.
DEEP_TO = 0.3


def bound(name: str) -> float:
    """Return the largest relative difference of a case's predictions between two machines."""
    if name in STEADY:
        return STEADY_TO
    if name in LEAVES:
        return LEAVES_TO
    return DEEP_TO if "layers" in name else PLAIN_TO


def all_predictions() -> dict[str, list]:
    return {name: fit_and_predict().tolist() for name, fit_and_predict in CASES.items()}


def difference(some: list, others: list) -> float:
    """Return the largest difference, relative to the largest prediction."""
    A, B = np.asarray(some), np.asarray(others)
    assert A.shape == B.shape
    return float(np.abs(A - B).max() / np.abs(B).max())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=GOLDEN, help="where they are written")
    parser.parse_args().file.write_text(json.dumps(all_predictions(), indent=1) + "\n")
