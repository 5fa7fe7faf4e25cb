"""The layer-by-layer learner: every layer of a network solved for its pulled-back target.

With q classes the targets have only q distinct rows, and so have the pulled-back ones: ``B_k = E
C_k``, E the m x q class indicator. Then ``W_k = (A_k^+ E) C_k``: q right-hand sides instead of h_k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import namespace as arrays
from ._lstsq.problem import Reduce
from ._lstsq.solve import solve
from ._lstsq.statistics import Sum
from ._network.layers import Layer, Network, count, forward_through, pull_back
from ._rows.memory import Table
from .activations import Activation, Array, Function

__all__ = [
    "LayerProblem",
    "Plan",
    "Report",
    "cut_off",
    "indicator",
    "learn",
    "n_inputs",
    "output_problem",
    "seen_by_output",
]

# Cut-off of a matrix made by a pulled-back layer, which is numerically singular by nature: its
# pre-activation has rank q for q classes, and hardly more for q outputs. At machine precision its
# solution is rounding noise.
PULLED_BACK_RCOND = 1e-9
# By how much of the target another sweep must fit better to be kept: more than rounding.
PROGRESS = 1e-9


@dataclass(frozen=True)
class Plan:
    """How a network is to be learned.

    Attributes
    ----------
    activations : tuple of Activation
        f_1 ... f_n.
    hidden : {"pullback", "random", "metric"}
        Whether hidden layers are solved for pulled-back targets, stay as drawn, or are redrawn with
        an input metric (in `karnet._network.metric_rounds`).
    alpha, solver, rcond
        As in `lstsq`, for every layer that is solved; ``rcond=None`` cuts matrices made by a
        pulled-back layer at `PULLED_BACK_RCOND`, all others at machine precision.
    n_sweeps : int
        How often pull-back and solves are gone through.
    fit_intercept : bool
        Whether the output layer has a bias.
    direct_links, input_map
        As in `Network`.
    centre : array of shape (q,), optional
        Taken from the target phi_n(Y) before the output layer is solved, and given to its bias.
    n_rounds : int
        How often hidden weights are redrawn with an input metric.
    kernel : callable, optional
        The product of the outputs of infinitely wide hidden layers for two sets of rows; with it
        the output layer is solved in the dual (in `karnet._network.infinite_width`).
    """

    activations: tuple[Activation, ...]
    hidden: str = "pullback"
    alpha: float = 0.0
    solver: str = "auto"
    rcond: float | None = None
    n_sweeps: int = 1
    fit_intercept: bool = True
    direct_links: bool = False
    input_map: Function | None = None
    centre: Array | None = None
    n_rounds: int = 2
    kernel: Callable[[Array, Array], Array] | None = None


@dataclass(frozen=True)
class Report:
    """How a layer was learned.

    Attributes
    ----------
    rank : int or None
        Numerical rank of A_k, its column of ones included; None if the layer stayed as drawn.
    solver : str
        The least-squares solver that was really used, "eigh" for a layer above infinitely wide
        ones; "random" if the layer stayed as drawn, "metric" if that was times an input metric.
    residual : float or None
        ``||A_k W_k - B_k|| / ||B_k||``, rows weighted; None if the layer stayed as drawn.
    outside : float or None
        Share of the values of A_k W_k outside the domain of the activation.
    clipped : float or None
        Share of the pulled-back target values on which the inverse activation is not defined; they
        were moved to the edge of where it is.
    statistic : optional
        Of the output layer: what its rows have come to, for more of them to be added, merged or
        removed. After that residual, outside and clipped, which only the rows can tell, are None.
    """

    rank: int | None
    solver: str
    residual: float | None
    outside: float | None
    clipped: float | None = 0.0
    statistic: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, rank: int, solver: str, tally: Array) -> Report:
        """Return the report on a layer that was solved, from its tally over all rows."""
        error, target, outside, clipped, size = tally
        residual = float(np.sqrt(error / (target or 1.0)))
        return cls(rank, solver, residual, float(outside / size), float(clipped / size))


Learned = tuple[Network, list[Report]]


def learn(rows: Table, plan: Plan, drawn: Sequence[Layer], Y: Array | None = None) -> Learned:
    """Learn a network whose output approximates the targets of the rows.

    Parameters
    ----------
    rows : Table
        Inputs, targets and weights. Targets are rows of outputs or, with `Y`, indices into it.
    plan : Plan
        What is to be learned, and how.
    drawn : sequence of Layer
        The weights to start from, one layer per hidden layer: W_2 ... W_n for pull-back, which
        goes through them, W_1 ... W_{n-1} for random hidden layers.
    Y : array of shape (classes, q), optional
        The distinct rows of the targets.

    Returns
    -------
    network : Network
        Of several sweeps, the one with the smallest residual of the output layer.
    reports : list of Report
        One per layer.
    """
    if plan.hidden == "random":
        return _learn_last(rows, plan, drawn, Y)
    best, best_reports = network, reports = _learn_all(rows, plan, drawn, Y)
    for _ in range(plan.n_sweeps - 1):
        # The direct links, if any, are no part of what the hidden layer below is to give.
        drawn = [
            replace(new, V=new.V[: len(old.V)])
            for new, old in zip(network.layers[1:], drawn, strict=True)
        ]
        network, reports = _learn_all(rows, plan, drawn, Y)
        if _output_residual(reports) < _output_residual(best_reports) - PROGRESS:
            best, best_reports = network, reports
    return best, best_reports


def _output_residual(reports: list[Report]) -> float:
    return reports[-1].residual or 0.0


def _learn_last(rows: Table, plan: Plan, drawn: Sequence[Layer], Y: Array | None) -> Learned:
    last, reports = _learn_layer(rows, plan, drawn, (), Y)
    return Network((*drawn, last), plan.direct_links, plan.input_map), reports


def _learn_all(rows: Table, plan: Plan, drawn: Sequence[Layer], Y: Array | None) -> Learned:
    layers: list[Layer] = []
    reports: list[Report] = []
    for k in range(len(plan.activations)):
        layer, found = _learn_layer(rows, plan, layers, drawn[k:], Y)
        layers.append(layer)
        reports += found
    return Network(tuple(layers), plan.direct_links, plan.input_map), reports


def _learn_layer(
    rows: Table, plan: Plan, below: Sequence[Layer], upper: Sequence[Layer], Y: Array | None
) -> tuple[Layer, list[Report]]:
    """Solve ``A_k W_k = B_k`` for the layer between those below and those above.

    The layers below are reported on too if they stay as drawn.
    """
    task = LayerProblem.of(plan, len(below), upper, Y)
    wide = rows.n_targets if Y is None else max(Y.shape)
    counters: list[Array] | None = [] if plan.hidden == "random" else None
    # As wide as in prediction: in chunks of other block_lengths products round differently.
    shapes = [max(layer.V.shape) for layer in (*below, *upper)]
    links = rows.n_features * plan.direct_links
    last = len(upper[-1].V) + links if upper else n_inputs(rows, plan, below)
    seen = _seen(rows, plan, below, counters, *shapes, last, wide)

    solution = solve(
        task.reduction(seen),
        len(rows),
        n_inputs(rows, plan, below),
        bias=task.bias,
        alpha=plan.alpha,
        solver=plan.solver,
        rcond=cut_off(plan, below),
        sample=lambda step: task.reduction(seen.every(step)),
        fast_products=seen.fast_products,
        observe=None if task.distinct is None else task.observe,
    )
    layer = task.layer(solution.coef)
    observed = solution.observed
    if observed is None:
        observed = arrays.to_numpy(
            seen.reduce(partial(task.measure, layer), small_chunks=True).value
        )
    report = Report.of(solution.rank, solution.solver, observed)
    if _is_output(plan, below):
        report = replace(report, statistic=solution.statistic)
    return layer, [*_drawn_reports(counters, below), report]


def _drawn_reports(counters: list[Array] | None, below: Sequence[Layer]) -> list[Report]:
    if counters is None:
        return []
    n_rows, *outside = np.sum([arrays.to_numpy(each) for each in counters], axis=0)
    widths = [layer.V.shape[1] for layer in below]
    shares = [float(n / (n_rows * h)) for n, h in zip(outside, widths, strict=True)]
    return [Report(None, "random", None, share) for share in shares]


@dataclass(frozen=True)
class LayerProblem:
    """The least-squares problem of one layer: its targets, and how its solution makes the layer.

    Attributes
    ----------
    f : Activation
        Of the layer.
    upper : sequence of Layer
        The layers above.
    distinct : LayerTargets or None
        The distinct rows of the targets, of which there are few; None if they are not known. If
        they are, the right-hand side is the indicator of each row's target among them.
    bias : bool
        Whether the layer has a bias.
    centre : array or float
        Taken from the targets, and given to the bias.
    """

    f: Activation
    upper: Sequence[Layer]
    distinct: LayerTargets | None
    bias: bool
    centre: Array | float

    @classmethod
    def of(cls, plan: Plan, k: int, upper: Sequence[Layer], Y: Array | None) -> LayerProblem:
        """Return the task of layer k, counted from 0, below the layers given."""
        f, output = plan.activations[k], k == len(plan.activations) - 1
        return cls(
            f,
            upper,
            None if Y is None else LayerTargets.of(f, pull_back(Y, upper)),
            plan.fit_intercept or not output,
            plan.centre if output and plan.centre is not None else 0.0,
        )

    def targets(self, y: NDArray[Any]) -> LayerTargets:
        """Return what the layer should give for some rows."""
        if self.distinct is None:
            return LayerTargets.of(self.f, pull_back(y, self.upper))
        return self.distinct.take(y)

    def right_hand_side(self, y: NDArray[Any]) -> Array:
        """Return what is solved for: the targets of some rows, or which of the few each row has."""
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
        """Return what is linear in the right-hand side as linear in the targets less the centre."""
        if self.distinct is None:
            return M
        return M @ arrays.like(M, self.distinct.B - self.centre)

    def layer(self, coef: Array) -> Layer:
        """Return the layer of a solution for the right-hand side."""
        W = self.to_targets(coef)
        w = (W[0] if self.bias else np.zeros(W.shape[1])) + self.centre
        # In one piece, as it would be after it was sent or stored: products round alike then.
        return Layer(np.ascontiguousarray(W[int(self.bias) :]), w, self.f)

    def measure(self, layer: Layer, a: Array, y: NDArray[Any], weight: Array | None) -> Sum:
        """Return the tally of some rows that the layer sees as `a`."""
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
        """Return squared error and target, values outside the domain, clipped targets, and all."""
        outside = count(self.f.outside(Z)) if self.f.has_edges else 0.0
        Z = Z - targets.B
        squares = [arrays.row_squares(M) for M in (Z, targets.B)]
        squares = squares if weight is None else [each * weight for each in squares]
        xp = arrays.namespace(Z)
        error, target, clipped = (xp.sum(each) for each in (*squares, targets.clipped))
        return Sum(arrays.stacked([error, target, outside, clipped, float(prod(Z.shape))]))


@dataclass(frozen=True)
class LayerTargets:
    """B, what a layer should give before its activation, and how much of each row was clipped."""

    B: Array
    clipped: Array

    @classmethod
    def of(cls, f: Activation, H: Array) -> LayerTargets:
        """Return the targets of a layer that should give H after its activation f."""
        outside = f.outside_codomain(H)
        return cls(f.phi(H), arrays.namespace(H).sum(arrays.float64(outside), axis=1))

    def take(self, rows: NDArray[Any]) -> LayerTargets:
        """Return the targets of some rows."""
        return LayerTargets(arrays.selected(self.B, rows), arrays.selected(self.clipped, rows))


def indicator(codes: NDArray[Any], q: int) -> Array:
    """Return E, one row per code with a 1 in its column."""
    if not arrays.is_host(codes):
        return arrays.float64(codes[:, None] == arrays.indices(codes, q))
    E = np.zeros((len(codes), q))
    E[np.arange(len(codes)), codes] = 1.0
    return E


def output_problem(plan: Plan, Y: Array | None) -> LayerProblem:
    """Return the least-squares problem of the output layer."""
    return LayerProblem.of(plan, len(plan.activations) - 1, (), Y)


def seen_by_output(rows: Table, plan: Plan, hidden: Sequence[Layer]) -> Table:
    """Return the rows as the output layer sees them, through the hidden layers and direct links."""
    return _seen(rows, plan, hidden, None, 1, *(max(layer.V.shape) for layer in hidden))


def _is_output(plan: Plan, below: Sequence[Layer]) -> bool:
    return len(below) == len(plan.activations) - 1


def n_inputs(rows: Table, plan: Plan, below: Sequence[Layer]) -> int:
    """Return how many columns the layer after those below sees."""
    if not below:
        return rows.n_features
    links = rows.n_features * (plan.direct_links and _is_output(plan, below))
    return int(below[-1].V.shape[1]) + links


def _seen(
    rows: Table, plan: Plan, below: Sequence[Layer], counters: list[Array] | None, *widths: int
) -> Table:
    """Return the rows as the layer after those below sees them, and uses at the given widths."""
    links = plan.direct_links and _is_output(plan, below)
    widest = max(n_inputs(rows, plan, below), *widths)
    return rows.map(forward_through(below, links, plan.input_map), widest, counters)


def cut_off(plan: Plan, below: Sequence[Layer]) -> float | None:
    """Return the relative cut-off for the layer after those below; None for machine precision."""
    if plan.rcond is None and plan.hidden == "pullback" and below:
        return PULLED_BACK_RCOND
    return plan.rcond
