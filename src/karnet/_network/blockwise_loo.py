"""Exact leave-one-out of a ridge problem whose rows are read in blocks, in two passes.

The first pass gives the triangle of a QR decomposition, and with it the singular values S and the
right vectors V of the features; the second gives the rows of ``U = A V / S``, block by block, and
with these the leave-one-out errors as `karnet.loo` has them. Where the features fit in memory
`karnet.loo.RidgePath` is used itself: it takes more care of rows that hardly any other one
resembles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import namespace as arrays
from .._lstsq.lapack import EPS, LIMITS, largest
from .._lstsq.ridge_factor import APART, LARGEST, left_out_errors
from .._lstsq.statistics import SHORT, Centre, Stack, Sum, Triangle
from .._rows.memory import Table
from ..loo import LIMIT, RidgePath, squared_error

Array = NDArray[np.float64]
RightHandSide = Callable[[NDArray[Any]], Array]

# What is left of 1 after a subtraction up to which it is rounding.
ROUNDING = 1e-10


@dataclass(frozen=True)
class LeaveOneOut:
    """The ridge solution of rows in blocks, known well enough to leave out each row.

    Attributes
    ----------
    centre : Centre
        The means of features and targets; zeros without bias.
    to_left : ndarray of shape (n, r)
        ``V / S``: what takes centred, weighted features to the left singular vectors.
    Z : ndarray of shape (r, q)
        The centred, weighted targets in terms of these.
    share : ndarray of shape (r,)
        ``alpha / (S^2 + alpha)``.
    """

    centre: Centre
    to_left: Array
    Z: Array
    share: Array

    @classmethod
    def of(cls, triangle: Triangle, alpha: float) -> LeaveOneOut:
        """Return the solution from the triangle of all rows."""
        P, s, Vt = np.linalg.svd(triangle.R, full_matrices=False)
        felt = s > EPS * (Vt.shape[1] + SHORT) * s[:1].sum()
        P, s, Vt = P[:, felt], s[felt], Vt[felt]
        ridge = max(alpha, LIMIT * float(np.max(s, initial=0.0)) ** 2)
        return cls(triangle.centre, Vt.T / s, P.T @ triangle.Z, ridge / (s**2 + ridge))

    def errors(self, A: Array, B: Array, weight: Array | None) -> Array:
        """Return by how much a refit without each row, of copies without one, misses the row."""
        weights = np.ones(len(A)) if weight is None else arrays.to_numpy(weight)
        X, Y = self.centre.subtract(A, B, weight)
        U, Y = arrays.to_numpy(X @ arrays.like(X, self.to_left)), arrays.to_numpy(Y)
        beside = 1.0 - np.einsum("ij,ij->i", U, U)
        if self.centre.weight:
            beside -= weights / self.centre.weight
        rest = Y - U @ self.Z
        nothing = beside <= ROUNDING
        beside[nothing], rest[nothing] = 0.0, 0.0
        rest += U @ (self.share[:, None] * self.Z)
        return left_out_errors(rest, beside + U**2 @ self.share, weights)


def loo_squared_error(
    seen: Table,
    n: int,
    right_hand_side: RightHandSide,
    to_targets: Callable[[Array], Array],
    *,
    bias: bool,
    alpha: float,
) -> float:
    """Return the leave-one-out squared error of a solve of `lstsq`, mean over rows, all copies.

    Parameters
    ----------
    seen : Table
        Features, targets and weights.
    n : int
        The number of features.
    right_hand_side : callable
        From the targets of rows to what is solved for.
    to_targets : callable
        From what is solved for to that of which the error is wanted, a linear map.
    bias, alpha
        As in `lstsq`: for ``alpha=0`` the bias counts in the norm that is kept small.

    Returns
    -------
    float
        Infinity for a single row, which leaves none to learn from, and for features too large to
        be squared.
    """
    if len(seen) == 1 and seen.total <= 1.0:
        return float("inf")
    ones, free = bias and not alpha, bias and alpha > 0.0
    if len(seen) * n <= LIMITS.loo_in_memory:
        rows = seen.gathered()
        stack = rows.reduce(lambda A, y, _: Stack.of(A, right_hand_side(y), None, ones))
        weight = None if rows.weight is None else arrays.to_numpy(rows.weight)
        if not max(largest(stack.A), largest(stack.B)) <= LARGEST:
            return float("inf")
        if weight is not None:  # a row of too little weight to be left out gets a little more
            weight = np.maximum(weight, 1e3 * APART * weight.max())
        path = RidgePath.of(stack.A, stack.B, weight, free)
        return squared_error(to_targets(path.B), to_targets(path.loo(alpha)), weight)

    def features(A: Array) -> Array:
        return arrays.joined([arrays.like(A, np.ones((len(A), 1))), A], axis=1) if ones else A

    triangle = seen.reduce(
        lambda A, y, w: Triangle.of(features(A), right_hand_side(y), w, free, True)
    )
    triangle = arrays.on_host(triangle)
    if not max(largest(triangle.R), largest(triangle.Z)) <= LARGEST:
        return float("inf")
    fit = LeaveOneOut.of(triangle, alpha)

    def tally(A: Array, y: NDArray[Any], weight: Array | None) -> Sum:
        errors = to_targets(fit.errors(features(A), right_hand_side(y), weight))
        squares = np.einsum("ij,ij->i", errors, errors)
        return Sum(np.array([squares.sum() if weight is None else weight @ squares]))

    return float(seen.reduce(tally).value[0] / seen.total)
