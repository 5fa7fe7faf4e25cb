"""One member of an average: a kernel network, and the record of its fit.

A member predicts ``b + K(x, Z) D`` with the kernel K of an infinitely wide layer. If all rows are
centres Z, the hidden layer is infinitely wide. If only some are, it has finite width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._lstsq.lapack import Cholesky, default_rcond
from .._network.infinite_width import KernelMap, RidgeTargets, fit_kernel, kernel_network
from .._network.layers import Network
from .._util.types import Array
from ..kernels import KERNELS, Kernel
from ..loo import RidgePath
from .views import View


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


@dataclass(frozen=True)
class Member:
    """A fitted member."""

    shape: Shape
    network: Network  # a view, a kernel map and one layer
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
    def dual_coef_(self) -> Array:
        """D, of shape (h, q)."""
        return self.network.layers[-1].V

    @property
    def intercept_(self) -> Array:
        """b, of shape (q,)."""
        return self.network.layers[-1].w

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return KERNELS[self.shape.kernel]

    @property
    def activation(self) -> str:
        """The activation of the hidden units."""
        return "cos" if self.kernel.scaled else "relu"

    @property
    def hidden_layer_sizes(self) -> tuple[float, ...]:
        """The number of units of each hidden layer."""
        return (self.width,) * (self.shape.depth if np.isinf(self.width) else 1)

    @property
    def rounds(self) -> list[Member]:
        """The member and those before it, the first one first."""
        return [*(self.before.rounds if self.before else []), self]

    def trimmed(self, path: bool) -> Member:
        """Return the member without parts that predictions do not need; `path` keeps the path."""
        nothing = np.empty((0, len(self.intercept_)))
        return replace(self, before=None, left_out=nothing, path=self.path if path else None)


def fit_all(shape: Shape, view: View, A: Array, G: Array, targets: RidgeTargets) -> Member:
    """Return the member with all rows as centres and the ridge of the least left-out error.

    A holds the rows as the view shows them, and G their distances or products, given by the
    `geometry` of the kernel.
    """
    K, kernel = _kernel_matrix(shape, A, G, targets.weight)
    return Member(shape, *fit_kernel(K, kernel, targets, view))


def _kernel_matrix(shape: Shape, A: Array, G: Array, weight: Array) -> tuple[Array, KernelMap]:
    """Return the kernel matrix and the kernel map of all rows from their distances or products."""
    kernel, scale = KERNELS[shape.kernel], 1.0
    if kernel.scaled:  # relative to the mean distance between two rows, if they are not all equal
        scale = shape.scale * (float(weight @ G @ weight / weight.sum() ** 2) or 1.0)
    return kernel.profile(G, scale, shape.depth), KernelMap(shape.kernel, scale, shape.depth, Z=A)


def solved(shape: Shape, view: View, A: Array, targets: RidgeTargets, alpha: float) -> Member:
    """Return the member with all rows as centres and a given ridge, not judged."""
    weight = targets.weight
    K, kernel = _kernel_matrix(shape, A, KERNELS[shape.kernel].geometry(A, A), weight)
    ridge = alpha / weight
    while (factor := Cholesky.of(K.T, ridge)) is None:  # not definite: a larger ridge
        ridge = np.maximum(10.0 * ridge, default_rcond(len(K)))
    C = factor.solve(np.hstack([np.ones((len(K), 1)), targets.Y]))
    # With a bias, the coefficients of the rows sum to zero.
    b = C[:, 1:].sum(axis=0) / C[:, 0].sum()
    D = C[:, 1:] - np.outer(C[:, 0], b)
    network = kernel_network(D, b, kernel, view)
    return Member(shape, network, alpha, np.nan, np.empty((0, len(b))))
