"""Scores of predictions, with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from ._model import predict_table, target_of
from ._table import Table
from ._target import Target, find_target

# The confidence level of all intervals.
COVERAGE = 0.95
# Bootstrap samples of the rows that an interval is computed from.
N_BOOTSTRAP = 400


@dataclass(frozen=True)
class Score:
    """A score and its 95 % confidence interval.

    Attributes
    ----------
    name : str
        One of "accuracy", "log_loss", "r2", "rmse" and "mae".
    value : float
        The score on the given rows.
    low, high : float
        The ends of the interval.
    """

    name: str
    value: float
    low: float
    high: float


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's confidence interval for a probability, from its share in n rows."""
    interval = binomtest(round(share * n), n).proportion_ci(COVERAGE, method="wilson")
    return float(interval.low), float(interval.high)


def score_table(model: Any, table: Table) -> tuple[Target, list[Score]]:
    """Return the target column of a table, and the scores of a model's predictions of it.

    Parameters
    ----------
    model : Pipeline
        A model of `fit_table`.
    table : Table
        A table with the columns of the model and its target.

    Returns
    -------
    target : Target
        The target; only rows that have one are scored.
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


def scores(y: NDArray[Any], predictions: NDArray[Any], classes: NDArray[Any] | None) -> list[Score]:
    """Return the scores of predictions: of numbers, or of probabilities if there are classes."""
    if classes is None:
        error = np.asarray(predictions - y, dtype=np.float64)
        return [
            _bootstrapped("r2", lambda rows: _r2(y[rows], error[rows]), len(y)),
            _bootstrapped("rmse", lambda rows: float(np.sqrt(np.mean(error[rows] ** 2))), len(y)),
            _bootstrapped("mae", lambda rows: float(np.mean(np.abs(error[rows]))), len(y)),
        ]
    # A class may be written as a number in one file and as text in another.
    true = np.asarray(y).astype(str)[:, None] == np.asarray(classes).astype(str)
    correct = true[np.arange(len(y)), predictions.argmax(axis=1)]
    losses = -np.log(np.maximum((predictions * true).sum(axis=1), np.finfo(float).tiny))
    accuracy = float(correct.mean())
    return [
        Score("accuracy", accuracy, *wilson(accuracy, len(y))),
        _bootstrapped("log_loss", lambda rows: float(losses[rows].mean()), len(y)),
    ]


def _r2(y: NDArray[Any], error: NDArray[np.float64]) -> float:
    """Return R^2, or NaN for constant targets, where scikit-learn's `r2_score` gives a number."""
    variation = float(np.sum((y - y.mean()) ** 2))
    return 1.0 - float(np.sum(error**2)) / variation if variation else float("nan")


def _bootstrapped(name: str, score: Callable[[NDArray[np.intp]], float], n: int) -> Score:
    """Return a score with the interval between quantiles of its bootstrap distribution."""
    rng = np.random.RandomState(0)
    values = np.array([score(rng.randint(0, n, n)) for _ in range(N_BOOTSTRAP)])
    defined = values[~np.isnan(values)] if not np.isnan(values).all() else values[:1]
    tail = (1.0 - COVERAGE) / 2.0
    low, high = np.quantile(defined, [tail, 1.0 - tail])
    return Score(name, score(np.arange(n)), float(low), float(high))
