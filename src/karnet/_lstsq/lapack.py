"""Dense factorisations of small matrices, and the limits within which they are trusted.

They call SciPy's LAPACK and BLAS: NumPy has its own, and each waits for the threads of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.linalg import svd as scipy_svd

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._arrays.linalg import LAPACK_BLOCK
from .._util.types import Array, Indices

EPS = float(np.finfo(np.float64).eps)
# Values between the reciprocal of this and this are squared and multiplied without overflow.
SAFE_MAGNITUDE = 1e75
# Factor by which LAPACK's estimates of a condition number may be off.
ESTIMATE_FACTOR = 10.0
# Rows up to which the mask of an upper triangle is cached: making it takes longer than using it.
CACHED_MASK = 32


@dataclass
class SolverLimits:
    """Thresholds of the choice between solvers, read at call time so that tests can change them."""

    # Multiplications above which Gram products and Cholesky are faster than an orthogonal method.
    product: float = 3e7
    # Least reciprocal condition of a Gram matrix (the square of that of A) for Cholesky.
    trusted: float = 1e-12
    # The same times the root of the number of columns, above which (a condition of A of about 3)
    # normal equations lose less than half a digit and are not refined.
    exact: float = 1e-1
    # Number of columns from which on a sample of rows is examined before all rows are reduced.
    sampled_columns: int = 128
    # Rows per column from which on samples and sketches are cheap compared with all rows.
    sketched_rows: int = 8
    # Features (rows times columns) up to which leave-one-out holds them all in memory: above, two
    # passes over blocks take half the time and less memory.
    loo_in_memory: int = 2**22


LIMITS = SolverLimits()


def default_rcond(n_columns: int) -> float:
    """Return the default cut-off: machine precision times the number of columns."""
    return EPS * n_columns


def significant(s: Array, rcond: float, largest: float | None = None) -> NDArray[np.bool_]:
    """Return which singular values are above `rcond` times the largest; the largest comes first."""
    return np.asarray(s > rcond * (s[:1].sum() if largest is None else largest))


@dataclass
class Cholesky:
    """The Cholesky factorisation ``K + ridge = R'R`` of a positive definite matrix."""

    solve: Callable[[Array], Array]  # from M to (K + ridge)^-1 M
    R: Array  # with arbitrary values below the diagonal; empty for a matrix on a device
    estimate: Callable[[], float]  # computes `reciprocal_condition`

    @classmethod
    def of(cls, K: Array, ridge: float | Array = 0.0) -> Cholesky | None:
        """Factorise ``K + ridge``, or return None if it is not positive definite.

        Only the upper triangle of K is read; Fortran order saves a copy. The ridge is added to the
        diagonal; for a matrix on a device it is a float.
        """
        if not arrays.is_host(K):
            solve, reciprocal_condition = algebra.cholesky(algebra.add_to_diagonal(K, float(ridge)))
            if not reciprocal_condition:
                return None
            return cls(solve, np.empty((0, 0)), lambda: reciprocal_condition)
        if not K.size:
            return None
        total = _with_ridge(K, ridge) if np.any(ridge) else K
        R, info = lapack.dpotrf(total, clean=0, overwrite_a=total is not K)
        if info != 0:
            return None

        def estimate() -> float:
            M = _with_ridge(K, ridge) if np.any(ridge) else K
            # For the upper triangle alone, the larger norm is at least half of the norm of K.
            norm = max(lapack.dlange("1", M), lapack.dlange("I", M))
            return float(lapack.dpocon(R, norm)[0])

        return cls(lambda M: np.asarray(lapack.dpotrs(R, M)[0]), R, estimate)

    @classmethod
    def trusted(cls, K: Array, rcond: float) -> Cholesky | None:
        """Factorise a Gram matrix K, or return None if its solutions cannot be trusted.

        `rcond` is the cut-off for the singular values of A, where ``K = A'A``.
        """
        factor = cls.of(K)
        trusted = factor is not None and factor.reciprocal_condition >= least_rcond(rcond)
        return factor if trusted else None

    @cached_property
    def reciprocal_condition(self) -> float:
        """The reciprocal condition number of ``K + ridge``, as LAPACK estimates it."""
        return self.estimate()


def least_rcond(rcond: float) -> float:
    """Return the least reciprocal condition of a Gram matrix for a cut-off of A."""
    return max(LIMITS.trusted, (ESTIMATE_FACTOR * rcond) ** 2)


def _with_ridge(K: Array, ridge: float | Array) -> Array:
    K = np.array(K, order="F")
    K[np.diag_indices(len(K))] += ridge
    return K


def safe_to_square(*values: Array) -> bool:
    """Return whether all values may be squared and multiplied without under- or overflow."""
    return all(
        size == 0.0 or 1.0 / SAFE_MAGNITUDE < size < SAFE_MAGNITUDE for size in map(largest, values)
    )


def largest(A: Array) -> float:
    """Return the largest absolute value in A; 0 if A is empty."""
    if arrays.is_host(A):
        return float(np.abs(A).max(initial=0.0))
    xp = arrays.namespace(A)
    return float(xp.max(xp.abs(A))) if all(A.shape) else 0.0


def svd(A: Array) -> tuple[Array, Array, Array]:
    """Return U, s and V' of A as NumPy arrays; NaN if A is not finite."""
    if not arrays.is_host(A):
        U, s, Vt = arrays.namespace(A).linalg.svd(A, full_matrices=False)
        return arrays.to_numpy(U), arrays.to_numpy(s), arrays.to_numpy(Vt)
    if not np.isfinite(A).all():
        return np.full((len(A), 1), np.nan), np.ones(1), np.full((1, A.shape[1]), np.nan)
    if not A.size:  # an error in SciPy before 1.14
        return np.zeros((len(A), 0)), np.zeros(0), np.zeros((0, A.shape[1]))
    return scipy_svd(A, full_matrices=False, check_finite=False)


def singular_values(A: Array) -> Array:
    """Return the singular values of A; 1 if A is not finite."""
    if not A.size or not np.isfinite(A).all():
        return svd(A)[1]
    return np.asarray(scipy_svd(A, compute_uv=False, check_finite=False))


@lru_cache(maxsize=32)
def _upper(k: int, n: int) -> NDArray[np.bool_]:
    return np.triu(np.ones((k, n), dtype=bool))


def triangular(A: Array, B: Array) -> tuple[Array, Array]:
    """Return R and Q'B of a QR decomposition ``A = Q R``."""
    k = min(A.shape)
    if not k:
        return np.empty((0, A.shape[1])), np.empty((0, B.shape[1]))
    if not arrays.is_host(A):
        return algebra.qr(A, B)
    QR, tau, _, _ = lapack.dgeqrf(A, lwork=LAPACK_BLOCK * A.shape[1])
    R = np.where(_upper(k, A.shape[1]), QR[:k], 0.0) if k <= CACHED_MASK else np.triu(QR[:k])
    if not B.size:
        return R, np.empty((k, B.shape[1]))
    Z, _, _ = lapack.dormqr("L", "T", QR[:, :k], tau, B, lwork=LAPACK_BLOCK * B.shape[1])
    # A contiguous copy, as another process would receive it: later products then round alike.
    return R, np.array(Z[:k], order="C")


def pivoted_qr(A: Array) -> tuple[Array, Array, Indices]:
    """Return Q, R and the order of columns of a QR decomposition with column pivoting.

    Rows are sorted by size first. Rows and columns of very different sizes then keep their digits.
    """
    k, rows = min(A.shape), largest_first(A)
    QR, columns, tau, _, _ = lapack.dgeqp3(A[rows], lwork=(A.shape[1] + 1) * LAPACK_BLOCK)
    Q = np.empty((len(A), k))
    Q[rows] = lapack.dorgqr(QR[:, :k], tau, lwork=(k + 1) * LAPACK_BLOCK)[0]
    return Q, np.triu(QR[:k]), columns - 1


def sorted_qr(M: Array) -> tuple[Array, Array]:
    """Return Q and R of M, factorised in the order of row sizes so that small rows keep digits."""
    order = largest_first(M)
    Q = np.empty((len(M), min(M.shape)))
    Q[order], R = np.linalg.qr(M[order])
    return Q, R


def largest_first(M: Array) -> Indices:
    """Return the order of rows by their largest absolute value, descending."""
    return np.argsort(-np.abs(M).max(axis=1, initial=0.0), kind="stable")


def column_norms(A: Array) -> Array:
    """Return the Euclidean norms of the columns, without overflow; 1 for a column of zeros."""
    squares = np.einsum("ij,ij->j", A, A)
    least, most = np.minimum.reduce(squares, initial=1.0), np.maximum.reduce(squares, initial=1.0)
    if least > 1.0 / SAFE_MAGNITUDE and most < SAFE_MAGNITUDE:
        return np.asarray(np.sqrt(squares))
    peak = np.abs(A).max(axis=0, initial=0.0)
    peak[peak == 0.0] = 1.0
    norms = peak * np.sqrt(np.sum((A / peak) ** 2, axis=0))
    norms[norms == 0.0] = 1.0
    return np.asarray(norms)
