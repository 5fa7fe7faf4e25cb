"""Rows that are not in memory but in a Dask collection: who takes them, and leaves them there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Self, TypeVar, cast

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import _num_samples

from .._arrays.namespace import is_foreign
from .._lstsq.statistics import Moments, Sum
from .._rows.memory import read_only
from .._rows.streamed import Passes
from ..activations import Array
from . import dask_methods, validation

__all__ = ["Classifies", "Regresses", "passes_over", "where_rows_are"]

Method = TypeVar("Method", bound=Callable[..., Any])


def passes_over(X: Any, y: Any, sample_weight: Any) -> Passes | None:
    """Return how to go through Dask collections; None for rows in memory."""
    if not validation.is_dask(X, y, sample_weight):
        return None
    return dask_methods.passes_over(validation.plain_inputs, X, y, sample_weight)


def where_rows_are(method: Method) -> Method:
    """Let a method that answers to rows answer to a Dask collection with another one."""

    @wraps(method)
    def answer(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not validation.is_dask(X):
            return method(self, X, *args, **options)
        return dask_methods.lazily(self, method.__name__, X, *args, **options)

    return cast(Method, answer)


@dataclass(frozen=True)
class Hits:
    """The weight of the rows whose class is answered, and that of all."""

    weights: Sum
    checked = staticmethod(validation.check_labels)

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Self:
        """Return those of one block."""
        n_rows = X.shape[0]
        labels = validation.check_labels(y, n_rows) if n_rows or len(y) else np.empty(0)
        weight = _weights(sample_weight, n_rows)
        right = estimator.predict(X) == labels if n_rows else labels
        return cls(Sum(np.array([weight @ right, weight.sum()])))

    def merge(self, other: Self, /) -> Self:
        """Return those of both blocks."""
        return type(self)(self.weights.merge(other.weights))

    @property
    def score(self) -> float:
        """The accuracy."""
        right, all_rows = self.weights.value
        return float(right / all_rows)


@dataclass(frozen=True)
class Deviations:
    """The squares of the targets about their means, and about what is answered."""

    about_means: Moments
    about_answers: Sum
    checked = staticmethod(validation.check_real_targets)

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Self:
        """Return those of one block."""
        n_rows = X.shape[0]
        Y = validation.check_real_targets(y, n_rows) if n_rows or len(y) else np.asarray(y)
        weight = _weights(sample_weight, n_rows)
        errors = Y - estimator.predict(X) if n_rows else Y
        Y, errors = (M[:, None] if M.ndim == 1 else M for M in (Y, errors))
        about_means = Moments.of(read_only(Y), Y[:, :0], weight, bias=bool(weight.any()))
        return cls(about_means, Sum(weight @ errors**2))

    def merge(self, other: Self, /) -> Self:
        """Return those of both blocks."""
        about_means = self.about_means.merge(other.about_means)
        return type(self)(about_means, self.about_answers.merge(other.about_answers))

    @property
    def score(self) -> float:
        """The mean R^2 of the outputs; of a constant one it is 1 if it is met and 0 if not."""
        whole, rest = self.about_means.squares, self.about_answers.value
        varies = whole > 0.0
        explained = np.where(rest > 0.0, 0.0, 1.0)
        explained[varies] = 1.0 - rest[varies] / whole[varies]
        return float(explained.mean())


def _weights(sample_weight: Any, n_rows: int) -> Array:
    weight = validation.check_weight(sample_weight, n_rows, some_positive=False)
    return np.ones(n_rows) if weight is None else weight


class _Scored:
    """An estimator whose score is that of scikit-learn, in one pass over Dask collections."""

    _scored_by: type[Any]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of scikit-learn: accuracy of a classifier, R^2 of a regressor.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs; with a Dask collection y is one too, and neither is pulled into memory.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The classes or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
        """
        if not validation.is_dask(X, y, sample_weight):
            n_rows = _num_samples(X)
            if not is_foreign(y):
                y = self._scored_by.checked(y, n_rows)
                self._refuse_times(y)
            sample_weight = validation.check_weight(sample_weight, n_rows)
            # Squares of answers that are far off may overflow.
            with np.errstate(over="ignore", invalid="ignore"):
                found = float(super().score(X, y, sample_weight))  # type: ignore[misc]
            return -np.inf if np.isnan(found) and n_rows > 1 else found
        tables = validation.plain_inputs, X, y, sample_weight
        return float(dask_methods.over_blocks(self, self._scored_by.of, *tables).score)

    def _refuse_times(self, y: Any) -> None:
        """Raise an error if times are to be compared with classes that are none."""
        known = getattr(getattr(self, "classes_", y), "dtype", y.dtype)
        if y.dtype.kind in "mM" and getattr(known, "kind", "f") not in "mM":
            raise ValueError(f"y holds {y.dtype}, but the classes that were learned are {known}.")


class Classifies(_Scored, ClassifierMixin):
    """A classifier that leaves Dask collections where they are."""

    _scored_by = Hits


class Regresses(_Scored, RegressorMixin):
    """A regressor that leaves Dask collections where they are."""

    _scored_by = Deviations
