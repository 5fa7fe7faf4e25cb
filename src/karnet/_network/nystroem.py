"""Kernel networks of finite width: some rows are centres, and all rows are fitted in blocks.

The hidden layer gives the Nystroem features ``K(x, Z) L'^-1``, with ``K(Z, Z) = L L'``, whose
products tend to the kernel of the infinitely wide layer. Their Gram matrix is a sum over blocks of
rows, so that rows need not fit in memory and the sums may be formed on a device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import blas, lapack

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._lstsq.lapack import Cholesky
from .._lstsq.ridge_factor import left_out_divisor
from .._lstsq.statistics import Gram
from .._rows.device import on_device
from .._rows.memory import Rows, Table, power_of_2
from .._rows.streamed import Joined, Raw, Sample
from .._util.types import Array, Indices
from ..activations import Function
from .infinite_width import (
    KernelMap,
    RidgeFit,
    RidgeTargets,
    downhill,
    kernel_network,
    last_of_least,
    nearest,
)
from .layers import scores

# Added to the diagonal of K(Z, Z), over h: rounding leaves nothing of smaller eigenvalues.
JITTER = 1e-9
# The candidate ridges; the kernel of a row with itself is 1.
RIDGES = np.logspace(-5, 1.5, 14)
# The least share of a row's own weight that is distinguishable from rounding once its leverage is
# subtracted.
LEAST_LEFT = 1e-6
# About the number of rows in the sample that selects the ridge.
N_SAMPLED = 300


@dataclass(frozen=True)
class Landmarks:
    """A hidden layer with some rows as centres, and the Gram matrix of its features of all rows."""

    rows: Table  # all rows, their inputs mapped to K(x, Z)
    gram: Gram  # of the Nystroem features ``K(x, Z) L'^-1``
    L: Array  # the Cholesky factor, as an upper triangle L'

    @classmethod
    def of(
        cls, kernel: KernelMap, view: Function, rows: Rows, device: str | None = None
    ) -> Landmarks:
        """Read all rows once, and form their Gram matrix on a device if one is given."""
        KZ = kernel(kernel.Z)
        KZ[np.diag_indices(len(KZ))] += JITTER * len(KZ)
        L, _ = lapack.dpotrf(KZ.T, clean=1)
        mapped = _mapped(kernel, view, rows, device)
        gram = arrays.on_host(mapped.reduce(partial(Gram.of, bias=True, careful=True)))
        # Of a symmetric matrix the upper triangle is enough, here and for Cholesky.
        AA, _ = lapack.dsygst(gram.AA.T, L)
        AB = blas.dtrsm(1.0, L, gram.AB, trans_a=1)
        return cls(mapped, replace(gram, AA=AA, AB=AB), L)

    def coef(self, alpha: float) -> tuple[Array, Array, Array]:
        """Return b, D, and the Cholesky factor R of ``A'A + alpha = R'R``."""
        factor = Cholesky.of(self.gram.AA, alpha)
        if factor is None:  # the ridge is below the rounding errors of the Gram matrix
            R, W = np.eye(len(self.L)), np.full_like(self.gram.AB, np.inf)
        else:
            R, W = factor.R, factor.solve(self.gram.AB)
        D = blas.dtrsm(1.0, self.L, W)
        return self.gram.centre.B - self.gram.centre.A @ D, D, R

    def refined(self, alpha: float) -> tuple[Array, Array, Array]:
        """Return b and D, and the left-out prediction for every row: that of a fit without it.

        D is refined once against the rows: its error grows with the squared condition number of the
        features, for which the Gram matrix is formed, and with that of K(Z, Z).
        """
        b, D, R = self.coef(alpha)
        # One triangular solve instead of two for all rows.
        RL = blas.dtrmm(1.0, R, self.L)

        def of_block(K: Array, y: Array, weight: Array | None) -> Joined:
            A = K - arrays.like(K, self.gram.centre.A)
            residual, left_out = self._left_out(b, D, RL, K, A, y, weight)
            return Joined(((arrays.to_numpy(left_out), arrays.to_numpy(A.T @ residual), None),))

        left_out, products, _ = zip(*self.rows.reduce(of_block).parts, strict=True)
        gradient = blas.dtrsm(1.0, self.L, sum(products), trans_a=1)
        gradient -= alpha * blas.dtrmm(1.0, self.L, D)
        D += blas.dtrsm(1.0, self.L, lapack.dpotrs(R, gradient)[0])
        return self.gram.centre.B - self.gram.centre.A @ D, D, np.concatenate(left_out)

    def _left_out(
        self, b: Array, D: Array, R: Array, K: Array, A: Array, y: Array, weight: Array | None
    ) -> tuple[Array, Array]:
        """Return weighted residuals and left-out predictions, for ``R'R`` the products of A."""
        assert weight is not None
        b, D, R = (arrays.like(K, each) for each in (b, D, R))
        squares = arrays.row_squares(algebra.over_triangle(A, R))
        remaining = 1.0 - weight * (1.0 / self.gram.centre.weight + squares)
        root, residual = arrays.namespace(weight).sqrt(weight)[:, None], y - b - K @ D
        divisor = left_out_divisor(remaining, weight, LEAST_LEFT)
        left_out = y - residual * root / divisor[:, None]
        return residual * weight[:, None], left_out

    def best_ridge(self, ridges: Array, near: float | None = None) -> float:
        """Return the ridge with the least leave-one-out error of a sample of rows.

        With `near`, the search goes downhill from the nearest candidate.
        """
        some = self.rows.every(max(len(self.rows) // N_SAMPLED, 1)).gathered()
        K, y, weight = some.X, some.y, some.weight
        mean, L = arrays.like(K, self.gram.centre.A), arrays.like(K, self.L)
        features = algebra.over_triangle(K - mean, L)
        targets = RidgeTargets(arrays.to_numpy(y), arrays.to_numpy(weight), ridges)

        def error(k: int) -> float:
            _, left_out = self._left_out(*self.coef(float(ridges[k])), K, features, y, weight)
            return targets.error(arrays.to_numpy(left_out))

        if near is None:
            best = last_of_least([error(k) for k in range(len(ridges))])
        else:
            (best,) = downhill(error, (nearest(ridges, near),), (len(ridges),))
        return float(ridges[best])


def _mapped(kernel: KernelMap, view: Function, rows: Rows, device: str | None) -> Table:
    """Return rows with their inputs mapped to K(x, Z); the view is applied in NumPy."""
    width = len(kernel.Z)
    if device is None:
        return rows.map(lambda X: kernel(view(X)), width)

    def viewed(X: Array, y: Array, weight: Array | None) -> Raw:
        return view(X), y, weight

    step = max(len(rows) // N_SAMPLED, 1)
    some = rows.every(step)
    sample = Sample(Rows(*viewed(some.X, some.y, some.weight)), power_of_2(step))
    return on_device(rows, device, viewed, sample).map(kernel, width)


def fit_nystroem(
    kernel: KernelMap,
    view: Function,
    X: Array,
    targets: RidgeTargets,
    device: str | None = None,
    ridges: Array = RIDGES,
    near: float | None = None,
) -> RidgeFit:
    """Fit a kernel network with given centres to all rows, in blocks, on a device if one is given.

    The selected ridge, one of a geometric progression instead of those of the targets, has the
    least error of a sample of rows, or of the splits. It may be known to be near another.
    """
    layer = Landmarks.of(kernel, view, Rows(X, targets.Y, targets.weight), device)

    def of_fold(fold: Indices) -> tuple[Indices, Array]:
        kept = np.setdiff1d(np.arange(len(X)), fold)
        some = Rows(X[kept], targets.Y[kept], targets.weight[kept])
        without = Landmarks.of(kernel, view, some, device)
        b, D, _ = zip(*(without.coef(alpha) for alpha in ridges), strict=True)
        # One network with the outputs of all ridges.
        network = kernel_network(np.hstack(D), np.hstack(b), kernel, view)
        predictions = scores(network, X[fold], device).reshape(len(fold), len(ridges), -1)
        return fold, np.moveaxis(predictions, 1, 0)

    if targets.splits is None:
        alpha = layer.best_ridge(ridges, near)
        b, D, left_out = layer.refined(alpha)
    else:
        folds = targets.left_out(len(ridges), map(of_fold, targets.splits))
        best = last_of_least([targets.error(each) for each in folds])
        alpha, left_out = float(ridges[best]), folds[best]
        b, D, _ = layer.coef(alpha)
    network = kernel_network(D, b, kernel, view)
    return RidgeFit(network, alpha, targets.error(left_out), left_out)
