"""What a model says of rows that it did not learn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from ..tables import Score, Table, TableFit, Target, predict_table, scores

__all__ = ["HeldOut", "held_out"]

# The share of rows that are held out, how many at most, and how few are not worth it.
SHARE, MOST, FEWEST = 0.2, 5000, 5
SEED = 0

Again = Callable[[Table, Target], TableFit]


@dataclass(frozen=True)
class HeldOut:
    """Rows that a model was not learned from, and what it says of them.

    Attributes
    ----------
    model : Pipeline
        The model, learned from the other rows.
    table : Table
        The rows.
    y : ndarray
        Their targets.
    answers : ndarray of shape (n,) or (n, n_classes)
        Predictions, or probabilities of the classes.
    scores : list of Score
        How good they are.
    seconds : float
        How long they took.
    """

    model: Any
    table: Table
    y: NDArray[Any]
    answers: NDArray[Any]
    scores: list[Score]
    seconds: float

    @property
    def classes(self) -> NDArray[Any] | None:
        """The classes that the model knows."""
        return getattr(self.model, "classes_", None)


def held_out(table: Table, fitted: TableFit, again: Again) -> HeldOut | None:
    """Return what a model says of a part of a table, learned from the rest of it.

    Parameters
    ----------
    table : Table
        The table.
    fitted : TableFit
        The model of the whole table. If some rows were left out of it, these are taken.
    again : callable
        Fits the same kind of model on fewer rows.

    Returns
    -------
    HeldOut or None
        None if there are too few rows.
    """
    if fitted.left_out is not None:
        rows, y = fitted.left_out
        return _said(fitted.model, rows, y)
    places = np.flatnonzero(fitted.target.known)
    split = _split(fitted.target, len(places))
    if split is None:
        return None
    train, test = split
    part = replace(
        fitted.target, y=fitted.target.y[train], known=np.ones(len(train), dtype=bool), notes=()
    )
    model = again(table.take(places[train]), part).model
    return _said(model, table.take(places[test]), fitted.target.y[test])


def _split(target: Target, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    n_test = min(int(SHARE * n), MOST)
    if n_test < FEWEST:
        return None
    strata = target.y if target.task == "classification" else None
    if strata is not None:
        counts = np.unique(strata, return_counts=True)[1]
        strata = strata if counts.min() > 1 and len(counts) <= n_test else None
    train, test = train_test_split(
        np.arange(n), test_size=n_test, random_state=SEED, stratify=strata
    )
    if target.task == "classification" and len(np.unique(target.y[train])) < 2:
        return None
    return np.sort(train), np.sort(test)


def _said(model: Any, table: Table, y: NDArray[Any]) -> HeldOut:
    classes = getattr(model, "classes_", None)
    start = perf_counter()
    answers = predict_table(model, table, proba=classes is not None)
    seconds = perf_counter() - start
    return HeldOut(model, table, y, answers, scores(y, answers, classes), seconds)
