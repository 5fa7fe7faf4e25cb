"""Probabilities of classes from scores, and sets of classes, calibrated on left-out scores.

The scores of a class estimate its probability, but they are not bounded by 0 and 1. A softmax makes
probabilities of them that depend on differences of scores only. Where classes overlap, normalised
powers of the scores are better, and softplus keeps these positive. A finite knee selects them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from .._util.types import Array
from ..loo import log_loss
from .intervals import quantile, too_few

# Finite knees that are tried.
KNEES = (1.0, 0.3, 0.1, 0.03)
# A finite knee is taken if the log-loss falls by more than this number of its standard errors.
N_ERRORS = 2.0
# Bounds of the logarithm of the temperature.
LOG_TEMPERATURES = (-4.0, 2.0)
# Scores over the knee are at least this: the softplus of smaller ones has few digits.
LEAST_SCORE = -20.0


@dataclass(frozen=True)
class Calibration:
    """The map from scores to probabilities."""

    knee: float
    temperature: float
    doubt: float  # the probability that is spread equally over all classes

    @classmethod
    def of(
        cls, codes: NDArray[np.integer], scores: Array, weight: Array | None, doubt: float
    ) -> Calibration:
        """Return the calibration with the least log-loss of left-out scores.

        The knee is infinite unless another is clearly better.
        """

        def with_knee(knee: float) -> Calibration:
            logits = bent(scores, knee)
            best = minimize_scalar(
                lambda t: log_loss(codes, logits, np.exp(t), weight, doubt),
                bounds=LOG_TEMPERATURES,
                method="bounded",
            )
            return cls(knee, float(np.exp(best.x)), doubt)

        plain, best = with_knee(np.inf), None
        losses, least = plain._losses(codes, scores), 0.0
        count = np.ones(len(codes)) if weight is None else weight
        for other in map(with_knee, KNEES):
            falls = losses - other._losses(codes, scores)
            mean = np.average(falls, weights=count)
            error = np.sqrt(count @ (falls - mean) ** 2) / max(count.sum(), 1.0)
            if mean > max(least, N_ERRORS * error):
                best, least = other, mean
        return best or plain

    def _losses(self, codes: NDArray[np.integer], scores: Array) -> Array:
        return np.asarray(-np.log(self.probabilities(scores)[np.arange(len(codes)), codes]))

    def probabilities(self, scores: Array) -> Array:
        """Return the probability of each class."""
        certain = softmax(bent(scores, self.knee) / self.temperature, axis=1)
        return np.asarray((1.0 - self.doubt) * certain + self.doubt / scores.shape[1])


def bent(scores: Array, knee: float) -> Array:
    """Return ``log(softplus(f / knee))``, or the scores f if the knee is infinite."""
    if np.isinf(knee):
        return scores
    return np.asarray(np.log(np.logaddexp(0.0, np.maximum(scores / knee, LEAST_SCORE))))


def prediction_sets(
    probabilities: Array, left_out: Array, weight: Array | None, coverage: float
) -> NDArray[np.bool_]:
    """Return which classes are in the conformal set of each row.

    They are those with a probability of at least a threshold, which the left-out probability of the
    class of most rows of the training set reaches. Of all sets of the same coverage, those by a
    threshold on the true probabilities are the smallest (Sadinle, Lei and Wasserman, 2019).

    `probabilities` are those of the classes of new rows, `left_out` the left-out probability of the
    class of each row of the training set, and `weight` its sample weights. The most probable class
    is always in the set. If there are too few rows for the coverage, all classes are.
    """
    if too_few(len(left_out), coverage):
        return np.ones(probabilities.shape, dtype=bool)
    weights = np.ones(len(left_out)) if weight is None else weight
    threshold = -quantile(-left_out[None], weights, coverage)[0]
    chosen = probabilities >= threshold
    chosen[np.arange(len(chosen)), probabilities.argmax(axis=1)] = True
    return np.asarray(chosen)
