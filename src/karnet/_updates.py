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
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from . import _validation as validation
from ._base import KARNetwork
from ._lstsq import check_non_negative, check_rcond, check_solver
from ._problem import Reduce
from ._targets import class_targets, in_target_units
from ._threads import one_thread_if_narrow
from .accumulate import Accumulator
from .activations import Activation, Array, Function, resolve_activation
from .blocks import Rows
from .learner import Plan, Report, cut_off, n_inputs, output_task, seen_by_output
from .network import Layer, Network

__all__ = ["ClassUpdates", "NumberUpdates"]

F = TypeVar("F", bound=Callable[..., Any])

# Where activations are compared, to so many digits: more may differ from machine to machine.
POINTS, SHOWN = np.linspace(-2.05, 2.05, 42), "%.6e"


def _finite(net: KARNetwork) -> bool:
    """Return True, or say why networks of infinite width have no updates."""
    if net._infinite:
        raise AttributeError(
            f"hidden_layer_sizes={net.hidden_layer_sizes!r} cannot be updated: infinitely wide "
            "layers keep all their rows, so learn by fit."
        )
    return True


def _of_finite_width(method: F) -> F:
    return cast(F, available_if(_finite)(method))


@dataclass(frozen=True)
class Frozen:
    """What updates leave as it is: how the network was learned, its hidden layers, and reports."""

    plan: Plan
    hidden: tuple[Layer, ...]
    reports: list[Report]

    def reduction(self, rows: Rows, Y: Array | None) -> Reduce:
        """Return the reduction over blocks of rows as the output layer sees them."""
        return output_task(self.plan, Y).reduction(seen_by_output(rows, self.plan, self.hidden))


class ExactUpdates(KARNetwork):
    """What classifier and regressor share to learn from more rows, or fewer."""

    @_of_finite_width
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
            self._solve_output(self._frozen(), mine.merge(theirs))
        return self

    @_of_finite_width
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
            targets = self._distinct_targets(frozen.plan)
            with one_thread_if_narrow(max(len(rows), kept.n), kept.n):
                kept = kept.drop(frozen.reduction(rows, targets), len(rows))
            self._solve_output(frozen, kept)
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
        n, q = n_inputs(rows, plan, frozen.hidden), rows.y.shape[1] if Y is None else len(Y)
        empty = Accumulator(n, q, bias=plan.fit_intercept, **self._settings(frozen))
        self._learn_more(rows, frozen, empty)

    def _learn_more(self, rows: Rows, frozen: Frozen, kept: Accumulator) -> None:
        with one_thread_if_narrow(max(len(rows), kept.n), kept.n):
            kept = kept.take(frozen.reduction(rows, self._distinct_targets(frozen.plan)), len(rows))
        self._solve_output(frozen, kept)

    def _solve_output(self, frozen: Frozen, kept: Accumulator) -> None:
        plan = frozen.plan
        with one_thread_if_narrow(kept.n, kept.n):
            solution = kept.solve()
        last = output_task(plan, self._distinct_targets(frozen.plan)).layer(solution.coef)
        report = Report(solution.rank, solution.solver, None, None, None, kept)
        network = Network((*frozen.hidden, last), plan.direct_links, plan.input_map)
        self._keep(network, [*frozen.reports, report], plan)

    def _frozen(self) -> Frozen:
        """Return what stays as it is."""
        return Frozen(self._learned_plan, self._network().layers[:-1], self.layers_[:-1])

    def _accumulator(self) -> Accumulator:
        """Return what is kept of the rows learned from, with the ridge that is now asked for."""
        kept, settings = self.layers_[-1].statistic, self._settings(self._frozen())
        if kept is None:
            raise ValueError("this network keeps no statistics of its rows: learn by fit.")
        if isinstance(kept, Accumulator):
            return replace(kept, **settings)
        return Accumulator.of(kept, bias=self._learned_plan.fit_intercept, **settings)

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
            for W in (layer.V, layer.w):
                digest.update(repr(W.shape).encode() + np.ascontiguousarray(W).tobytes())
        for f in self.activations_[:-1]:
            digest.update(_shown(f))
        digest.update(_shown(self.activations_[-1].phi))
        digest.update(b"" if plan.input_map is None else _shown(plan.input_map))
        rest = (self.n_features_in_, plan.direct_links, plan.fit_intercept, plan.centre is None)
        digest.update(repr(rest).encode())
        digest.update(b"" if plan.centre is None else plan.centre.tobytes())
        return digest.hexdigest()


class ClassUpdates(ExactUpdates):
    """Updates of a classifier, whose right-hand side is the indicator of the classes.

    So a class more is a column more, and zero for all rows before.
    """

    class_weight: Any
    classes_: NDArray[Any]

    @_of_finite_width
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from more rows.

        The first call draws or, for pull-back and metric, learns the hidden layers, unless `fit`
        has; from then on they stay. The output layer is that of all rows at once, exactly for
        these hidden layers; where they were learned, `fit` on all rows learns them from all.
        A class first seen later is added.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array-like, optional
            Classes that y may not hold yet. The first call needs two, from y or from here.

        Returns
        -------
        self

        Notes
        -----
        Every call reads its rows once, or twice where Gram products will not do, and solves the
        output layer: for a width of h, about ``h^3`` multiplications beside ``h^2`` per row.
        ``class_weight="balanced"`` is refused, since it takes all rows at once.
        """
        with validation.unchanged_on_failure(self):
            first = not hasattr(self, "layers_")
            plan, sizes = self._plan(self._default_output)
            X, y, weight = self._checked(X, y, sample_weight, reset=first, partial=True)
            known = y[:0] if first else self.classes_
            more = y[:0] if classes is None else validation.check_labels(classes, np.size(classes))
            self.classes_ = validation.union_of_labels(known, y, more)
            rows = Rows(X, np.searchsorted(self.classes_, y), weight)
            if first:
                Y, drawn = self._start(plan, sizes, X.shape[1])
                self._learn_first(rows, plan, drawn, Y)
            else:
                self._learn_more(rows, self._frozen(), self._placed(self, known))
        return self

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, partial: bool = False
    ) -> tuple[Any, NDArray[Any], Array | None]:
        X = validation.check_inputs(self, X, reset=reset)
        y = validation.check_labels(y, X.shape[0])
        X, y, weight = validation.without_zeros(
            X, y, validation.check_weight(sample_weight, len(y))
        )
        weight = validation.check_class_weight(self.class_weight, y, weight, partial)
        return validation.without_zeros(X, y, weight)

    def _start(self, plan: Plan, sizes: tuple[int, ...], d: int) -> tuple[Array, list[Layer]]:
        """Return the outputs to be taught for the classes, and the layers to start from."""
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must hold at least two classes, but holds one class only: "
                f"{self.classes_.tolist()[0]!r}."
            )
        Y = class_targets(plan.activations[-1], len(self.classes_))
        return Y, self._draw(plan, sizes, d, Y.shape[1])

    def _known_rows(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Rows:
        X, y, weight = self._checked(X, y, sample_weight, reset=False, partial=True)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y holds {unknown.tolist()[0]!r}, a class that was never learned.")
        return Rows(X, np.searchsorted(self.classes_, y), weight)

    def _distinct_targets(self, plan: Plan) -> Array:
        return class_targets(plan.activations[-1], len(self.classes_))

    def _aligned(self, other: Self) -> tuple[Accumulator, Accumulator]:
        before = self.classes_, other.classes_
        self.classes_ = validation.union_of_labels(*before)
        return self._placed(self, before[0]), self._placed(other, before[1])

    def _placed(self, net: Self, known: NDArray[Any]) -> Accumulator:
        """Return what a network keeps, its classes in their places among these."""
        places = np.searchsorted(self.classes_, known)
        return net._accumulator().spread(places, len(self.classes_))


class NumberUpdates(ExactUpdates):
    """Updates of a regressor, whose right-hand side is what it is taught before its activation."""

    _default_output = resolve_activation("identity")

    @_of_finite_width
    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from more rows.

        The first call draws or, for pull-back and metric, learns the hidden layers, unless `fit`
        has; from then on they stay. The output layer is that of all rows at once, exactly for
        these hidden layers; where they were learned, `fit` on all rows learns them from all.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self

        Notes
        -----
        Every call reads its rows once, or twice where Gram products will not do, and solves the
        output layer: for a width of h, about ``h^3`` multiplications beside ``h^2`` per row.
        """
        with validation.unchanged_on_failure(self):
            plan, sizes = self._plan(self._default_output)
            if hasattr(self, "layers_"):
                kept = self._accumulator()
                self._learn_more(self._known_rows(X, y, sample_weight), self._frozen(), kept)
            else:
                checked = self._checked(X, y, sample_weight, reset=True)
                self._learn_first(*self._start(plan, sizes, *checked))
        return self

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Any, Array, Array | None]:
        X = validation.check_inputs(self, X, reset=reset)
        y = validation.check_real_targets(y, X.shape[0])
        return validation.without_zeros(X, y, validation.check_weight(sample_weight, len(y)))

    def _start(
        self, plan: Plan, sizes: tuple[int, ...], X: Any, y: Array, weight: Array | None
    ) -> tuple[Rows, Plan, list[Layer]]:
        """Return the rows, and plan and layers to start from in the units of their targets."""
        Y = y[:, None] if y.ndim == 1 else y
        drawn = self._draw(plan, sizes, X.shape[1], Y.shape[1])
        if drawn and plan.hidden == "pullback":
            plan, drawn[-1] = in_target_units(plan, drawn[-1], Y, weight)
        self._one_output = y.ndim == 1
        return Rows(X, Y, weight), plan, drawn

    def _known_rows(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Rows:
        X, y, weight = self._checked(X, y, sample_weight, reset=False)
        Y, q = y[:, None] if y.ndim == 1 else y, len(self.intercepts_[-1])
        if Y.shape[1] != q:
            raise ValueError(f"y must have {q} outputs, as before, but has {Y.shape[1]}.")
        return Rows(X, Y, weight)


def _shown(f: Function) -> bytes:
    """Return what tells one elementwise function from another."""
    with np.errstate(all="ignore"):
        return " ".join(SHOWN % value for value in f(POINTS.copy())).encode()
