"""Least-squares solutions to more than 50 digits."""

from __future__ import annotations

import mpmath
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Normal equations square a condition of up to 1e32, and 50 digits are wanted.
DIGITS = 150


def exact_solution(A: Array, b: Array) -> Array:
    """Return the minimum-norm least-squares solution for full rank, rounded once, at the end."""
    ones = np.eye(min(A.shape))
    return low_rank_solution(*((A, ones) if len(A) >= A.shape[1] else (ones, A)), b)


def low_rank_solution(U: Array, V: Array, b: Array) -> Array:
    """Return the minimum-norm least-squares solution for ``A = U V``, rounded once, at the end.

    It is ``V' (V V')^-1 (U' U)^-1 U' b`` where U has independent columns and V independent rows.
    """
    (U, u), (V, v), (b, beta) = (_whole(M) for M in (U, V, b))
    with mpmath.workdps(DIGITS):
        y = solve_positive(U.T @ U, U.T @ b)
        x = V.T @ solve_positive(V @ V.T, y)
        return np.array([float(mpmath.ldexp(each, beta - u - v)) for each in x])


def solve_positive(K: NDArray[np.object_], c: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return ``K^-1 c`` for a positive definite K, by Gaussian elimination in numbers of mpmath."""
    M = np.column_stack([K, c]) * mpmath.mpf(1)
    for k in range(len(M)):
        below = M[k + 1 :]
        below[:, k + 1 :] -= np.outer(below[:, k] / M[k, k], M[k, k + 1 :])
    x = M[:, -1]
    for k in reversed(range(len(M))):
        x[k] = (x[k] - M[k, k + 1 : -1] @ x[k + 1 :]) / M[k, k]
    return x


def _whole(A: Array) -> tuple[NDArray[np.object_], int]:
    """Return whole numbers of any length and the exponent e: A is they times ``2^e``."""
    mantissa, exponent = np.frexp(np.asarray(A, dtype=np.float64))
    exponent[mantissa == 0.0] = exponent.max(initial=0)
    lowest = int(exponent.min(initial=0))
    whole = np.ldexp(mantissa, 53).astype(np.int64).astype(object)
    return whole * 2 ** (exponent - lowest).astype(object), lowest - 53
