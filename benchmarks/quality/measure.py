"""One fit: a contender is fitted to all folds but one and scored on the held-out fold."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from importlib import metadata
from math import nan
from numbers import Real
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, r2_score, root_mean_squared_error

from ..machine import describe_versions
from .data import Kind, arrays, load
from .peers import CONTENDERS, Contender
from .store import Key, Result

Array = NDArray[Any]
cached = lru_cache(maxsize=2)(load)


def why_absent(contender: Contender) -> str:
    """Return why a contender cannot be constructed here; empty text if it can."""
    try:
        contender.classifier(np.arange(20) % 2, 0)
        contender.regressor(np.arange(20.0), 0)
    except ImportError as error:
        return error.msg.partition(" (")[0]  # without the path
    return ""


def measure(key: Key) -> Result:
    """Return the result of a contender on one fold, or the error with which it failed."""
    contender, problem = CONTENDERS[key.contender], cached(key.dataset)
    warm_up(contender, problem.kind)
    part = problem.split(key.repeat)[key.fold]
    X, X_test = arrays(problem.inputs[part.train], problem.inputs[part.test])
    y, y_test = problem.y[part.train], problem.y[part.test]
    found: dict[str, Any] = {"n_train": len(y), "n_test": len(y_test)}
    try:
        estimator = unfitted(contender, problem.kind)(y, 1000 * key.repeat + key.fold)
        estimator, found["fit_wall"], found["fit_cpu"] = timed(lambda: estimator.fit(X, y))
        predictions, found["predict_wall"], found["predict_cpu"] = timed(
            lambda: estimator.predict(X_test)
        )
        found |= scores(problem.n_classes, estimator, predictions, X_test, y_test)
        found["best_score"] = best_score(estimator)
    except Exception as error:  # every error is a result
        found["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
    return Result(*key, problem.kind, versions=versions(contender), **found)


@cache
def warm_up(contender: Contender, kind: Kind) -> None:
    """Fit a few generated rows once, because the first fit in a process also loads modules."""
    X = np.random.default_rng(0).random((40, 3))
    y = (X[:, 0] > 0.5).astype(int) if kind == "classification" else X[:, 0]
    with suppress(Exception):  # the measured fit reports it
        unfitted(contender, kind)(y, 0).fit(X, y)


def best_score(estimator: Any) -> float:
    """Return an estimator's `best_score_`, which has another meaning in LightGBM."""
    score = getattr(estimator, "best_score_", nan)
    return float(score) if isinstance(score, Real) else nan


def unfitted(contender: Contender, kind: Kind) -> Callable[[Array, int], Any]:
    """Return the function that constructs a contender's estimator for a kind of target."""
    return contender.classifier if kind == "classification" else contender.regressor


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result of a call, its time and its CPU time."""
    cpu, wall = process_time(), perf_counter()
    result = call()
    return result, perf_counter() - wall, process_time() - cpu


def scores(
    n_classes: int, estimator: Any, predictions: Array, X: Array, y: Array
) -> dict[str, float]:
    """Return scores of a fitted estimator on held-out rows, by name; a regression has 0 classes."""
    predictions = np.ravel(predictions)  # some libraries return a column
    if n_classes == 0:
        return {"rmse": root_mean_squared_error(y, predictions), "r2": r2_score(y, predictions)}
    found = {"accuracy": float(np.mean(predictions == y))}
    if not hasattr(estimator, "predict_proba"):
        return found
    # A class without training rows has no probability.
    P = np.zeros((len(y), n_classes))
    P[:, estimator.classes_] = estimator.predict_proba(X)
    indicator = np.eye(n_classes)[y]
    return found | {
        "log_loss": float(log_loss(y, P, labels=np.arange(n_classes))),
        "brier": float(np.mean(np.sum((P - indicator) ** 2, axis=1))),
    }


def versions(contender: Contender) -> str:
    """Return the versions of Python, of the usual packages and of the contender's package."""
    described = str(describe_versions())
    if f"{contender.package} " in described:
        return described
    return f"{described}, {contender.package} {metadata.version(contender.package)}"
