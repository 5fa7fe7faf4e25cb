"""A member of finite width: a layer of units around some rows, learned from all, block by block.

Its products tend to the kernel of the infinitely wide layer (they are those of the Nystroem
features ``K(x, Z) L'^-1``, with ``K(Z, Z) = L L'``). Its Gram matrix is a sum over blocks of rows,
so rows need not fit in memory, and may be worked on elsewhere: on a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._ensemble.member import (
    N_SAMPLED,
    Answers,
    Member,
    SplitMean,
    Targets,
    left_out_error,
    smoothest,
)
from .._lstsq.statistics import Gram
from .._rows.memory import Rows, Table

__all__ = ["Landmarks", "fit_some"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# What is added to K(Z, Z), of which nothing is left of the least eigenvalues otherwise.
JITTER = 1e-9
# Ridges tried where rows are many (a kernel of a row with itself is 1), and steps between them
# tried beside the best.
COARSE, FINE = np.logspace(-5, 1, 7), np.sqrt(10.0)
# The least of a row's own weight that can be told from rounding after its leverage is taken off.
LEAST_LEFT = 1e-6


@dataclass(frozen=True)
class Landmarks:
    """A hidden layer with some rows as centres, and the Gram matrix of what it shows of all rows.

    Attributes
    ----------
    blank : Member
        Centres and all that `Member.hidden` needs.
    rows : Table
        All rows, as the layer shows them.
    gram : Gram
        Of the Nystroem features ``K(x, Z) L'^-1``.
    L : ndarray of shape (h, h)
        The factor, as an upper triangle L'.
    """

    blank: Member
    rows: Table
    gram: Gram
    L: Array

    @classmethod
    def of(cls, blank: Member, rows: Rows, device: str | None = None) -> Landmarks:
        """Go through all rows once, on a device if one is given."""
        Z = blank.X_fit_
        KZ = blank.kernel(Z, Z, blank.scale, blank.shape.depth)
        KZ[np.diag_indices(len(Z))] += JITTER * len(Z)
        L, _ = lapack.dpotrf(KZ.T, clean=1)
        shown = blank.shown(rows, device)
        gram = arrays.on_host(shown.reduce(partial(Gram.of, bias=True, careful=True)))
        # Of a symmetric matrix the upper triangle is enough, here and for Cholesky.
        AA, _ = lapack.dsygst(gram.AA.T, L)
        AB = blas.dtrsm(1.0, L, gram.AB, trans_a=1)
        return cls(blank, shown, replace(gram, AA=AA, AB=AB), L)

    def solve(self, alpha: float) -> tuple[Array, Array]:
        """Return the factor R of ``A'A + alpha = R'R`` and the coefficients of the features."""
        AA = np.array(self.gram.AA, order="F")
        AA[np.diag_indices(len(AA))] += alpha
        R, info = lapack.dpotrf(AA, clean=0, overwrite_a=1)
        # A ridge too small for the digits that the Gram matrix has left is no solution.
        AB = self.gram.AB
        W = lapack.dpotrs(R, AB)[0] if info == 0 else np.full_like(AB, np.inf)
        return R, np.asarray(W)

    def coef(self, alpha: float) -> tuple[Array, Array, Array]:
        """Return b, D, and the factor R of ``A'A + alpha``."""
        R, W = self.solve(alpha)
        D = blas.dtrsm(1.0, self.L, W)
        return self.gram.centre.B - self.gram.centre.A @ D, D, R

    def centred(self, k: Array) -> Array:
        """Return rows of K(x, Z) less their means."""
        return k - arrays.like(k, self.gram.centre.A)

    def left_out(self, alpha: float) -> Array:
        """Return for every row what is answered that was learned without one copy of it."""
        b, D, R = self.coef(alpha)
        # One triangle instead of two for all rows.
        both = b, D, blas.dtrmm(1.0, R, self.L)

        def of_block(k: Array, y: Array, weight: Array | None) -> Answers:
            return Answers.of(self._left_out(both, k, self.centred(k), y, weight))

        return self.rows.reduce(of_block).joined()

    def _left_out(
        self,
        solution: tuple[Array, Array, Array],
        k: Array,
        features: Array,
        y: Array,
        weight: Array | None,
    ) -> Array:
        b, D, R = (arrays.like(k, each) for each in solution)
        xp = arrays.namespace(k)
        leverage = 1.0 / self.gram.centre.weight + arrays.row_squares(
            algebra.over_triangle(features, R)
        )
        if weight is not None:
            leverage *= xp.clip(weight, None, 1.0)
        left = xp.clip(1.0 - leverage, LEAST_LEFT, None)
        return y - (y - b - k @ D) / left[:, None]

    def best_ridge(self) -> float:
        """Return the ridge with the least error of a sample of rows, left out one at a time."""
        some = self.rows.every(max(len(self.rows) // N_SAMPLED, 1)).gathered()
        k = some.X
        # The Nystroem features.
        features = algebra.over_triangle(self.centred(k), arrays.like(k, self.L))

        def error(alpha: float) -> float:
            found = self._left_out(self.coef(alpha), k, features, some.y, some.weight)
            return _error(some, arrays.to_numpy(found))

        errors = {float(alpha): error(alpha) for alpha in COARSE}
        best = COARSE[smoothest(list(errors.values()))]
        errors |= {float(alpha): error(alpha) for alpha in (best / FINE, best * FINE)}
        alphas = np.sort(list(errors))
        return float(alphas[smoothest([errors[alpha] for alpha in alphas])])


def fit_some(blank: Member, X: Array, targets: Targets, device: str | None = None) -> Member:
    """Return the member with given centres, learned from all rows, block by block.

    Of some ridges, the one with the least error of a sample of rows is taken. What all rows have a
    part in is computed on a device, if one is given.
    """
    rows = Rows(X, targets.Y, targets.weight)
    layer = Landmarks.of(blank, rows, device)
    if targets.splits is None:
        alpha = layer.best_ridge()
        found = layer.left_out(alpha)
    else:
        folds = _kfold(blank, rows, COARSE, targets.splits, device)
        best = smoothest([_error(rows, each) for each in folds])
        alpha, found = float(COARSE[best]), folds[best]
    b, D, _ = layer.coef(alpha)
    error = _error(rows, found)
    return replace(blank, dual_coef_=D, intercept_=b, alpha_=alpha, error=error, left_out=found)


def _error(rows: Rows, left_out: Array) -> float:
    weight = np.ones(len(rows)) if rows.weight is None else arrays.to_numpy(rows.weight)
    return left_out_error(arrays.to_numpy(rows.y), left_out, weight)


def _kfold(
    blank: Member, rows: Rows, alphas: Array, splits: Sequence[Indices], device: str | None
) -> Array:
    mean = SplitMean((len(alphas), *rows.y.shape))
    for split in splits:
        kept = np.setdiff1d(np.arange(len(rows)), split)
        weight = None if rows.weight is None else rows.weight[kept]
        layer = Landmarks.of(blank, Rows(rows.X[kept], rows.y[kept], weight), device)
        b, D, _ = zip(*(layer.coef(alpha) for alpha in alphas), strict=True)
        # All ridges answer at once, as outputs of one member.
        together = replace(blank, dual_coef_=np.hstack(D), intercept_=np.hstack(b))
        answers = together(rows.X[split], device).reshape(len(split), len(alphas), -1)
        mean.add(split, np.moveaxis(answers, 1, 0))
    return mean.value
