"""One member of an average: a kernel network, and the record of its fit.

A member predicts ``b + K(x, Z) D`` with the kernel K of an infinitely wide layer. If all rows are
centres Z, the hidden layer is infinitely wide. If only some are, it has finite width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from .._network.infinite_width import (
    DualSolution,
    KernelMap,
    RidgeFit,
    RidgeTargets,
    candidate_ridges,
    downhill,
    fit_kernel,
    fit_ridge,
    kernel_network,
    nearest,
)
from .._network.layers import Network
from .._network.local import LocalNetwork
from .._util.types import Array
from ..kernels import KERNELS, Kernel
from ..loo import RidgePath
from .views import View

# Least ridge at the start of a way downhill: next to smaller ones, errors may hardly change.
LEAST_START = 1e-3


@dataclass(frozen=True)
class Shape:
    """The hyper-parameters of a member: a view of the inputs, a kernel, and its scale or depth.

    The scale is relative to the typical distance between rows. `rounds` is the number of times that
    the view was stretched by the metric of an earlier member.
    """

    view: str
    kernel: str
    scale: float = 1.0
    depth: int = 1
    rounds: int = 0


def activation(kernel: str) -> str:
    """Return the activation of the hidden units of a kernel."""
    return "cos" if KERNELS[kernel].scaled else "relu"


@dataclass(frozen=True)
class Member:
    """A fitted member."""

    shape: Shape
    network: Network | LocalNetwork  # a view, a kernel map and one layer, or one in each leaf
    alpha_: float  # the ridge
    error: float  # the squared error of `left_out`
    left_out: Array  # for every row the prediction of a fit without it
    path: RidgePath | None = None  # all ridge solutions, if all rows are centres
    before: Member | None = None  # the member whose metric stretched the view
    width: float = np.inf  # the number of hidden units: infinite if all rows are centres

    @property
    def view(self) -> View:
        """The view of the inputs."""
        assert isinstance(self.network.view, View)
        return self.network.view

    @property
    def kernel_map(self) -> KernelMap:
        """The map from viewed rows to their kernel with the centres."""
        if isinstance(self.network, LocalNetwork):
            return self.network.kernel
        assert isinstance(self.network.input_map, KernelMap)
        return self.network.input_map

    @property
    def scale(self) -> float:
        """The scale of the kernel in units of the view."""
        return self.kernel_map.scale

    @property
    def X_fit_(self) -> Array:
        """The centres Z, as the view shows them."""
        return self.kernel_map.Z

    @property
    def dual_coef_(self) -> Array | list[Array]:
        """D, of shape (h, q); of several trees, a list with D of the leaves of each."""
        if isinstance(self.network, LocalNetwork):
            return [partition.D for partition in self.network.partitions]
        return self.network.layers[-1].V

    @property
    def intercept_(self) -> Array | list[Array]:
        """b, of shape (q,); of several trees, a list with b of the leaves of each in rows."""
        if isinstance(self.network, LocalNetwork):
            return [partition.b for partition in self.network.partitions]
        return self.network.layers[-1].w

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return KERNELS[self.shape.kernel]

    @property
    def activation(self) -> str:
        """The activation of the hidden units."""
        return activation(self.shape.kernel)

    @property
    def hidden_layer_sizes(self) -> tuple[float, ...]:
        """The number of units of each hidden layer."""
        return (self.width,) * (self.shape.depth if np.isinf(self.width) else 1)

    @property
    def rounds(self) -> list[Member]:
        """The member and those before it, the first one first."""
        return [*(self.before.rounds if self.before else []), self]

    def trimmed(self, targets: RidgeTargets | None = None) -> Member:
        """Return the member without parts that predictions do not need.

        Given the targets of the fit, a member with all rows as centres has all ridge solutions.
        """
        nothing, path = np.empty((0, self.left_out.shape[1])), None
        if targets is not None and np.isinf(self.width) and isinstance(self.network, Network):
            K = self.kernel_map(self.X_fit_)
            path = self.path or RidgePath.of_kernel(K, targets.Y, targets.weight)
        return replace(self, before=None, left_out=nothing, path=path)


def fit_all(shape: Shape, view: View, A: Array, G: Array, targets: RidgeTargets) -> Member:
    """Return the member with all rows as centres and the ridge of the least left-out error.

    A holds the rows as the view shows them, and G their distances or products, given by the
    `geometry` of the kernel.
    """
    K, kernel = _kernel_matrix(shape, A, G, targets.weight)
    return Member(shape, *fit_kernel(K, kernel, targets, view))


def fit_near(
    start: Member, shapes: Sequence[Shape], view: View, A: Array, targets: RidgeTargets
) -> Member:
    """Return the best member with all rows A as centres on a way downhill from a start.

    The way goes through neighbouring shapes and ridges, from those of a member fitted to fewer
    rows. Each step is judged by leave-one-out.
    """
    G = start.kernel.geometry(A, A)

    @cache
    def problem(i: int) -> tuple[Array, KernelMap, Array]:
        K, kernel = _kernel_matrix(shapes[i], A, G, targets.weight)
        return K, kernel, candidate_ridges(K, targets)

    @cache
    def fit(i: int, k: int) -> RidgeFit:
        K, kernel, ridges = problem(i)
        return fit_ridge(K, kernel, targets, view, float(ridges[k]))

    i = shapes.index(start.shape)
    place = i, nearest(problem(i)[2], max(start.alpha_, LEAST_START))
    (i, k), _ = downhill(lambda i, k: fit(i, k).error, place, (len(shapes), len(targets.ridges)))
    return Member(shapes[i], *fit(i, k))


def _kernel_matrix(shape: Shape, A: Array, G: Array, weight: Array) -> tuple[Array, KernelMap]:
    """Return the kernel matrix and the kernel map of all rows from their distances or products."""
    kernel = _kernel_map(shape, A, G, weight)
    return KERNELS[shape.kernel].profile(G, kernel.scale, shape.depth), kernel


def _kernel_map(shape: Shape, A: Array, G: Array, weight: Array) -> KernelMap:
    scale = 1.0
    if KERNELS[shape.kernel].scaled:  # relative to the mean distance of rows that are not all equal
        scale = shape.scale * (float(weight @ G @ weight / weight.sum() ** 2) or 1.0)
    return KernelMap(shape.kernel, scale, shape.depth, Z=A)


def kernel_of_rows(shape: Shape, A: Array, weight: Array) -> KernelMap:
    """Return the kernel map of a shape, with a scale relative to the distances of rows A."""
    return _kernel_map(shape, A, KERNELS[shape.kernel].geometry(A, A), weight)


def solved(shape: Shape, view: View, A: Array, targets: RidgeTargets, alpha: float) -> Member:
    """Return the member with all rows as centres and a given ridge, not judged."""
    G = KERNELS[shape.kernel].geometry(A, A)
    K, kernel = _kernel_matrix(shape, A, G, targets.weight)
    found = DualSolution.of(K, targets, alpha)
    network = kernel_network(found.D, found.b, kernel, view)
    return Member(shape, network, alpha, np.nan, np.empty((0, len(found.b))))
