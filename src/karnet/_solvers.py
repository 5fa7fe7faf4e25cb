"""The solvers of one least-squares problem: Cholesky, QR and SVD, in the primal and the dual space.

A solver returns coefficients and rank, or None if it cannot be trusted with the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ._dense import (
    EPS,
    ESTIMATE,
    MODERATE,
    back_substitute,
    cholesky,
    column_norms,
    largest_first,
    moderate,
    normal_solver,
    sorted_qr,
    svd,
    triangular_rcond,
)
from .accumulate import (
    SHORT,
    Centre,
    Gram,
    Moments,
    Pair,
    Stack,
    Sum,
    Triangle,
    centred,
    triangular,
)
from .blocks import Statistic

__all__ = ["DUAL", "PRIMAL", "Observe", "Problem", "Reduce", "Sample"]

Array = NDArray[np.float64]
S = TypeVar("S", bound=Statistic)

# Steps of refinement against the data, to restore the digits that normal equations lose, and the
# rate of shrinking from step to step above which they never will.
MAX_STEPS, SLOW = 3, 0.1
# Cut-off or reciprocal condition above which rounding over many rows cannot be taken for rank.
CLEAR = 1e-11
# Units in the last place that the mean of a column may be off.
SUMMATION = 32
# Share of the cut-off below which the variation of a column about its mean counts as none.
CONSTANT = 1e-3
# Matrices of low rank: from how many columns on they are looked at through a sample of rows, and
# how many rows per column that has; how many dimensions are tried at once; which share of the
# cut-off may lie beside these in the sample and, told by some probes, in all.
MANY, SAMPLE, N_AT_ONCE = 128, 2, 32
SAMPLED, LOST, N_PROBES = 0.1, 0.3, 8
# How many rows per column make a sample of them cheap beside all, and the reciprocal condition of
# its normal equations below which those of all rows are not tried.
TALL, HOPELESS = 8, 1e-14

NONE = Sum(np.zeros(0))


class Reduce(Protocol):
    """A reduction over blocks of rows: it calls `statistic(A, B, weight)` and merges."""

    def __call__(
        self, statistic: Callable[[Array, Array, Array | None], S], /, fine: bool = False
    ) -> S:
        """Return the merged statistic; of small parts if `fine`, for those cheap to merge."""
        ...


# From a step to a reduction over every step-th row.
Sample = Callable[[int], Reduce]
# From the fit [1, A] W of a block of rows, B and the weights to what there is to say about it.
Observe = Callable[[Array, Array, Array | None], Sum]


@dataclass(frozen=True)
class Problem:
    """A least-squares problem that is read through a reduction over blocks of its rows."""

    reduce: Reduce
    m: int
    n: int
    bias: bool
    alpha: float
    rcond: float
    sample: Sample | None = None
    observe: Observe | None = None

    @property
    def columns(self) -> int:
        return self.n + self.bias

    @cached_property
    def short(self) -> Triangle | None:
        return _short_triangle(self)

    @cached_property
    def triangle(self) -> Triangle:
        if self.short is not None:
            return self.short
        long = self.m > SHORT and self.rcond <= CLEAR
        if not (long and self.looks_singular):
            triangle = self.reduce(partial(Triangle.of, bias=self.bias))
            R = triangle.R
            if not long or triangular_rcond(R / column_norms(R)) > CLEAR:
                return triangle
        return self.reduce(partial(Triangle.of, bias=self.bias, by_halves=True))

    @cached_property
    def stack(self) -> Stack:
        return self.reduce(partial(Stack.of, bias=self.bias))

    @cached_property
    def looks_singular(self) -> bool:
        """Whether normal equations of a sample of rows cannot be solved."""
        if self.sample is None or self.m < TALL * self.n or self.n < MANY:
            return False
        step = self.m // (SAMPLE * self.n)
        gram = self.sample(step)(partial(Gram.of, bias=self.bias))
        AA = step * gram.AA + self.alpha * np.eye(self.n)
        scale = np.sqrt(np.diag(AA))
        return bool(cholesky((AA / np.outer(scale, scale)).T)[1] < HOPELESS)


def _short_triangle(p: Problem) -> Triangle | None:
    """Return R and Z with fewer rows than columns, or None if that would not pay or not hold.

    The rows of a matrix of low numerical rank lie near a space of few dimensions. A sample of them
    says near which; R and Z are those of all rows, and so is the measure of what lies beside it.
    """
    if p.sample is None or p.rcond <= CLEAR or min(p.m, p.n) < MANY:
        return None
    A, _, _ = _centred_rows(replace(p, reduce=p.sample(max(p.m // (SAMPLE * p.n), 1))))
    sampled = column_norms(A)
    if not np.isfinite(A).all() or sampled.min(initial=1.0) <= 1.0 / MODERATE:
        return None
    Q = _row_space(A / sampled, SAMPLED * p.rcond)
    if Q is None:
        return None
    moments = p.reduce(partial(Moments.of, bias=p.bias), fine=True)
    scale = np.sqrt(moments.squares)
    if not moderate(scale):
        return None
    scale[scale <= _noise(p, moments.centre)] = np.inf
    Q, _ = np.linalg.qr(Q * (sampled / scale)[:, None])
    probes = np.random.RandomState(1).standard_normal((p.n, N_PROBES))
    probes -= Q @ (Q.T @ probes)
    combine = np.hstack([Q, probes]) / scale[:, None]

    def of_block(A: Array, B: Array, weight: Array | None) -> Triangle:
        A, B = moments.centre.subtract(A, B, weight)
        return Triangle.of(A @ combine, B, None, bias=False)

    triangle, k = p.reduce(of_block), Q.shape[1]
    R = triangle.R[:k, :k]
    beside = np.linalg.norm(triangle.R[:, k:], axis=0)
    lost = EPS * p.n if p.alpha else LOST * p.rcond  # a ridge cuts nothing off
    if not (beside <= lost * np.linalg.norm(R, 2)).all():
        return None
    scale[np.isinf(scale)] = 0.0
    # One more row stands for what lies beside: A still feels it, though below the cut-off.
    size = np.sqrt(np.mean(beside**2) / max(p.n - k, 1)) / np.linalg.norm(probes[:, 0])
    return Triangle(
        moments.centre,
        np.vstack([R @ Q.T, size * probes[:, :1].T]) * scale,
        np.vstack([triangle.Z[:k], np.zeros((1, triangle.Z.shape[1]))]),
    )


def _row_space(A: Array, share: float) -> Array | None:
    """Return a basis of what the rows of A span but for a share, or None if it is not small."""
    rng = np.random.RandomState(0)
    Q, rest, limit = np.empty((A.shape[1], 0)), A, None
    while Q.shape[1] <= min(A.shape) // 4:
        Y = rest.T @ rng.standard_normal((len(A), N_AT_ONCE))
        Y -= Q @ (Q.T @ Y)
        new, _ = np.linalg.qr(Y)
        seen = rest @ new
        rest = rest - seen @ new.T
        Q = np.hstack([Q, new])
        limit = limit or share * np.linalg.norm(seen, 2)
        if np.linalg.norm(rest) <= limit:
            return Q
    return None


@dataclass(frozen=True)
class Found:
    """Coefficients and rank; and what was observed of their fit, but for the last refinement."""

    coef: Array
    rank: int
    observed: Array | None = None


Solver = Callable[[Problem], Found | None]


def _primal_cholesky(p: Problem) -> Found | None:
    if p.looks_singular:
        return None
    gram = p.reduce(partial(Gram.of, bias=p.bias))
    AA = gram.AA + p.alpha * np.eye(p.n)
    scale = np.sqrt(np.diag(AA))
    if not (scale > _noise(p, gram.centre)).all() or not moderate(scale, gram.AB):
        return None
    scaled = normal_solver((AA / np.outer(scale, scale)).T, p.rcond)
    if scaled is None:
        return None

    def solve_normal(AB: Array) -> Array:
        return scaled(AB / scale[:, None]) / scale[:, None]

    observed: list[Array] = []

    def correction(W: Array) -> Array:
        def of_block(A: Array, B: Array, weight: Array | None) -> Pair:
            A, B = gram.centre.subtract(A, B, None)
            fit = A @ W
            seen = p.observe(fit + gram.centre.B, B + gram.centre.B, weight) if p.observe else NONE
            error = np.subtract(B, fit, out=fit)
            if weight is not None:
                error *= weight[:, None]
            return Pair(Sum(A.T @ error), seen)

        found = p.reduce(of_block, fine=True)
        observed[:] = [found.second.value] if p.observe else []
        return solve_normal(found.first.value - p.alpha * W)

    W = solve_normal(gram.AB)
    refined = W if scaled.exact else _refined(W, correction, scale)
    if refined is None:
        return None
    return Found(_with_bias(p, refined, gram.centre), p.columns, *observed)


def _primal_qr(p: Problem) -> Found | None:
    R, Z = _triangular_system(p)
    if len(R) < p.n:
        return None
    least = ESTIMATE * p.n * p.rcond
    # Columns of unit length are at most sqrt(n) times worse than those of the best lengths.
    if triangular_rcond(R) > np.sqrt(p.n) * least:
        W = back_substitute(R, Z)
    else:
        scale = column_norms(R)
        R = R / scale
        if triangular_rcond(R) <= least:
            return None
        W = back_substitute(R, Z) / scale[:, None]
    return Found(_with_bias(p, W, p.triangle.centre), p.columns)


def _primal_svd(p: Problem) -> Found | None:
    R, Z = _triangular_system(p)
    if p.bias and not p.alpha:
        return Found(*_minimum_norm(p.rcond, R, Z, p.triangle.centre))
    W, rank = _minimum_norm(p.rcond, R, Z)
    return Found(_with_bias(p, W, p.triangle.centre), rank + p.bias)


def _triangular_system(p: Problem) -> tuple[Array, Array]:
    """Return R and Z so that ``R W = Z`` has the solution of the centred problem."""
    R, Z = p.triangle.R, p.triangle.Z
    if p.bias:
        R = np.where(column_norms(R) <= _noise(p, p.triangle.centre), 0.0, R)
    if p.alpha:
        A = np.vstack([R, np.sqrt(p.alpha) * np.eye(p.n)])
        B = np.vstack([Z, np.zeros((p.n, Z.shape[1]))])
        order = largest_first(A)
        R, Z = triangular(A[order], B[order])
    return R, Z


def _dual_cholesky(p: Problem) -> Found | None:
    A, B, centre = _dual_system(p)
    # As BLAS sees it, A lies in columns: it is A' there.
    K = blas.dsyrk(1.0, A.T, trans=1)
    solve_normal = normal_solver(K, p.rcond) if moderate(np.diag(K), B) else None
    if solve_normal is None:
        return None

    def shortest(B: Array) -> Array:
        return np.asarray(blas.dgemm(1.0, A.T, solve_normal(B)))

    def correction(W: Array) -> Array:
        return shortest(B - blas.dgemm(1.0, A.T, W, trans_a=1))

    W = _refined(shortest(B), correction, np.ones(A.shape[1]))
    return None if W is None else _from_dual(p, W, centre)


def _dual_qr(p: Problem) -> Found | None:
    if not p.alpha and p.short is not None:
        return None
    A, B, centre = _dual_system(p)
    Q, R = sorted_qr(A.T)
    if triangular_rcond(R) <= ESTIMATE * p.m * p.rcond:
        return None
    return _from_dual(p, Q @ back_substitute(R, B, transposed=True), centre)


def _dual_svd(p: Problem) -> Found | None:
    if not p.alpha and p.short is not None:
        return _primal_svd(p)
    A, B, centre = _centred_rows(p)
    if not p.alpha:
        return Found(*_minimum_norm(p.rcond, A, B, centre if p.bias else None))
    U, s, Vt = svd(A)
    felt = s > p.rcond * s[:1].sum()
    filtered = (s[felt] / (s[felt] ** 2 + p.alpha))[:, None]
    W = Vt[felt].T @ (filtered * (U[:, felt].T @ B))
    singular = np.sqrt(p.alpha) <= p.rcond * s[:1].sum()
    rank = int(felt.sum()) + p.bias if singular else p.columns
    return Found(_with_bias(p, W, centre), rank)


def _dual_system(p: Problem) -> tuple[Array, Array, Centre | None]:
    """Return A and B so that the shortest W with ``A W = B`` is the solution.

    A ridge adds columns beside A here, as it adds rows below A in the primal space: the shortest
    solution of ``[A, sqrt(alpha) I] [W; E] = B`` holds the ridge solution.
    """
    if not p.alpha:
        return p.stack.A, p.stack.B, None
    A, B, centre = _centred_rows(p)
    return np.hstack([A, np.sqrt(p.alpha) * np.eye(p.m)]), B, centre


def _centred_rows(p: Problem) -> tuple[Array, Array, Centre]:
    A, B = p.stack.A[:, int(p.bias) :], p.stack.B
    if not p.bias:
        centre, _, _ = centred(A, B, None, bias=False)
        return A, B, centre
    root = p.stack.A[:, 0]
    centre, A, B = centred(A / root[:, None], B / root[:, None], root**2, bias=True)
    return np.where(column_norms(A) <= _noise(p, centre), 0.0, A), B, centre


def _from_dual(p: Problem, W: Array, centre: Centre | None) -> Found:
    if centre is None:
        return Found(W, p.m)
    return Found(_with_bias(p, W[: p.n], centre), p.columns)


PRIMAL: dict[str, Solver] = {"cholesky": _primal_cholesky, "qr": _primal_qr, "svd": _primal_svd}
DUAL: dict[str, Solver] = {"cholesky": _dual_cholesky, "qr": _dual_qr, "svd": _dual_svd}


def _minimum_norm(
    rcond: float, R: Array, Z: Array, centre: Centre | None = None
) -> tuple[Array, int]:
    """Return the minimum-norm solution of ``R W = Z``, and the rank of R with columns scaled.

    With a centre, R and Z are centred, and the solution and rank are those of ``[1, A] W = B``: it
    meets ``bias + mean_A W = mean_B`` too, and the bias counts in the norm.
    """
    n = R.shape[1]
    scale = column_norms(R)
    U, s, Vt = svd(R / scale)
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
    Q, T = sorted_qr(C.T)
    W = Q @ back_substitute(T, z, transposed=True)
    return (W, rank) if centre is None else (_share_with_bias(W, Q, centre), rank + 1)


def _share_with_bias(W: Array, Q: Array, centre: Centre) -> Array:
    """Return the shortest [bias; W] with ``bias + mean_A W = mean_B`` that fits like W.

    Along d, the part of the means outside the span of Q, a change of W looks like a bias.
    """
    d = centre.A - Q @ (Q.T @ centre.A)
    d -= Q @ (Q.T @ d)
    d[np.abs(d) <= EPS * (len(d) + SUMMATION) * np.abs(centre.A)] = 0.0
    length = np.hypot(1.0, column_norms(d[:, None])[0] if d.any() else 0.0)
    share = (centre.B - centre.A @ W) / length
    return np.vstack([share / length, W + np.outer(d / length, share)])


def _with_bias(p: Problem, W: Array, centre: Centre) -> Array:
    return _below_bias(W, centre) if p.bias else W


def _below_bias(W: Array, centre: Centre) -> Array:
    return np.vstack([centre.B - centre.A @ W, W])


def _refined(W: Array, correction: Callable[[Array], Array], scale: Array) -> Array | None:
    """Return W after steps of refinement, or None if they do not restore all digits.

    The last step times the rate at which steps shrink is what is left of the error.
    """
    before = _size(W, scale)
    for _ in range(MAX_STEPS):
        D = correction(W)
        W = W + D
        step, size = _size(D, scale), _size(W, scale)
        if step * step <= EPS * size * before:
            return W
        if not step <= SLOW * before:
            return None
        before = step
    return None


def _size(W: Array, scale: Array) -> float:
    return float(np.linalg.norm(scale[:, None] * W))


def _noise(p: Problem, centre: Centre) -> Array:
    """Return the norm up to which a centred column is rounding: it was constant before."""
    share = max(EPS * (p.columns + SUMMATION), CONSTANT * p.rcond)
    return np.asarray(share * np.sqrt(centre.weight) * np.abs(centre.A))
