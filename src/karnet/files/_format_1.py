"""Classes of files of format 1 that have changed since, and their conversion."""

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


@dataclass(frozen=True)
class ProductsWith1:
    """The map from rows to their kernel with the rows Z."""

    kernel: InfiniteLayers1
    Z: Any


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


def upgrade(part: Any) -> None:
    """Replace objects of format 1 among the attributes of an object by their successors."""
    for name, value in getattr(part, "__dict__", {}).items():
        if isinstance(value, InfiniteLayers1 | ProductsWith1):
            object.__setattr__(part, name, _kernel_map(value))
        elif name == "estimators_" and isinstance(value, list):
            part.estimators_ = [_member(each) for each in value]


def _kernel_map(old: InfiniteLayers1 | ProductsWith1) -> KernelMap:
    if isinstance(old, ProductsWith1):
        return _kernel_map(old.kernel).at(old.Z)
    return KernelMap(old.kernel, depth=old.depth, direct_links=old.direct_links)


def _member(old: Any) -> Any:
    if not isinstance(old, Member1):
        return old
    kernel = KernelMap(old.shape.kernel, old.scale, old.shape.depth, Z=old.X_fit_)
    network = kernel_network(old.dual_coef_, old.intercept_, kernel, old.view)
    return Member(
        old.shape, network, old.alpha_, old.error, old.left_out, old.path, None, old.width
    )
