"""One fit: a contender is fitted to the training rows of a table and scored on the others."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from statistics import median
from time import gmtime, strftime
from typing import Any

from numpy.typing import NDArray

from ..machine import describe_machine
from ..memory import highest, reset_highest
from ..quality.measure import best_score, scores, timed, unfitted, versions, warm_up
from ..quality.peers import Contender
from .peers import CONTENDERS
from .results import Key, Result
from .tables import Table

SEED = 0
# Predictions for one row, of whose times the median is taken.
N_SINGLE = 25


def version(contender: Contender) -> str:
    """Return the package of a contender and its version here."""
    return f"{contender.package} {metadata.version(contender.package)}"


def measure(key: Key, table: Table, start: Callable[[], None]) -> Result:
    """Return the result of a contender on a table, or the error with which it failed.

    Parameters
    ----------
    key : Key
        The contender, and the names of the table and of the version.
    table : Table
        The rows.
    start : callable
        Called right before the fit.
    """
    contender = CONTENDERS[key.contender]
    warm_up(contender, table.kind)
    found: dict[str, Any] = {}
    try:
        estimator = unfitted(contender, table.kind)(table.y, SEED)
        start()
        found |= _fit(estimator, table)
        found |= _predict(estimator, table)
    except Exception as error:  # every error is a result
        found["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
    return Result(
        **key._asdict(),
        **table.description,
        **found,
        machine=describe_machine(threads=1),
        versions=versions(contender),
        measured=strftime("%Y-%m-%d %H:%M:%S", gmtime()),
    )


def _fit(estimator: Any, table: Table) -> dict[str, float]:
    """Fit an estimator and return its times and its memory."""
    before = reset_highest()
    _, wall, cpu = timed(lambda: estimator.fit(table.X, table.y))
    return {
        "fit_wall": wall,
        "fit_cpu": cpu,
        "memory": float(max(highest() - before, 0)),
        "best_score": best_score(estimator),
    }


def _predict(estimator: Any, table: Table) -> dict[str, float]:
    """Return the times of a fitted estimator's predictions, and their scores."""
    predictions, wall, cpu = timed(lambda: estimator.predict(table.X_test))
    times = {
        "predict_wall": wall,
        "predict_cpu": cpu,
        "predict_one": _time_of_one_row(estimator, table.X_test[:1]),
    }
    return times | scores(table.n_classes, estimator, predictions, table.X_test, table.y_test)


def _time_of_one_row(estimator: Any, row: NDArray[Any]) -> float:
    return median(timed(lambda: estimator.predict(row))[1] for _ in range(N_SINGLE))
