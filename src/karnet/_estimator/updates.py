"""Rows added to a fitted network and removed from it: the output layer is solved again, exactly.

Hidden layers stay fixed. The statistics of the output layer's least-squares problem are kept in a
`karnet.accumulate.Accumulator`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.metaestimators import available_if

from .._arrays import namespace as arrays
from .._arrays.threads import one_thread_if_narrow
from .._lstsq.solve import check_rcond, check_solver
from .._network.layers import Layer, Network
from .._rows.memory import Table
from .._util.checks import check_non_negative
from .._util.messages import shown
from ..accumulate import Accumulator
from ..activations import Array, Function
from ..learner import Plan, Report, cut_off, n_inputs, output_problem, seen_by_output
from .parameters import infinite_depth
from .targets import AnyTargets

F = TypeVar("F", bound=Callable[..., Any])

# Overflow shows in a result that is not finite, which is an error in the end.
QUIET = np.errstate(over="ignore", invalid="ignore")
# Points at which activations are compared.
POINTS = np.linspace(-2.05, 2.05, 42)
# Digits to which they are compared: further digits may differ from machine to machine.
DIGITS = "%.6e"


def _finite(net: Any) -> bool:
    """Return True, or raise an error that says why infinitely wide networks have no updates."""
    if infinite_depth(net.hidden_layer_sizes):
        raise AttributeError(
            f"hidden_layer_sizes={shown(net.hidden_layer_sizes)} cannot be updated: infinitely "
            "wide layers keep all their rows, so use fit."
        )
    return True


# The decorator of methods that networks of infinite width do not have.
of_finite_width: Callable[[F], F] = available_if(_finite)


@dataclass(frozen=True)
class OutputLayer:
    """The output layer above fixed hidden layers, and the statistics of its rows."""

    plan: Plan
    hidden: tuple[Layer, ...]
    reports: list[Report]  # on the hidden layers
    Y: Array | None  # the target output of each class, if there are classes
    statistics: Accumulator

    @classmethod
    def first(
        cls, net: Any, rows: Table, plan: Plan, drawn: Sequence[Layer], Y: Array | None
    ) -> OutputLayer:
        """Draw or fit the hidden layers, and return an output layer without rows."""
        reports = [Report(None, "random", None, None, None)] * len(drawn)
        if drawn and plan.hidden != "random":
            net._fit_network(rows, plan, drawn, Y)
            drawn, reports = net._network().layers[:-1], net.layers_[:-1]
        n, q = n_inputs(rows, plan, drawn), rows.n_targets if Y is None else len(Y)
        empty = Accumulator(n, q, bias=plan.fit_intercept, **_settings(net, plan, drawn))
        return cls(plan, tuple(drawn), reports, Y, empty)

    @classmethod
    @QUIET
    def of(cls, net: Any, targets: AnyTargets) -> OutputLayer:
        """Return the output layer of a fitted network, with a column for each of the targets."""
        plan, hidden = net._learned_plan, net._network().layers[:-1]
        *reports, last = net.layers_
        if last.statistic is None:
            raise ValueError(
                "this network keeps no statistics of its rows: fit a new one with partial_fit."
            )
        settings = _settings(net, plan, hidden)
        if isinstance(last.statistic, Accumulator):
            statistics = replace(last.statistic, **settings)
        else:
            kept = arrays.on_host(last.statistic)
            statistics = Accumulator.of(kept, bias=plan.fit_intercept, **settings)
        statistics = targets.aligned(statistics, net._targets(plan))
        return cls(plan, hidden, reports, targets.outputs(plan), statistics)

    @QUIET
    def updated(self, rows: Table, remove: bool = False) -> OutputLayer:
        """Return the output layer with more rows, or without some of its rows."""
        n, update = self.statistics.n, self.statistics.drop if remove else self.statistics.take
        with one_thread_if_narrow(max(len(rows), n), n):
            seen = seen_by_output(rows, self.plan, self.hidden)
            reduction = output_problem(self.plan, self.Y).reduction(seen)
            return replace(self, statistics=update(reduction, len(rows)))

    def merge(self, other: OutputLayer) -> OutputLayer:
        """Return the output layer with the rows of another one above the same hidden layers."""
        if self._dependencies() != other._dependencies():
            raise ValueError(
                "the networks differ in their hidden weights, activations, direct links, bias or "
                "target units: draw both with the same random_state, or give both the same init."
            )
        return replace(self, statistics=self.statistics.merge(other.statistics))

    @QUIET
    def solved(self) -> tuple[Network, list[Report]]:
        """Return the network with the output layer solved for all rows, and its reports."""
        statistics, plan = self.statistics, self.plan
        with one_thread_if_narrow(statistics.n, statistics.n):
            solution = statistics.solve()
        last = output_problem(plan, self.Y).layer(solution.coef)
        report = Report(solution.rank, solution.solver, None, None, None, statistics)
        network = Network((*self.hidden, last), plan.direct_links, plan.input_map)
        return network, [*self.reports, report]

    def _dependencies(self) -> list[Any]:
        """Return everything but the rows that the statistics depend on, in a form to compare."""
        plan, centre = self.plan, () if self.plan.centre is None else self.plan.centre.tolist()
        weights = [arrays.to_numpy(W) for layer in self.hidden for W in (layer.V, layer.w)]
        functions = [*plan.activations[:-1], plan.activations[-1].phi, plan.input_map]
        return [
            *(self.statistics.n, plan.direct_links, plan.fit_intercept, centre),
            *((W.shape, W.tobytes()) for W in weights),
            *(None if f is None else _values(f) for f in functions),
        ]


def _settings(net: Any, plan: Plan, hidden: Sequence[Layer]) -> dict[str, Any]:
    """Return ridge, cut-off and form of the statistics for the present parameters of a network."""
    return {
        "alpha": check_non_negative("alpha", net.alpha),
        "rcond": cut_off(replace(plan, rcond=check_rcond(net.rcond)), hidden),
        "form": "triangle" if check_solver(net.solver) in ("qr", "svd") else "auto",
    }


def _values(f: Function) -> list[str]:
    """Return rounded values of an elementwise function, which distinguish it from others."""
    with np.errstate(all="ignore"):
        return [DIGITS % value for value in f(POINTS.copy())]
