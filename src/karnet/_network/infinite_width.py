"""Infinitely wide random layers: no weights, but an output layer solved in the dual.

Only the product ``K = A A'`` of what the output layer sees is known, by `karnet.kernels`. With
``V = A' D`` the ridge problem of the output layer is one for D, as many rows as there are rows of
data, and the network answers ``f(b + K(x, X) D)``: one layer that sees x through its products with
the rows learned from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._rows.memory import Table, dense
from ..activations import ACTIVATIONS, Activation, Array
from ..kernels import KERNELS
from ..learner import Learned, Plan, Report, output_problem
from ..loo import RidgePath
from .layers import Network

__all__ = ["InfiniteLayers", "ProductsWith", "infinite_layers", "learn_in_dual"]

# The kernel of cosines of any phase, for each way of drawing their weights.
COSINES = {"normal": "gaussian", "cauchy": "laplace_l1"}


@dataclass(frozen=True)
class InfiniteLayers:
    """The product of the outputs of infinitely wide layers, for two sets of rows.

    Attributes
    ----------
    kernel : str
        A key of `karnet.kernels.KERNELS`, taken at scale 1.
    depth : int
        The number of layers.
    direct_links : bool
        Whether the rows' own product is added: that of inputs joined to the last layer.
    """

    kernel: str
    depth: int
    direct_links: bool = False

    def __call__(self, X: Array, Z: Array) -> Array:
        """Return the products of the rows of X with those of Z."""
        K = KERNELS[self.kernel](X, Z, depth=self.depth)
        return K + algebra.careful_product(X, Z.T) if self.direct_links else K


@dataclass(frozen=True)
class ProductsWith:
    """The map from rows to their products with the rows Z."""

    kernel: Callable[[Array, Array], Array]
    Z: Array

    def __call__(self, X: Array) -> Array:
        """Return the products of the rows of X with those of Z."""
        return arrays.like(X, self.kernel(arrays.to_numpy(X), arrays.to_numpy(self.Z)))


def infinite_layers(f: Activation, depth: int, init: Any, direct_links: bool) -> InfiniteLayers:
    """Return what infinitely wide layers of the activation f, drawn as `init` says, come to."""
    if f == ACTIVATIONS["relu"]:
        _check_drawn(f, init, ("normal",))
        return InfiniteLayers("relu", depth, direct_links)
    if f not in (ACTIVATIONS["cos"], ACTIVATIONS["sin"]):
        raise ValueError(
            f"activation={f.name!r} has no known kernel for infinitely wide layers: use 'relu', or "
            "'cos' or 'sin' with a single one."
        )
    if depth > 1:
        raise ValueError(
            f"activation={f.name!r} has a known kernel for a single infinitely wide layer only: "
            "use hidden_layer_sizes=(inf,), or 'relu'."
        )
    _check_drawn(f, init, tuple(COSINES))
    return InfiniteLayers(COSINES[init], depth, direct_links)


def _check_drawn(f: Activation, init: Any, known: tuple[str, ...]) -> None:
    if not isinstance(init, str) or init not in known:
        shown = repr(init) if isinstance(init, str) else "of given weights"
        raise ValueError(
            f"init={shown} cannot make infinitely wide layers of {f.name!r}: use "
            f"{' or '.join(map(repr, known))}."
        )


def learn_in_dual(table: Table, plan: Plan, Y: Array | None = None) -> Learned:
    """Solve the output layer above infinitely wide ones for the targets of the rows.

    ``sum_i w_i ||b + K_i D - B_i||^2 + alpha trace(D'K D)`` is minimised, K the products of the
    rows; for ``alpha=0`` the limit is taken. That costs the cube of the number of rows.

    Parameters
    ----------
    table, plan, Y
        As in `karnet.learner.learn`; `plan.kernel` gives the products.

    Returns
    -------
    network : Network
        A single layer of weights D and bias b, whose input map is `ProductsWith` the rows.
    reports : list of Report
        One per layer, those of infinite width included.
    """
    assert plan.kernel is not None
    rows = arrays.on_host(table.gathered())
    task = output_problem(plan, Y)
    products = ProductsWith(plan.kernel, dense(rows.X).copy())
    K = products(products.Z)
    path = RidgePath.of_kernel(K, task.right_hand_side(rows.y), rows.weight, task.bias)
    b, D = path.dual_coef(plan.alpha)
    layer = task.layer(np.vstack([b, D]) if task.bias else D)
    tally = task.measure(layer, K, rows.y, rows.weight).value
    drawn = [Report(None, "random", None, 0.0)] * (len(plan.activations) - 1)
    solved = Report.of(len(path.eigenvalues) + task.bias, path.factorisation, tally)
    return Network((layer,), input_map=products), [*drawn, solved]
