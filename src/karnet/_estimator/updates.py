"""Rows added to a network, merged and forgotten: its output layer is exact, hidden layers stay.

Of the rows learned from, the statistics of the output layer's least-squares problem are kept, in a
`karnet.accumulate.Accumulator`, and solved after every change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._arrays import namespace as arrays
from .._arrays.threads import one_thread_if_narrow
from .._lstsq.problem import Reduce
from .._lstsq.solve import check_non_negative, check_rcond, check_solver
from .._network.layers import Layer, Network
from .._rows.memory import Rows
from .._util.messages import shown
from ..accumulate import Accumulator
from ..activations import Activation, Array, Function
from ..learner import Plan, Report, cut_off, n_inputs, output_problem, seen_by_output
from . import validation
from .network_base import KARNetwork

__all__ = ["ExactUpdates", "of_finite_width"]

F = TypeVar("F", bound=Callable[..., Any])

# What overflows is not finite in the end, and refused there.
QUIET = np.errstate(over="ignore", invalid="ignore")
# Where activations are compared, to so many digits: more may differ from machine to machine.
POINTS, SHOWN = np.linspace(-2.05, 2.05, 42), "%.6e"


def _finite(net: KARNetwork) -> bool:
    """Return True, or say why networks of infinite width have no updates."""
    if net._infinite:
        raise AttributeError(
            f"hidden_layer_sizes={shown(net.hidden_layer_sizes)} cannot be updated: infinitely "
            "wide layers keep all their rows, so learn by fit."
        )
    return True


def of_finite_width(method: F) -> F:
    """Return a method that networks of infinite width do not have."""
    return cast(F, available_if(_finite)(method))


@dataclass(frozen=True)
class Frozen:
    """What updates leave as it is: how the network was learned, its hidden layers, and reports."""

    plan: Plan
    hidden: tuple[Layer, ...]
    reports: list[Report]


class ExactUpdates(KARNetwork):
    """What classifier and regressor share to learn from more rows, or fewer."""

    @of_finite_width
    def merge(self, other: Self) -> Self:
        """Learn what another network has learned, from its statistics alone.

        The result is the network trained on the rows of both, if these are different rows. Hidden
        layers must be the same: drawn with the same `random_state`, or given as `init`.

        Parameters
        ----------
        other : estimator of the same kind
            It stays as it is.

        Returns
        -------
        self

        Notes
        -----
        What is solved is the output layer, exactly for the hidden layers as they are, with the
        ridge, cut-off and solver of this network.
        """
        with validation.unchanged_on_failure(self):
            if not isinstance(other, ExactUpdates) or type(other) is not type(self):
                raise ValueError(f"a network merges with another of its kind, not {type(other)}.")
            check_is_fitted(self)
            check_is_fitted(other)
            self._refuse_stranger(other)
            mine, theirs = self._aligned(other)
            self._solve_output(self._frozen(), mine.merge(theirs), self.coefs_[-1])
        return self

    @of_finite_width
    @QUIET
    def forget(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Become the network that never saw some rows.

        Parameters
        ----------
        X, y, sample_weight
            Rows that were learned from, as they were given, with their weights. That cannot be
            checked in general.

        Returns
        -------
        self

        Notes
        -----
        What is solved is the output layer, exactly for the hidden layers as they are. The network
        stays as it was, and an error says so, if too little would be left in some direction for
        1e-8 of the weights to hold: without a ridge that is so for networks as wide as there are
        rows. Classes stay known, though no row of theirs may be left. It costs about what
        `partial_fit` does.
        """
        with validation.unchanged_on_failure(self):
            check_is_fitted(self)
            frozen, kept = self._frozen(), self._accumulator()
            rows = self._known_rows(X, y, sample_weight)
            with one_thread_if_narrow(max(len(rows), kept.n), kept.n):
                kept = kept.drop(self._reduction(rows, frozen), len(rows))
            self._solve_output(frozen, kept, rows.X)
        return self

    # The output activation if none is asked for; None stands for that of the hidden layers.
    _default_output: Activation | None = None

    def _known_rows(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Rows:
        """Return the checked rows of a network that is fitted already."""
        raise NotImplementedError

    def _distinct_targets(self, plan: Plan) -> Array | None:
        """Return the output taught for each class, if there are classes."""
        return None

    def _aligned(self, other: Self) -> tuple[Accumulator, Accumulator]:
        """Return what both networks keep, with the same right-hand sides."""
        return self._accumulator(), other._accumulator()

    def _learn_first(
        self, rows: Rows, plan: Plan, drawn: Sequence[Layer], Y: Array | None = None
    ) -> None:
        """Draw or learn the hidden layers, and solve the output layer so that more can come."""
        if plan.hidden == "random" or not drawn:
            reports = [Report(None, "random", None, None, None)] * len(drawn)
            frozen = Frozen(plan, tuple(drawn), reports)
        else:
            self._fit_network(rows, plan, drawn, Y)
            frozen = self._frozen()
        n, q = n_inputs(rows, plan, frozen.hidden), rows.n_targets if Y is None else len(Y)
        empty = Accumulator(n, q, bias=plan.fit_intercept, **self._settings(frozen))
        self._learn_more(rows, frozen, empty)

    def _batch(self, X: Any, first: bool = False) -> Any:
        """Return the checked inputs of a batch."""
        if first:
            return validation.check_inputs(self, X, reset=True)
        return self._inputs(X, "partial_fit")

    @QUIET
    def _learn_more(self, rows: Rows, frozen: Frozen, kept: Accumulator) -> None:
        with one_thread_if_narrow(max(len(rows), kept.n), kept.n):
            kept = kept.take(self._reduction(rows, frozen), len(rows))
        self._solve_output(frozen, kept, rows.X)

    def _reduction(self, rows: Rows, frozen: Frozen) -> Reduce:
        """Return the reduction over blocks of rows as the output layer sees them."""
        task = output_problem(frozen.plan, self._distinct_targets(frozen.plan))
        return task.reduction(seen_by_output(self._on_device(rows), frozen.plan, frozen.hidden))

    @QUIET
    def _solve_output(self, frozen: Frozen, kept: Accumulator, X: Any) -> None:
        plan = frozen.plan
        with one_thread_if_narrow(kept.n, kept.n):
            solution = kept.solve()
        last = output_problem(plan, self._distinct_targets(frozen.plan)).layer(solution.coef)
        report = Report(solution.rank, solution.solver, None, None, None, kept)
        network = Network((*frozen.hidden, last), plan.direct_links, plan.input_map)
        self._keep(network, [*frozen.reports, report], plan, X)

    def _frozen(self) -> Frozen:
        """Return what stays as it is."""
        return Frozen(self._learned_plan, self._network().layers[:-1], self.layers_[:-1])

    @QUIET
    def _accumulator(self) -> Accumulator:
        """Return what is kept of the rows learned from, with the ridge that is now asked for."""
        kept, settings = self.layers_[-1].statistic, self._settings(self._frozen())
        if kept is None:
            raise ValueError(
                "this network keeps no statistics of its rows: learn a fresh one by partial_fit."
            )
        if isinstance(kept, Accumulator):
            return replace(kept, **settings)
        return Accumulator.of(
            arrays.on_host(kept), bias=self._learned_plan.fit_intercept, **settings
        )

    def _settings(self, frozen: Frozen) -> dict[str, Any]:
        plan = replace(frozen.plan, rcond=check_rcond(self.rcond))
        return {
            "alpha": check_non_negative("alpha", self.alpha),
            "rcond": cut_off(plan, frozen.hidden),
            "form": "triangle" if check_solver(self.solver) in ("qr", "svd") else "auto",
        }

    def _refuse_stranger(self, other: Self) -> None:
        ours, theirs = (getattr(each, "feature_names_in_", None) for each in (self, other))
        if ours is not None and theirs is not None and ours.tolist() != theirs.tolist():
            raise ValueError(
                f"the networks have features of different names, {ours.tolist()} and "
                f"{theirs.tolist()}: order the columns alike."
            )
        if self._fingerprint() != other._fingerprint():
            raise ValueError(
                "the networks differ in their hidden weights, activations, direct links, bias or "
                "target units: draw both with the same random_state, or give both the same init."
            )

    def _fingerprint(self) -> str:
        """Return a digest of all that the statistics of the output layer depend on but rows."""
        plan, digest = self._learned_plan, sha256()
        for layer in self._frozen().hidden:
            for W in (arrays.to_numpy(layer.V), arrays.to_numpy(layer.w)):
                digest.update(repr(W.shape).encode() + np.ascontiguousarray(W).tobytes())
        for f in self.activations_[:-1]:
            digest.update(_shown(f))
        digest.update(_shown(self.activations_[-1].phi))
        digest.update(b"" if plan.input_map is None else _shown(plan.input_map))
        rest = (self.n_features_in_, plan.direct_links, plan.fit_intercept, plan.centre is None)
        digest.update(repr(rest).encode())
        digest.update(b"" if plan.centre is None else plan.centre.tobytes())
        return digest.hexdigest()


def _shown(f: Function) -> bytes:
    """Return what tells one elementwise function from another."""
    with np.errstate(all="ignore"):
        return " ".join(SHOWN % value for value in f(POINTS.copy())).encode()
