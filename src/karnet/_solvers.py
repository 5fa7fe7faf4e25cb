"""The solvers of one least-squares problem: Cholesky, QR and SVD, in the primal and the dual space.

A solver returns coefficients and rank, or None if it cannot be trusted with the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular, svd

from .accumulate import Centre, Gram, Stack, Sum, Triangle, triangular_factor
from .blocks import Statistic

__all__ = ["DUAL", "PRIMAL", "Problem", "Reduce"]

Array = NDArray[np.float64]
S = TypeVar("S", bound=Statistic)

EPS = float(np.finfo(np.float64).eps)
# Steps of refinement against the data that restore the digits which normal equations lose, by the
# reciprocal condition of the scaled Gram matrix (the square of that of A).
REFINEMENT_STEPS = ((1e-8, 1), (1e-13, 2))
# LAPACK's condition estimates are exact up to about this factor.
ESTIMATE = 10.0
# Units in the last place that the mean of a column may be off.
SUMMATION = 32
# Share of the cut-off below which the variation of a column about its mean counts as none.
CONSTANT = 1e-3


class Reduce(Protocol):
    """A reduction over blocks of rows: it calls `statistic(A, B, weight)` and merges."""

    def __call__(self, statistic: Callable[[Array, Array, Array | None], S], /) -> S:
        """Return the merged statistic."""
        ...


@dataclass(frozen=True)
class Problem:
    """A least-squares problem that is read through a reduction over blocks of its rows."""

    reduce: Reduce
    m: int
    n: int
    bias: bool
    alpha: float
    rcond: float

    @property
    def columns(self) -> int:
        return self.n + self.bias

    @cached_property
    def triangle(self) -> Triangle:
        return self.reduce(partial(Triangle.of, bias=self.bias))

    @cached_property
    def rows(self) -> Array:
        return self.reduce(partial(Stack.of, bias=self.bias)).rows


Found = tuple[Array, int] | None
Solver = Callable[[Problem], Found]


def _primal_cholesky(p: Problem) -> Found:
    gram = p.reduce(partial(Gram.of, bias=p.bias))
    AA = gram.AA + p.alpha * np.eye(p.n)
    scale = np.sqrt(np.diag(AA))
    if not (scale > _noise(p, gram.centre)).all():
        return None
    factor = _cholesky(AA / np.outer(scale, scale), p.rcond)
    if factor is None:
        return None
    L, steps = factor

    def apply(AB: Array) -> Array:
        return np.asarray(lapack.dpotrs(L, AB / scale[:, None])[0]) / scale[:, None]

    def correction(A: Array, B: Array, weight: Array | None) -> Sum:
        A, B = gram.centre.subtract(A, B, weight)
        return Sum(A.T @ (B - A @ W))

    W = apply(gram.AB)
    for _ in range(steps):
        W = W + apply(p.reduce(correction).value - p.alpha * W)
    return _with_bias(p, W, gram.centre), p.columns


def _primal_qr(p: Problem) -> Found:
    R, Z = _triangular_system(p)
    scale = _column_norms(R)
    R = R / scale
    if _triangular_rcond(R) <= ESTIMATE * p.n * p.rcond:
        return None
    W = _back_substitute(R, Z) / scale[:, None]
    return _with_bias(p, W, p.triangle.centre), p.columns


def _primal_svd(p: Problem) -> Found:
    R, Z = _triangular_system(p)
    if p.bias and not p.alpha:
        return _minimum_norm(p.rcond, R, Z, p.triangle.centre)
    W, rank = _minimum_norm(p.rcond, R, Z)
    return _with_bias(p, W, p.triangle.centre), rank + p.bias


def _triangular_system(p: Problem) -> tuple[Array, Array]:
    """Return R and Z so that ``R W = Z`` has the solution of the centred problem."""
    T = p.triangle.R
    R, Z = T[: p.n, : p.n], T[: p.n, p.n :]
    R = np.where(_column_norms(R) <= _noise(p, p.triangle.centre), 0.0, R)
    if p.alpha:
        ridge = np.hstack([np.sqrt(p.alpha) * np.eye(p.n), np.zeros((p.n, Z.shape[1]))])
        T = triangular_factor(np.vstack([np.hstack([R, Z]), ridge]))
        R, Z = T[: p.n, : p.n], T[: p.n, p.n :]
    return R, Z


def _dual_cholesky(p: Problem) -> Found:
    A, B, centre = _dual_system(p)
    factor = _cholesky(A @ A.T, p.rcond)
    if factor is None:
        return None
    L, steps = factor
    W = A.T @ lapack.dpotrs(L, B)[0]
    for _ in range(steps):
        W = W + A.T @ lapack.dpotrs(L, B - A @ W)[0]
    return _from_dual(p, W, p.m, centre)


def _dual_qr(p: Problem) -> Found:
    A, B, centre = _dual_system(p)
    Q, R = np.linalg.qr(A.T)
    if _triangular_rcond(R) <= ESTIMATE * p.m * p.rcond:
        return None
    W = Q @ _back_substitute(R, B, transposed=True)
    return _from_dual(p, W, p.m, centre)


def _dual_svd(p: Problem) -> Found:
    if p.bias and not p.alpha:
        return _minimum_norm(p.rcond, *_centred_rows(p))
    A, B, centre = _dual_system(p)
    # Scaled to unit length, the columns of a small ridge would count as much as those of A.
    W, rank = _minimum_norm(p.rcond, A, B, scaled=not p.alpha)
    return _from_dual(p, W, rank, centre)


def _dual_system(p: Problem) -> tuple[Array, Array, Centre | None]:
    """Return A and B so that the shortest W with ``A W = B`` is the solution.

    A ridge adds columns beside A here, as it adds rows below A in the primal space: the shortest
    solution of ``[A, sqrt(alpha) I] [W; E] = B`` holds the ridge solution.
    """
    if not p.alpha:
        return p.rows[:, : p.columns], p.rows[:, p.columns :], None
    A, B, centre = _centred_rows(p)
    return np.hstack([A, np.sqrt(p.alpha) * np.eye(p.m)]), B, centre


def _centred_rows(p: Problem) -> tuple[Array, Array, Centre]:
    A, B = p.rows[:, p.bias : p.columns], p.rows[:, p.columns :]
    if not p.bias:
        return A, B, Centre.of(A, B, None, bias=False)
    root = p.rows[:, :1]
    weight = float(np.sum(root**2))
    centre = Centre(weight, (root.T @ A)[0] / weight, (root.T @ B)[0] / weight)
    A, B = A - root * centre.A, B - root * centre.B
    A -= root * ((root.T @ A)[0] / weight)  # what the means were rounded by
    return np.where(_column_norms(A) <= _noise(p, centre), 0.0, A), B, centre


def _from_dual(p: Problem, W: Array, rank: int, centre: Centre | None) -> tuple[Array, int]:
    if centre is None:
        return W, rank
    return _with_bias(p, W[: p.n], centre), p.columns if rank == p.m else rank + p.bias


PRIMAL: dict[str, Solver] = {"cholesky": _primal_cholesky, "qr": _primal_qr, "svd": _primal_svd}
DUAL: dict[str, Solver] = {"cholesky": _dual_cholesky, "qr": _dual_qr, "svd": _dual_svd}


def _minimum_norm(
    rcond: float, R: Array, Z: Array, centre: Centre | None = None, scaled: bool = True
) -> tuple[Array, int]:
    """Return the minimum-norm solution of ``R W = Z``, and the rank of R with columns scaled.

    With a centre, R and Z are centred, and the solution and rank are those of ``[1, A] W = B``: it
    meets ``bias + mean_A W = mean_B`` too, and the bias counts in the norm.
    """
    n = R.shape[1]
    scale = _column_norms(R) if scaled else np.ones(n)
    U, s, Vt = svd(R / scale, full_matrices=False, check_finite=False)
    largest = s[:1].sum()
    rank = int(np.sum(s > rcond * largest))
    z = (U[:, :rank].T @ Z) / s[:rank, None]
    if rank == n or (s[rank:] > EPS * n * largest).any():
        # Of full rank W is unique. Where the cut-off leaves out directions that R still feels, it
        # would change the fit to shorten W along them: W stays the shortest in scaled columns.
        W = Vt[:rank].T @ z / scale[:, None]
        return (W, rank) if centre is None else (_below_bias(W, centre), rank + 1)
    # C W = z holds for every least-squares solution; the shortest lies in the span of C's rows.
    C = Vt[:rank] * scale
    if centre is not None:
        C = np.block([[np.ones((1, 1)), centre.A[None]], [np.zeros((rank, 1)), C]])
        z = np.vstack([centre.B, z])
    Q, T = np.linalg.qr(C.T)
    return Q @ _back_substitute(T, z, transposed=True), len(C)


def _with_bias(p: Problem, W: Array, centre: Centre) -> Array:
    return _below_bias(W, centre) if p.bias else W


def _below_bias(W: Array, centre: Centre) -> Array:
    return np.vstack([centre.B - centre.A @ W, W])


def _cholesky(K: Array, rcond: float) -> tuple[Array, int] | None:
    """Return the factor of K and the steps of refinement it needs; None if it can't be trusted."""
    L, info = lapack.dpotrf(K, clean=0)
    if info != 0:
        return None
    reciprocal_condition, _ = lapack.dpocon(L, np.abs(K).sum(axis=0).max(initial=0.0))
    if reciprocal_condition <= (ESTIMATE * rcond) ** 2:
        return None
    for bound, steps in REFINEMENT_STEPS:
        if reciprocal_condition >= bound:
            return L, steps
    return None


def _back_substitute(R: Array, Z: Array, transposed: bool = False) -> Array:
    """Return the solution of ``R W = Z``, or of ``R' W = Z``, for an upper triangle R."""
    if not Z.size:
        return Z  # which older versions of SciPy do not take
    return np.asarray(solve_triangular(R, Z, trans=int(transposed), check_finite=False))


def _triangular_rcond(R: Array) -> float:
    if not R.size:
        return 1.0
    # R is its own LU factorisation.
    return float(lapack.dgecon(R, np.abs(R).sum(axis=0).max())[0])


def _column_norms(A: Array) -> Array:
    """Return the Euclidean norms of the columns, without overflow; 1 for a column of zeros."""
    peak = np.abs(A).max(axis=0, initial=0.0)
    peak[peak == 0.0] = 1.0
    norms = peak * np.sqrt(np.sum((A / peak) ** 2, axis=0))
    norms[norms == 0.0] = 1.0
    return np.asarray(norms)


def _noise(p: Problem, centre: Centre) -> Array:
    """Return the norm up to which a centred column is rounding: it was constant before."""
    share = max(EPS * (p.columns + SUMMATION), CONSTANT * p.rcond)
    return np.asarray(share * np.sqrt(centre.weight) * np.abs(centre.A))
