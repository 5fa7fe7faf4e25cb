"""Prediction intervals, from predictions of members fitted without one row or one fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from .._ensemble.folds import Folds
from .._ensemble.member import Member
from .._network.layers import Network
from .._rows.memory import block_slices, dense
from .._util.types import Array

# Share of all weights by which a sum of weights may differ from a bound due to rounding.
ROUNDING = 1e-9


def jackknife_plus(
    members: Sequence[Member],
    shares: Array,
    predictions: Array,
    X: Any,
    errors: Array,
    weight: Array | None,
    coverage: float,
) -> Array:
    """Return the ends of intervals around the mean predictions of members.

    Without row i a ridge solution predicts ``f(x) - s_i(x) e_i``, where e_i is its left-out error
    on that row and s_i(x) the slope of f(x) with respect to the row's target. For members in the
    leaves of trees, where a row hardly changes predictions for others, f(x) itself is used.

    `predictions` are the sums of the members, times their `shares`, for the new rows X, of shape
    (k, q). `errors` are the targets of the training set less their left-out predictions, and
    `weight` are its sample weights. An interval should contain its target with the probability
    `coverage`. The ends have the shape (k, q, 2).
    """
    judged = ~np.isnan(errors[:, 0])
    e = errors[judged]
    weights = np.ones(len(e)) if weight is None else weight[judged]
    if all(member.path is None for member in members):
        spread = np.stack([quantile(np.abs(each)[None], weights, coverage)[0] for each in e.T])
        ends = np.stack([predictions - spread, predictions + spread], axis=-1)
        return _around(predictions, ends, len(e), coverage)
    ends = np.empty((*predictions.shape, 2))
    for rows in block_slices(len(predictions), len(errors)):
        slopes = sum(
            w * _slopes(member, dense(X[rows])) for w, member in zip(shares, members, strict=True)
        )
        for j in range(predictions.shape[1]):
            without = predictions[rows, j, None] - (slopes * np.nan_to_num(errors[:, j]))[:, judged]
            ends[rows, j] = _ends(without, np.abs(e[:, j]), weights, coverage)
    return _around(predictions, ends, len(e), coverage)


def cv_plus(predictions: Array, without: Array, folds: Folds, coverage: float) -> Array:
    """Return the ends of intervals from predictions without each fold, of shape (k, q, 2).

    `predictions` are those of the members fitted to all rows, of shape (k, q), and `without` those
    without each fold, of shape (n_folds, k, q).
    """
    ends, spread = np.empty((*predictions.shape, 2)), np.abs(folds.errors)
    for rows in block_slices(len(predictions), len(spread)):
        for j in range(predictions.shape[1]):
            of_rows = without[folds.fold, rows, j].T
            ends[rows, j] = _ends(of_rows, spread[:, j], folds.weight, coverage)
    return _around(predictions, ends, len(spread), coverage)


def _ends(without: Array, spread: Array, weight: Array, coverage: float) -> Array:
    """Return the quantiles of predictions without a row less and plus the error on it, (k, 2)."""
    low = -quantile(spread - without, weight, coverage)
    return np.stack([low, quantile(without + spread, weight, coverage)], axis=-1)


def _around(predictions: Array, ends: Array, n: int, coverage: float) -> Array:
    """Return intervals that contain their prediction, wider if n errors are too few."""
    away = (ends - predictions[..., None]) * widening(n, coverage)
    away[..., 0], away[..., 1] = np.minimum(away[..., 0], 0.0), np.maximum(away[..., 1], 0.0)
    return np.asarray(predictions[..., None] + away)


def widening(n: int, coverage: float) -> float:
    """Return the factor of the largest of n errors if a quantile is beyond it, otherwise 1.

    The largest of n errors is about their ``n / (n + 1)`` quantile. The factor is the ratio of
    quantiles of Student's distribution.
    """
    if not too_few(n, coverage):
        return 1.0
    largest = n / (n + 1)
    freedom = max(n - 1, 1)
    return float(stdtrit(freedom, (1.0 + coverage) / 2.0) / stdtrit(freedom, (1.0 + largest) / 2.0))


def too_few(n: int, coverage: float) -> bool:
    """Return whether a quantile of n values and one at infinity is infinite."""
    return coverage * (n + 1) > n * (1.0 + ROUNDING)


def _slopes(member: Member, X: Array) -> Array:
    """Return the derivatives of the predictions for X with respect to the training targets."""
    path = member.path
    assert path is not None
    assert isinstance(member.network, Network)
    root = np.sqrt(path.weight)
    K = (member.network.features(X) - path.mean) * root
    inner = (K @ path.U) / (path.eigenvalues + member.alpha_)
    return np.asarray((inner @ path.U.T) * root + path.weight / path.weight.sum())


def quantile(values: Array, weight: Array, coverage: float) -> Array:
    """Return the `coverage` quantile of each row of values, counting one more value at infinity."""
    order = np.argsort(values, axis=1)
    upto = np.cumsum(weight[order], axis=1)
    first = (upto < coverage * (weight.sum() + weight.mean()) - ROUNDING * weight.sum()).sum(axis=1)
    place = np.minimum(first, values.shape[1] - 1)
    return np.asarray(np.take_along_axis(values, order, axis=1)[np.arange(len(values)), place])
