"""Prediction intervals, from the errors of left-out predictions."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from .._util.types import Array

# Share of all weights by which a sum of weights may differ from a bound due to rounding.
ROUNDING = 1e-9


def around(predictions: Array, errors: Array, weight: Array | None, coverage: float) -> Array:
    """Return the ends of intervals around predictions, of shape (k, q, 2).

    Half of the width is a quantile of the sizes of left-out errors. `errors` are the targets of the
    rows of the fit less their left-out predictions, NaN for rows without one, and `weight` are the
    sample weights. An interval should contain its target with the probability `coverage`.
    """
    judged = ~np.isnan(errors[:, 0])
    e = np.abs(errors[judged])
    weights = np.ones(len(e)) if weight is None else weight[judged]
    spread = quantile(e.T, weights, coverage) * widening(len(e), coverage)
    return np.stack([predictions - spread, predictions + spread], axis=-1)


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


def quantile(values: Array, weight: Array, coverage: float) -> Array:
    """Return the `coverage` quantile of each row of values, counting one more value at infinity."""
    order = np.argsort(values, axis=1)
    upto = np.cumsum(weight[order], axis=1)
    first = (upto < coverage * (weight.sum() + weight.mean()) - ROUNDING * weight.sum()).sum(axis=1)
    place = np.minimum(first, values.shape[1] - 1)
    return np.asarray(np.take_along_axis(values, order, axis=1)[np.arange(len(values)), place])
