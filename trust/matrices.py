"""Small helpers for matrices that the trust programs and the tests share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# The machine epsilon of double precision.
EPS = float(np.finfo(np.float64).eps)


def with_ones(A: Array) -> Array:
    """Return A with a column of ones in front."""
    return np.hstack([np.ones((len(A), 1)), A])


def with_spectrum(rng: np.random.Generator, m: int, n: int, singular_values: Array) -> Array:
    """Return a random m x n matrix with the given singular values."""
    k = len(singular_values)
    U = np.linalg.qr(rng.standard_normal((m, k)))[0]
    V = np.linalg.qr(rng.standard_normal((n, k)))[0]
    return (U * singular_values) @ V.T
