"""Ridge solutions in the dual, for the output layer above infinitely wide layers.

Of the features A that the output layer sees, only the kernel ``K = A A'`` is known. With ``V = A'
D`` the ridge problem of the output layer becomes a problem for D, which has one row per row of the
training set. The network predicts ``f(b + K(x, X) D)``: a single layer above a kernel map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._arrays.threads import stop_if_abandoned
from .._lstsq.lapack import default_rcond
from .._lstsq.ridge_factor import left_out_divisor
from .._util.types import Array, Indices
from ..activations import ACTIVATIONS
from .kernel_map import KernelMap
from .layers import Layer, Network

# Arrays of row numbers, the rows of each left out together; None leaves out one row at a time.
Splits = Sequence[Indices] | None
# An error is smaller if it is below this share of another.
LEAST_FALL = 0.999
# Squares of larger ridges overflow in single precision; a row of such a ridge has no part in a fit.
LARGEST_RIDGE = 1e19


def kernel_network(D: Array, b: Array, kernel: KernelMap) -> Network:
    """Return the network that predicts ``b + K(x, Z) D``."""
    return Network((Layer(D, b, ACTIVATIONS["identity"]),), input_map=kernel)


@dataclass(frozen=True)
class RidgeTargets:
    """The targets Y of a ridge problem, their sample weights, and the rule that selects its ridge.

    `ridges` are the candidates, as multiples of the mean eigenvalue of the kernel matrix. They are
    judged by the errors of left-out rows: those of each split, or one row at a time.
    """

    Y: Array
    weight: Array
    ridges: Array
    splits: Splits = None
    enough: float = 0.0  # an error that need not be smaller

    @property
    def variance(self) -> float:
        """The sum of the variances of the targets."""
        share = self.weight / self.weight.sum()
        return float(np.sum(share @ (self.Y - share @ self.Y) ** 2))

    @property
    def n_repeats(self) -> float:
        """The number of rows; weights above 1 are repeats."""
        return max(float(self.weight.sum()), float(len(self.Y)))

    def of(self, rows: Indices) -> RidgeTargets:
        """Return the targets of some rows; those that are left out together stay together."""
        splits = self.splits
        if splits is not None:
            place = np.full(len(self.Y), -1)
            place[rows] = np.arange(len(rows))
            splits = [place[split][place[split] >= 0] for split in splits]
        return replace(self, Y=self.Y[rows], weight=self.weight[rows], splits=splits)

    def error(self, left_out: Array) -> float:
        """Return the mean squared error of left-out predictions of all rows."""
        squares = np.sum((self.Y - left_out) ** 2, axis=1)
        return float(self.weight @ squares / self.weight.sum())


@dataclass(frozen=True)
class RidgeSystem:
    """The factorised system ``C a + b 1 = y``, ``1'a = 0`` of a kernel ridge problem with bias.

    C is the kernel matrix plus the ridge over the weights. With ``u = C^-1 1``, ``s = 1'u``, ``M =
    C^-1 - u u' / s`` and ``m = u / s``, the solution is ``a = M y`` and ``b = m'y``. Arrays have
    the precision and the device of the kernel matrix.
    """

    ridge: Array  # the ridge over the weight of each row, NumPy's
    R: Array  # the Cholesky factor of C
    u: Array

    @classmethod
    def of(cls, K: Array, weight: Array, alpha: float) -> RidgeSystem:
        """Factorise the system; if C is not positive definite, with a larger ridge."""
        stop_if_abandoned()
        ridge = np.minimum(alpha / weight, LARGEST_RIDGE)
        while (R := algebra.cholesky_factor(_plus(K, ridge), overwrite=True)) is None:
            ridge = np.maximum(10.0 * ridge, default_rcond(len(K)))
        ones = arrays.full(K, (len(K), 1), 1.0)
        return cls(ridge, R, _solved_by(R, arrays.as_type(ones, K.dtype))[:, 0])

    @property
    def m(self) -> Array:
        """The bias of the solution of each unit vector."""
        return self.u / arrays.namespace(self.u).sum(self.u)

    def times(self, Y: Array) -> Array:
        """Return ``M Y``."""
        C = _solved_by(self.R, Y)
        return C - self.u[:, None] * (self.m @ Y)

    def diagonal(self, last: int | None = None) -> Array:
        """Return the diagonal of M, or its last few elements, as a NumPy array.

        The last elements take little time: they depend on the last corner of the triangle only.
        """
        few = slice(None if last is None else len(self.R) - last, None)
        squares = arrays.row_squares(algebra.inverse_triangle(self.R[few, few]))
        u = arrays.to_numpy(self.u)
        return np.asarray(arrays.to_numpy(squares) - u[few] ** 2 / u.sum())


def _solved_by(R: Array, B: Array) -> Array:
    """Return the solution of ``R'R X = B``."""
    return algebra.solve_triangle(R, algebra.solve_triangle(R, B, transposed=True))


@dataclass(frozen=True)
class DualSolution:
    """The ridge solution of a kernel problem for one ridge: b and D of ``b + K(x, X) D``."""

    b: Array
    D: Array
    system: RidgeSystem

    @classmethod
    def of(cls, K: Array, targets: RidgeTargets, alpha: float) -> DualSolution:
        """Solve the problem; if it is not definite, with a larger ridge."""
        system = RidgeSystem.of(K, targets.weight, alpha)
        Y = arrays.as_type(arrays.like(K, targets.Y), K.dtype)
        return cls(system.m @ Y, system.times(Y), system)

    def left_out(self, targets: RidgeTargets, last: int | None = None) -> Array:
        """Return the left-out predictions of the last rows, as `karnet.loo` defines them.

        They are NumPy's, and those of all rows by default. The prediction for a single row is NaN.
        """
        if targets.splits is not None:
            return self._left_out_together(targets)[-(last or len(self.D)) :]
        few = slice(None if last is None else len(self.D) - last, None)
        ridge, weight = self.system.ridge[few], targets.weight[few]
        remaining = ridge * self.system.diagonal(last)
        residual = np.sqrt(weight) * ridge * arrays.to_numpy(self.D[few]).T
        if len(self.D) == 1:  # both are zero but for rounding
            remaining, residual = np.zeros_like(remaining), np.zeros_like(residual)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(targets.Y[few] - (residual / left_out_divisor(remaining, weight)).T)

    def _left_out_together(self, targets: RidgeTargets) -> Array:
        """Return predictions without all rows of a split, NaN for rows in no split.

        Without rows G the residual is ``M_GG^-1 D_G``. Predictions for a row in several splits are
        averaged.
        """
        D = arrays.to_numpy(self.D).astype(np.float64)
        units = arrays.like(self.D, np.eye(len(D)))
        M = arrays.to_numpy(self.system.times(arrays.as_type(units, self.D.dtype)))

        total, count = np.zeros_like(targets.Y), np.zeros((len(D), 1))
        for G in targets.splits or ():
            if 0 < len(G) < len(D):  # otherwise nothing is left out, or no row is left
                residual = np.linalg.solve(M[np.ix_(G, G)].astype(np.float64), D[G])
                total[G] += targets.Y[G] - residual
                count[G] += 1.0
        with np.errstate(invalid="ignore"):
            return np.asarray(total / count)


def _plus(K: Array, ridge: Array) -> Array:
    """Return a symmetric matrix with a ridge added to its diagonal, in memory in Fortran order."""
    if not arrays.is_host(K):
        xp = arrays.namespace(K)
        rows = arrays.indices(K, len(K))
        diagonal = xp.astype(rows[:, None] == rows, K.dtype)
        return K + diagonal * arrays.as_type(arrays.like(K, ridge), K.dtype)
    total = np.array(K.T, order="F")
    total[np.diag_indices(len(K))] += ridge
    return total


def nearest(ridges: Array, alpha: float) -> int:
    """Return the index of the ridge nearest to alpha."""
    return int(np.argmin(np.abs(np.log(ridges / alpha))))


def downhill(
    error: Callable[..., float],
    start: tuple[int, ...],
    ends: tuple[int, ...],
    enough: float = 0.0,
) -> tuple[tuple[int, ...], float]:
    """Return a point of a grid that no neighbour improves upon, and its error.

    The search descends from a start. The coordinates of a point are at least 0 and below `ends`.
    Steps in one direction become longer as long as the error falls. The search ends at a point
    whose error is at most `enough`.
    """
    known = {start: error(*start)}

    def better(here: tuple[int, ...], j: int, step: int) -> tuple[int, ...] | None:
        if known[here] <= enough:
            return None
        place = min(max(here[j] + step, 0), ends[j] - 1)
        there = (*here[:j], place, *here[j + 1 :])
        if there not in known:
            known[there] = error(*there)
        return there if known[there] < LEAST_FALL * known[here] else None

    here, before = start, None
    while here != before:
        before = here
        for j in reversed(range(len(ends))):
            for step in (-1, 1):
                while (there := better(here, j, step)) is not None:
                    here, step = there, 2 * step
    return here, known[here]
