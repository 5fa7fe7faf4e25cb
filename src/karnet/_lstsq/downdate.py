"""Rows taken out of the triangle of a decomposition ``A = Q R``, or the reason why they cannot be.

Rows C in the span of those of R are ``C = S R``, and without them ``R'R - C'C = R'(I - S'S) R``.
With ``S = P diag(s) V'``, the share ``1 - s^2`` of what is known along each column of V is left,
and ``(I - S'S)^(1/2) R`` is what R would be without these rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .lapack import (
    EPS,
    ESTIMATE_FACTOR,
    back_substitute,
    column_norms,
    svd,
    triangular,
    triangular_rcond,
)
from .problem import Problem, noise
from .solvers import without_noise
from .statistics import Triangle

Array = NDArray[np.float64]

# Units in the last place, per root of the number of columns, that rounding moves a share by, times
# the condition of the direction.
ULPS = 32.0
# Directions of R with a few digits only, in units of machine precision.
BLURRED = 1e3
# Times the cut-off that rows may lie beside the span.
BESIDE = 10.0
# A share below minus this is no rounding of zero.
LESS_THAN_NOTHING = 1e-3


class GoneError(ValueError):
    """More would be removed than there is, or too little would be left."""


@dataclass(frozen=True)
class Full:
    """A triangle M of full rank, and its right-hand sides Z."""

    M: Array
    Z: Array

    def coordinates(self, C: Array) -> Array:
        """Return S' for rows ``C = S M``."""
        return back_substitute(self.M, C.T, transposed=True)

    def inverse(self, V: Array) -> Array:
        """Return X with ``M X = V``."""
        return back_substitute(self.M, V)


@dataclass(frozen=True)
class Span:
    """The directions M of a singular triangle that are above the cut-off, and Z for them."""

    M: Array
    Z: Array
    s: Array
    Vt: Array

    @classmethod
    def of(cls, rcond: float, R: Array, Z: Array) -> Span:
        """Return the directions with singular values above the cut-off."""
        U, s, Vt = svd(R)
        felt = s > rcond * s[:1].sum()
        s, Vt = s[felt], Vt[felt]
        return cls(s[:, None] * Vt, U[:, felt].T @ Z, s, Vt)

    def coordinates(self, C: Array) -> Array:
        """Return S' for rows ``C = S M``, or what of them lies in the span."""
        return np.asarray((self.Vt @ C.T) / self.s[:, None])

    def inverse(self, V: Array) -> Array:
        """Return X with ``M X = V``."""
        return np.asarray(self.Vt.T @ (V / self.s[:, None]))


def without_rows(p: Problem, part: Triangle, controls: Array) -> Triangle:
    """Return the triangle of a problem without some rows.

    Parameters
    ----------
    p : Problem
        Its triangle is known.
    part : Triangle
        That of the rows to be removed.
    controls : array of shape (n, k)
        X of the last k right-hand sides, which are ``B = A X``.

    Returns
    -------
    Triangle
    """
    whole, n, cut = p.triangle, p.n, _cut_off(p)
    rest = whole.centre.without(part.centre)
    step = rest.step(part.centre)
    R = without_noise(p)
    scale = column_norms(R)
    constant = ~R.any(axis=0)
    # Rounding about a constant column is to be rounding beside the other columns too.
    scale[constant] = np.maximum(noise(p, whole.centre) / cut, 1.0)[constant]
    C, D = np.vstack([part.R, step[:n]]) / scale, np.vstack([part.Z, step[n:]])
    basis = _basis(cut, R / scale, whole.Z)
    T = basis.coordinates(C)
    if isinstance(basis, Span):
        _refuse_beside(cut, basis, C, T)
        if not p.alpha:
            # What is below the cut-off is no part of the problem; with a ridge it is.
            k = controls.shape[1]
            D[:, D.shape[1] - k :] = T.T @ (basis.M @ (scale[:, None] * controls))
    V, s, _ = svd(T)
    share = _left(p, basis, V, s)
    root = np.sqrt(share)[:, None]
    Z = basis.Z - T @ D
    Z += V @ ((1.0 / root - 1.0) * (V.T @ Z))
    M = basis.M + V @ ((root - 1.0) * (V.T @ basis.M))
    return Triangle(rest, *triangular(M * scale, Z))


def _cut_off(p: Problem) -> float:
    """Return the share of the largest singular value up to which others are left out.

    A ridge cuts nothing off; but where R has no digits, S would have none either.
    """
    return EPS * max(p.columns, BLURRED) if p.alpha else p.rcond


def _basis(cut: float, R: Array, Z: Array) -> Full | Span:
    n = R.shape[1]
    if len(R) == n and triangular_rcond(R) > ESTIMATE_FACTOR * n * cut:
        return Full(R, Z)
    return Span.of(cut, R, Z)


def _refuse_beside(cut: float, basis: Span, C: Array, T: Array) -> None:
    beside = np.linalg.norm(C - T.T @ basis.M)
    if not beside <= BESIDE * cut * (np.linalg.norm(basis.M) + np.linalg.norm(C)):
        raise GoneError(
            f"{beside / np.linalg.norm(C):.1e} of them lies where no row was, so they never were "
            "in it."
        )


def _left(p: Problem, basis: Full | Span, V: Array, s: Array) -> Array:
    """Return which share of what is known along each column of V is left.

    With a ridge nothing need be left, but for rounding.
    """
    share = (1.0 - s) * (1.0 + s)
    condition = np.linalg.norm(basis.M) * column_norms(basis.inverse(V))
    rounding = ULPS * EPS * condition
    if (share <= (-rounding if p.alpha else rounding)).any():
        raise GoneError(too_little_left(float(share.min())))
    return np.clip(share, np.minimum(rounding, 1.0), 1.0)


def too_little_left(share: float) -> str:
    """Return the sentence that says so."""
    if share < -LESS_THAN_NOTHING:
        return (
            f"they hold {1.0 - share:.6g} times what is known in one direction, so not all of them "
            "were in it."
        )
    return (
        f"a share of {share:.1e} of what is known in one direction would be left, which is "
        "rounding: learn from the other rows afresh, or take a ridge."
    )
