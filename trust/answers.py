"""What a set of networks answers, with seeds fixed: `python -m trust.answers FILE.json`.

Without a file the kept ones are written anew: where answers change on purpose, and CHANGELOG.md
says so. It needs nothing but karnet, so that other versions of NumPy, SciPy and scikit-learn can be
asked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV

Array = NDArray[np.float64]
N_ASKED = 12


def scaled(X: Array) -> Array:
    return (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))


def classes() -> tuple[Array, Array]:
    X, y = load_wine(return_X_y=True)
    return scaled(X), y


def numbers() -> tuple[Array, Array]:
    X, y = load_diabetes(return_X_y=True)
    return scaled(X), scaled(y)


def many_rows() -> tuple[Array, Array]:
    """Return enough rows for several blocks, so that threads share them."""
    X, y = load_breast_cancer(return_X_y=True)
    noise = np.random.RandomState(0).standard_normal((80 * len(X), X.shape[1]))
    return np.tile(scaled(X), (80, 1)) + 0.1 * noise, np.tile(y, 80)


def first(n: int, data) -> tuple[Array, Array]:
    X, y = data()
    return X[:n], y[:n]


def learned_in_parts() -> Array:
    X, y = numbers()
    parts = [slice(0, 200), slice(200, 300), slice(300, None)]
    net, other = (KARRegressor((60,), hidden="random", alpha=1e-3, random_state=0) for _ in "ab")
    net.partial_fit(X[parts[0]], y[parts[0]]).partial_fit(X[parts[1]], y[parts[1]])
    net.merge(other.partial_fit(X[parts[2]], y[parts[2]]))
    return net.forget(X[:20], y[:20]).predict(X[:N_ASKED])


def answers(net, data) -> Callable[[], Array]:
    def learn_and_ask() -> Array:
        X, y = data()
        net.set_params(random_state=0).fit(X, y)
        return (net.decision_function if hasattr(net, "classes_") else net.predict)(X[:N_ASKED])

    return learn_and_ask


RANDOM = {"hidden": "random", "alpha": 1e-3}
# Random layers, or a ridge: these are to be the same everywhere to 1e-8.
STEADY: dict[str, Callable[[], Array]] = {
    "random, classes": answers(KARClassifier((100,), **RANDOM), classes),
    "random, numbers": answers(KARRegressor((100,), **RANDOM), numbers),
    "random, two layers, tanh": answers(
        KARClassifier((60, 30), activation="tanh", **RANDOM), classes
    ),
    "random, no ridge": answers(KARRegressor((30,), hidden="random"), numbers),
    "random, 45520 rows": answers(KARClassifier((200,), **RANDOM), many_rows),
    "random, 1200 wide": answers(KARClassifier((1200,), **RANDOM), lambda: first(3000, many_rows)),
    "random, Cauchy": answers(KARClassifier((100,), init="cauchy", **RANDOM), classes),
    "infinitely wide": answers(KARClassifier((np.inf,), activation="relu", **RANDOM), classes),
    "input metric": answers(KARRegressor((60,), hidden="metric", alpha=1e-3), numbers),
    "pulled back, ridge, classes": answers(KARClassifier((20,), alpha=1e-2), classes),
    "pulled back, ridge, numbers": answers(KARRegressor((20,), alpha=1e-2), numbers),
    "pulled back, ridge, 45520 rows": answers(KARClassifier((20,), alpha=1e-2), many_rows),
    "rows added, merged, taken out": learned_in_parts,
    "settles everything, classes": answers(KARClassifierCV(n_estimators=2, width=300), classes),
    "settles everything, numbers": answers(KARRegressorCV(n_estimators=2, width=300), numbers),
}
# No ridge: a pulled-back layer is singular to rounding, and shows what rounding does.
PLAIN: dict[str, Callable[[], Array]] = {
    "pulled back, classes": answers(KARClassifier((20,)), classes),
    "pulled back, numbers": answers(KARRegressor((20,)), numbers),
    "pulled back, two layers": answers(KARClassifier((20, 10)), classes),
    "pulled back, 45520 rows": answers(KARClassifier((20,)), many_rows),
}
CASES = STEADY | PLAIN


# What is kept, for whoever would change what networks answer; how far plain pull-back may be off.
GOLDEN = Path(__file__).with_name("golden.json")
STEADY_TO, PLAIN_TO, DEEP_TO = 1e-8, 1e-4, 0.3


def bound(name: str) -> float:
    """Return how far apart answers of a case may be on two machines."""
    if name in STEADY:
        return STEADY_TO
    return DEEP_TO if "layers" in name else PLAIN_TO


def all_answers() -> dict[str, list]:
    return {name: learn_and_ask().tolist() for name, learn_and_ask in CASES.items()}


def difference(some: list, others: list) -> float:
    """Return the largest difference, relative to the largest answer."""
    A, B = np.asarray(some), np.asarray(others)
    assert A.shape == B.shape
    return float(np.abs(A - B).max() / np.abs(B).max())


if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDEN
    file.write_text(json.dumps(all_answers(), indent=1) + "\n")
