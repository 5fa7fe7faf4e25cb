"""A least-squares problem, read through a reduction over blocks of its rows, and its solution.

Quantities that several solvers need (the triangle, the rows, whether a sample of rows looks
singular) are computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from scipy.linalg import eigvalsh

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._rows.memory import S, power_of_2
from .._util.types import Array
from . import lapack
from .lapack import EPS, LIMITS, Cholesky, column_norms
from .statistics import SHORT_SUM, Centre, Gram, Moments, Stack, Sum, Triangle

# Cut-off or reciprocal condition above which rounding over many rows is not mistaken for rank.
CLEAR_RCOND = 1e-11
# Units in the last place by which the mean of a column may be off.
MEAN_ULPS = 32
# Share of the cut-off up to which the variation of a column about its mean counts as none.
CONSTANT_SHARE = 1e-3
# Condition number of A above which a triangle is kept: Gram products lose its square in accuracy.
GRAM_CONDITION = 1e3
# Rows per column of a sample of rows.
SAMPLE_ROWS = 2
# Reciprocal condition of a sample's normal equations below which those of all rows are not tried.
HOPELESS_RCOND = 1e-14
# Dimensions of a matrix of low rank that are searched for at a time.
BASIS_STEP = 32
# Share of the cut-off that may remain outside these dimensions in the sample.
SAMPLE_LOSS = 0.1
# The same in all rows, as random probes measure it.
PROBED_LOSS = 0.3
# Number of random probes.
N_PROBES = 8


class Reduce(Protocol):
    """A reduction over blocks of rows: it calls `statistic(A, B, weight)` and merges."""

    def __call__(
        self, statistic: Callable[[Array, Array, Array | None], S], /, small_chunks: bool = False
    ) -> S:
        """Return the merged statistic of all blocks, or of small chunks of them."""


# From a step to a reduction over every step-th row.
Sample = Callable[[int], Reduce]
# From the fit [1, A] W of a block of rows, B and the weights to sums that describe the fit.
Observe = Callable[[Array, Array, Array | None], Sum]


@dataclass(frozen=True)
class Solution:
    """A least-squares solution and how it was found.

    Attributes
    ----------
    coef : ndarray of shape (n,) or (n, q); with bias (n + 1,) or (n + 1, q)
        The coefficients, the bias first.
    rank : int
        The numerical rank of the matrix, its column of ones included. With a ridge every column
        counts, unless the ridge is below the cut-off.
    solver : {"cholesky", "qr", "svd"}
        The solver that was used.
    observed : ndarray or None
        Measurements of the fit that needed no further pass over the rows, if they were asked for.
    statistic : optional
        The statistic from which a problem in blocks of rows was solved.
    """

    coef: Array
    rank: int
    solver: str
    observed: Array | None = field(default=None, repr=False, compare=False)
    statistic: Gram | Triangle | Stack | None = field(default=None, repr=False, compare=False)


@dataclass  # a frozen dataclass takes a microsecond longer to make, which counts in small problems
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

    @property
    def n_columns(self) -> int:
        """The number of columns, that of the bias included."""
        return self.n + self.bias

    @property
    def few_rows(self) -> bool:
        """Whether there are few rows, and every digit of the solution counts."""
        return 0 < self.m <= SHORT_SUM and self.rcond <= CLEAR_RCOND and not self.alpha

    @cached_property
    def triangle(self) -> Triangle:
        """The low-rank triangle, or the triangle of all rows.

        It is merged from short blocks where rounding could be mistaken for rank.
        """
        if self.low_rank_triangle is not None:
            return self.low_rank_triangle
        long = self.m > SHORT_SUM and self.rcond <= CLEAR_RCOND
        if not (long and self.looks_singular):
            triangle = self.reduce(partial(Triangle.of, bias=self.bias))
            if not arrays.is_host(triangle.R):  # `on_host` takes long compared with small problems
                triangle = arrays.on_host(triangle)
            R = triangle.R
            if not long or lapack.triangular_rcond(R / column_norms(R)) > CLEAR_RCOND:
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
        step = self.m // (SAMPLE_ROWS * self.n)
        gram = self.sample(step)(partial(Gram.of, bias=self.bias))
        AA = algebra.add_to_diagonal(power_of_2(step) * gram.AA, self.alpha)
        factor = Cholesky.of(unit_diagonal(AA)[1].T)
        return factor is None or factor.reciprocal_condition < HOPELESS_RCOND

    @cached_property
    def low_rank_triangle(self) -> Triangle | None:
        """R and Z with fewer rows than columns, or None if the numerical rank is not low.

        The rows of a matrix of low numerical rank are near a subspace of few dimensions. A sample
        of rows gives its basis; R, Z and the part of A in the orthogonal complement are computed
        from all rows.
        """
        small = min(self.m, self.n) < LIMITS.sampled_columns
        if self.sample is None or self.rcond <= CLEAR_RCOND or small:
            return None
        step = max(self.m // (SAMPLE_ROWS * self.n), 1)
        A, _, _ = replace(self, reduce=self.sample(step)).centred_rows()
        sampled = column_norms(A)
        if not np.isfinite(A).all() or sampled.min(initial=1.0) <= 1.0 / lapack.SAFE_MAGNITUDE:
            return None
        Q = _row_space(A / sampled, SAMPLE_LOSS * self.rcond)
        if Q is None:
            return None
        of_block = partial(Moments.of, bias=self.bias)
        moments = arrays.on_host(self.reduce(of_block, small_chunks=True))
        scale = np.sqrt(moments.squares)
        if not lapack.safe_to_square(scale):
            return None
        scale[scale <= self.noise(moments.centre)] = np.inf
        Q, _ = np.linalg.qr(Q * (sampled / scale)[:, None])
        return self._projected(moments.centre, Q, scale)

    def _projected(self, centre: Centre, Q: Array, scale: Array) -> Triangle | None:
        """Return the triangle of A in the basis Q of scaled columns, or None if Q misses some of A.

        Constant columns have an infinite scale.
        """
        probes = np.random.RandomState(1).standard_normal((self.n, N_PROBES))
        probes -= Q @ (Q.T @ probes)
        combine = np.hstack([Q, probes]) / scale[:, None]

        def of_block(A: Array, B: Array, weight: Array | None) -> Triangle:
            A, B = centre.subtract(A, B, weight)
            return Triangle.of(A @ arrays.like(A, combine), B, None, bias=False)

        triangle, k = arrays.on_host(self.reduce(of_block)), Q.shape[1]
        R = triangle.R[:k, :k]
        complement = np.linalg.norm(triangle.R[:, k:], axis=0)
        # With a ridge there is no cut-off.
        allowed = lapack.default_rcond(self.n) if self.alpha else PROBED_LOSS * self.rcond
        if not (complement <= allowed * np.linalg.norm(R, 2)).all():
            return None
        scale = np.where(np.isinf(scale), 0.0, scale)
        # One more row stands for the orthogonal complement, which is below the cut-off, not zero.
        size = np.sqrt(np.mean(complement**2) / max(self.n - k, 1)) / np.linalg.norm(probes[:, 0])
        R = np.vstack([R @ Q.T, size * probes[:, :1].T]) * scale
        return Triangle(centre, R, np.vstack([triangle.Z[:k], np.zeros_like(triangle.Z[:1])]))

    def centred_rows(self) -> tuple[Array, Array, Centre]:
        """Return the rows of A and B, centred and times the roots of their weights, and the centre.

        Constant columns become zero. Without bias the centre is zero.
        """
        centre, A, B = self.stack.about_means(self.bias)
        return self.without_noise(A, centre), B, centre

    def noise(self, centre: Centre) -> Array:
        """Return the norm up to which a centred column is rounding of a constant column."""
        share = max(EPS * (self.n_columns + MEAN_ULPS), CONSTANT_SHARE * self.rcond)
        return share * np.sqrt(centre.weight) * arrays.namespace(centre.A).abs(centre.A)

    def without_noise(self, A: Array, centre: Centre) -> Array:
        """Return centred rows, or R of their triangle, with zeros for constant columns."""
        return np.where(column_norms(A) <= self.noise(centre), 0.0, A) if self.bias else A

    def condition(self, gram: Gram) -> float:
        """Return the condition number of A with the ridge, columns centred and at unit length."""
        if not self.n:
            return 1.0
        with np.errstate(all="ignore"):
            scale, K = unit_diagonal(algebra.add_to_diagonal(gram.AA, self.alpha))
        if not (scale > self.noise(gram.centre)).all() or not np.isfinite(scale).all():
            return np.inf
        factor = Cholesky.of(K.T)
        if factor is not None and factor.reciprocal_condition * GRAM_CONDITION**2 >= 1.0:
            return float(1.0 / np.sqrt(factor.reciprocal_condition))
        # LAPACK's estimate is for another norm, and may be well above the condition number.
        least, *_, most = eigvalsh(K)
        return float(np.sqrt(most / least)) if least > 0.0 else np.inf

    def least_share(self, whole: Gram, rest: Gram) -> float:
        """Return the least share, over all directions, that the rest has in the whole products."""
        if self.condition(whole) == np.inf:
            return 0.0
        both = [algebra.add_to_diagonal(each.AA, self.alpha) for each in (rest, whole)]
        scale = np.sqrt(np.diag(both[1]))
        return float(eigvalsh(*(AA / np.outer(scale, scale) for AA in both))[0])


def _row_space(A: Array, share: float) -> Array | None:
    """Return a basis of the space of the rows but for a share, or None if it is not small."""
    rng = np.random.RandomState(0)
    Q, rest, limit = np.empty((A.shape[1], 0)), A, None
    while Q.shape[1] <= min(A.shape) // 4:
        Y = rest.T @ rng.standard_normal((len(A), BASIS_STEP))
        Y -= Q @ (Q.T @ Y)
        new, _ = np.linalg.qr(Y)
        projected = rest @ new
        rest = rest - projected @ new.T
        Q = np.hstack([Q, new])
        limit = limit or share * np.linalg.norm(projected, 2)
        if np.linalg.norm(rest) <= limit:
            return Q
    return None


def unit_diagonal(K: Array) -> tuple[Array, Array]:
    """Return the roots of the diagonal of K, and K divided by them from both sides."""
    xp = arrays.namespace(K)
    scale = xp.sqrt(xp.linalg.diagonal(K))
    return scale, K / (scale[:, None] * scale)
