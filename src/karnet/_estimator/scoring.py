"""The scores of scikit-learn, also in one pass over the blocks of Dask collections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import _num_samples

from .._arrays.namespace import to_numpy
from .._lstsq.statistics import Moments, Sum
from .._rows.memory import read_only
from ..activations import Array
from . import validation
from .dask_methods import is_dask, over_blocks
from .targets import Check, in_columns


@dataclass(frozen=True)
class Deviations:
    """The squared deviations of the targets from their means and from the predictions."""

    from_means: Moments
    from_predictions: Sum

    @classmethod
    def of(cls, y: Any, predictions: Any, weight: Array) -> Self:
        """Return the statistic of one block."""
        Y, errors = in_columns(y), in_columns(y - predictions)
        from_means = Moments.of(read_only(Y), Y[:, :0], weight, bias=bool(weight.any()))
        return cls(from_means, Sum(weight @ errors**2))

    def merge(self, other: Self, /) -> Self:
        """Return the statistic of both blocks."""
        from_means = self.from_means.merge(other.from_means)
        return type(self)(from_means, self.from_predictions.merge(other.from_predictions))

    @property
    def score(self) -> float:
        """The mean R^2 of the outputs; a constant output has 1 if predicted exactly, else 0."""
        total, residual = self.from_means.squares, self.from_predictions.value
        varies = total > 0.0
        explained = np.where(residual > 0.0, 0.0, 1.0)
        explained[varies] = 1.0 - residual[varies] / total[varies]
        return float(explained.mean())


def _correct(y: Any, predictions: Any, weight: Array) -> Sum:
    """Return the weight of the rows whose class is predicted, and of all rows."""
    return Sum(np.array([weight @ np.ravel(predictions == y), weight.sum()]))


def _of_block(check: Check, statistic: Any, estimator: Any, X: Any, y: Any, weight: Any) -> Any:
    """Return the statistic of one block, which may have no rows."""
    n_rows = X.shape[0]
    y = check(y, n_rows) if n_rows or len(y) else np.asarray(y)
    weight = validation.check_weight(weight, n_rows, some_positive=False)
    predictions = estimator.predict(X) if n_rows else y
    return statistic(y, predictions, np.ones(n_rows) if weight is None else weight)


class Scored:
    """A mixin with the score of scikit-learn, which takes one pass over Dask collections."""

    predict: Callable[[Any], Any]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier or the R^2 of a regressor, as scikit-learn does.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs. With a Dask collection, y must be one too; neither is loaded into memory.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The classes or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights.

        Returns
        -------
        float
        """
        classifies = is_classifier(self)
        check = validation.check_labels if classifies else validation.check_real_targets
        if is_dask(X, y, sample_weight):
            of_block = partial(_of_block, check, _correct if classifies else Deviations.of)
            total = over_blocks(self, of_block, X, y, sample_weight)
            return float(total.value[0] / total.value[1]) if classifies else total.score
        n_rows = _num_samples(X)
        if not validation.is_dispatched(y):
            y = check(y, n_rows)
            dtype = getattr(getattr(self, "classes_", y), "dtype", y.dtype)
            if y.dtype.kind in "mM" and getattr(dtype, "kind", "f") not in "mM":
                raise ValueError(f"y holds {y.dtype}, but the classes of the fit are {dtype}.")
        sample_weight = validation.check_weight(sample_weight, n_rows)
        predictions, metric = self.predict(X), accuracy_score if classifies else r2_score
        if not validation.is_dispatched(X):
            predictions = to_numpy(predictions)
        with np.errstate(over="ignore", invalid="ignore"):  # squares of large errors may overflow
            score = float(metric(y, predictions, sample_weight=sample_weight))
        return -np.inf if np.isnan(score) and n_rows > 1 else score
