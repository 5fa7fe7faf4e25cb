"""Predictions for rows that a model was not fitted on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from .._rows.memory import evenly_spaced
from ..tables import (
    Score,
    Table,
    TableFit,
    Target,
    network_of,
    predict_table,
    prediction_columns,
    scores,
)

# The coverage of prediction intervals.
COVERAGE = 0.9
# A function that fits the same kind of model on other rows.
Refit = Callable[[Table, Target], TableFit]


@dataclass(frozen=True)
class Intervals:
    """Prediction intervals of some held-out rows."""

    rows: NDArray[np.intp]
    ends: NDArray[np.float64]
    y: NDArray[Any]

    @property
    def inside(self) -> float:
        """The share of targets that are in their intervals."""
        return float(np.mean((self.ends[:, 0] <= self.y) & (self.y <= self.ends[:, 1])))


@dataclass(frozen=True)
class HeldOut:
    """Rows that a model was not fitted on, and its predictions for them."""

    model: Any  # the pipeline, fitted on the other rows
    table: Table
    y: NDArray[Any]  # the targets of the rows
    classes: NDArray[Any] | None  # the classes that the model was fitted on
    predictions: NDArray[Any]  # numbers, or probabilities of shape (n_rows, n_classes)
    scores: list[Score]
    seconds: float  # the time of predicting

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the class of each row is predicted."""
        assert self.classes is not None
        # A class may be written as a number in one file and as text in another.
        predicted = self.classes.astype(str)[self.predictions.argmax(axis=1)]
        return np.asarray(predicted == self.y.astype(str))

    @cached_property
    def intervals(self) -> Intervals | None:
        """Prediction intervals of at most 1000 evenly spaced rows, if the model has them."""
        if not hasattr(network_of(self.model), "predict_interval"):
            return None
        rows = evenly_spaced(len(self.y), 1000)
        columns = prediction_columns(self.model, self.table.take(rows), coverage=COVERAGE)
        _, *ends = columns.values()
        return Intervals(rows, np.column_stack(ends), self.y[rows])


def held_out(table: Table, fitted: TableFit, again: Refit) -> HeldOut | None:
    """Return predictions for a fifth of a table, at most 5000 rows, by a model fitted on the rest.

    If the model of the table was fitted without some rows, these are predicted. Otherwise `again`
    fits the same kind of model on a part of the rows. If fewer than 5 would be held out, return
    None.
    """
    if fitted.left_out is not None:
        return _predicted(fitted.model, *fitted.left_out)
    places = np.flatnonzero(fitted.target.known)
    split = _split(fitted.target, len(places))
    if split is None:
        return None
    train, test = split
    y, known = fitted.target.y, np.ones(len(train), dtype=bool)
    part = replace(fitted.target, y=y[train], known=known, notes=())
    model = again(table.take(places[train]), part).model
    return _predicted(model, table.take(places[test]), y[test])


def _split(target: Target, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """Return the indices of the rows to fit and to hold out, stratified where possible."""
    n_test = min(int(0.2 * n), 5000)
    if n_test < 5:
        return None
    classes = target.task == "classification"
    counts = np.unique(target.y, return_counts=True)[1]
    strata = target.y if classes and counts.min() > 1 and len(counts) <= n_test else None
    train, test = train_test_split(range(n), test_size=n_test, random_state=0, stratify=strata)
    if classes and len(np.unique(target.y[train])) < 2:
        return None
    return np.sort(train), np.sort(test)


def _predicted(model: Any, table: Table, y: NDArray[Any]) -> HeldOut:
    classes = getattr(model, "classes_", None)
    start = perf_counter()
    predictions = predict_table(model, table, proba=classes is not None)
    seconds = perf_counter() - start
    evaluated = scores(y, predictions, classes)
    return HeldOut(model, table, y, classes, predictions, evaluated, seconds)
