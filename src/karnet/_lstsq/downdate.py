"""Removal of rows from the triangle of a decomposition ``A = Q R``.

Rows C in the span of the rows of R are ``C = S R``, and ``R'R - C'C = R'(I - S'S) R``. With
``S = P diag(s) V'``, the removal leaves the share ``1 - s^2`` of the products along each column of
V, and ``(I - S'S)^(1/2) R`` is a factor of the remaining products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from .._util.types import Array
from . import lapack
from .lapack import EPS, ESTIMATE_FACTOR, back_substitute, column_norms
from .problem import Problem
from .statistics import Triangle

# Rounding of a share in units in the last place, per condition number of its direction.
SHARE_ULPS = 32.0
# Relative size of a direction of R, in units of machine precision, with only a few digits.
BLURRED_ULPS = 1e3
# Distance from the span that removed rows may have, in units of the cut-off.
COMPLEMENT_TOLERANCE = 10.0
# Share below which a negative value is not rounding of zero.
NEGATIVE_SHARE = -1e-3


@dataclass(frozen=True)
class Basis:
    """The directions M of a triangle that are above the cut-off, and their right-hand sides Z."""

    full: bool  # whether M and Z are the whole triangle, which has full rank
    M: Array
    Z: Array
    # From rows C = S M, or from their projection onto the span of M, to S'.
    coordinates: Callable[[Array], Array]
    # From V to X with M X = V.
    inverse: Callable[[Array], Array]

    @classmethod
    def of(cls, cut: float, R: Array, Z: Array) -> Basis:
        """Return the basis of a triangle for a relative cut-off."""
        n = R.shape[1]
        if len(R) == n and lapack.triangular_rcond(R) > ESTIMATE_FACTOR * n * cut:
            solve = partial(back_substitute, R)
            return cls(True, R, Z, lambda C: solve(C.T, transposed=True), solve)
        U, s, Vt = lapack.svd(R)
        kept = lapack.significant(s, cut)
        s, Vt = s[kept, None], Vt[kept]
        Z = U[:, kept].T @ Z
        return cls(False, s * Vt, Z, lambda C: (Vt @ C.T) / s, lambda V: Vt.T @ (V / s))


def without_rows(p: Problem, part: Triangle, controls: Array) -> Triangle:
    """Return the triangle of a problem without the rows of a part.

    The last right-hand sides are ``B = A X`` for the columns X of `controls`.
    """
    # A ridge needs no cut-off; but where R has no digits, S would have none either.
    whole, cut = p.triangle, EPS * max(p.n_columns, BLURRED_ULPS) if p.alpha else p.rcond
    rest = whole.centre.without(part.centre)
    a, b = rest.step(part.centre)
    R = p.without_noise(whole.R, whole.centre)
    scale = column_norms(R)
    constant = ~R.any(axis=0)
    # Rounding of a constant column must stay rounding compared with the other columns.
    scale[constant] = np.maximum(p.noise(whole.centre) / cut, 1.0)[constant]
    C, D = np.vstack([part.R, a]) / scale, np.vstack([part.Z, b])
    basis = Basis.of(cut, R / scale, whole.Z)
    T = basis.coordinates(C)
    if not basis.full:
        complement, size = np.linalg.norm(C - T.T @ basis.M), np.linalg.norm(C)
        if not complement <= COMPLEMENT_TOLERANCE * cut * (np.linalg.norm(basis.M) + size):
            raise ValueError(
                f"a share of {complement / size:.1e} of them is orthogonal to all rows, so they "
                "were never added."
            )
        if not p.alpha:
            # Directions below the cut-off count with a ridge only.
            k = controls.shape[1]
            D[:, D.shape[1] - k :] = T.T @ (basis.M @ (scale[:, None] * controls))
    V, s, _ = lapack.svd(T)
    share = (1.0 - s) * (1.0 + s)
    condition = np.linalg.norm(basis.M) * column_norms(basis.inverse(V))
    rounding = SHARE_ULPS * EPS * condition
    # Without a ridge the share must be above rounding; with a ridge it may be zero.
    if (share <= (-rounding if p.alpha else rounding)).any():
        refuse_share(float(share.min()))
    root = np.sqrt(np.clip(share, np.minimum(rounding, 1.0), 1.0))[:, None]
    Z = basis.Z - T @ D
    Z += V @ ((1.0 / root - 1.0) * (V.T @ Z))
    M = basis.M + V @ ((root - 1.0) * (V.T @ basis.M))
    return Triangle(rest, *lapack.triangular(M * scale, Z))


def refuse_share(share: float) -> None:
    """Raise the error for rows whose removal leaves too small a share in one direction."""
    if share < NEGATIVE_SHARE:
        raise ValueError(
            f"in one direction they hold {1.0 - share:.6g} times the products of all rows, so not "
            "all of them were added."
        )
    raise ValueError(
        f"in one direction a share of {share:.1e} of the products would remain, which is rounding: "
        "fit the other rows afresh, or use a ridge."
    )
