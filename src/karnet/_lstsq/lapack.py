"""Dense factorisations of small matrices, and when they may be trusted.

All of them are SciPy's LAPACK and BLAS: NumPy's is another, and each waits for the other's threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from scipy.linalg import svd as scipy_svd

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .statistics import BLOCKED

__all__ = [
    "EPS",
    "ESTIMATE",
    "MODERATE",
    "Normal",
    "back_substitute",
    "cholesky",
    "column_norms",
    "exact_scale",
    "largest",
    "largest_first",
    "moderate",
    "normal_solver",
    "pivoted_qr",
    "singular_values",
    "sorted_qr",
    "svd",
    "triangular_rcond",
]

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
# Reciprocal condition of a Gram matrix (the square of that of A) from which on it may be trusted.
TRUSTED = 1e-12
# The same times the root of the number of columns, from which on (a condition of A of about 3)
# normal equations lose less than half a digit.
EXACT = 1e-1
# Values between 1 / this and this may be squared and multiplied freely.
MODERATE = 1e75
# LAPACK's condition estimates are exact up to about this factor.
ESTIMATE = 10.0


@dataclass(frozen=True)
class Normal:
    """The map from M to ``K^-1 M``, and whether its results need no refinement."""

    solve: Callable[[Array], Array]
    exact: bool

    def __call__(self, M: Array) -> Array:
        """Return ``K^-1 M``."""
        return self.solve(M)


def normal_solver(K: Array, rcond: float) -> Normal | None:
    """Return the map from M to ``K^-1 M``, or None if it cannot be trusted.

    Only the upper triangle of K is read; columns in one piece save a copy.
    """
    solve, reciprocal_condition = cholesky(K)
    if not reciprocal_condition >= max(TRUSTED, (ESTIMATE * rcond) ** 2):
        return None
    return Normal(solve, bool(reciprocal_condition >= EXACT / np.sqrt(len(K))))


def cholesky(K: Array) -> tuple[Callable[[Array], Array], float]:
    """Return the map from M to ``K^-1 M`` and the reciprocal condition of K, 0 if there is none."""
    if not arrays.is_host(K):
        return algebra.cholesky(K)
    if not K.size:
        return (lambda M: M), 0.0
    L, info = lapack.dpotrf(K, clean=0)
    # Of the upper triangle alone, the larger of both norms is at least half of that of K.
    norm = max(lapack.dlange("1", K), lapack.dlange("I", K))
    reciprocal_condition = float(lapack.dpocon(L, norm)[0]) if info == 0 else 0.0
    return (lambda M: np.asarray(lapack.dpotrs(L, M)[0])), reciprocal_condition


def moderate(*values: Array) -> bool:
    """Return whether all values may be squared and multiplied without under- or overflow."""
    sizes = [largest(each) for each in values]
    return all(size == 0.0 or 1.0 / MODERATE < size < MODERATE for size in sizes)


def largest(A: Array) -> float:
    """Return the largest of the absolute values; 0 if there are none."""
    if arrays.is_host(A):
        return float(np.abs(A).max(initial=0.0))
    xp = arrays.namespace(A)
    return float(xp.max(xp.abs(A))) if all(A.shape) else 0.0


def svd(A: Array) -> tuple[Array, Array, Array]:
    """Return U, s and V' of A; NaN if that is not finite."""
    if not np.isfinite(A).all():
        return np.full((len(A), 1), np.nan), np.ones(1), np.full((1, A.shape[1]), np.nan)
    if not A.size:  # refused by SciPy before 1.14
        return np.zeros((len(A), 0)), np.zeros(0), np.zeros((0, A.shape[1]))
    U, s, Vt = scipy_svd(A, full_matrices=False, check_finite=False)
    return U, s, Vt


def singular_values(A: Array) -> Array:
    """Return the singular values of A; 1 if it is not finite."""
    if not np.isfinite(A).all():
        return np.ones(1)
    if not A.size:
        return np.zeros(0)
    return np.asarray(scipy_svd(A, compute_uv=False, check_finite=False))


def pivoted_qr(A: Array) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return Q, R and the order of columns of A, those that add most first; rows are sorted.

    Then neither rows nor columns very different in size lose their digits to others.
    """
    k, rows = min(A.shape), largest_first(A)
    QR, columns, tau, _, _ = lapack.dgeqp3(A[rows], lwork=(A.shape[1] + 1) * BLOCKED)
    Q = np.empty((len(A), k))
    Q[rows] = lapack.dorgqr(QR[:, :k], tau, lwork=(k + 1) * BLOCKED)[0]
    return Q, np.triu(QR[:k]), columns - 1


def sorted_qr(M: Array) -> tuple[Array, Array]:
    """Return Q and R of M; of rows very different in size, none loses its digits to others."""
    order = largest_first(M)
    Q = np.empty((len(M), min(M.shape)))
    Q[order], R = np.linalg.qr(M[order])
    return Q, R


def largest_first(M: Array) -> NDArray[np.intp]:
    """Return the order of rows from the one with the largest value on."""
    return np.argsort(-np.abs(M).max(axis=1, initial=0.0), kind="stable")


def back_substitute(R: Array, Z: Array, transposed: bool = False) -> Array:
    """Return the solution of ``R W = Z``, or of ``R' W = Z``, for an upper triangle R."""
    if not Z.size:
        return Z
    # LAPACK's trtrs would start threads for three columns.
    return np.asarray(blas.dtrsm(1.0, R, Z, trans_a=int(transposed)))


def triangular_rcond(R: Array) -> float:
    """Return the reciprocal condition of an upper triangle R, as LAPACK estimates it."""
    if not R.size:
        return 1.0
    # R is its own LU factorisation.
    return float(lapack.dgecon(R, lapack.dlange("1", R))[0])


def column_norms(A: Array) -> Array:
    """Return the Euclidean norms of the columns, without overflow; 1 for a column of zeros."""
    squares = np.einsum("ij,ij->j", A, A)
    least, most = np.minimum.reduce(squares, initial=1.0), np.maximum.reduce(squares, initial=1.0)
    if least > 1.0 / MODERATE and most < MODERATE:
        return np.asarray(np.sqrt(squares))
    peak = np.abs(A).max(axis=0, initial=0.0)
    peak[peak == 0.0] = 1.0
    norms = peak * np.sqrt(np.sum((A / peak) ** 2, axis=0))
    norms[norms == 0.0] = 1.0
    return np.asarray(norms)


def exact_scale(norms: Array) -> Array:
    """Return powers of 2 near the norms: to divide by them rounds nothing."""
    return np.asarray(np.ldexp(1.0, np.frexp(norms)[1] - 1))
