"""Exact leave-one-out errors of a ridge problem whose rows are read in blocks, in two passes.

The first pass computes the triangle of a QR decomposition, which gives the singular values S and
the right singular vectors V of the features. The second pass computes the rows of ``U = A V / S``
block by block and, from these, the leave-one-out errors as in `karnet.loo`. Features that fit in
memory go to `karnet.loo.RidgePath`, which is more accurate for rows with leverages near 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._arrays import namespace as arrays
from .._lstsq.lapack import LIMITS, default_rcond, largest, significant
from .._lstsq.ridge_factor import LARGEST_VALUE, WEIGHT_RATIO, left_out_divisor
from .._lstsq.statistics import SHORT_SUM, Stack, Sum, Triangle
from .._rows.memory import Table
from .._util.types import AnyArray, Array
from ..loo import LEAST_RIDGE, RidgePath, squared_error

# Result of a subtraction from 1 up to which it is rounding.
ROUNDING_SHARE = 1e-10


def _errors_by_block(triangle: Triangle, alpha: float) -> Callable[..., Array]:
    """Return the function of the leave-one-out errors of a block of rows A, B and weight.

    Of several copies of a row one is left out. The triangle is the one of all rows.
    """
    P, s, Vt = np.linalg.svd(triangle.R, full_matrices=False)
    kept = significant(s, default_rcond(Vt.shape[1] + SHORT_SUM))
    P, s, Vt = P[:, kept], s[kept], Vt[kept]
    ridge = max(alpha, LEAST_RIDGE * float(np.max(s, initial=0.0)) ** 2)
    centre, to_left, Z = triangle.centre, Vt.T / s, P.T @ triangle.Z
    share = ridge / (s**2 + ridge)

    def errors(A: Array, B: Array, weight: Array | None) -> Array:
        weights = np.ones(len(A)) if weight is None else arrays.to_numpy(weight)
        X, Y = centre.subtract(A, B, weight)
        U, Y = arrays.to_numpy(X @ arrays.like(X, to_left)), arrays.to_numpy(Y)
        complement = 1.0 - np.einsum("ij,ij->i", U, U)
        if centre.weight:
            complement -= weights / centre.weight
        residual = Y - U @ Z
        rounding = complement <= ROUNDING_SHARE
        complement[rounding], residual[rounding] = 0.0, 0.0
        residual += U @ (share[:, None] * Z)
        return residual / left_out_divisor(complement + U**2 @ share, weights)[:, None]

    return errors


def loo_squared_error(
    seen: Table,
    n: int,
    right_hand_side: Callable[[AnyArray], Array],
    to_targets: Callable[[Array], Array],
    *,
    bias: bool,
    alpha: float,
) -> float:
    """Return the leave-one-out squared error of `lstsq`, averaged over all copies of the rows.

    The problem has n features, and right-hand sides that are made from the targets of rows; the
    linear map `to_targets` takes these to the targets whose error is measured. For ``alpha=0`` the
    bias counts in the norm, as in `lstsq`. The error is infinite for a single row, which leaves
    none to fit, and for features too large to be squared.
    """
    if len(seen) == 1 and seen.total <= 1.0:
        return float("inf")
    ones, free = bias and not alpha, bias and alpha > 0.0
    if len(seen) * n <= LIMITS.loo_in_memory:
        rows = seen.gathered()
        stack = rows.reduce(lambda A, y, _: Stack.of(A, right_hand_side(y), None, ones))
        weight = None if rows.weight is None else arrays.to_numpy(rows.weight)
        if not max(largest(stack.A), largest(stack.B)) <= LARGEST_VALUE:
            return float("inf")
        if weight is not None:  # weights too small to be left out are raised a little
            weight = np.maximum(weight, 1e3 * WEIGHT_RATIO * weight.max())
        path = RidgePath.of(stack.A, stack.B, weight, free)
        return squared_error(to_targets(path.B), to_targets(path.loo(alpha)), weight)

    def features(A: Array) -> Array:
        return arrays.joined([arrays.like(A, np.ones((len(A), 1))), A], axis=1) if ones else A

    def of_block(A: Array, y: AnyArray, weight: Array | None) -> Triangle:
        return Triangle.of(features(A), right_hand_side(y), weight, free, by_halves=True)

    triangle = arrays.on_host(seen.reduce(of_block))
    if not max(largest(triangle.R), largest(triangle.Z)) <= LARGEST_VALUE:
        return float("inf")
    left_out = _errors_by_block(triangle, alpha)

    def tally(A: Array, y: AnyArray, weight: Array | None) -> Sum:
        errors = to_targets(left_out(features(A), right_hand_side(y), weight))
        squares = np.einsum("ij,ij->i", errors, errors)
        return Sum(np.array([squares.sum() if weight is None else weight @ squares]))

    return float(seen.reduce(tally).value[0] / seen.total)
