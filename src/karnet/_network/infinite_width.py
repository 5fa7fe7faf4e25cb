"""Infinitely wide random layers: kernels in place of weights, and ridge solutions in the dual.

Of the features A that the output layer sees, only the product ``K = A A'`` is known, from
`karnet.kernels`. With ``V = A' D`` the ridge problem of the output layer becomes a problem for D,
which has one row per row of the training set. The network predicts ``f(b + K(x, X) D)``: a single
layer above a kernel map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._arrays.threads import stop_if_abandoned
from .._lstsq.lapack import default_rcond
from .._lstsq.ridge_factor import left_out_divisor
from .._util.types import Array, Indices
from ..activations import ACTIVATIONS, Activation, Function
from ..kernels import KERNELS, kernel_blocks
from ..loo import RidgePath
from .layers import Layer, Network

# Arrays of row numbers, the rows of each left out together; None leaves out one row at a time.
Splits = Sequence[Indices] | None

# The kernel of cosine units with random phases, for each distribution of their weights.
COSINE_KERNELS = {"normal": "gaussian", "cauchy": "laplace_l1"}
# The smallest ridge as a share of the largest eigenvalue of a kernel matrix: smaller ridges leave
# no significant digits.
LEAST_RIDGE = 1e-9
# An error is smaller if it is below this share of another.
LEAST_FALL = 0.999


@dataclass(frozen=True)
class KernelMap:
    """The map from rows to their kernel with given centres."""

    kernel: str  # a key of `karnet.kernels.KERNELS`
    scale: float = 1.0
    depth: int = 1  # the number of infinitely wide layers
    direct_links: bool = False  # whether inner products are added, as for inputs joined to a layer
    Z: Array = field(default_factory=lambda: np.empty((0, 0)))  # the centres, if fitted

    def at(self, Z: Array) -> KernelMap:
        """Return the map with centres Z."""
        return replace(self, Z=Z)

    def __call__(self, X: Array) -> Array:
        """Return K(x, Z), computed on the device of the rows."""
        Z = arrays.like(X, self.Z)
        K = KERNELS[self.kernel](X, Z, self.scale, self.depth)
        if not self.direct_links:
            return K
        return K + (algebra.careful_product(X, Z.T) if arrays.is_host(X) else X @ Z.T)

    def blocks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Yield slices of the rows X and their K(x, Z)."""
        Z = arrays.like(X, self.Z)
        return kernel_blocks(KERNELS[self.kernel], X, Z, self.scale, self.depth)


def infinite_layers(f: Activation, depth: int, init: Any, direct_links: bool) -> KernelMap:
    """Return the kernel map of infinitely wide layers with activation f and weights from `init`."""
    if f == ACTIVATIONS["relu"]:
        kernels = {"normal": "relu"}
    elif f not in (ACTIVATIONS["cos"], ACTIVATIONS["sin"]):
        raise ValueError(
            f"activation={f.name!r} has no known kernel for infinitely wide layers: use 'relu', or "
            "'cos' or 'sin' with a single layer."
        )
    elif depth > 1:
        raise ValueError(
            f"activation={f.name!r} has a known kernel for a single infinitely wide layer only: "
            "use hidden_layer_sizes=(inf,), or 'relu'."
        )
    else:
        kernels = COSINE_KERNELS
    if not isinstance(init, str) or init not in kernels:
        shown = repr(init) if isinstance(init, str) else "of given weights"
        raise ValueError(
            f"init={shown} cannot make infinitely wide layers of {f.name!r}: use "
            f"{' or '.join(map(repr, kernels))}."
        )
    return KernelMap(kernels[init], depth=depth, direct_links=direct_links)


def kernel_network(D: Array, b: Array, kernel: KernelMap, view: Function | None) -> Network:
    """Return the network that predicts ``b + K(x, Z) D``."""
    return Network((Layer(D, b, ACTIVATIONS["identity"]),), input_map=kernel, view=view)


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
        """Return the squared error over all rows with a left-out prediction."""
        return float(self.errors(left_out[None])[0])

    def errors(self, left_out: Array) -> Array:
        """Return the squared error of each of several left-out predictions of all rows."""
        judged = ~np.isnan(left_out[0, :, 0])
        if not judged.any():
            return np.full(len(left_out), np.inf)
        squares = np.sum((self.Y - left_out) ** 2, axis=2)[:, judged]
        return np.asarray(squares @ (self.weight[judged] / self.weight[judged].sum()))

    def left_out(self, n: int, splits: Iterable[tuple[Indices, Array]]) -> Array:
        """Return n left-out predictions for each row, NaN for rows in no split.

        `splits` gives the n predictions for the rows of each split; those of a row are averaged.
        """
        total, count = np.zeros((n, *self.Y.shape)), np.zeros(len(self.Y))
        for rows, predictions in splits:
            total[:, rows] += predictions
            count[rows] += 1.0
        with np.errstate(invalid="ignore"):
            return np.asarray(total / count[:, None])


class RidgeFit(NamedTuple):
    """A kernel network whose ridge alpha has the smallest left-out error.

    `left_out` holds the prediction for each row of a fit without it (NaN for rows in no split),
    `error` its squared error, and `path` all ridge solutions if all rows are centres.
    """

    network: Network
    alpha: float
    error: float
    left_out: Array
    path: RidgePath | None = None


def fit_kernel(
    K: Array, kernel: KernelMap, targets: RidgeTargets, view: Function | None = None
) -> RidgeFit:
    """Fit the network whose centres are all rows, and select its ridge by left-out predictions.

    K is the kernel matrix of the rows. The view of the inputs shows the rows as the kernel map has
    them as centres.
    """
    path = RidgePath.of_kernel(K, targets.Y, targets.weight)
    eigenvalues = path.eigenvalues if len(path.eigenvalues) else np.ones(1)
    alphas = np.maximum(targets.ridges * eigenvalues.mean(), LEAST_RIDGE * eigenvalues.max())
    if targets.splits is None:
        candidates = np.array(list(path.loo_path(alphas)))
    else:
        folds = zip(targets.splits, path.kfold_path(alphas, targets.splits), strict=True)
        candidates = targets.left_out(len(alphas), folds)
    errors = targets.errors(candidates)
    best = last_of_least(errors)
    b, D = path.dual_coef(alpha := float(alphas[best]))
    network = kernel_network(D, b, kernel, view)
    return RidgeFit(network, alpha, float(errors[best]), candidates[best], path)


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
        ridge = alpha / weight
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

        def predictions() -> Iterator[tuple[Indices, Array]]:
            for G in targets.splits or ():
                if 0 < len(G) < len(D):  # otherwise nothing is left out, or no row is left
                    residual = np.linalg.solve(M[np.ix_(G, G)].astype(np.float64), D[G])
                    yield G, (targets.Y[G] - residual)[None]

        return targets.left_out(1, predictions())[0]


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


def candidate_ridges(K: Array, targets: RidgeTargets) -> Array:
    """Return the candidates for a kernel matrix, without its eigenvalues."""
    weight = targets.weight
    trace = weight @ K.diagonal() - weight @ K @ weight / weight.sum()
    mean = trace / max(len(K) - 1, 1) or 1.0
    return np.maximum(targets.ridges * mean, LEAST_RIDGE * trace)


def fit_ridge(
    K: Array, kernel: KernelMap, targets: RidgeTargets, view: Function | None, alpha: float
) -> RidgeFit:
    """Fit the network of `fit_kernel` for one ridge, judged by leave-one-out.

    For a few ridges this takes less time than the eigenvalues for all of them.
    """
    found = DualSolution.of(K, targets, alpha)
    left_out = found.left_out(targets)
    network = kernel_network(found.D, found.b, kernel, view)
    return RidgeFit(network, alpha, targets.error(left_out), left_out)


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


def last_of_least(errors: Sequence[float] | Array) -> int:
    """Return the index of the least error; among equals, the last, of the largest ridge."""
    return int(np.flatnonzero(errors == np.nanmin(errors))[-1])
