"""The least-squares problem of one layer: its right-hand side, and the layer of its solution.

With q classes the targets have only q distinct rows, and so have the pulled-back targets: ``B_k = E
C_k``, where E is the m x q class indicator. Then ``W_k = (A_k^+ E) C_k``, which takes q right-hand
sides instead of h_k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .._arrays import namespace as arrays
from .._lstsq.problem import Reduce
from .._lstsq.statistics import Sum
from .._rows.memory import Table
from .._util.types import AnyArray, Array
from ..activations import Activation
from .layers import Layer, count, pull_back


@dataclass(frozen=True)
class LayerProblem:
    """The least-squares problem of one layer.

    Attributes
    ----------
    f : Activation
        The activation of the layer.
    upper : sequence of Layer
        The layers above.
    distinct : LayerTargets or None
        The distinct rows of the targets if they are few, else None. If they are given, the
        right-hand side indicates which of them each row has.
    bias : bool
        Whether the layer has a bias.
    centre : array or float
        Subtracted from the targets, and added to the bias.
    """

    f: Activation
    upper: Sequence[Layer] = ()
    distinct: LayerTargets | None = None
    bias: bool = True
    centre: Array | float = 0.0

    def targets(self, y: AnyArray) -> LayerTargets:
        """Return the targets of the layer for some rows."""
        if self.distinct is None:
            return LayerTargets.of(self.f, pull_back(y, self.upper))
        return self.distinct.take(y)

    def right_hand_side(self, y: AnyArray) -> Array:
        """Return the right-hand side for some rows: centred targets, or the class indicator."""
        if self.distinct is None:
            return self.targets(y).B - arrays.like(y, np.asarray(self.centre))
        return indicator(y, len(self.distinct.B))

    def reduction(self, rows: Table) -> Reduce:
        """Return the reduction over blocks of rows with the right-hand side of their targets."""

        def reduce(statistic: Callable[..., Any], /, small_chunks: bool = False) -> Any:
            return rows.reduce(
                lambda a, y, w: statistic(a, self.right_hand_side(y), w), small_chunks
            )

        return reduce

    def to_targets(self, M: Array) -> Array:
        """Map a matrix that is linear in the right-hand side to one linear in centred targets."""
        if self.distinct is None:
            return M
        return M @ arrays.like(M, self.distinct.B - self.centre)

    def layer(self, coef: Array) -> Layer:
        """Return the layer whose weights solve the problem with the coefficients `coef`."""
        W = self.to_targets(coef)
        w = (W[0] if self.bias else np.zeros(W.shape[1])) + self.centre
        # Contiguous, as after pickling or loading: products then round alike.
        return Layer(np.ascontiguousarray(W[int(self.bias) :]), w, self.f)

    def measure(self, layer: Layer, a: Array, y: AnyArray, weight: Array | None) -> Sum:
        """Return the tally of some rows from the input `a` of the layer."""
        return self._tally(layer.linear(a), self.targets(y), weight)

    def observe(self, fit: Array, E: Array, weight: Array | None) -> Sum:
        """Return the tally of some rows from the fit of their right-hand side."""
        assert self.distinct is not None
        Z = self.to_targets(fit) + arrays.like(fit, np.asarray(self.centre))
        targets = LayerTargets(
            E @ arrays.like(E, self.distinct.B), E @ arrays.like(E, self.distinct.clipped)
        )
        return self._tally(Z, targets, weight)

    def _tally(self, Z: Array, targets: LayerTargets, weight: Array | None) -> Sum:
        """Return the sums of squared errors and squared targets, and three counts of values.

        The counts are those of values outside the domain, clipped targets, and all values.
        """
        outside = count(self.f.outside(Z)) if self.f.has_edges else 0.0
        Z = Z - targets.B
        squares = [arrays.row_squares(M) for M in (Z, targets.B)]
        squares = squares if weight is None else [each * weight for each in squares]
        xp = arrays.namespace(Z)
        error, target, clipped = (xp.sum(each) for each in (*squares, targets.clipped))
        return Sum(arrays.stacked([error, target, outside, clipped, float(prod(Z.shape))]))


@dataclass(frozen=True)
class LayerTargets:
    """B, the targets of a layer before its activation, and the number of clipped values per row."""

    B: Array
    clipped: Array

    @classmethod
    def of(cls, f: Activation, H: Array) -> LayerTargets:
        """Return the targets of a layer whose output, after its activation f, should be H."""
        outside = f.outside_codomain(H)
        return cls(f.phi(H), arrays.namespace(H).sum(arrays.float64(outside), axis=1))

    def take(self, rows: AnyArray) -> LayerTargets:
        """Return the targets of some rows."""
        return LayerTargets(arrays.selected(self.B, rows), arrays.selected(self.clipped, rows))


def indicator(codes: AnyArray, q: int) -> Array:
    """Return E, with one row per code and a 1 in its column."""
    if not arrays.is_host(codes):
        return arrays.float64(codes[:, None] == arrays.indices(codes, q))
    E = np.zeros((len(codes), q))
    E[np.arange(len(codes)), codes] = 1.0
    return E
