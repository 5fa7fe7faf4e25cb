"""Prediction intervals of the jackknife+, from predictions of members fitted without one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._network.layers import Network
from .._rows.memory import block_slices, dense
from .._util.types import Array
from .member import Member


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
    (k, q). `errors` are the
    targets of the training set less their left-out predictions, and `weight` are its sample
    weights. An interval should contain its target with the probability `coverage`. The ends have
    the shape (k, q, 2).
    """
    judged = ~np.isnan(errors[:, 0])
    e = errors[judged]
    weights = np.ones(len(e)) if weight is None else weight[judged]
    if all(member.path is None for member in members):
        spread = np.stack([_quantile(np.abs(each)[None], weights, coverage)[0] for each in e.T])
        return np.stack([predictions - spread, predictions + spread], axis=-1)
    ends = np.empty((*predictions.shape, 2))
    for rows in block_slices(len(predictions), len(errors)):
        slopes = sum(
            w * _slopes(member, dense(X[rows])) for w, member in zip(shares, members, strict=True)
        )
        for j in range(predictions.shape[1]):
            without = predictions[rows, j, None] - (slopes * np.nan_to_num(errors[:, j]))[:, judged]
            spread = np.abs(e[:, j])
            ends[rows, j, 0] = -_quantile(spread - without, weights, coverage)
            ends[rows, j, 1] = _quantile(without + spread, weights, coverage)
    return ends


def _slopes(member: Member, X: Array) -> Array:
    """Return the derivatives of the predictions for X with respect to the training targets."""
    path = member.path
    assert path is not None
    assert isinstance(member.network, Network)
    root = np.sqrt(path.weight)
    K = (member.network.features(X) - path.mean) * root
    inner = (K @ path.U) / (path.eigenvalues + member.alpha_)
    return np.asarray((inner @ path.U.T) * root + path.weight / path.weight.sum())


def _quantile(values: Array, weight: Array, coverage: float) -> Array:
    """Return the `coverage` quantile of each row of values, counting one more value at infinity."""
    order = np.argsort(values, axis=1)
    upto = np.cumsum(weight[order], axis=1)
    first = (upto < coverage * (weight.sum() + weight.mean()) - 1e-9 * weight.sum()).sum(axis=1)
    place = np.minimum(first, values.shape[1] - 1)
    return np.asarray(np.take_along_axis(values, order, axis=1)[np.arange(len(values)), place])
