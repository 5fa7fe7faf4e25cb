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
from .._lstsq.problem import Reduce, Solution
from .._lstsq.statistics import Gram, Sum, Triangle
from .._rows.memory import Table
from .._util.types import AnyArray, Array
from ..activations import Activation
from .layers import Layer, count_outside, pull_back

# Squared errors below this share of the deviation of the targets lose too many digits as a
# difference of products.
LEAST_ERROR = 1e-8


@dataclass(frozen=True)
class LayerProblem:
    """The least-squares problem of one layer."""

    f: Activation
    upper: Sequence[Layer] = ()  # the layers above
    # The distinct rows of the targets if they are few; the right-hand side then indicates which of
    # them each row has.
    distinct: LayerTargets | None = None
    bias: bool = True
    centre: Array | float = 0.0  # subtracted from the targets, and added to the bias

    def targets(self, y: AnyArray) -> LayerTargets:
        """Return the targets of the layer for some rows."""
        if self.distinct is None:
            return LayerTargets.of(self.f, pull_back(y, self.upper))
        return self.distinct.take(y)

    def right_hand_side(self, y: AnyArray) -> Array:
        """Return the right-hand side for some rows: centred targets, or the class indicator."""
        if self.distinct is None:
            B = self.targets(y).B
            return B - arrays.like(B, np.asarray(self.centre))
        return indicator(y, len(self.distinct.B))

    def reduction(self, rows: Table) -> Reduce:
        """Return the reduction over blocks of rows with the right-hand side of their targets."""

        def reduce(statistic: Callable[..., Any], /, *how: Any, **named: Any) -> Any:
            def of_block(a: Array, y: AnyArray, weight: Array | None, **number: int) -> Any:
                return statistic(a, self.right_hand_side(y), weight, **number)

            return rows.reduce(of_block, *how, **named)

        return reduce

    def to_targets(self, M: Array) -> Array:
        """Map a matrix that is linear in the right-hand side to one linear in centred targets."""
        if self.distinct is None:
            return M
        B = self.distinct.B - self.centre
        return M @ (B if type(M) is np.ndarray else arrays.like(M, B))

    def layer(self, coef: Array) -> Layer:
        """Return the layer whose weights solve the problem with the coefficients `coef`."""
        W = self.to_targets(coef)
        w = (W[0] if self.bias else np.zeros(W.shape[1])) + self.centre
        # Contiguous, as after pickling or loading: products then round alike.
        return Layer(np.ascontiguousarray(W[int(self.bias) :]), w, self.f)

    def measure(self, layer: Layer, a: Array, y: AnyArray, weight: Array | None) -> Sum:
        """Return the tally of some rows from the input `a` of the layer."""
        return self._tally(layer.linear(a), self.targets(y), weight)

    def tally_of_products(self, solution: Solution, rows: Table) -> Array | None:
        """Return the tally of all rows but for values outside the domain, without another pass.

        The products of the rows keep enough digits of the errors if these are not small. The result
        is None if they do not, or if the targets are not classes.
        """
        products, distinct = solution.statistic, self.distinct
        if distinct is None or not self.bias or not isinstance(products, (Gram, Triangle)):
            return None
        if rows.total != len(rows) and distinct.clipped.any():  # clipped values have no weights
            return None
        share, total = arrays.to_numpy(products.centre.B), products.centre.weight
        EE = total * (np.diag(share) - np.outer(share, share))
        B = distinct.B - self.centre
        errors = products.squared_errors(solution.coef[1:], EE)
        error, deviation = (float(np.sum((each @ B) * B)) for each in (errors, EE))
        if not error >= LEAST_ERROR * deviation:
            return None
        target = total * float(share @ arrays.row_squares(distinct.B))
        clipped = round(len(rows) * float(share @ distinct.clipped))
        return np.array([error, target, 0.0, clipped, len(rows) * B.shape[1]])

    def _tally(self, Z: Array, targets: LayerTargets, weight: Array | None) -> Sum:
        """Return the sums of squared errors and squared targets, and three counts of values.

        The counts are those of values outside the domain, clipped targets, and all values.
        """
        outside, size, xp = count_outside(self.f, Z), float(prod(Z.shape)), arrays.namespace(Z)
        squares = [arrays.row_squares(M) for M in (Z - targets.B, targets.B)]
        squares = squares if weight is None else [each * weight for each in squares]
        error, target, clipped = (xp.sum(each) for each in (*squares, targets.clipped))
        return Sum(arrays.stacked([error, target, outside, clipped, size]))


@dataclass(frozen=True)
class LayerTargets:
    """B, the targets of a layer before its activation, and the number of clipped values per row."""

    B: Array
    clipped: Array

    @classmethod
    def of(cls, f: Activation, H: Array) -> LayerTargets:
        """Return the targets of a layer whose output, after its activation f, should be H."""
        outside, xp = f.outside_codomain(H), arrays.namespace(H)
        return cls(f.phi(H), xp.sum(arrays.float64(outside), axis=1))

    def take(self, rows: AnyArray) -> LayerTargets:
        """Return the targets of some rows."""
        if type(rows) is np.ndarray:
            return LayerTargets(self.B[rows], self.clipped[rows])
        return LayerTargets(arrays.selected(self.B, rows), arrays.selected(self.clipped, rows))


def indicator(codes: AnyArray, q: int) -> Array:
    """Return E, with one row per code and a 1 in its column."""
    if type(codes) is not np.ndarray:
        return arrays.float64(codes[:, None] == arrays.indices(codes, q))
    E = np.zeros((len(codes), q))
    E[np.arange(len(codes)), codes] = 1.0
    return E
