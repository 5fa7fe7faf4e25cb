"""The meaning of the scores of a fitted model: classes, or numbers in a unit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import r2_score

from .._util.types import Array, Indices, Mask
from ..learner import indicator
from ..loo import accuracy
from .calibration import Calibration
from .importances import class_errors, squared_errors

# Number of wrong labels that probabilities allow for, in rows.
WRONG_LABELS = 0.5


@dataclass(frozen=True)
class ClassOutput:
    """Scores of classes, whose targets are 1 for the class of a row and 0 for all others."""

    n_classes: int
    calibration: Calibration

    @classmethod
    def of(cls, codes: Indices, left_out: Array, honest: Mask, weight: Array | None) -> ClassOutput:
        """Return the classes, calibrated on the left-out scores of honest rows."""
        weight = None if weight is None else weight[honest]
        doubt = WRONG_LABELS / (honest.sum() if weight is None else max(weight.sum(), 1.0))
        calibration = Calibration.of(codes[honest], left_out[honest], weight, float(doubt))
        return cls(left_out.shape[1], calibration)

    errors = staticmethod(class_errors)

    def columns(self, targets: Indices) -> Array:
        """Return the target scores of codes of classes."""
        return indicator(targets, self.n_classes)

    def decision(self, scores: Array) -> Array:
        """Return the decision function: of two classes, the difference of the scores."""
        return scores[..., 1] - scores[..., 0] if self.n_classes == 2 else scores

    # A difference of scores changes the decision function by as much.
    difference = decision

    def score(self, codes: Indices, left_out: Array, weight: Array | None) -> float:
        """Return the accuracy of left-out scores."""
        return accuracy(codes, left_out, weight)


@dataclass(frozen=True)
class NumberOutput:
    """Scores that are numbers less their mean, in units of their standard deviation."""

    mean: Array
    scale: Array
    one_output: bool  # whether y has one dimension

    @classmethod
    def of(cls, targets: Array, weight: Array | None, one_output: bool) -> NumberOutput:
        """Return the mean and the unit of targets with weights."""
        mean = np.average(targets, axis=0, weights=weight)
        spread = np.sqrt(np.average((targets - mean) ** 2, axis=0, weights=weight))
        return cls(mean, np.where(spread > 0.0, spread, 1.0), one_output)

    errors = staticmethod(squared_errors)

    def columns(self, targets: Array) -> Array:
        """Return the target scores, which are the targets."""
        return targets

    def standardised(self, numbers: Array) -> Array:
        """Return the scores that numbers should have."""
        return np.asarray((numbers - self.mean) / self.scale)

    def decision(self, scores: Array) -> Array:
        """Return predictions in the units of y."""
        predictions = scores * self.scale + self.mean
        return predictions[:, 0] if self.one_output else predictions

    def ends(self, ends: Array) -> Array:
        """Return the ends of intervals in the units of y."""
        ends = ends * self.scale[:, None] + self.mean[:, None]
        return ends[:, 0] if self.one_output else ends

    def difference(self, differences: Array) -> Array:
        """Return differences of predictions, their last axis that of the outputs."""
        differences = differences * self.scale
        return differences[..., 0] if self.one_output else differences

    def score(self, targets: Array, left_out: Array, weight: Array | None) -> float:
        """Return the R^2 of left-out scores, which a single row does not define."""
        if len(targets) < 2:
            return float("nan")
        return float(r2_score(targets, left_out, sample_weight=weight))
