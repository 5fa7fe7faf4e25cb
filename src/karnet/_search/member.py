"""One member of an average: a kernel network in the leaves of trees, and how it was selected."""

from __future__ import annotations

from dataclasses import dataclass

from .._network.kernel_map import KernelMap
from .._network.local import LocalNetwork
from .._util.types import Array
from ..kernels import KERNELS
from .views import View


@dataclass(frozen=True)
class Shape:
    """The hyper-parameters of a member: a view of the inputs, a kernel, and its scale.

    The scale is relative to the mean distance of rows. `rounds` is the number of times that the
    view was stretched by the metric of an earlier network.
    """

    view: str
    kernel: str
    scale: float = 1.0
    rounds: int = 0


def activation(kernel: str) -> str:
    """Return the activation of the hidden units of a kernel."""
    return "cos" if KERNELS[kernel].scaled else "relu"


@dataclass(frozen=True)
class Member:
    """A fitted member, which predicts ``b + K(x, Z) D`` from the rows Z of the leaf of x."""

    shape: Shape
    network: LocalNetwork  # a view, and trees whose leaves have a network each
    alpha_: float  # the ridge
    error: float  # the squared error of rows that shaped nothing

    @property
    def view(self) -> View:
        """The view of the inputs."""
        assert isinstance(self.network.view, View)
        return self.network.view

    @property
    def kernel_map(self) -> KernelMap:
        """The map from viewed rows to their kernel with the rows of the fit."""
        return self.network.kernel

    @property
    def scale(self) -> float:
        """The scale of the kernel in units of the view."""
        return self.kernel_map.scale

    @property
    def X_fit_(self) -> Array:
        """The rows Z of the fit, as the view shows them."""
        return self.kernel_map.Z

    @property
    def dual_coef_(self) -> list[Array]:
        """D of the leaves of each tree, of shape (h, q)."""
        return [partition.D for partition in self.network.partitions]

    @property
    def intercept_(self) -> list[Array]:
        """B of the leaves of each tree, in rows."""
        return [partition.b for partition in self.network.partitions]

    @property
    def activation(self) -> str:
        """The activation of the hidden units."""
        return activation(self.shape.kernel)

    @property
    def hidden_layer_sizes(self) -> tuple[float, ...]:
        """The number of units of the hidden layer: it is infinitely wide."""
        return (float("inf"),)
