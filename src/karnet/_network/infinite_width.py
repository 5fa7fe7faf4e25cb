"""Infinitely wide random layers: kernels in place of weights, and ridge solutions in the dual.

Of the features A that the output layer sees, only the product ``K = A A'`` is known, from
`karnet.kernels`. With ``V = A' D`` the ridge problem of the output layer becomes a problem for D,
which has one row per row of the training set. The network predicts ``f(b + K(x, X) D)``: a single
layer above a kernel map.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._util.types import Array, Indices
from ..activations import ACTIVATIONS, Activation, Function
from ..kernels import KERNELS
from ..loo import RidgePath, squared_error
from .layers import Layer, Network

# Arrays of row numbers, the rows of each left out together; None leaves out one row at a time.
Splits = Sequence[Indices] | None

# The kernel of cosine units with random phases, for each distribution of their weights.
COSINE_KERNELS = {"normal": "gaussian", "cauchy": "laplace_l1"}
# The smallest ridge as a share of the largest eigenvalue of a kernel matrix: smaller ridges leave
# no significant digits.
LEAST_RIDGE = 1e-9


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

    def of(self, rows: Indices) -> RidgeTargets:
        """Return the targets of some rows, judged by leave-one-out."""
        return RidgeTargets(self.Y[rows], self.weight[rows], self.ridges)

    def error(self, left_out: Array) -> float:
        """Return the squared error over all rows with a left-out prediction."""
        judged = ~np.isnan(left_out[:, 0])
        if judged.all():
            return squared_error(self.Y, left_out, self.weight)
        if not judged.any():
            return np.inf
        return squared_error(self.Y[judged], left_out[judged], self.weight[judged])

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
        candidates = list(path.loo_path(alphas))
    else:
        folds = zip(targets.splits, path.kfold_path(alphas, targets.splits), strict=True)
        candidates = list(targets.left_out(len(alphas), folds))
    errors = [targets.error(each) for each in candidates]
    best = last_of_least(errors)
    b, D = path.dual_coef(alpha := float(alphas[best]))
    network = kernel_network(D, b, kernel, view)
    return RidgeFit(network, alpha, errors[best], candidates[best], path)


def last_of_least(errors: Sequence[float]) -> int:
    """Return the index of the least error; among equals, the last, of the largest ridge."""
    return int(np.flatnonzero(errors == np.nanmin(errors))[-1])
