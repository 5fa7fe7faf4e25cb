"""Short regression problems by which the coverage of intervals is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3

Array = NDArray[Any]
# Number of new rows of a table.
N_NEW = 600
# A numeric column of each data set, predicted from the others.
COLUMNS = {
    "abalone": "length",
    "boston-housing": "LSTAT",
    "bupa": "gammagt",
    "cmc": "children",
    "ecoli": "alm1",
    "glass": "RI",
    "heart-statlog": "thalach",
    "new-thyroid": "thyroxin",
    "pima": "mass",
    "segment": "region-centroid-row",
    "vehicle": "x8",
    "wdbc": "smoothness_mean",
    "wine": "color",
    "wpbc": "time",
    "yeast": "mcg",
}


def sparse_linear(n: int, seed: int) -> tuple[Array, Array]:
    """Return 20 inputs, two of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 20))
    return X, 2.0 * X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n)


def heteroscedastic(n: int, seed: int) -> tuple[Array, Array]:
    """Return targets with noise that depends on an input."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 4))
    noise = (0.1 + 0.8 * np.abs(X[:, 2])) * rng.standard_normal(n)
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + noise


def heavy_tails(n: int, seed: int) -> tuple[Array, Array]:
    """Return targets with Student's noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    return X, X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.standard_t(2.5, n)


def exponential(n: int, seed: int) -> tuple[Array, Array]:
    """Return almost exact targets that one input changes by orders of magnitude, as of yachts."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (n, 6))
    X[:, 5] = rng.integers(0, 14, n) / 13.0
    y = np.exp(5.0 * X[:, 5] - 2.0) * (1.0 + 0.2 * X[:, 0] - 0.1 * X[:, 1])
    return X, y + 0.02 * rng.standard_normal(n)


def smooth(n: int, seed: int) -> tuple[Array, Array]:
    """Return a smooth function without noise."""
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, 3))
    return X, np.exp(X[:, 0]) * np.cos(2.0 * X[:, 1]) + X[:, 2] ** 2


def steps(n: int, seed: int) -> tuple[Array, Array]:
    """Return rules for inputs of four values each, with a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 4)).astype(float)
    y = np.where(X[:, 0] > 1, 2.0 * X[:, 1], X[:, 2]) + 3.0 * (X[:, 3] == 0)
    return X, y + 0.2 * rng.standard_normal(n)


def rare_counts(n: int, seed: int) -> tuple[Array, Array]:
    """Return counts that are mostly zero."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(50.0, 85.0, (n, 3))
    return X, rng.poisson(np.exp((65.0 - X[:, 0]) / 8.0)).clip(0, 4).astype(float)


def noise(n: int, seed: int) -> tuple[Array, Array]:
    """Return targets that do not depend on the inputs."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 6)), rng.standard_normal(n)


GENERATED: dict[str, Callable[[int, int], tuple[Array, Array]]] = {
    "Friedman 1": lambda n, seed: make_friedman1(n, noise=1.0, random_state=seed),
    "Friedman 2": lambda n, seed: make_friedman2(n, noise=20.0, random_state=seed),
    "Friedman 3": lambda n, seed: make_friedman3(n, noise=0.1, random_state=seed),
    "sparse linear": sparse_linear,
    "heteroscedastic": heteroscedastic,
    "heavy tails": heavy_tails,
    "exponential": exponential,
    "smooth": smooth,
    "steps": steps,
    "rare counts": rare_counts,
    "noise": noise,
}
