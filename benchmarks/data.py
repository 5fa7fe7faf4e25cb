"""Generated data, always from the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.preprocessing import minmax_scale

Array = NDArray[np.float64]
N_CLASSES = 10


def table(m: int, d: int) -> tuple[Array, NDArray[np.intp]]:
    """Return m rows uniform on [0, 1]; the class has the largest of ten noisy linear scores.

    They are generated in blocks, so that peak memory is not above that of the result.
    """
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((d, N_CLASSES))
    X, y = np.empty((m, d)), np.empty(m, dtype=np.intp)
    for rows in (slice(i, min(i + 4096, m)) for i in range(0, m, 4096)):
        rng.random(out=X[rows])
        noise = rng.standard_normal((rows.stop - rows.start, N_CLASSES))
        y[rows] = ((X[rows] - 0.5) @ scores + 0.3 * noise).argmax(axis=1)
    return X, y


def classes(m: int, d: int, n_classes: int = N_CLASSES) -> tuple[Array, NDArray[Any]]:
    """Return a nonlinear classification problem with inputs in [0, 1]."""
    X, y = make_classification(
        m, d, n_informative=d // 2, n_redundant=0, n_classes=n_classes, random_state=0
    )
    return minmax_scale(X), y


def right_hand_sides(A: Array, q: int) -> Array:
    """Return q right-hand sides, half of whose variance is explained by A."""
    rng = np.random.default_rng(1)
    W = rng.standard_normal((A.shape[1], q)) / np.sqrt(A.shape[1])
    return np.asarray(A @ W + rng.standard_normal((len(A), q)))


def low_rank(m: int, n: int, rank: int) -> Array:
    """Return a matrix of the given rank."""
    rng = np.random.default_rng(0)
    return np.asarray(rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)))


def with_condition(m: int, n: int, condition: float) -> Array:
    """Return a random matrix whose singular values are about evenly spaced in logarithm."""
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.standard_normal((n, n)))[0]
    mix = (V * np.logspace(0, -np.log10(condition), n)) @ V.T
    return np.asarray(rng.standard_normal((m, n)) @ mix)


def relu_layer(m: int, n: int) -> Array:
    """Return random ReLU units of 50 inputs uniform on [0, 1]: many are active for all rows."""
    rng = np.random.default_rng(0)
    H = rng.random((m, 50)) @ rng.standard_normal((50, n))
    return np.asarray(np.maximum(H + rng.standard_normal(n), 0.0))
