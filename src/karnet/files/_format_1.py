"""Classes of files of format 1 whose fields have changed since, and their successors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._ensemble.member import Member, Shape
from .._network.infinite_width import KernelMap, kernel_network


@dataclass(frozen=True)
class InfiniteLayers1:
    """The kernel of infinitely wide layers, without centres."""

    kernel: str
    depth: int
    direct_links: bool = False

    def upgraded(self) -> KernelMap:
        """Return the same kernel as a map."""
        return KernelMap(self.kernel, depth=self.depth, direct_links=self.direct_links)


@dataclass(frozen=True)
class ProductsWith1:
    """The map from rows to their kernel with the rows Z."""

    kernel: InfiniteLayers1
    Z: Any

    def upgraded(self) -> KernelMap:
        """Return the same map."""
        return self.kernel.upgraded().at(self.Z)


@dataclass(frozen=True)
class Member1:
    """A member whose network was not yet a part of its own."""

    shape: Shape
    view: Any
    scale: float
    X_fit_: Any
    dual_coef_: Any
    intercept_: Any
    alpha_: float
    error: float
    left_out: Any
    path: Any = None
    before: Any = None
    width: float = np.inf

    def upgraded(self) -> Member:
        """Return the member with its network."""
        kernel = KernelMap(self.shape.kernel, self.scale, self.shape.depth, Z=self.X_fit_)
        network = kernel_network(self.dual_coef_, self.intercept_, kernel, self.view)
        record = (self.alpha_, self.error, self.left_out, self.path)
        return Member(self.shape, network, *record, width=self.width)


def upgraded(part: Any) -> Any:
    """Return an object whose attributes of format 1 were replaced by their successors.

    Networks of an average had no weights: all counted alike.
    """
    for name, value in getattr(part, "__dict__", {}).items():
        if isinstance(value, InfiniteLayers1 | ProductsWith1):
            object.__setattr__(part, name, value.upgraded())
        elif name == "estimators_" and isinstance(value, list):
            value[:] = [each.upgraded() if isinstance(each, Member1) else each for each in value]
    if hasattr(part, "estimators_") and not hasattr(part, "weights_"):
        part.weights_ = np.full(len(part.estimators_), 1.0 / len(part.estimators_))
        part._offset = np.zeros(part.estimators_[0].network.n_outputs)
    return part
