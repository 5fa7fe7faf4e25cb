"""Products, distances and factorisations of arrays of any library, each where they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import blas
from scipy.spatial.distance import cdist

from .namespace import SETTINGS, full, is_cuda, is_host, joined, library, namespace, torch_itself

__all__ = [
    "add_to_diagonal",
    "affine",
    "careful_affine",
    "careful_product",
    "cholesky",
    "distances",
    "over_triangle",
    "qr",
    "single_product",
    "slow_in_float64",
    "symmetric_product",
]

# Columns from which on a fourth of a symmetric product is mirrored, and what the part that is
# computed should be a multiple of: matrix products of odd shapes take several times as long.
WIDE, ALIGNED = 512, 64
# NVIDIA's generations, by compute capability, that multiply float64 half as fast as float32.
FAST_IN_FLOAT64 = {(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)}
# Rows over which products are summed in float32.
FEW_ROWS = 2**12
LARGEST = float(np.finfo(np.float64).max)


def add_to_diagonal(A: Any, value: float) -> Any:
    """Return ``A + value I``."""
    if not value:
        return A
    return A + value * namespace(A).eye(A.shape[0], dtype=A.dtype, device=A.device)


def affine(A: Any, V: Any, w: Any) -> Any:
    """Return ``A V + w``; as one product ``[A, 1] [V; w]`` where memory is what takes time."""
    if is_cuda(A) and V.shape[1] >= 2 * V.shape[0]:
        # Columns of zeros, for matrix products of odd shapes take several times as long.
        pad = -(V.shape[0] + 1) % 8
        ones, zeros = full(A, (A.shape[0], 1), 1.0), full(A, (A.shape[0], pad), 0.0)
        below = full(A, (pad, V.shape[1]), 0.0)
        return joined([A, ones, zeros], axis=1) @ joined([V, w[None, :], below])
    Z = A @ V
    Z += w
    return Z


def careful_affine(A: Any, V: Any, w: Any) -> Any:
    """Return ``A V + w`` of NumPy's arrays as if no product could overflow; the ends are finite."""
    ones = np.ones((len(A), 1))
    return careful_product(np.hstack([A, ones]), np.vstack([V, w]))


def careful_product(A: Any, B: Any) -> Any:
    """Return ``A B`` of NumPy's arrays; what is beyond the largest number is that number."""
    with np.errstate(over="ignore", invalid="ignore"):
        P = A @ B
        if not np.isfinite(P).all():
            # Powers of 2 that bring rows and columns to about 1, and back in the end.
            rows = np.frexp(np.abs(A).max(axis=1, keepdims=True, initial=0.0))[1]
            columns = np.frexp(np.abs(B).max(axis=0, keepdims=True, initial=0.0))[1]
            P = np.ldexp(np.ldexp(A, -rows) @ np.ldexp(B, -columns), rows + columns)
    return np.clip(P, -LARGEST, LARGEST)


def slow_in_float64(x: Any) -> bool:
    """Return whether the device of x multiplies float32 many times faster than float64."""
    if SETTINGS.slow_in_float64 is not None:
        return SETTINGS.slow_in_float64 and not is_host(x)
    if library(x) == "torch" and x.is_cuda:
        return torch_itself().cuda.get_device_capability(x.device) not in FAST_IN_FLOAT64
    if library(x) == "cupy":
        return tuple(map(int, x.device.compute_capability)) not in FAST_IN_FLOAT64
    return False


def single_product(A: Any) -> Any:
    """Return ``A'A`` to about single precision: products in float32, of few rows each."""
    xp = namespace(A)
    single = xp.astype(A, xp.float32)
    K = xp.zeros((A.shape[1], A.shape[1]), dtype=xp.float64, device=A.device)
    for start in range(0, A.shape[0], FEW_ROWS):
        part = single[start : start + FEW_ROWS, :]
        K += xp.astype(part.T @ part, xp.float64)
    return K


def symmetric_product(A: Any) -> Any:
    """Return ``A'A``."""
    n = A.shape[1]
    if is_host(A) or n < WIDE:
        return A.T @ A  # NumPy computes one half only
    half = -(-n // (2 * ALIGNED)) * ALIGNED
    K = namespace(A).empty((n, n), dtype=A.dtype, device=A.device)
    K[:half, :] = A[:, :half].T @ A
    K[half:, :half] = K[:half, half:].T
    K[half:, half:] = A[:, half:].T @ A[:, half:]
    return K


def qr(A: Any, B: Any) -> tuple[Any, Any]:
    """Return R and Q'B of a QR decomposition of A that lies elsewhere than with NumPy."""
    n, xp = A.shape[1], namespace(A)
    k, both = min(A.shape), joined([A, B], axis=1)
    options = {"mode": "r"} if library(A) == "torch" else {}
    R = xp.linalg.qr(both, **options).R
    return xp.triu(R[:k, :n]), R[:k, n:]


def over_triangle(A: Any, R: Any) -> Any:
    """Return ``A R^-1`` for an upper triangle R; what is below it does not count."""
    if is_host(A):
        return np.asarray(blas.dtrsm(1.0, R, A.T, trans_a=1)).T
    xp = namespace(A)
    if library(A) == "torch":
        return torch_itself().linalg.solve_triangular(R, A, upper=True, left=False)
    return xp.linalg.solve(xp.triu(R).T, A.T).T


def cholesky(K: Any) -> tuple[Callable[[Any], Any], float]:
    """Return the map from M to ``K^-1 M`` and the reciprocal condition of K, 0 if there is none.

    K lies elsewhere and is positive definite; to know the condition, its inverse is formed.
    """
    xp = namespace(K)
    if library(K) == "torch":
        torch = torch_itself()

        L, info = torch.linalg.cholesky_ex(K)
        if int(info):
            return (lambda M: M), 0.0
        inverse = torch.cholesky_inverse(L)
        return (lambda M: torch.cholesky_solve(M, L)), _reciprocal_condition(K, inverse)
    try:
        L = xp.linalg.cholesky(K)
        inverse = xp.linalg.inv(K)
    except np.linalg.LinAlgError:
        return (lambda M: M), 0.0
    if not float(xp.sum(L)) < np.inf:  # CuPy fills what it cannot do with NaN
        return (lambda M: M), 0.0
    return (lambda M: xp.linalg.solve(K, M)), _reciprocal_condition(K, inverse)


def _reciprocal_condition(K: Any, inverse: Any) -> float:
    xp = namespace(K)
    norms = [xp.max(xp.sum(xp.abs(each), axis=0)) for each in (K, inverse)]
    product = float(norms[0] * norms[1])
    return 1.0 / product if 1.0 <= product < np.inf else 0.0


def distances(X: Any, Z: Any, p: int) -> Any:
    """Return the sums of absolute differences of rows (p=1), or Euclidean distances (p=2).

    They are exact for equal rows.
    """
    if is_host(X):
        return np.asarray(cdist(X, Z, {1: "cityblock", 2: "euclidean"}[p]))
    if library(X) == "torch" and not (is_cuda(X) and X.shape[1] <= SETTINGS.few_columns):
        exact = "donot_use_mm_for_euclid_dist"
        return torch_itself().cdist(X, Z, p=float(p), compute_mode=exact)
    xp, total = namespace(X), full(X, (X.shape[0], Z.shape[0]), 0.0)
    for j in range(X.shape[1]):
        apart = X[:, j : j + 1] - Z[:, j]
        total += xp.abs(apart) if p == 1 else apart * apart
    return total if p == 1 else xp.sqrt(total)
