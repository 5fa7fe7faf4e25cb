"""Least-squares solutions to more than 50 digits."""

from __future__ import annotations

import mpmath
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Normal equations square a condition of up to 1e32, and 50 digits must remain.
DIGITS = 150


def exact_solution(A: Array, b: Array) -> Array:
    """Return the minimum-norm least-squares solution for full rank, rounded once at the end."""
    return low_rank_solution(A, None, b) if len(A) >= A.shape[1] else low_rank_solution(None, A, b)


def low_rank_solution(U: Array | None, V: Array | None, b: Array) -> Array:
    """Return the minimum-norm least-squares solution for ``A = U V``, rounded once at the end.

    It is ``V' (V V')^-1 (U' U)^-1 U' b`` for U with independent columns and V with independent
    rows. None stands for the identity.
    """
    x, exponent = _whole(b)
    with mpmath.workdps(DIGITS):
        if U is not None:
            whole, shift = _whole(U)
            x, exponent = solve_positive(whole.T @ whole, whole.T @ x), exponent - shift
        if V is not None:
            whole, shift = _whole(V)
            x, exponent = whole.T @ solve_positive(whole @ whole.T, x), exponent - shift
        return np.array([float(mpmath.ldexp(each, exponent)) for each in x])


def solve_positive(K: NDArray[np.object_], c: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return ``K^-1 c`` for a positive definite K by Gaussian elimination in mpmath."""
    M = np.column_stack([K, c]) * mpmath.mpf(1)
    n = len(M)
    for k in range(n):
        for i in range(k + 1, n):  # K stays symmetric, so half of it is enough
            M[i, i:] -= M[k, i:] * (M[k, i] / M[k, k])
    x = M[:, -1]
    for k in reversed(range(n)):
        x[k] = (x[k] - M[k, k + 1 : -1] @ x[k + 1 :]) / M[k, k]
    return x


def _whole(A: Array) -> tuple[NDArray[np.object_], int]:
    """Return integers of any length and an exponent e; A is the integers times ``2^e``."""
    mantissa, exponent = np.frexp(np.asarray(A, dtype=np.float64))
    exponent[mantissa == 0.0] = exponent.max(initial=0)
    lowest = int(exponent.min(initial=0))
    whole = np.ldexp(mantissa, 53).astype(np.int64).astype(object)
    return whole * 2 ** (exponent - lowest).astype(object), lowest - 53
