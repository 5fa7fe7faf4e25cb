"""A least-squares problem, read through a reduction over blocks of its rows, and its solution.

Quantities that several solvers need (the triangle, the rows, whether a sample of rows looks
singular) are computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigvalsh

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._rows.memory import Block, S, power_of_2, spare
from .._util.types import Array, Indices
from . import lapack
from .lapack import EPS, LIMITS, Cholesky, column_norms
from .statistics import SHORT_SUM, Centre, Gram, Pair, Stack, Triangle

# Cut-off or reciprocal condition above which rounding over many rows is not mistaken for rank.
CLEAR_RCOND = 1e-11
# Units in the last place by which the mean of a column may be off.
MEAN_ULPS = 32
# Share of the cut-off up to which the variation of a column about its mean counts as none.
CONSTANT_SHARE = 1e-3
# Condition number of A above which a triangle is kept: Gram products lose its square in accuracy.
GRAM_CONDITION = 1e3
# Rows per column of a sample of rows.
SAMPLE_ROWS = 4
# Reciprocal condition of a sample's normal equations below which A is likely to be singular.
SINGULAR_RCOND = 1e-14
# Dimensions of a matrix of low rank that are searched for at a time.
BASIS_STEP = 32
# Share of the cut-off that may remain outside these dimensions.
ROW_SPACE_LOSS = 0.1


class Reduce(Protocol):
    """A reduction over blocks of rows: it calls `statistic(A, B, weight)` and merges."""

    def __call__(
        self, statistic: Callable[..., S], /, small_chunks: bool = False, numbered: bool = False
    ) -> S:
        """Return the merged statistic of all blocks, or of small chunks of them.

        If `numbered`, a statistic is also given `start`, the number of the first row of its block.
        """


# From a step to a reduction over every step-th row.
ReduceSample = Callable[[int], Reduce]
# From the numbers of some columns to a reduction over rows of these columns.
OverColumns = Callable[[Indices], Reduce]


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
    solver : {"cholesky", "sketch", "qr", "svd"}
        The solver that was used.
    statistic : optional
        The statistic from which a problem in blocks of rows was solved.
    """

    coef: Array
    rank: int
    solver: str
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
    sample: ReduceSample | None = None
    columns: OverColumns | None = None
    tolerance: float | None = None

    @property
    def n_columns(self) -> int:
        """The number of columns, that of the bias included."""
        return self.n + self.bias

    @property
    def few_rows(self) -> bool:
        """Whether there are few rows, and every digit of the solution counts."""
        return 0 < self.m <= SHORT_SUM and self.rcond <= CLEAR_RCOND and not self.alpha

    def over_columns(self, columns: Indices) -> Reduce:
        """Return a reduction over rows of some columns."""
        if self.columns is not None:
            return self.columns(columns)

        def reduce(statistic: Callable[..., Any], /, *how: Any, **named: Any) -> Any:
            buffers: list[Array] = []

            def of_block(A: Array, *block: Any, **number: int) -> Any:
                A = arrays.selected_columns(A, columns, spare(buffers))
                result = statistic(A, *block, **number)
                buffers.append(A)
                return result

            return self.reduce(of_block, *how, **named)

        return reduce

    @cached_property
    def triangle(self) -> Triangle:
        """The low-rank triangle, or the triangle of all rows.

        It is merged from short blocks where rounding could be mistaken for rank.
        """
        if self.low_rank_triangle is not None:
            return self.low_rank_triangle
        long = self.m > SHORT_SUM and self.rcond <= CLEAR_RCOND
        if not (long and self.sampled_rcond < SINGULAR_RCOND):
            triangle = self.reduce(partial(Triangle.of, bias=self.bias))
            if not arrays.is_host(triangle.R):  # `on_host` takes long compared with small problems
                triangle = arrays.on_host(triangle)
            R = triangle.R
            if not long or algebra.triangular_rcond(R / column_norms(R)) > CLEAR_RCOND:
                return triangle
        return arrays.on_host(self.reduce(partial(Triangle.of, bias=self.bias, by_halves=True)))

    @cached_property
    def stack(self) -> Stack:
        """The rows themselves."""
        return self.reduce(partial(Stack.of, bias=self.bias))

    @cached_property
    def sampled_rcond(self) -> float:
        """The reciprocal condition of the normal equations of a sample of rows; 1 without one.

        On a device it is 0 if they are singular, and else 1: a condition number would take longer.
        """
        if self.n < LIMITS.sampled_columns or self.sampled is None:
            return 1.0
        AA = unit_diagonal(algebra.add_to_diagonal(self.sampled.AA, self.alpha))[1]
        if not arrays.is_host(AA):
            return 0.0 if algebra.cholesky_factor(AA) is None else 1.0
        factor = Cholesky.of(AA.T)
        return 0.0 if factor is None else factor.reciprocal_condition

    @cached_property
    def sampled(self) -> Gram | None:
        """The products and the weight of a sample, times its step; None if the rows are few."""
        if self.sample is None or not self.m >= LIMITS.sketched_rows * self.n > 0:
            return None
        step = power_of_2(self.m // (SAMPLE_ROWS * self.n))
        gram = self.sample(step)(partial(Gram.of, bias=self.bias))
        centre = replace(gram.centre, weight=step * gram.centre.weight)
        return replace(gram, centre=centre, AA=step * gram.AA)

    @cached_property
    def low_rank_triangle(self) -> Triangle | None:
        """R and Z with fewer rows than columns, or None if the numerical rank is not low.

        The rows of a matrix of low numerical rank are near a subspace of few dimensions. It is
        searched for where there are few rows per column; for others see `sketch`.
        """
        small = min(self.m, self.n) < LIMITS.sampled_columns
        if self.rcond <= CLEAR_RCOND or small or self.m >= LIMITS.sketched_rows * self.n:
            return None
        A, B, centre = self.centred_rows()
        norms = column_norms(A)
        if not np.isfinite(A).all() or norms.min(initial=1.0) <= 1.0 / lapack.SAFE_MAGNITUDE:
            return None
        # With a ridge there is no cut-off.
        cut_off = lapack.default_rcond(self.n) if self.alpha else self.rcond
        Q = _row_space(A / norms, ROW_SPACE_LOSS * cut_off)
        if Q is None:
            return None
        R, Z = lapack.triangular((A / norms) @ Q, B)
        return Triangle(centre, (R @ Q.T) * norms, Z)

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


def residual_products(centre: Centre, near: bool, W: Array, *block: *Block) -> Pair:
    """Return ``A'(B - A W)`` about the means for a block of rows, and its squared errors.

    Near means are subtracted from the products, others from the rows. This function is sent to the
    process that holds the rows, and so refers to no `Problem`.
    """
    A, B, weight = block
    if not near:
        A, B = centre.subtract(A, B, None)
    fit = A @ arrays.like(A, W)
    means = [arrays.like(A, each) for each in (centre.A, centre.B)]
    if near:
        fit, B = fit - means[0] @ arrays.like(A, W), B - means[1]
    xp, error = arrays.namespace(A), B - fit
    weighted = error if weight is None else error * weight[:, None]
    AE = algebra.narrow_product(A, weighted)
    if near:
        AE -= means[0][:, None] * xp.sum(weighted, axis=0)
    return Pair(AE, xp.sum(error * weighted, axis=0))


def with_ridge(R: Array, Z: Array, alpha: float, W: Array | None = None) -> tuple[Array, Array]:
    """Return a triangle R and Z whose solution minimises ``||R D - Z||^2 + alpha ||W + D||^2``.

    Without W, it is zero.
    """
    n, root = R.shape[1], np.sqrt(alpha)
    A = np.vstack([R, root * np.eye(n)])
    B = np.vstack([Z, np.zeros((n, Z.shape[1])) if W is None else -root * W])
    order = lapack.largest_first(A)
    return lapack.triangular(A[order], B[order])


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
