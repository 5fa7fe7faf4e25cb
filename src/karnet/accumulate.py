"""The mergeable statistics of one least-squares problem ``[1, A] W = B`` over rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Centre", "Gram", "Stack", "Sum", "Triangle", "triangular_factor"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sum:
    """A plain sum over rows."""

    value: Array

    def merge(self, other: Sum, /) -> Sum:
        """Return the sum over both."""
        return Sum(self.value + other.value)


@dataclass(frozen=True)
class Stack:
    """The rows of [1, A, B] themselves (without bias [A, B]), each times the root of its weight."""

    rows: Array

    @classmethod
    def of(cls, A: Array, B: Array, weight: Array | None, bias: bool) -> Stack:
        """Return the statistic of one block of rows."""
        rows = np.hstack([np.ones((len(A), int(bias))), A, B])
        if weight is not None:
            rows *= np.sqrt(weight)[:, None]
        return cls(rows)

    def merge(self, other: Stack, /) -> Stack:
        """Return the rows of both."""
        return Stack(np.vstack([self.rows, other.rows]))


@dataclass(frozen=True)
class Centre:
    """The weight of some rows and their weighted means (zeros without bias)."""

    weight: float
    A: Array
    B: Array

    @classmethod
    def of(cls, A: Array, B: Array, weight: Array | None, bias: bool) -> Centre:
        """Return the statistic of one block of rows."""
        if not bias or not len(A):
            return cls(0.0, np.zeros(A.shape[1]), np.zeros(B.shape[1]))
        weight = np.ones(len(A)) if weight is None else weight
        total = float(weight.sum())
        # Counted from the first row, the mean of a constant column is exact.
        return cls(total, *(M[0] + weight @ (M - M[0]) / total for M in (A, B)))

    def merge(self, other: Centre, /) -> Centre:
        """Return the statistic of both blocks of rows."""
        weight = self.weight + other.weight
        share = other.weight / weight if weight else 0.0
        return Centre(
            weight, self.A + share * (other.A - self.A), self.B + share * (other.B - self.B)
        )

    def step(self, other: Centre) -> tuple[Array, Array]:
        """Return the row (a, b) that products about the common mean have and those apart lack."""
        weight = self.weight + other.weight
        root = np.sqrt(self.weight * other.weight / weight) if weight else 0.0
        return root * (other.A - self.A)[None], root * (other.B - self.B)[None]

    def subtract(self, A: Array, B: Array, weight: Array | None) -> tuple[Array, Array]:
        """Return the rows less their means, times the roots of their weights."""
        if self.weight:
            A, B = A - self.A, B - self.B
        if weight is not None:
            root = np.sqrt(weight)[:, None]
            A, B = A * root, B * root
        return A, B


@dataclass(frozen=True)
class Gram:
    """The products A'A and A'B about the means.

    Fast, but it squares the condition number of A.
    """

    centre: Centre
    AA: Array
    AB: Array

    @classmethod
    def of(cls, A: Array, B: Array, weight: Array | None, bias: bool) -> Gram:
        """Return the statistic of one block of rows."""
        centre = Centre.of(A, B, weight, bias)
        A, B = centre.subtract(A, B, weight)
        return cls(centre, A.T @ A, A.T @ B)

    def merge(self, other: Gram, /) -> Gram:
        """Return the statistic of both blocks of rows."""
        a, b = self.centre.step(other.centre)
        return Gram(
            self.centre.merge(other.centre),
            self.AA + other.AA + a.T @ a,
            self.AB + other.AB + a.T @ b,
        )


@dataclass(frozen=True)
class Triangle:
    """The triangular factor R of a QR decomposition of [A, B] about the means.

    Slower than `Gram`, but it keeps the condition number of A as it is.
    """

    centre: Centre
    R: Array

    @classmethod
    def of(cls, A: Array, B: Array, weight: Array | None, bias: bool) -> Triangle:
        """Return the statistic of one block of rows."""
        centre = Centre.of(A, B, weight, bias)
        A, B = centre.subtract(A, B, None)
        # What the means were rounded by would be noise in columns that hardly vary.
        rest = Centre.of(A, B, weight, bias)
        return cls(centre, triangular_factor(*rest.subtract(A, B, weight)))

    def merge(self, other: Triangle, /) -> Triangle:
        """Return the statistic of both blocks of rows."""
        step = np.hstack(self.centre.step(other.centre))
        R = triangular_factor(np.vstack([self.R, other.R, step]))
        return Triangle(self.centre.merge(other.centre), R)


def triangular_factor(*columns: Array) -> Array:
    """Return R of a QR decomposition of the given columns side by side."""
    return np.asarray(np.linalg.qr(np.hstack(columns), mode="r"))
