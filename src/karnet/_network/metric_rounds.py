"""Hidden weights redrawn with the metric of the input that the network itself is sensitive in.

After a solve of the output layer, the derivatives of the scores ``A_n W_n`` by the input are known
in closed form. Their mean outer product M says in which directions the input matters. Weights of
the first hidden layer drawn as G become ``M^{1/2} G``, and the output layer is solved again: no
descent, and no gradient of any loss.

References
----------
A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in neural
networks and backpropagation-free machine learning models", Science, 2024.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import namespace as arrays
from .._lstsq.lapack import EPS
from .._lstsq.statistics import Sum
from .._rows.memory import Table
from ..activations import Array
from ..learner import Plan, Report, learn, output_problem, seen_by_output
from .blockwise_loo import loo_squared_error
from .layers import Layer, Network

__all__ = ["Round", "learn_by_metric", "metric_of", "sensitivities"]

# By how much of itself the leave-one-out error must fall for another round to be kept: more than
# rounding.
PROGRESS = 1e-9


@dataclass(frozen=True)
class Round:
    """A network, and the metric that its hidden weights were drawn with.

    Attributes
    ----------
    network : Network
        As it was learned.
    reports : list of Report
        One per layer.
    metric : array of shape (d, d)
        M, of trace d; the identity for weights as drawn.
    error : float
        The exact leave-one-out squared error of the output layer before its activation.
    """

    network: Network
    reports: list[Report]
    metric: Array
    error: float

    @classmethod
    def of(
        cls, rows: Table, plan: Plan, hidden: Sequence[Layer], Y: Array | None, M: Array
    ) -> Round:
        """Return the round of hidden layers that were drawn with the metric M."""
        network, reports = learn(rows, plan, hidden, Y)
        with np.errstate(all="ignore"):
            return cls(network, reports, M, _loo_error(rows, plan, network, Y))

    def better_of(self, other: Round) -> Round:
        """Return the other if its error is clearly less."""
        return other if other.error < (1.0 - PROGRESS) * self.error else self


def learn_by_metric(rows: Table, plan: Plan, drawn: Sequence[Layer], Y: Array | None) -> Round:
    """Learn a network of random hidden layers, and again with the first one redrawn.

    Parameters
    ----------
    rows, plan, drawn, Y
        As in `karnet.learner.learn` for random hidden layers; `plan.n_rounds` says how often
        weights are redrawn.

    Returns
    -------
    Round
        That with the least leave-one-out error, the first one as drawn included.
    """
    plan = replace(plan, hidden="random")
    now = best = Round.of(rows, plan, drawn, Y, np.eye(rows.n_features))
    for _ in range(plan.n_rounds):
        M = metric_of(rows, now.network)
        if M is None:
            break
        first = replace(drawn[0], V=_root(M) @ drawn[0].V)
        now = _shaped(Round.of(rows, plan, [first, *drawn[1:]], Y, M))
        best = best.better_of(now)
    return best


def _shaped(found: Round) -> Round:
    first, *others = found.reports
    return replace(found, reports=[replace(first, solver="metric"), *others])


def metric_of(rows: Table, network: Network) -> Array | None:
    """Return M, the weighted mean outer product of the input sensitivities, at trace d.

    None if the network answers the same to all inputs.
    """

    def outer(X: Array, _: NDArray[Any], weight: Array | None) -> Sum:
        M = arrays.like(X, np.zeros((X.shape[1], X.shape[1])))
        root = 1.0 if weight is None else arrays.namespace(weight).sqrt(weight)[:, None]
        for D in sensitivities(network, X):
            D = D * root
            M += D.T @ D
        return Sum(M)

    # A derivative may have poles, and what they give is checked once, in the end.
    with np.errstate(over="ignore", invalid="ignore"):
        width = max(max(layer.V.shape) for layer in network.layers)
        M = rows.map(lambda X: X, width).reduce(outer, small_chunks=True).value
        M = arrays.to_numpy(M)
        trace = float(np.trace(M))
    if not np.isfinite(trace):
        names = sorted({layer.f.name for layer in network.layers[:-1]})
        raise ValueError(
            f"the derivative of activation {names[0]!r} gives input sensitivities that are too "
            "large to be squared: use hidden='random', or an activation of bounded derivative."
        )
    return M / trace * len(M) if trace else None


def sensitivities(network: Network, X: Array) -> Iterator[Array]:
    """Yield, output by output, the derivatives of the scores of all rows by their inputs: m x d."""
    *hidden, last = network.layers
    A, slopes = X, []
    for layer in hidden:
        Z = layer.linear(A)
        assert layer.f.derivative is not None
        slopes.append(layer.f.derivative(Z))
        A = layer.f(Z)
    h, xp = A.shape[1], arrays.namespace(A)
    for column in last.V.T:
        weights = arrays.like(A, column)
        D = xp.broadcast_to(weights[:h], A.shape)
        for layer, slope in zip(reversed(hidden), reversed(slopes), strict=True):
            D = (slope * D) @ arrays.like(D, layer.V.T)
        yield D + weights[h:] if network.direct_links else D


def _root(M: Array) -> Array:
    """Return the symmetric root of a positive semidefinite matrix."""
    eigenvalues, Q = np.linalg.eigh(M)
    # Rounding in place of a zero would be felt by half as many digits in the root.
    felt = eigenvalues > EPS * len(M) * eigenvalues[-1]
    return np.asarray((Q[:, felt] * np.sqrt(eigenvalues[felt])) @ Q[:, felt].T)


def _loo_error(rows: Table, plan: Plan, network: Network, Y: Array | None) -> float:
    *hidden, last = network.layers
    task = output_problem(plan, Y)
    return loo_squared_error(
        seen_by_output(rows, plan, hidden),
        len(last.V),
        task.right_hand_side,
        task.to_targets,
        bias=task.bias,
        alpha=plan.alpha,
    )
