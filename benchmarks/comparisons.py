"""The comparisons that have a goal, as one table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import data
import numpy as np
from contests import (
    bare_logit,
    fit_beside_gfdl,
    fit_beside_gram,
    fit_beside_levenberg_marquardt,
    fit_beside_perceptron,
    fit_iris,
    growth,
    lstsq_beside_gram,
    lstsq_full_rank,
    lstsq_low_rank,
    lstsq_small,
    peak_memory,
    predict_beside_products,
    share_of_rank,
)
from timing import Comparison, Goal


def _at_least(bound: float) -> Goal:
    return Goal(bound, at_least=True)


def _beside_gram(name: str, label: str, goal: float, draw: Callable[..., Any]) -> Comparison:
    return Comparison(
        f"lstsq-{name}",
        f"lstsq, {label}: time over H.T @ H",
        Goal(goal),
        partial(lstsq_beside_gram, draw=draw),
        (200_000, 1_000),
        (20_000, 300),
        repeats=3,
    )


def _fit_beside_gram(name: str, label: str, goal: float, **parameters: Any) -> Comparison:
    return Comparison(
        name,
        f"{label}: time over H.T @ H",
        Goal(goal),
        partial(fit_beside_gram, **parameters),
        (200_000, 50, 1_000),
        (20_000, 50, 300),
        repeats=3,
    )


def _conditioned(condition: float) -> Callable[..., Any]:
    return partial(data.with_condition, condition=condition)


_LM = "fit: times faster than Levenberg-Marquardt"

COMPARISONS = [
    Comparison(
        "lstsq-20000x500",
        "lstsq: times faster than the better of gelsd, gelsy",
        _at_least(2.5),
        lstsq_full_rank,
        (20_000, 500),
        (4_000, 200),
    ),
    Comparison(
        "lstsq-200000x500",
        "lstsq: times faster than the better of gelsd, gelsy",
        _at_least(3.5),
        lstsq_full_rank,
        (200_000, 500),
        (40_000, 200),
        repeats=3,
    ),
    Comparison(
        "lstsq-2000x5000",
        "lstsq: times faster than the better of gelsd, gelsy",
        _at_least(4.0),
        lstsq_full_rank,
        (2_000, 5_000),
        (400, 1_000),
        repeats=3,
    ),
    Comparison(
        "lstsq-low-rank",
        "lstsq, rank 3/5: times faster than the better of gelsd, gelsy",
        _at_least(0.75),
        lstsq_low_rank,
        (20_000, 500),
        (4_000, 200),
    ),
    _beside_gram("condition-1e1", "condition 10", 1.4, _conditioned(1e1)),
    _beside_gram("condition-1e6", "condition 1e6", 3.3, _conditioned(1e6)),
    _beside_gram("condition-1e10", "condition 1e10", 3.3, _conditioned(1e10)),
    _beside_gram("condition-1e13", "condition 1e13", 3.3, _conditioned(1e13)),
    _beside_gram("rank-3", "rank 300 of 1000", 1.2, partial(share_of_rank, tenths=3)),
    _beside_gram("rank-7", "rank 700 of 1000", 1.8, partial(share_of_rank, tenths=7)),
    _beside_gram("relu", "ReLU of uniform inputs", 2.0, data.relu_layer),
    Comparison(
        "lstsq-50x10",
        "lstsq: time over numpy.linalg.lstsq",
        Goal(1.5),
        lstsq_small,
        (50, 10),
        (50, 10),
        repeats=2000,
    ),
    Comparison(
        "lstsq-150x90",
        "lstsq: time over numpy.linalg.lstsq",
        Goal(1.5),
        lstsq_small,
        (150, 90),
        (150, 90),
        repeats=1000,
    ),
    _fit_beside_gram("fit-random", "fit, random", 1.4, hidden="random"),
    _fit_beside_gram(
        "fit-random-tanh", "fit, random, tanh", 1.4, hidden="random", activation="tanh"
    ),
    _fit_beside_gram(
        "fit-random-relu", "fit, random, ReLU", 2.6, hidden="random", activation="relu"
    ),
    # On a tenth of the range of inputs a sigmoid is nearly linear.
    _fit_beside_gram(
        "fit-random-refined",
        "fit, random, to be refined",
        2.1,
        hidden="random",
        activation="sigmoid",
        shrink=0.1,
    ),
    _fit_beside_gram("fit-pullback", "fit, pullback", 1.6, hidden="pullback"),
    Comparison(
        "gfdl",
        "fit: times faster than gfdl",
        _at_least(5.0),
        fit_beside_gfdl,
        (20_000, 20, 500),
        (4_000, 20, 200),
        python312=True,
    ),
    Comparison(
        "mlp",
        "fit: times faster than MLPClassifier",
        _at_least(50.0),
        fit_beside_perceptron,
        (20_000, 20),
        (2_000, 20),
    ),
    Comparison(
        "lm-50",
        _LM,
        _at_least(1000.0),
        fit_beside_levenberg_marquardt,
        (1_000, 10, 50),
        (500, 10, 20),
        repeats=50,
    ),
    Comparison(
        "lm-100",
        _LM,
        _at_least(1000.0),
        fit_beside_levenberg_marquardt,
        (2_000, 10, 100),
        (500, 10, 40),
        repeats=50,
    ),
    Comparison(
        "iris",
        "fit, iris: time over RidgeClassifier",
        Goal(1.5),
        fit_iris,
        (10,),
        (10,),
        repeats=400,
    ),
    Comparison(
        "predict-logit",
        "predict, logit: time over products + activation",
        Goal(1.3),
        partial(predict_beside_products, activation="logit", bare=bare_logit),
        (1_000_000, 50, 1_000),
        (50_000, 50, 300),
        repeats=3,
    ),
    Comparison(
        "predict-tanh",
        "predict, tanh: time over products + activation",
        Goal(1.3),
        partial(predict_beside_products, activation="tanh", bare=np.tanh),
        (1_000_000, 50, 1_000),
        (50_000, 50, 300),
        repeats=3,
    ),
    Comparison(
        "memory-random",
        "fit, random: memory over what is allowed",
        Goal(1.0),
        partial(peak_memory, hidden="random"),
        (1_000_000, 50, 1_000),
        (100_000, 50, 300),
    ),
    Comparison(
        "memory-pullback",
        "fit, pullback: memory over what is allowed",
        Goal(1.0),
        partial(peak_memory, hidden="pullback"),
        (1_000_000, 50, 1_000),
        (100_000, 50, 300),
    ),
    Comparison(
        "growth-random",
        "fit, random: log-log slope of time over rows",
        Goal(1.05),
        partial(growth, hidden="random"),
        (10_000, 1_000_000, 20, 200),
        (2_000, 100_000, 20, 50),
        repeats=3,
    ),
    Comparison(
        "growth-pullback",
        "fit, pullback: log-log slope of time over rows",
        Goal(1.05),
        partial(growth, hidden="pullback"),
        (10_000, 1_000_000, 20, 200),
        (2_000, 100_000, 20, 50),
        repeats=3,
    ),
]
