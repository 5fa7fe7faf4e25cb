"""How good predictions are, with intervals for what other rows of the same kind would give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ._model import predict_table, target_of
from ._table import Table
from ._target import Target, find_target

__all__ = ["Score", "score_table", "scores", "wilson"]

COVERAGE = 0.95
# Samples of rows, drawn with replacement, that an interval is taken from.
DRAWN = 400


@dataclass(frozen=True)
class Score:
    """A number, and an interval that holds that of all rows of the kind with 95 %.

    Attributes
    ----------
    name : str
        What it is: "accuracy", "log_loss", "r2", "rmse" or "mae".
    value : float
        The number for these rows.
    low, high : float
        The ends of the interval.
    """

    name: str
    value: float
    low: float
    high: float


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's interval for a probability from a share of n independent rows."""
    z = float(ndtri(0.5 + COVERAGE / 2.0))
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def score_table(model: Any, table: Table) -> tuple[Target, list[Score]]:
    """Return the target column of a table, and how well a model predicts it.

    Parameters
    ----------
    model : Pipeline
        A model of `fit_table`.
    table : Table
        A table with the columns of the model and its target.

    Returns
    -------
    target : Target
        The rows that have the target are those that count.
    scores : list of Score
        Accuracy and log-loss, or R^2, root mean squared error and mean absolute error.
    """
    name = target_of(model)
    if name is None:
        raise ValueError("the model does not know its target's name: fit it with 'karnet fit'.")
    target = find_target(table, name, model.table_["task"], one_value=True)
    rows = table if target.known.all() else table.take(target.known)
    classes = getattr(model, "classes_", None)
    return target, scores(target.y, predict_table(model, rows, proba=classes is not None), classes)


def scores(y: NDArray[Any], answers: NDArray[Any], classes: NDArray[Any] | None) -> list[Score]:
    """Return how good answers are.

    Parameters
    ----------
    y : ndarray of shape (n,)
        The truth.
    answers : ndarray of shape (n,) or (n, n_classes)
        Numbers, or probabilities of classes.
    classes : ndarray of shape (n_classes,), optional
        The classes.

    Returns
    -------
    list of Score
    """
    if classes is None:
        error = np.asarray(answers - y, dtype=np.float64)
        return [
            _drawn("r2", lambda rows: _explained(y[rows], error[rows]), len(y)),
            _drawn("rmse", lambda rows: float(np.sqrt(np.mean(error[rows] ** 2))), len(y)),
            _drawn("mae", lambda rows: float(np.mean(np.abs(error[rows]))), len(y)),
        ]
    # A class may be written as a number in one file and as text in another.
    true = np.asarray(y).astype(str)[:, None] == np.asarray(classes).astype(str)
    right = true[np.arange(len(y)), answers.argmax(axis=1)]
    surprise = -np.log(np.maximum((answers * true).sum(axis=1), np.finfo(float).tiny))
    accuracy = float(right.mean())
    return [
        Score("accuracy", accuracy, *wilson(accuracy, len(y))),
        _drawn("log_loss", lambda rows: float(surprise[rows].mean()), len(y)),
    ]


def _explained(y: NDArray[Any], error: NDArray[np.float64]) -> float:
    spread = float(np.sum((y - y.mean()) ** 2))
    return 1.0 - float(np.sum(error**2)) / spread if spread else float("nan")


def _drawn(name: str, of: Callable[[NDArray[np.intp]], float], n: int) -> Score:
    """Return a score with the interval between quantiles of samples drawn with replacement."""
    rng = np.random.RandomState(0)
    values = [of(rng.randint(0, n, n)) for _ in range(DRAWN)]
    tail = (1.0 - COVERAGE) / 2.0
    known = [value for value in values if not np.isnan(value)] or [np.nan]
    low, high = np.quantile(known, [tail, 1.0 - tail])
    return Score(name, of(np.arange(n)), float(low), float(high))
