"""Products, distances and factorisations of arrays of any library, on their devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import blas
from scipy.spatial.distance import cdist

from .devices import SETTINGS, is_cuda, own_function
from .devices import slow_in_float64 as slow_in_float64
from .namespace import full, is_host, joined, namespace

# Columns from which on a quarter of a symmetric product is mirrored on a device.
MIRRORED_COLUMNS = 512
# The computed part of a mirrored product has a multiple of this number of columns: matrix products
# of odd shapes take several times as long.
ALIGNED_COLUMNS = 64
# Rows over which a product is summed in float32 before float64 takes over.
SINGLE_ROWS = 2**12
# The largest finite number, for products that overflow.
LARGEST = float(np.finfo(np.float64).max)


def add_to_diagonal(A: Any, value: float) -> Any:
    """Return ``A + value I``."""
    if not value:
        return A
    return A + value * namespace(A).eye(A.shape[0], dtype=A.dtype, device=A.device)


def affine(A: Any, V: Any, w: Any) -> Any:
    """Return ``A V + w``, on a GPU as one product ``[A, 1] [V; w]`` if it is bound by memory."""
    if is_cuda(A) and V.shape[1] >= 2 * V.shape[0]:
        # Columns of zeros: matrix products of odd shapes take several times as long.
        pad = -(V.shape[0] + 1) % 8
        ones, zeros = full(A, (A.shape[0], 1), 1.0), full(A, (A.shape[0], pad), 0.0)
        below = full(A, (pad, V.shape[1]), 0.0)
        return joined([A, ones, zeros], axis=1) @ joined([V, w[None, :], below])
    Z = A @ V
    Z += w
    return Z


def careful_affine(A: Any, V: Any, w: Any) -> Any:
    """Return ``A V + w`` of NumPy arrays, with no overflow on the way and a finite result."""
    return careful_product(np.hstack([A, np.ones((len(A), 1))]), np.vstack([V, w]))


def careful_product(A: Any, B: Any) -> Any:
    """Return ``A B`` of NumPy arrays, clipped to the range of float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        P = A @ B
        if not np.isfinite(P).all():
            # Rows and columns are scaled to about 1 by powers of 2, and scaled back in the end.
            rows = np.frexp(np.abs(A).max(axis=1, keepdims=True, initial=0.0))[1]
            columns = np.frexp(np.abs(B).max(axis=0, keepdims=True, initial=0.0))[1]
            P = np.ldexp(np.ldexp(A, -rows) @ np.ldexp(B, -columns), rows + columns)
    return np.clip(P, -LARGEST, LARGEST)


def single_product(A: Any) -> Any:
    """Return ``A'A`` to about single precision: a sum of float32 products of a few rows each."""
    xp = namespace(A)
    single = xp.astype(A, xp.float32)
    K = xp.zeros((A.shape[1], A.shape[1]), dtype=xp.float64, device=A.device)
    for start in range(0, A.shape[0], SINGLE_ROWS):
        part = single[start : start + SINGLE_ROWS, :]
        K += xp.astype(part.T @ part, xp.float64)
    return K


def symmetric_product(A: Any) -> Any:
    """Return ``A'A``."""
    n = A.shape[1]
    if is_host(A) or n < MIRRORED_COLUMNS:
        return A.T @ A  # NumPy computes one half and mirrors it
    half = -(-n // (2 * ALIGNED_COLUMNS)) * ALIGNED_COLUMNS
    K = namespace(A).empty((n, n), dtype=A.dtype, device=A.device)
    K[:half, :] = A[:, :half].T @ A
    K[half:, :half] = K[:half, half:].T
    K[half:, half:] = A[:, half:].T @ A[:, half:]
    return K


def qr(A: Any, B: Any) -> tuple[Any, Any]:
    """Return R and Q'B of a QR decomposition of A; both are on a device."""
    n, k, both = A.shape[1], min(A.shape), joined([A, B], axis=1)
    own, xp = own_function(A, "triangle"), namespace(A)
    R = xp.linalg.qr(both).R if own is None else own(both)
    return xp.triu(R[:k, :n]), R[:k, n:]


def over_triangle(A: Any, R: Any) -> Any:
    """Return ``A R^-1`` for an upper triangle R; entries below the diagonal are ignored."""
    if is_host(A):
        return np.asarray(blas.dtrsm(1.0, R, A.T, trans_a=1)).T
    own = own_function(A, "over_triangle")
    if own is not None:
        return own(A, R)
    xp = namespace(A)
    return xp.linalg.solve(xp.triu(R).T, A.T).T


def cholesky(K: Any) -> tuple[Callable[[Any], Any], float]:
    """Return the map from M to ``K^-1 M`` and the reciprocal condition number of K.

    K is symmetric and on a device. Its inverse is computed for the condition number, which is 0 if
    K is not positive definite.
    """
    own = own_function(K, "cholesky")
    factor = _cholesky(K) if own is None else own(K)
    if factor is None:
        return (lambda M: M), 0.0
    xp = namespace(K)
    norms = [xp.max(xp.sum(xp.abs(each), axis=0)) for each in (K, factor[1])]
    product = float(norms[0] * norms[1])
    return factor[0], 1.0 / product if 1.0 <= product < np.inf else 0.0


def _cholesky(K: Any) -> tuple[Callable[[Any], Any], Any] | None:
    """Return the map from M to ``K^-1 M`` and the inverse of K by the array standard."""
    xp = namespace(K)
    try:
        L = xp.linalg.cholesky(K)
        inverse = xp.linalg.inv(K)
    except np.linalg.LinAlgError:
        return None
    if not float(xp.sum(L)) < np.inf:  # CuPy returns NaN for a matrix that is not definite
        return None
    return (lambda M: xp.linalg.solve(K, M)), inverse


def distances(X: Any, Z: Any, p: int) -> Any:
    """Return the Manhattan (p=1) or Euclidean (p=2) distances between rows of X and rows of Z.

    The distance of equal rows is exactly 0.
    """
    if is_host(X):
        return np.asarray(cdist(X, Z, {1: "cityblock", 2: "euclidean"}[p]))
    by_columns = is_cuda(X) and X.shape[1] <= SETTINGS.few_columns
    own = None if by_columns else own_function(X, "distances")
    if own is not None:
        return own(X, Z, p)
    xp, total = namespace(X), full(X, (X.shape[0], Z.shape[0]), 0.0)
    for j in range(X.shape[1]):
        difference = X[:, j : j + 1] - Z[:, j]
        total += xp.abs(difference) if p == 1 else difference * difference
    return total if p == 1 else xp.sqrt(total)
