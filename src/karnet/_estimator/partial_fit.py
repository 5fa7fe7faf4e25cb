"""partial_fit, for classes and for numbers, and what updates must know of either."""

from __future__ import annotations

from functools import reduce
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arrays import namespace as arrays
from .._lstsq.statistics import Moments
from .._network.layers import Layer
from .._rows.memory import Rows, Table
from ..accumulate import Accumulator
from ..activations import Array, resolve_activation
from ..learner import Plan
from . import validation
from .first_pass import Labels, moments_of
from .targets import class_targets, in_target_units
from .updates import ExactUpdates, of_finite_width

__all__ = ["ClassUpdates", "NumberUpdates"]


class ClassUpdates(ExactUpdates):
    """Updates of a classifier, whose right-hand side is the indicator of the classes.

    So a class more is a column more, and zero for all rows before.
    """

    class_weight: Any
    classes_: NDArray[Any]

    @of_finite_width
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
        these hidden layers; where they are learned, only `fit` and `fit_blocks` of all rows learn
        them from all.
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
            X = self._batch(X, first)
            X, y, weight = self._labelled(X, y, sample_weight)
            known = y[:0] if first else arrays.to_numpy(self.classes_)
            more = y[:0] if classes is None else validation.check_labels(classes, np.size(classes))
            self._know(X, known, y, more)
            rows = self._with_codes(X, y, weight)
            if first:
                self._learn_first(rows, plan, *self._start(plan, sizes, rows.n_features))
            else:
                self._learn_more(rows, self._frozen(), self._placed(self, known))
        return self

    def _labelled(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, NDArray[Any], Array | None]:
        """Return the rows of a weight above 0 of a batch, with their classes and weights."""
        y = validation.check_labels(y, X.shape[0])
        weight = validation.check_weight(sample_weight, len(y))
        X, y, weight = validation.without_zeros(X, y, weight)
        weight = validation.check_class_weight(self._weights_of(y), y, weight)
        return validation.without_zeros(X, y, weight)

    def _weights_of(self, y: NDArray[Any]) -> Any:
        """Return the weights of those classes that a batch holds."""
        given = self.class_weight
        if isinstance(given, str) and given == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all rows at once: give the weights as a dict, or "
                "learn by fit."
            )
        held = set(y.tolist()) if isinstance(given, dict) else set()
        return {label: given[label] for label in given if label in held} if held else given

    def _know(self, X: Any, *labels: NDArray[Any]) -> None:
        """Set the classes to all of these labels, as an array of the kind that X is."""
        first, *others = (Labels.of(each, None) for each in labels)
        classes = reduce(Labels.merge, others, first).values
        self.classes_ = arrays.like(X, classes) if classes.dtype.kind in "biuf" else classes

    def _with_codes(self, X: Any, y: NDArray[Any], weight: Array | None) -> Rows:
        codes = np.searchsorted(arrays.to_numpy(self.classes_), y)
        return Rows(X, arrays.like(X, codes), arrays.like(X, weight))

    def _start(self, plan: Plan, sizes: tuple[int, ...], d: int) -> tuple[list[Layer], Array]:
        """Return the layers to start from, and the outputs to be taught for the classes."""
        if self.classes_.shape[0] < 2:
            raise ValueError(
                f"y must hold at least two classes, but holds one class only: "
                f"{arrays.to_numpy(self.classes_).tolist()[0]!r}."
            )
        Y = self._distinct_targets(plan)
        return self._draw(plan, sizes, d, Y.shape[1]), Y

    def _known_rows(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Rows:
        X, y, weight = self._labelled(self._batch(X), y, sample_weight)
        unknown = np.setdiff1d(y, arrays.to_numpy(self.classes_))
        if len(unknown):
            raise ValueError(f"y holds {unknown.tolist()[0]!r}, a class that was never learned.")
        return self._with_codes(X, y, weight)

    def _distinct_targets(self, plan: Plan) -> Array:
        return class_targets(plan.activations[-1], self.classes_.shape[0])

    def _aligned(self, other: Self) -> tuple[Accumulator, Accumulator]:
        ours, theirs = (arrays.to_numpy(each.classes_) for each in (self, other))
        self._know(self.classes_, ours, theirs)
        return self._placed(self, ours), self._placed(other, theirs)

    def _placed(self, net: Self, known: NDArray[Any]) -> Accumulator:
        """Return what a network keeps, its classes in their places among these."""
        places = np.searchsorted(arrays.to_numpy(self.classes_), known)
        return net._accumulator().spread(places, self.classes_.shape[0])


class NumberUpdates(ExactUpdates):
    """Updates of a regressor, whose right-hand side is what it is taught before its activation."""

    _default_output = resolve_activation("identity")

    @of_finite_width
    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from more rows.

        The first call draws or, for pull-back and metric, learns the hidden layers, unless `fit`
        has; from then on they stay. The output layer is that of all rows at once, exactly for
        these hidden layers; where they are learned, only `fit` and `fit_blocks` of all rows learn
        them from all.

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
                X = self._batch(X, first=True)
                rows, moments = self._numbers(X, y, sample_weight, plan)
                self._learn_first(rows, *self._start(plan, sizes, rows, moments))
        return self

    def _numbers(self, X: Any, y: Any, sample_weight: Any, plan: Plan) -> tuple[Rows, Moments]:
        """Return the rows of a weight above 0, and the moments of their targets."""
        y = validation.check_real_targets(y, X.shape[0])
        weight = validation.check_weight(sample_weight, len(y))
        X, y, weight = validation.without_zeros(X, y, weight)
        moments = moments_of(plan.activations[-1], y, weight)
        self._one_output = y.ndim == 1
        Y = arrays.like(X, y[:, None] if self._one_output else y)
        return Rows(X, Y, arrays.like(X, weight)), moments

    def _start(
        self, plan: Plan, sizes: tuple[int, ...], rows: Table, moments: Moments
    ) -> tuple[Plan, list[Layer]]:
        """Return plan and layers to start from in the units of the targets."""
        drawn = self._draw(plan, sizes, rows.n_features, rows.n_targets)
        if drawn and plan.hidden == "pullback":
            plan, drawn[-1] = in_target_units(plan, drawn[-1], moments)
        return plan, drawn

    def _known_rows(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Rows:
        one_output, q = self._one_output, self.intercepts_[-1].shape[0]
        rows, _ = self._numbers(self._batch(X), y, sample_weight, self._learned_plan)
        if rows.n_targets != q:
            raise ValueError(f"y must have {q} outputs, as before, but has {rows.n_targets}.")
        self._one_output = one_output
        return rows
