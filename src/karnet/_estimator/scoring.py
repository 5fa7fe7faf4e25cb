"""The scores of scikit-learn, also in one pass over the blocks of Dask collections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _num_samples

from .._arrays.namespace import is_foreign
from .._lstsq.statistics import Moments, Sum
from .._rows.memory import read_only
from ..activations import Array
from . import validation
from .dask_methods import is_dask, over_blocks
from .targets import in_columns


@dataclass(frozen=True)
class Accuracy:
    """The weight of the rows whose class is predicted, and of all rows."""

    weights: Sum
    check = staticmethod(validation.check_labels)

    @classmethod
    def of(cls, y: Any, predictions: Any, weight: Array) -> Self:
        """Return the statistic of one block."""
        return cls(Sum(np.array([weight @ (predictions == y), weight.sum()])))

    def merge(self, other: Self, /) -> Self:
        """Return the statistic of both blocks."""
        return type(self)(self.weights.merge(other.weights))

    @property
    def score(self) -> float:
        """The accuracy."""
        correct, total = self.weights.value
        return float(correct / total)


@dataclass(frozen=True)
class Deviations:
    """The squared deviations of the targets from their means and from the predictions."""

    from_means: Moments
    from_predictions: Sum
    check = staticmethod(validation.check_real_targets)

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


def _of_block(
    kind: type[Accuracy | Deviations], estimator: Any, X: Any, y: Any, sample_weight: Any
) -> Any:
    """Return the statistic of one block, which may have no rows."""
    n_rows = X.shape[0]
    y = kind.check(y, n_rows) if n_rows or len(y) else np.asarray(y)
    weight = validation.check_weight(sample_weight, n_rows, some_positive=False)
    predictions = estimator.predict(X) if n_rows else y
    return kind.of(y, predictions, np.ones(n_rows) if weight is None else weight)


class Scored:
    """A mixin with the score of scikit-learn, which takes one pass over Dask collections."""

    _score_statistic: type[Any]

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
        if not is_dask(X, y, sample_weight):
            n_rows = _num_samples(X)
            if not is_foreign(y):
                y = self._score_statistic.check(y, n_rows)
                dtype = getattr(getattr(self, "classes_", y), "dtype", y.dtype)
                if y.dtype.kind in "mM" and getattr(dtype, "kind", "f") not in "mM":
                    raise ValueError(f"y holds {y.dtype}, but the classes of the fit are {dtype}.")
            sample_weight = validation.check_weight(sample_weight, n_rows)
            # Squares of large errors may overflow.
            with np.errstate(over="ignore", invalid="ignore"):
                score = float(super().score(X, y, sample_weight))  # type: ignore[misc]
            return -np.inf if np.isnan(score) and n_rows > 1 else score
        of_block = partial(_of_block, self._score_statistic)
        return float(over_blocks(self, of_block, X, y, sample_weight).score)
