"""Rows added to a fitted network and removed from it: the output layer is solved again, exactly.

Hidden layers stay fixed. The statistics of the output layer's least-squares problem are kept in a
`karnet.accumulate.Accumulator`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.metaestimators import available_if

from .._arrays import namespace as arrays
from .._arrays.threads import one_thread_if_narrow
from .._lstsq.problem import Reduce
from .._lstsq.solve import check_rcond, check_solver
from .._network.layers import Layer, Network
from .._rows.memory import Table
from .._util.checks import check_non_negative
from .._util.messages import shown
from ..accumulate import Accumulator
from ..activations import Array, Function
from ..learner import Plan, Report, cut_off, n_inputs, output_problem, seen_by_output
from .parameters import infinite_depth

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


def of_finite_width(method: F) -> F:
    """Return a method that networks of infinite width do not have."""
    return cast(F, available_if(_finite)(method))


@dataclass(frozen=True)
class OutputLayer:
    """The output layer of a network whose hidden layers stay fixed, and the statistics of its rows.

    Attributes
    ----------
    plan : Plan
        How the network was fitted.
    hidden : tuple of Layer
        The hidden layers.
    reports : list of Report
        Their reports.
    Y : array or None
        The target output of each class, if there are classes.
    statistics : Accumulator
        The statistics of the rows.
    """

    plan: Plan
    hidden: tuple[Layer, ...]
    reports: list[Report]
    Y: Array | None
    statistics: Accumulator

    @classmethod
    def of_no_rows(
        cls,
        net: Any,
        plan: Plan,
        hidden: Sequence[Layer],
        reports: list[Report],
        rows: Table,
        Y: Array | None,
    ) -> OutputLayer:
        """Return the output layer of a network for rows of this kind, none of them added yet."""
        n, q = n_inputs(rows, plan, hidden), rows.n_targets if Y is None else len(Y)
        settings = _settings(net, plan, hidden)
        empty = Accumulator(n, q, bias=plan.fit_intercept, **settings)
        return cls(plan, tuple(hidden), reports, Y, empty)

    @QUIET
    def add(self, rows: Table) -> OutputLayer:
        """Return the output layer with more rows."""
        n = self.statistics.n
        with one_thread_if_narrow(max(len(rows), n), n):
            return self._with(self.statistics.take(self._reduction(rows), len(rows)))

    @QUIET
    def remove(self, rows: Table) -> OutputLayer:
        """Return the output layer without some rows."""
        n = self.statistics.n
        with one_thread_if_narrow(max(len(rows), n), n):
            return self._with(self.statistics.drop(self._reduction(rows), len(rows)))

    def _with(self, statistics: Accumulator) -> OutputLayer:
        return replace(self, statistics=statistics)

    def _reduction(self, rows: Table) -> Reduce:
        """Return the reduction over blocks of rows as the output layer sees them."""
        seen = seen_by_output(rows, self.plan, self.hidden)
        return output_problem(self.plan, self.Y).reduction(seen)

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


def _settings(net: Any, plan: Plan, hidden: Sequence[Layer]) -> dict[str, Any]:
    """Return ridge, cut-off and form of the statistics for the present parameters of a network."""
    return {
        "alpha": check_non_negative("alpha", net.alpha),
        "rcond": cut_off(replace(plan, rcond=check_rcond(net.rcond)), hidden),
        "form": "triangle" if check_solver(net.solver) in ("qr", "svd") else "auto",
    }


@QUIET
def kept_statistics(net: Any, plan: Plan, hidden: Sequence[Layer], report: Report) -> Accumulator:
    """Return the statistics that the report on an output layer keeps of its rows."""
    statistic, settings = report.statistic, _settings(net, plan, hidden)
    if statistic is None:
        raise ValueError(
            "this network keeps no statistics of its rows: fit a new one with partial_fit."
        )
    if isinstance(statistic, Accumulator):
        return replace(statistic, **settings)
    return Accumulator.of(arrays.on_host(statistic), bias=plan.fit_intercept, **settings)


def fingerprint(plan: Plan, hidden: Sequence[Layer], n_features: int) -> str:
    """Return a digest of everything but the rows that the statistics depend on."""
    digest = sha256()
    for layer in hidden:
        for W in (arrays.to_numpy(layer.V), arrays.to_numpy(layer.w)):
            digest.update(repr(W.shape).encode() + np.ascontiguousarray(W).tobytes())
    for f in plan.activations[:-1]:
        digest.update(_values(f))
    digest.update(_values(plan.activations[-1].phi))
    digest.update(b"" if plan.input_map is None else _values(plan.input_map))
    rest = (n_features, plan.direct_links, plan.fit_intercept, plan.centre is None)
    digest.update(repr(rest).encode())
    digest.update(b"" if plan.centre is None else plan.centre.tobytes())
    return digest.hexdigest()


def _values(f: Function) -> bytes:
    """Return rounded values of an elementwise function, which distinguish it from others."""
    with np.errstate(all="ignore"):
        return " ".join(DIGITS % value for value in f(POINTS.copy())).encode()
