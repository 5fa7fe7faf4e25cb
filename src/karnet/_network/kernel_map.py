"""Infinitely wide random layers as kernel maps.

Of the features A that the output layer sees, only the product ``K = A A'`` is known, from
`karnet.kernels`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._util.types import Array
from ..activations import ACTIVATIONS, Activation
from ..kernels import KERNELS, kernel_blocks

# The kernel of cosine units with random phases, for each distribution of their weights.
COSINE_KERNELS = {"normal": "gaussian", "cauchy": "laplace_l1"}


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
