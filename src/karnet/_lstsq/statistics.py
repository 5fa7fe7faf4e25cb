"""The mergeable statistics of one least-squares problem ``[1, A] W = B`` over blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import sqrt
from typing import Any

import numpy as np
from scipy.linalg import eigh

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._util.types import Array, Indices
from .lapack import EPS, column_norms, triangular

# Longest sum over rows in which rounding stays at a few units in the last place.
SHORT_SUM = 256
# The same per column, because the default cut-off grows with the number of columns.
SHORT_SUM_PER_COLUMN = 5
# Largest squared mean, in units of the variance, for which products about zero keep their digits.
NEAR_SQUARED_MEAN = 100.0
# The same in memory, where the solution may not be refined.
CLOSE_SQUARED_MEAN = 0.2
# Numbers of a block that stay in the cache of a core.
CACHED_NUMBERS = 2**17
# Number of first rows from which the means are estimated.
HEAD_ROWS = 1024


@dataclass(frozen=True)
class Sum:
    """A sum over rows."""

    value: Array

    def merge(self, other: Sum, /) -> Sum:
        """Return the sum over the rows of both."""
        return Sum(self.value + other.value)


@dataclass(frozen=True)
class Pair:
    """Two sums over the same rows."""

    first: Array
    second: Array

    def merge(self, other: Pair, /) -> Pair:
        """Return the sums over the rows of both."""
        return Pair(self.first + other.first, self.second + other.second)


@dataclass(frozen=True)
class Stack:
    """The rows of [1, A] (of A without bias) and of B, times the roots of their weights."""

    A_parts: tuple[Array, ...]
    B_parts: tuple[Array, ...]

    @cached_property
    def A(self) -> Array:
        """The rows of [1, A], or of A, as one array."""
        return np.concatenate(self.A_parts)

    @cached_property
    def B(self) -> Array:
        """The rows of B as one array."""
        return np.concatenate(self.B_parts)

    @classmethod
    def of(cls, A: Array, B: Array, weight: Array | None, bias: bool) -> Stack:
        """Return the statistic of one block of rows."""
        A, B = arrays.to_numpy(A), arrays.to_numpy(B)
        if bias:
            A = np.hstack([np.ones((A.shape[0], 1)), A])
        A, B = weighted(A, B, None if weight is None else arrays.to_numpy(weight))
        return cls((_owned(A),), (_owned(B),))

    def merge(self, other: Stack, /) -> Stack:
        """Return the rows of both."""
        return Stack((*self.A_parts, *other.A_parts), (*self.B_parts, *other.B_parts))

    def about_means(self, bias: bool) -> tuple[Centre, Array, Array]:
        """Return the means, and the centred rows times the roots of their weights."""
        if not bias:
            return centred(self.A, self.B, None, bias=False)
        root = self.A[:, :1]
        return centred(self.A[:, 1:] / root, self.B / root, root[:, 0] ** 2, bias=True)

    def triangle(self, bias: bool) -> Triangle:
        """Return the triangle of the rows."""
        centre, A, B = self.about_means(bias)
        return Triangle(centre, *triangular(A, B))


def _owned(A: Array) -> Array:
    """Return A, or a copy if A is a writable view of a buffer that will be overwritten."""
    return A if not A.flags.writeable or A.flags.owndata else A.copy()


@dataclass(frozen=True)
class Centre:
    """The total weight of some rows and their weighted means, ``mean + low`` (zero without bias).

    `low` is the rounding error of `mean`: in columns that hardly vary it would be noise.
    """

    weight: float
    mean: Array
    low: Array
    n: int

    @property
    def A(self) -> Array:
        """The means of A."""
        return self.mean[: self.n]

    @property
    def B(self) -> Array:
        """The means of B."""
        return self.mean[self.n :]

    def _to(self, other: Centre) -> Array:
        return (other.mean - self.mean) + (other.low - self.low)

    def merge(self, other: Centre, /) -> Centre:
        """Return the centre of the rows of both."""
        weight = self.weight + other.weight
        share = other.weight / weight if weight else 0.0
        low = self.low + share * self._to(other)
        return Centre(weight, *_sum_and_rounding(self.mean, low), self.n)

    def without(self, other: Centre, /) -> Centre:
        """Return the centre that gives this one when it is merged with the other."""
        return self.merge(replace(other, weight=-other.weight))

    def step(self, other: Centre) -> tuple[Array, Array]:
        """Return the rows a and b whose products are added when both are centred in common."""
        weight = self.weight + other.weight
        between = self.weight * (other.weight / weight) if weight else 0.0
        step = sqrt(between) * self._to(other)
        return step[: self.n], step[self.n :]

    def of_columns(self, columns: Indices) -> Centre:
        """Return the centre of some columns of A, and of B."""
        kept = np.concatenate([columns, np.arange(self.n, self.mean.shape[0])])
        mean, low = (arrays.selected(each, kept) for each in (self.mean, self.low))
        return Centre(self.weight, mean, low, len(columns))

    def shifted(self, shift: Array) -> Centre:
        """Return the centre of the same rows plus a shift."""
        mean, low = _sum_and_rounding(shift, self.mean)
        return replace(self, mean=mean, low=low + self.low)

    def near(self, scale: Array) -> bool:
        """Return whether the means can be subtracted from products instead of rows.

        That holds on a device, for means near zero. `scale` is the norm of each centred column.
        """
        if arrays.is_host(scale) or not self.weight:
            return False
        near = self.weight * self.A**2 <= NEAR_SQUARED_MEAN * scale**2
        return bool(arrays.namespace(scale).all(near))

    def subtract(self, A: Array, B: Array, weight: Array | None) -> tuple[Array, Array]:
        """Return the rows minus the means, times the roots of their weights.

        Writable rows are overwritten.
        """
        if self.weight:
            mean, low = arrays.like(A, self.mean), arrays.like(A, self.low)
            A, B = minus(A, mean[: self.n]), minus(B, mean[self.n :])
            if bool(arrays.namespace(low).any(low != 0.0)):
                A -= low[: self.n]
                B -= low[self.n :]
        return weighted(A, B, weight)


@lru_cache(maxsize=32)
def _at_zero(n: int, q: int) -> Centre:
    zeros = np.zeros(n + q)
    zeros.flags.writeable = False
    return Centre(0.0, zeros, zeros, n)


def centred(A: Array, B: Array, weight: Array | None, bias: bool) -> tuple[Centre, Array, Array]:
    """Return the means, and the rows minus their means, times the roots of their weights.

    Writable rows are overwritten.
    """
    n = A.shape[1]
    if not bias:
        centre = _at_zero(n, B.shape[1])
        if not arrays.is_host(A):
            zeros = arrays.like(A, centre.mean)
            centre = Centre(0.0, zeros, zeros, n)
        return centre, *weighted(A, B, weight)
    total = _total(A, weight)
    mean = _means(A, B, weight, total)
    A, B = minus(A, mean[:n]), minus(B, mean[n:])
    rest = _means(A, B, weight, total)
    A -= rest[:n]
    B -= rest[n:]
    return Centre(total, *_sum_and_rounding(mean, rest), n), *weighted(A, B, weight)


def block_centre(A: Array, B: Array, weight: Array | None, bias: bool) -> Centre:
    """Return the weight and the means of some rows, for means that are not far from zero."""
    if not bias:
        return centred(A[:0, :], B[:0, :], None, bias=False)[0]
    total = _total(A, weight)
    mean = _means(A, B, weight, total)
    return Centre(total, mean, arrays.namespace(A).zeros_like(mean), A.shape[1])


def _total(A: Array, weight: Array | None) -> float:
    return float(A.shape[0] if weight is None else arrays.namespace(weight).sum(weight))


def _means(A: Array, B: Array, weight: Array | None, total: float) -> Array:
    xp = arrays.namespace(A)
    if weight is None:
        return xp.concat([xp.sum(A, axis=0), xp.sum(B, axis=0)]) / total
    return xp.concat([weight @ A, weight @ B]) / total


def _variance(A: Array, mean: Array) -> Array:
    """Return the variance of each column, in memory without a copy of A."""
    if arrays.is_host(A):
        return np.asarray(arrays.column_squares(A) / len(A) - mean**2)
    return arrays.namespace(A).mean((A - mean) ** 2, axis=0)


def _shifted_products(A: Array, shift: Array, right: Array) -> tuple[Array, Array]:
    """Return the rows of A minus one row, as `minus` does, and their products with `right`.

    Each part of the rows is read once for both: it is still in the cache.
    """
    rows = A if A.flags.writeable else np.empty_like(A)
    step = max(CACHED_NUMBERS // A.shape[1], 1)
    products = np.zeros((right.shape[1], A.shape[1]))
    for part in (slice(start, start + step) for start in range(0, len(A), step)):
        np.subtract(A[part], shift, out=rows[part])
        products += right[part].T @ rows[part]
    return rows, products.T


def minus(A: Any, row: Array) -> Any:
    """Return the rows of A minus one row; writable rows are overwritten."""
    if not isinstance(A, np.ndarray):
        return A - row
    return np.subtract(A, row, out=A if A.flags.writeable else None)


def weighted(A: Array, B: Array, weight: Array | None) -> tuple[Array, Array]:
    """Return rows times the roots of their weights."""
    if weight is None:
        return A, B
    root = arrays.namespace(weight).sqrt(weight)[:, None]
    return A * root, B * root


def _sum_and_rounding(large: Array, small: Array) -> tuple[Array, Array]:
    total = large + small
    return total, (large - total) + small


@dataclass(frozen=True)
class Moments:
    """The means, and the sums of squares of the columns of A about them."""

    centre: Centre
    squares: Array

    @classmethod
    def of(cls, A: Array, B: Array, weight: Array | None, bias: bool) -> Moments:
        """Return the statistic of one block of rows."""
        centre, A, _ = centred(A, B, weight, bias)
        return cls(centre, arrays.column_squares(A))

    def merge(self, other: Moments, /) -> Moments:
        """Return the statistic of the rows of both."""
        a, _ = self.centre.step(other.centre)
        squares = self.squares + other.squares + a**2
        return Moments(self.centre.merge(other.centre), squares)


@dataclass(frozen=True)
class Gram:
    """The products A'A and A'B about the means.

    They are fast to compute, but square the condition number of A. On a device that is slow in
    float64, A'A is computed in single precision unless `careful`, and the solution is refined.
    """

    centre: Centre
    AA: Array
    AB: Array
    single: bool = False

    @classmethod
    def of(
        cls, A: Array, B: Array, weight: Array | None, bias: bool, careful: bool = False
    ) -> Gram:
        """Return the statistic of one block of rows."""
        if not careful and algebra.slow_in_float64(A):
            centre, A, B = centred(A, B, weight, bias)
            return cls(centre, algebra.single_product(A), A.T @ B, True)
        long = not arrays.is_host(A) or A.shape[0] > HEAD_ROWS
        if bias and long:
            return cls._about_head(A, B, weight)
        centre, A, B = centred(A, B, weight, bias)
        return cls(centre, algebra.symmetric_product(A), algebra.narrow_product(A, B))

    @classmethod
    def _about_head(cls, A: Array, B: Array, weight: Array | None) -> Gram:
        """Return the statistic from products about the means of the first rows.

        They are subtracted only if one is far from zero compared with its deviation. To centre all
        columns first would take a large part of the time of the products.
        """
        xp, n = arrays.namespace(A), A.shape[1]
        total = _total(A, weight)
        head = arrays.some_rows(A, slice(0, min(HEAD_ROWS, A.shape[0])))
        shift = xp.mean(head, axis=0)
        most = CLOSE_SQUARED_MEAN if arrays.is_host(A) else NEAR_SQUARED_MEAN
        far = bool(xp.any(shift**2 > 0.5 * most * _variance(head, shift)))
        shift = shift if far else xp.zeros_like(shift)
        right = arrays.joined([B, arrays.full(A, (A.shape[0], 1), 1.0)], axis=1)
        if far and weight is None and arrays.is_host(A):
            A, products = _shifted_products(A, shift, right)
            AA = algebra.symmetric_product(A)
        else:
            A = minus(A, shift) if far else A
            rows, right = weighted(A, right, weight)
            AA, products = algebra.symmetric_product(rows), algebra.narrow_product(rows, right)
        mean, mean_B = products[:, -1] / total, right[:, -1] @ right[:, :-1] / total
        algebra.add_outer(AA, -total, mean)
        if bool(xp.all(most * xp.linalg.diagonal(AA) >= total * mean**2)):
            AB = products[:, :-1] - total * (mean[:, None] * mean_B)
            means = arrays.joined([mean, mean_B])
            centre = Centre(total, means, xp.zeros_like(means), n)
        else:
            centre, rows, B = centred(A, B, weight, bias=True)
            AA, AB = algebra.symmetric_product(rows), algebra.narrow_product(rows, B)
        return cls(centre.shifted(arrays.joined([shift, xp.zeros_like(mean_B)])), AA, AB)

    def merge(self, other: Gram, /) -> Gram:
        """Return the statistic of the rows of both."""
        a, b = self.centre.step(other.centre)
        AA, AB = self.AA + other.AA, self.AB + other.AB
        algebra.add_outer(AA, 1.0, a)
        AB += a[:, None] * b
        return Gram(self.centre.merge(other.centre), AA, AB, self.single)

    def squared_errors(self, W: Array, BB: Array) -> Array:
        """Return ``(B - A W)'(B - A W)`` about the means, where ``BB = B'B``."""
        W = arrays.like(self.AA, W)
        BAW, WAAW = (arrays.to_numpy(each) for each in (self.AB.T @ W, W.T @ (self.AA @ W)))
        return BB - BAW - BAW.T + WAAW

    def without(self, other: Gram, /) -> Gram:
        """Return the statistic that gives this one when it is merged with the other."""
        rest = self.centre.without(other.centre)
        a, b = rest.step(other.centre)
        AA, AB = self.AA - other.AA - np.outer(a, a), self.AB - other.AB - np.outer(a, b)
        return Gram(rest, AA, AB)

    @property
    def lengths(self) -> Array:
        """The norms of the columns of A about their means; 1 for a column of zeros."""
        squares = np.diag(self.AA)
        return np.sqrt(np.where(squares > 0.0, squares, 1.0))

    def triangle(self) -> Triangle:
        """Return a triangle with the same products, which is no more accurate than they are."""
        if not self.AA.any():
            return Triangle(self.centre, self.AA[:0], self.AB[:0])
        scale = self.lengths
        eigenvalues, Q = eigh(self.AA / np.outer(scale, scale))
        # A direction that is rounding in A'A need not be rounding in A'B, so none is left out.
        root = np.sqrt(np.maximum(eigenvalues, EPS * eigenvalues[-1]))[:, None]
        Z = (Q.T @ (self.AB / scale[:, None])) / root
        return Triangle(self.centre, *triangular(root * Q.T * scale, Z))


@dataclass(frozen=True)
class Triangle:
    """R and ``Z = Q'B`` of a decomposition ``A = Q R`` into orthonormal Q and triangular R.

    A and B are taken about their means. A triangle is slower to compute than `Gram`, but keeps the
    condition number of A.
    """

    centre: Centre
    R: Array
    Z: Array

    @classmethod
    def of(
        cls, A: Array, B: Array, weight: Array | None, bias: bool, by_halves: bool = False
    ) -> Triangle:
        """Return the statistic of one block of rows.

        With `by_halves` it is merged from short blocks. In sums over many rows, rounding can make a
        matrix of dependent columns look like one of full rank; in short sums it stays below the
        cut-off. For other matrices one long decomposition is faster and more accurate.
        """
        if by_halves and A.shape[0] > max(SHORT_SUM, SHORT_SUM_PER_COLUMN * A.shape[1]):
            halves, middle = [], A.shape[0] // 2
            for half in (slice(middle), slice(middle, None)):
                A_half, B_half = arrays.some_rows(A, half), arrays.some_rows(B, half)
                weight_half = None if weight is None else weight[half]
                halves.append(cls.of(A_half, B_half, weight_half, bias, by_halves))
            return halves[0].merge(halves[1])
        centre, A, B = centred(A, B, weight, bias)
        return cls(centre, *triangular(A, B))

    def merge(self, other: Triangle, /) -> Triangle:
        """Return the statistic of the rows of both."""
        a, b = self.centre.step(other.centre)
        R = arrays.joined([self.R, other.R, a[None, :]])
        Z = arrays.joined([self.Z, other.Z, b[None, :]])
        return Triangle(self.centre.merge(other.centre), *triangular(R, Z))

    @property
    def lengths(self) -> Array:
        """The norms of the columns of A about their means; 1 for a column of zeros."""
        return column_norms(self.R)

    def squared_errors(self, W: Array, BB: Array) -> Array:
        """Return ``(B - A W)'(B - A W)`` about the means, where ``BB = B'B``."""
        AW = self.R @ W
        return BB - self.Z.T @ AW - AW.T @ self.Z + AW.T @ AW

    def gram(self) -> Gram:
        """Return the Gram products of the same rows."""
        return Gram(self.centre, self.R.T @ self.R, self.R.T @ self.Z)


# The two forms in which an accumulator keeps its rows.
SufficientStatistic = Gram | Triangle
