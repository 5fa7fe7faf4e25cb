"""The learner: how the layers of a network are solved.

Hidden layers are solved one by one for pulled-back targets, stay random, or are redrawn with an
input metric. The output layer is always solved, in the dual above infinitely wide layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from ._arrays import namespace as arrays
from ._lstsq.problem import OverColumns, Reduce, Solution
from ._lstsq.solve import solve
from ._network.blockwise_loo import loo_squared_error
from ._network.input_metric import input_metric, metric_root
from ._network.kernel_map import KernelMap
from ._network.layer_problem import LayerProblem, LayerTargets, indicator
from ._network.layers import COUNTED_ROWS, Layer, Network, forward_through, pull_back
from ._rows.memory import SIZES, Table, dense
from ._util.types import Array, Indices
from .activations import Activation, Function
from .loo import RidgePath

__all__ = ["LayerProblem", "Plan", "Report", "indicator", "learn"]

# Relative cut-off for the output of a pulled-back layer, which is numerically singular: its
# pre-activation has rank q for q classes, and hardly more for q outputs. With a cut-off at machine
# precision the solution would be rounding noise.
PULLED_BACK_RCOND = 1e-9
# Relative error of the weights of a layer up to which normal equations are not refined.
LAYER_TOLERANCE = 1e-10
# The relative improvement above which another sweep, or another round, is kept: more than rounding.
PROGRESS = 1e-9


@dataclass(frozen=True)
class Plan:
    """The architecture of a network, and the way it is trained."""

    activations: tuple[Activation, ...]  # f_1 ... f_n
    # Hidden layers are solved for pulled-back targets ("pullback"), stay random ("random"), or are
    # redrawn with an input metric ("metric").
    hidden: str = "pullback"
    # As in `lstsq`, for every layer that is solved. With ``rcond=None`` the cut-off is
    # `PULLED_BACK_RCOND` above a pulled-back layer, and machine precision elsewhere.
    alpha: float = 0.0
    solver: str = "auto"
    rcond: float | None = None
    n_sweeps: int = 1  # the number of times that targets are pulled back and all layers solved
    fit_intercept: bool = True  # whether the output layer has a bias
    direct_links: bool = False  # as in `Network`
    input_map: Function | None = None  # as in `Network`
    # Subtracted from the target phi_n(Y) of the output layer, and added to its bias.
    centre: Array | None = None
    n_rounds: int = 2  # the number of times that hidden weights are redrawn with an input metric
    # The kernel of infinitely wide layers, above which the output layer is solved in the dual.
    kernel: KernelMap | None = None


@dataclass(frozen=True)
class Report:
    """The solution of one layer in figures.

    Attributes
    ----------
    rank : int or None
        Numerical rank of A_k, its column of ones included; None if the layer stayed random.
    solver : str
        The least-squares solver that was used, "eigh" above infinitely wide layers; "random" if the
        layer stayed random, "metric" if its random weights were multiplied by an input metric.
    residual : float or None
        ``||A_k W_k - B_k|| / ||B_k||``, rows weighted; None if the layer stayed random.
    outside : float or None
        Share of the values of A_k W_k outside the domain of the activation; in the output layer of
        a long table, and on a device, of the values of evenly spaced rows.
    clipped : float or None
        Share of the pulled-back target values for which the inverse activation is not defined; they
        were moved to the edge of its domain.
    statistic : optional
        The statistic of the rows that the output layer was solved for, with which rows can be
        added, merged or removed. After such an update residual, outside and clipped are None: they
        need the rows themselves.
    """

    rank: int | None
    solver: str
    residual: float | None
    outside: float | None
    clipped: float | None = 0.0
    statistic: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, rank: int, solver: str, tally: Array) -> Report:
        """Return the report of a solved layer from its tally over all rows."""
        error, target, outside, clipped, size = tally
        residual = float(np.sqrt(error / (target or 1.0)))
        return cls(rank, solver, residual, float(outside / size), float(clipped / size))


Learned = tuple[Network, list[Report]]


def learn(rows: Table, plan: Plan, drawn: Sequence[Layer], Y: Array | None = None) -> Learned:
    """Fit a network whose output approximates the targets of the rows.

    Targets are rows of outputs or, with `Y`, indices into its distinct rows. `drawn` holds the
    initial weights of pull-back, W_2 ... W_n, through which targets are passed, or the random
    hidden layers, W_1 ... W_{n-1}. Of several sweeps, the network with the smallest residual of the
    output layer is returned, with one report per layer.
    """
    if plan.hidden == "random":
        last, report, shares = _learn_layer(rows, plan, drawn, (), Y)
        random = [Report(None, "random", None, share) for share in shares]
        return Network((*drawn, last), plan.direct_links, plan.input_map), [*random, report]
    best, least, layers, reports = None, np.inf, list[Layer](), list[Report]()
    for sweep in range(plan.n_sweeps):
        if sweep:  # weights of direct links are not pulled back through: no hidden layer feeds them
            drawn = [
                replace(new, V=new.V[: len(old.V)])
                for new, old in zip(layers[1:], drawn, strict=True)
            ]
        layers, reports = [], []
        for k in range(len(plan.activations)):
            layer, report, shares = _learn_layer(rows, plan, layers, drawn[k:], Y)
            below = zip(reports, shares, strict=True)
            reports = [*(replace(each, outside=share) for each, share in below), report]
            layers.append(layer)
        residual = reports[-1].residual or 0.0
        if best is None or residual < least - PROGRESS:
            best, least = (layers, reports), residual
    assert best is not None
    return Network(tuple(best[0]), plan.direct_links, plan.input_map), best[1]


def _learn_layer(
    rows: Table, plan: Plan, below: Sequence[Layer], upper: Sequence[Layer], Y: Array | None
) -> tuple[Layer, Report, list[float]]:
    """Solve ``A_k W_k = B_k`` for the layer between the layers below and above.

    Also return, for each layer below, the share of values outside the domain of its activation.
    """
    problem = hidden_problem(plan, Y, upper) if upper else output_problem(plan, Y)
    n, counters = n_inputs(rows, plan, below), list[Array]()
    # The same width as in prediction: products round differently with other block lengths.
    width = max(n, rows.n_targets if Y is None else max(Y.shape))
    if upper:
        links = rows.n_features if plan.direct_links else 0
        width = max(width, len(upper[-1].V) + links, *(max(each.V.shape) for each in upper))
    seen = _seen(rows, plan, below, width, counters)
    solution = solve(
        problem.reduction(seen),
        len(rows),
        n,
        bias=problem.bias,
        alpha=plan.alpha,
        solver=plan.solver,
        rcond=cut_off(plan, below),
        sample=lambda step: problem.reduction(seen.every(step)),
        columns=_over_units(problem, rows, plan, below, width) if seen.change else None,
        tolerance=LAYER_TOLERANCE,
    )
    layer = problem.layer(solution.coef)
    report = Report.of(solution.rank, solution.solver, _tally(problem, seen, n, solution, layer))
    if not upper:
        report = replace(report, statistic=solution.statistic)
    n_rows, *outside = np.sum([arrays.to_numpy(each) for each in counters], axis=0)
    shares = [float(k / (n_rows * len(each.w))) for k, each in zip(outside, below, strict=True)]
    return layer, report, shares


def _tally(problem: LayerProblem, seen: Table, n: int, solution: Solution, layer: Layer) -> Array:
    """Return the tally of a solved layer, for many rows without another pass if that is possible.

    Values outside the domain of a hidden layer are counted in the passes of the next layer, and
    those of an output layer then in a sample of rows.
    """
    of_block = partial(problem.measure, layer)
    products = problem.tally_of_products(solution, seen) if len(seen) * n > SIZES.block else None
    step = len(seen) // COUNTED_ROWS
    counted = problem.f.has_edges and not problem.upper
    if products is None or (counted and step < 2):
        return arrays.to_numpy(seen.reduce(of_block, small_chunks=True).value)
    if counted:
        _, _, outside, _, size = arrays.to_numpy(seen.every(step).reduce(of_block).value)
        products[2] = products[4] * outside / size
    return products


def learn_in_dual(table: Table, plan: Plan, Y: Array | None = None) -> Learned:
    """Solve the output layer above infinitely wide hidden layers.

    ``sum_i w_i ||b + K_i D - B_i||^2 + alpha trace(D'K D)`` is minimised, where K is the kernel
    matrix of the rows; ``alpha=0`` gives the limit. The cost is cubic in the number of rows. The
    network is a single layer of weights D and bias b above a kernel map with the rows as centres.
    There is one report per layer, infinitely wide layers included.
    """
    assert plan.kernel is not None
    rows = arrays.on_host(table.gathered())
    problem = output_problem(plan, Y)
    kernel = plan.kernel.at(dense(rows.X).copy())
    K = kernel(kernel.Z)
    path = RidgePath.of_kernel(K, problem.right_hand_side(rows.y), rows.weight, problem.bias)
    b, D = path.dual_coef(plan.alpha)
    layer = problem.layer(np.vstack([b, D]) if problem.bias else D)
    tally = problem.measure(layer, K, rows.y, rows.weight).value
    random = [Report(None, "random", None, 0.0)] * (len(plan.activations) - 1)
    solved = Report.of(len(path.eigenvalues) + problem.bias, path.factorisation, tally)
    return Network((layer,), input_map=kernel), [*random, solved]


@dataclass(frozen=True)
class MetricRound:
    """A network, and the metric with which its hidden weights were drawn, scaled to trace d.

    `error` is the exact leave-one-out squared error of the output layer before its activation.
    """

    network: Network
    reports: list[Report]
    metric: Array
    error: float

    def better_of(self, other: MetricRound) -> MetricRound:
        """Return the other round if its error is clearly smaller."""
        return other if other.error < (1.0 - PROGRESS) * self.error else self


def learn_by_metric(
    rows: Table, plan: Plan, drawn: Sequence[Layer], Y: Array | None
) -> MetricRound:
    """Fit a network of random hidden layers, and refit it with the first one redrawn.

    Weights G of the first hidden layer become ``M^{1/2} G``, where M is the input metric of the
    network before, and the output layer is solved again. No loss is differentiated. The round with
    the smallest leave-one-out error is returned, which may be the one without a metric.
    """
    rounds = metric_rounds(rows, replace(plan, hidden="random"), drawn, Y)
    return reduce(MetricRound.better_of, rounds)


def metric_rounds(
    rows: Table, plan: Plan, drawn: Sequence[Layer], Y: Array | None
) -> Iterator[MetricRound]:
    """Yield the network as drawn, and one refit after the other."""
    last = _round(rows, plan, drawn, Y, np.eye(rows.n_features))
    yield last
    for _ in range(plan.n_rounds):
        M = input_metric(last.network, rows)
        if np.isnan(M).any():
            raise ValueError(
                f"the derivative of activation {drawn[0].f.name!r} gives input sensitivities that "
                "are too large to be squared: use hidden='random', or an activation of bounded "
                "derivative."
            )
        if not M.any():
            return
        first = replace(drawn[0], V=metric_root(M) @ drawn[0].V)
        last = _round(rows, plan, [first, *drawn[1:]], Y, M)
        redrawn, *others = last.reports
        yield replace(last, reports=[replace(redrawn, solver="metric"), *others])


def _round(
    rows: Table, plan: Plan, hidden: Sequence[Layer], Y: Array | None, metric: Array
) -> MetricRound:
    network, reports = learn(rows, plan, hidden, Y)
    problem = output_problem(plan, Y)
    with np.errstate(all="ignore"):
        error = loo_squared_error(
            seen_by_output(rows, plan, hidden),
            len(network.layers[-1].V),
            problem.right_hand_side,
            problem.to_targets,
            bias=problem.bias,
            alpha=plan.alpha,
        )
    return MetricRound(network, reports, metric, error)


def hidden_problem(plan: Plan, Y: Array | None, upper: Sequence[Layer]) -> LayerProblem:
    """Return the least-squares problem of the hidden layer below the layers given."""
    f = plan.activations[-1 - len(upper)]
    return LayerProblem(f, upper, None if Y is None else LayerTargets.of(f, pull_back(Y, upper)))


def output_problem(plan: Plan, Y: Array | None) -> LayerProblem:
    """Return the least-squares problem of the output layer."""
    f, centre = plan.activations[-1], 0.0 if plan.centre is None else plan.centre
    distinct = None if Y is None else LayerTargets.of(f, Y)
    return LayerProblem(f, (), distinct, plan.fit_intercept, centre)


def seen_by_output(rows: Table, plan: Plan, hidden: Sequence[Layer]) -> Table:
    """Return the rows mapped to the inputs of the output layer, direct links included."""
    return _seen(rows, plan, hidden, n_inputs(rows, plan, hidden))


def _over_units(
    problem: LayerProblem, rows: Table, plan: Plan, below: Sequence[Layer], width: int
) -> OverColumns | None:
    """Return the map from some units of the last layer below to the reduction that computes them.

    It is None without layers below, and if there are direct links beside the last.
    """
    if not below or (plan.direct_links and _is_output(plan, below)):
        return None

    def over(units: Indices) -> Reduce:
        *others, last = below
        some = replace(last, V=last.V[:, units], w=last.w[units])
        return problem.reduction(_seen(rows, plan, [*others, some], width))

    return over


def _is_output(plan: Plan, below: Sequence[Layer]) -> bool:
    return len(below) == len(plan.activations) - 1


def n_inputs(rows: Table, plan: Plan, below: Sequence[Layer]) -> int:
    """Return the number of inputs of the layer after the layers below."""
    n = int(below[-1].w.shape[0]) if below else 0
    linked = not below or (plan.direct_links and _is_output(plan, below))
    return n + rows.n_features if linked else n


def _seen(
    rows: Table,
    plan: Plan,
    below: Sequence[Layer],
    width: int,
    counters: list[Array] | None = None,
) -> Table:
    """Return the rows mapped to the inputs of the layer after the layers below.

    Blocks are short enough for matrices of the given width, and for the weights of these layers.
    """
    links = plan.direct_links and _is_output(plan, below)
    widest = max(width, *(max(layer.V.shape) for layer in below), 1)
    return rows.map(forward_through(below, links, plan.input_map), widest, counters)


def cut_off(plan: Plan, below: Sequence[Layer]) -> float | None:
    """Return the relative cut-off of the layer above `below`; None for machine precision."""
    if plan.rcond is None and plan.hidden == "pullback" and below:
        return PULLED_BACK_RCOND
    return plan.rcond
