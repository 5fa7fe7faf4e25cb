"""The mergeable statistics of one least-squares problem ``[1, A] W = B`` over rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .lapack import triangular

Array = NDArray[np.float64]

# Rows over which rounding does not add up to more than a few units in the last place.
SHORT = 256
# The same for each column, where the cut-off of rank grows with their number.
PER_COLUMN = 5
# Squared means, as multiples of the variance, up to which products about zero keep their digits.
# Rows that tell which means are farther.
NEAR, HEAD = 100.0, 1024


@dataclass(frozen=True)
class Sum:
    """A plain sum over rows."""

    value: Array

    def merge(self, other: Sum, /) -> Sum:
        """Return the sum over both."""
        return Sum(self.value + other.value)


@dataclass(frozen=True)
class Pair:
    """Two sums over the same rows."""

    first: Sum
    second: Sum

    def merge(self, other: Pair, /) -> Pair:
        """Return the sums over both."""
        return Pair(self.first.merge(other.first), self.second.merge(other.second))


@dataclass(frozen=True)
class Stack:
    """The rows of [1, A] (without bias A) and of B themselves, times the roots of their weights."""

    A_parts: tuple[Array, ...]
    B_parts: tuple[Array, ...]

    @cached_property
    def A(self) -> Array:
        """The rows of [1, A], or of A, in one piece."""
        return np.concatenate(self.A_parts)

    @cached_property
    def B(self) -> Array:
        """The rows of B in one piece."""
        return np.concatenate(self.B_parts)

    @classmethod
    def of(cls, A: Array, B: Array, weight: Array | None, bias: bool) -> Stack:
        """Return the statistic of one block of rows."""
        A, B = arrays.to_numpy(A), arrays.to_numpy(B)
        if bias:
            A = np.hstack([np.ones((A.shape[0], 1)), A])
        A, B = _weighted(A, B, None if weight is None else arrays.to_numpy(weight))
        return cls((_kept(A),), (_kept(B),))

    def merge(self, other: Stack, /) -> Stack:
        """Return the rows of both."""
        return Stack((*self.A_parts, *other.A_parts), (*self.B_parts, *other.B_parts))


def _kept(A: Array) -> Array:
    """Return A in a place of its own, unless it lies where nothing else will be written."""
    return A if not A.flags.writeable or A.flags.owndata else A.copy()


@dataclass(frozen=True)
class Centre:
    """The weight of some rows and their weighted means, as ``mean + low`` (zeros without bias).

    What a mean was rounded by would be noise in columns that hardly vary, so it is kept too.
    """

    weight: float
    mean: Array
    low: Array
    n: int

    @property
    def A(self) -> Array:
        """Return the means of A."""
        return self.mean[: self.n]

    @property
    def B(self) -> Array:
        """Return the means of B."""
        return self.mean[self.n :]

    def _to(self, other: Centre) -> Array:
        return (other.mean - self.mean) + (other.low - self.low)

    def merge(self, other: Centre, /) -> Centre:
        """Return the statistic of both blocks of rows."""
        weight = self.weight + other.weight
        share = other.weight / weight if weight else 0.0
        moved = _sum_and_rounding(self.mean, self.low + share * self._to(other))
        return Centre(weight, *moved, self.n)

    def without(self, other: Centre, /) -> Centre:
        """Return the statistic of which this is the merger with the other."""
        weight = self.weight - other.weight
        share = other.weight / weight if weight else 0.0
        moved = _sum_and_rounding(self.mean, self.low - share * self._to(other))
        return Centre(weight, *moved, self.n)

    def step(self, other: Centre) -> Array:
        """Return the row [a, b] that products about the common mean have and those apart lack."""
        weight = self.weight + other.weight
        between = self.weight * (other.weight / weight) if weight else 0.0
        return sqrt(between) * self._to(other)

    def near(self, scale: Array) -> bool:
        """Return whether means may be taken off products: they lie elsewhere, and near zero.

        `scale` is the norm of each centred column.
        """
        if arrays.is_host(scale) or not self.weight:
            return False
        return bool(arrays.namespace(scale).all(self.weight * self.A**2 <= NEAR * scale**2))

    def subtract(self, A: Array, B: Array, weight: Array | None) -> tuple[Array, Array]:
        """Return the rows less their means, times the roots of their weights.

        What may be overwritten is.
        """
        if self.weight:
            mean, low = arrays.like(A, self.mean), arrays.like(A, self.low)
            A, B = _less(A, mean[: self.n]), _less(B, mean[self.n :])
            A -= low[: self.n]
            B -= low[self.n :]
        return _weighted(A, B, weight)


@lru_cache(maxsize=32)
def _at_zero(n: int, q: int) -> Centre:
    zeros = np.zeros(n + q)
    zeros.flags.writeable = False
    return Centre(0.0, zeros, zeros, n)


def centred(A: Array, B: Array, weight: Array | None, bias: bool) -> tuple[Centre, Array, Array]:
    """Return the means, and the rows less these times the roots of their weights.

    What may be overwritten is.
    """
    n = A.shape[1]
    if not bias:
        centre = _at_zero(n, B.shape[1])
        if not arrays.is_host(A):
            zeros = arrays.like(A, centre.mean)
            centre = Centre(0.0, zeros, zeros, n)
        return centre, *_weighted(A, B, weight)
    total = float(A.shape[0] if weight is None else arrays.namespace(weight).sum(weight))

    def means() -> Array:
        xp = arrays.namespace(A)
        sums = [xp.sum(M, axis=0) if weight is None else weight @ M for M in (A, B)]
        return xp.concat(sums) / total

    mean = means()
    A, B = _less(A, mean[:n]), _less(B, mean[n:])
    rest = means()
    A -= rest[:n]
    B -= rest[n:]
    return Centre(total, *_sum_and_rounding(mean, rest), n), *_weighted(A, B, weight)


def _less(A: Array, row: Array) -> Array:
    if not arrays.is_host(A):
        return A - row
    return np.subtract(A, row, out=A if A.flags.writeable else None)


def _weighted(A: Array, B: Array, weight: Array | None) -> tuple[Array, Array]:
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
        """Return the statistic of both blocks of rows."""
        step = self.centre.step(other.centre)[: self.centre.n]
        squares = self.squares + other.squares + step**2
        return Moments(self.centre.merge(other.centre), squares)


@dataclass(frozen=True)
class Gram:
    """The products A'A and A'B about the means.

    Fast, but it squares the condition number of A. On a device that is slow in float64 the first
    product is in single precision, unless care is asked for: refinement does the rest.
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
        if bias and not arrays.is_host(A):
            found = cls._of_products(A, B, weight)
            if found is not None:
                return found
        centre, A, B = centred(A, B, weight, bias)
        return cls(centre, algebra.symmetric_product(A), A.T @ B)

    @classmethod
    def _of_products(cls, A: Array, B: Array, weight: Array | None) -> Gram | None:
        """Return the statistic from products about zero, or None if that loses digits.

        Where the matrix product is as fast as memory, to subtract means first takes long.
        """
        xp, n = arrays.namespace(A), A.shape[1]
        total = float(A.shape[0] if weight is None else xp.sum(weight))
        shift = _far_mean(A)
        A = A if shift is None else A - shift
        right = arrays.joined([B, arrays.full(A, (A.shape[0], 1), 1.0)], axis=1)
        A, right = _weighted(A, right, weight)
        AA, products = algebra.symmetric_product(A), A.T @ right
        mean, mean_B = products[:, -1] / total, right[:, -1] @ right[:, :-1] / total
        AA -= total * (mean[:, None] * mean)
        if not bool(xp.all(NEAR * xp.linalg.diagonal(AA) >= total * mean**2)):
            return None
        AB = products[:, :-1] - total * (mean[:, None] * mean_B)
        means = arrays.joined([mean if shift is None else mean + shift, mean_B])
        return cls(Centre(total, means, xp.zeros_like(means), n), AA, AB)

    def merge(self, other: Gram, /) -> Gram:
        """Return the statistic of both blocks of rows."""
        step = self.centre.step(other.centre)
        a, b = step[: self.centre.n], step[self.centre.n :]
        AA, AB = self.AA + other.AA, self.AB + other.AB
        AA += a[:, None] * a
        AB += a[:, None] * b
        return Gram(self.centre.merge(other.centre), AA, AB, self.single)

    def without(self, other: Gram, /) -> Gram:
        """Return the statistic of which this is the merger with the other."""
        rest = self.centre.without(other.centre)
        step = rest.step(other.centre)
        a, b = step[: rest.n], step[rest.n :]
        AA, AB = self.AA - other.AA, self.AB - other.AB
        AA -= np.outer(a, a)
        AB -= np.outer(a, b)
        return Gram(rest, AA, AB)


def _far_mean(A: Array) -> Array | None:
    """Return the means of the first rows if one is far from zero beside what its column varies."""
    xp = arrays.namespace(A)
    some = arrays.some_rows(A, slice(0, min(HEAD, A.shape[0])))
    mean = xp.mean(some, axis=0)
    far = xp.any(mean**2 > 0.5 * NEAR * xp.mean((some - mean) ** 2, axis=0))
    return mean if bool(far) else None


@dataclass(frozen=True)
class Triangle:
    """R and ``Z = Q'B`` of a decomposition ``A = Q R`` into orthonormal Q and triangular R.

    A and B are taken about their means. Slower than `Gram`, but it keeps the condition number of A
    as it is.
    """

    centre: Centre
    R: Array
    Z: Array

    @classmethod
    def of(
        cls, A: Array, B: Array, weight: Array | None, bias: bool, by_halves: bool = False
    ) -> Triangle:
        """Return the statistic of one block of rows; by halves, of short blocks and merged.

        Rounding in sums over many rows is taken for rank where columns depend on each other; by
        halves it stays below that. Elsewhere one long decomposition is faster, and closer.
        """
        if by_halves and A.shape[0] > max(SHORT, PER_COLUMN * A.shape[1]):
            middle = A.shape[0] // 2
            first, second = (
                cls.of(
                    arrays.some_rows(A, half),
                    arrays.some_rows(B, half),
                    None if weight is None else weight[half],
                    bias,
                    by_halves,
                )
                for half in (slice(middle), slice(middle, None))
            )
            return first.merge(second)
        centre, A, B = centred(A, B, weight, bias)
        return cls(centre, *triangular(A, B))

    def merge(self, other: Triangle, /) -> Triangle:
        """Return the statistic of both blocks of rows."""
        step = self.centre.step(other.centre)
        a, b = step[: self.centre.n], step[self.centre.n :]
        both = triangular(
            arrays.joined([self.R, other.R, a[None, :]]),
            arrays.joined([self.Z, other.Z, b[None, :]]),
        )
        return Triangle(self.centre.merge(other.centre), *both)
