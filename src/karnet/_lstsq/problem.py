"""A least-squares problem, read through a reduction over blocks of its rows, for all its solvers.

What several of them ask for, its triangle, its rows, whether a sample of these looks singular, is
found once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._rows.memory import Statistic, power_of_2
from .lapack import (
    EPS,
    LIMITS,
    SAFE_MAGNITUDE,
    Cholesky,
    column_norms,
    safe_to_square,
    triangular_rcond,
)
from .statistics import SHORT, Centre, Gram, Moments, Stack, Sum, Triangle, centred

Array = NDArray[np.float64]
S = TypeVar("S", bound=Statistic)

# Cut-off or reciprocal condition above which rounding over many rows cannot be taken for rank.
CLEAR = 1e-11
# Units in the last place that the mean of a column may be off.
SUMMATION = 32
# Share of the cut-off below which the variation of a column about its mean counts as none.
CONSTANT = 1e-3
# Matrices of low rank: from how many columns on they are looked at through a sample of rows, and
# how many rows per column that has; how many dimensions are tried at once; which share of the
# cut-off may lie beside these in the sample and, told by some probes, in all.
SAMPLE, N_AT_ONCE = 2, 32
SAMPLED, LOST, N_PROBES = 0.1, 0.3, 8
# How many rows per column make a sample of them cheap beside all, and the reciprocal condition of
# its normal equations below which those of all rows are not tried.
HOPELESS = 1e-14


class Reduce(Protocol):
    """A reduction over blocks of rows: it calls `statistic(A, B, weight)` and merges."""

    def __call__(
        self, statistic: Callable[[Array, Array, Array | None], S], /, small_chunks: bool = False
    ) -> S:
        """Return the merged statistic of all blocks, or of small chunks of them."""
        ...


# From a step to a reduction over every step-th row.
Sample = Callable[[int], Reduce]
# From the fit [1, A] W of a block of rows, B and the weights to what there is to say about it.
Observe = Callable[[Array, Array, Array | None], Sum]


@dataclass  # a frozen one takes a microsecond more to make, which small problems feel
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
    fast_products: bool = False
    known: Triangle | None = None

    @property
    def columns(self) -> int:
        """The number of columns, that of the bias included."""
        return self.n + self.bias

    @property
    def few(self) -> bool:
        """Whether there are few rows, all at hand, and every digit of the solution counts."""
        return self.m <= SHORT and self.rcond <= CLEAR and not self.alpha and self.known is None

    @cached_property
    def short(self) -> Triangle | None:
        """R and Z with fewer rows than columns, or None if that would not pay or not hold."""
        return _short_triangle(self)

    @cached_property
    def triangle(self) -> Triangle:
        """That known before, the short one, or that of all rows.

        By halves where rounding could be taken for rank.
        """
        if self.known is not None:
            return self.known
        if self.short is not None:
            return self.short
        long = self.m > SHORT and self.rcond <= CLEAR
        if not (long and self.looks_singular):
            triangle = self.reduce(partial(Triangle.of, bias=self.bias))
            if not arrays.is_host(triangle.R):  # small problems would feel the look at every part
                triangle = arrays.on_host(triangle)
            R = triangle.R
            if not long or triangular_rcond(R / column_norms(R)) > CLEAR:
                return triangle
        return arrays.on_host(self.reduce(partial(Triangle.of, bias=self.bias, by_halves=True)))

    @cached_property
    def stack(self) -> Stack:
        """The rows themselves."""
        return self.reduce(partial(Stack.of, bias=self.bias))

    @cached_property
    def looks_singular(self) -> bool:
        """Whether normal equations of a sample of rows cannot be solved."""
        small = self.n < LIMITS.sampled_columns or self.m < LIMITS.sampled_rows * self.n
        if small or self.sample is None or self.fast_products:
            return False
        step = self.m // (SAMPLE * self.n)
        gram = self.sample(step)(partial(Gram.of, bias=self.bias))
        AA = algebra.add_to_diagonal(power_of_2(step) * gram.AA, self.alpha)
        _, AA = unit_diagonal(AA)
        factor = Cholesky.of(AA.T)
        return factor is None or factor.reciprocal_condition < HOPELESS


def _short_triangle(p: Problem) -> Triangle | None:
    """Return R and Z with fewer rows than columns, or None if that would not pay or not hold.

    The rows of a matrix of low numerical rank lie near a space of few dimensions. A sample of them
    says near which; R and Z are those of all rows, and so is the measure of what lies beside it.
    """
    if p.sample is None or p.rcond <= CLEAR or min(p.m, p.n) < LIMITS.sampled_columns:
        return None
    A, _, _ = centred_rows(replace(p, reduce=p.sample(max(p.m // (SAMPLE * p.n), 1))))
    sampled = column_norms(A)
    if not np.isfinite(A).all() or sampled.min(initial=1.0) <= 1.0 / SAFE_MAGNITUDE:
        return None
    Q = _row_space(A / sampled, SAMPLED * p.rcond)
    if Q is None:
        return None
    moments = arrays.on_host(p.reduce(partial(Moments.of, bias=p.bias), small_chunks=True))
    scale = np.sqrt(moments.squares)
    if not safe_to_square(scale):
        return None
    scale[scale <= noise(p, moments.centre)] = np.inf
    Q, _ = np.linalg.qr(Q * (sampled / scale)[:, None])
    probes = np.random.RandomState(1).standard_normal((p.n, N_PROBES))
    probes -= Q @ (Q.T @ probes)
    combine = np.hstack([Q, probes]) / scale[:, None]

    def of_block(A: Array, B: Array, weight: Array | None) -> Triangle:
        A, B = moments.centre.subtract(A, B, weight)
        return Triangle.of(A @ arrays.like(A, combine), B, None, bias=False)

    triangle, k = arrays.on_host(p.reduce(of_block)), Q.shape[1]
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


def centred_rows(p: Problem) -> tuple[Array, Array, Centre]:
    """Return the rows of A and B less their means, times the roots of their weights, and the means.

    Columns that were constant are zero. Without bias nothing is taken off.
    """
    A, B = p.stack.A[:, int(p.bias) :], p.stack.B
    if not p.bias:
        centre, _, _ = centred(A, B, None, bias=False)
        return A, B, centre
    root = p.stack.A[:, 0]
    centre, A, B = centred(A / root[:, None], B / root[:, None], root**2, bias=True)
    return np.where(column_norms(A) <= noise(p, centre), 0.0, A), B, centre


def noise(p: Problem, centre: Centre) -> Array:
    """Return the norm up to which a centred column is rounding: it was constant before."""
    share = max(EPS * (p.columns + SUMMATION), CONSTANT * p.rcond)
    return share * np.sqrt(centre.weight) * arrays.namespace(centre.A).abs(centre.A)


def unit_diagonal(K: Array) -> tuple[Array, Array]:
    """Return the roots of the diagonal of K, and K divided by them from both sides."""
    xp = arrays.namespace(K)
    scale = xp.sqrt(xp.linalg.diagonal(K))
    return scale, K / (scale[:, None] * scale)
