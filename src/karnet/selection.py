"""Estimators that settle everything themselves: averages of networks chosen by leave-one-out."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.metrics import r2_score

from ._ensemble.average import Average
from ._ensemble.jackknife import jackknife_plus
from ._estimator import parameters, validation
from ._estimator.docs import documented
from ._estimator.ensemble_base import KARNetworkCV
from ._estimator.scoring import Classifies, Regresses, where_rows_are
from .activations import Array
from .learner import indicator
from .loo import accuracy, log_loss

__all__ = ["KARClassifierCV", "KARRegressorCV"]

# Rows that probabilities allow for having been told wrongly.
DOUBT = 0.5
# The least and the largest temperature tried, as powers of e.
COLDEST, HOTTEST = -4.0, 2.0


@documented
class KARClassifierCV(Classifies, KARNetworkCV):
    """Classifier that averages a few wide networks, chosen and judged by leave-one-out.

    Minimises, for each member, ``sum_i w_i ||b + h(x_i) W - e_i||^2 + alpha ||W||^2`` for the class
    indicator e and hidden units h(x) that are infinitely wide random layers (of finite width for
    tables of more than `width` rows). Views of the inputs, activations, scales, depths, ridges and
    rounds of the input metric are chosen by the exact leave-one-out squared error or, where labels
    shaped the hidden layer, by folds that had no part in that. Nothing needs to be set, and inputs
    need not be scaled.

    Parameters
    ----------
    {cv_parameters}
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with those of the rows.
    {cv_budget}
    {cv_device}

    Attributes
    ----------
    {cv_members}
    best_score_ : float
        The accuracy of the average, of rows it was learned without.
    {cv_results}
    loo_decision_function_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        The decision function of each row, learned without it.
    {cv_importances}
    temperature_ : float
        What the decision function is divided by before its softmax is a probability.
    doubt_ : float
        What is left of probability for all classes equally: that of half a row.
    classes_ : ndarray
        The classes, sorted.
    {features}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from karnet import KARClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> net = KARClassifierCV(random_state=0).fit(X, y)
    >>> net.best_score_ > 0.95
    True
    """

    def __init__(
        self,
        *,
        n_estimators: int = 8,
        alphas: ArrayLike | None = None,
        width: int = 1500,
        cv: Any = None,
        class_weight: dict[Any, float] | str | None = None,
        time_budget: float | None = None,
        random_state: Any = None,
        device: str | None = None,
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            alphas=alphas,
            width=width,
            cv=cv,
            time_budget=time_budget,
            random_state=random_state,
            device=device,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Choose networks and learn them.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The classes, of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A weight of 0 leaves a row out.

        Returns
        -------
        self
        """
        self._refuse_dask(X, y, sample_weight)
        with validation.unchanged_on_failure(self):
            X = self._rows(X, reset=True)
            y = validation.check_labels(y, len(X))
            weight = validation.check_weight(sample_weight, len(y))
            weight = validation.check_class_weight(self.class_weight, y, weight)
            kept = np.ones(len(y), dtype=bool) if weight is None else weight > 0.0
            self.classes_, codes = np.unique(y[kept], return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"y must hold at least two classes, but holds one class only: "
                    f"{self.classes_.tolist()[0]!r}."
                )
            Y = indicator(codes, len(self.classes_))
            weight = self._felt(None if weight is None else weight[kept])
            average = self._learn(X[kept], Y, weight, self._splits(X, y, kept), codes)
            self._judge(average, codes, weight)
            decision = np.empty((len(X), len(self.classes_)))
            decision[kept] = average.left_out
            if not kept.all():
                decision[~kept] = self._answers_to(X[~kept])
            self.loo_decision_function_ = _of_two(decision)
        return self

    def _judge(self, average: Average, codes: NDArray[np.intp], weight: Array | None) -> None:
        seen = average.honest & ~np.isnan(average.left_out[:, 0])
        left_out, codes = average.left_out[seen], codes[seen]
        weight = None if weight is None else weight[seen]
        self.best_score_ = accuracy(codes, left_out, weight)
        self.doubt_ = DOUBT / (len(codes) if weight is None else max(weight.sum(), 1.0))
        found = minimize_scalar(
            lambda t: log_loss(codes, left_out, np.exp(t), weight, self.doubt_),
            bounds=(COLDEST, HOTTEST),
            method="bounded",
        )
        self.temperature_ = float(np.exp(found.x))

    @where_rows_are
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return how strongly the networks answer with each class.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            The mean answer, which was taught 1 for the class of a row and 0 for all others. For two
            classes that of the second less that of the first.
        """
        return _of_two(self._answers(X))

    @where_rows_are
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = self._answers(X).argmax(axis=1)
        return np.asarray(self.classes_[codes])

    @where_rows_are
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return probabilities of the classes, calibrated on rows learned without.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        certain = softmax(self._answers(X) / self.temperature_, axis=1)
        return np.asarray((1.0 - self.doubt_) * certain + self.doubt_ / len(self.classes_))


def _of_two(decision: Array) -> Array:
    return decision[:, 1] - decision[:, 0] if decision.shape[1] == 2 else decision


@documented
class KARRegressorCV(Regresses, KARNetworkCV):
    """Regressor that averages a few wide networks, chosen and judged by leave-one-out.

    Minimises, for each member, ``sum_i w_i ||b + h(x_i) W - y_i||^2 + alpha ||W||^2`` for hidden
    units h(x) that are infinitely wide random layers (of finite width for tables of more than
    `width` rows). Views of the inputs, activations, scales, depths, ridges and rounds of the input
    metric are chosen by the exact leave-one-out squared error or, where targets shaped the hidden
    layer, by folds that had no part in that. Nothing needs to be set, and inputs need not be
    scaled.

    Parameters
    ----------
    {cv_parameters}
    {cv_budget}
    {cv_device}

    Attributes
    ----------
    {cv_members} They answer in units of the
        standard deviation of y.
    best_score_ : float
        The R^2 of the average, of rows it was learned without.
    {cv_results}
    loo_decision_function_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The prediction for each row, learned without it.
    {cv_importances}
    {features}

    References
    ----------
    R. F. Barber, E. J. Candes, A. Ramdas and R. J. Tibshirani, "Predictive inference with the
    jackknife+", 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from karnet import KARRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> net = KARRegressorCV(random_state=0).fit(X, y)
    >>> net.best_score_ > 0.45
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Choose networks and learn them.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A weight of 0 leaves a row out.

        Returns
        -------
        self
        """
        self._refuse_dask(X, y, sample_weight)
        with validation.unchanged_on_failure(self):
            X = self._rows(X, reset=True)
            y = validation.check_real_targets(y, len(X))
            weight = validation.check_weight(sample_weight, len(y))
            kept = np.ones(len(y), dtype=bool) if weight is None else weight > 0.0
            weight = self._felt(None if weight is None else weight[kept])
            targets = y.reshape(len(y), -1)[kept]
            self._mean = np.average(targets, axis=0, weights=weight)
            spread = np.sqrt(np.average((targets - self._mean) ** 2, axis=0, weights=weight))
            self._scale = np.where(spread > 0.0, spread, 1.0)
            self._one_output = y.ndim == 1
            Y = (targets - self._mean) / self._scale
            strata = np.zeros(len(Y), dtype=np.intp)
            average = self._learn(X[kept], Y, weight, self._splits(X, y, kept), strata)
            seen = average.honest & ~np.isnan(average.left_out[:, 0])
            of_seen = None if weight is None else weight[seen]
            self.best_score_ = _explained(Y[seen], average.left_out[seen], of_seen)
            predictions = np.empty((len(X), Y.shape[1]))
            predictions[kept] = average.left_out
            if not kept.all():
                predictions[~kept] = self._answers_to(X[~kept])
            self.loo_decision_function_ = self._in_units(predictions)
            self._errors = Y - average.left_out
            self._weight = weight
        return self

    def _in_units(self, answers: Array) -> Array:
        predictions = answers * self._scale + self._mean
        return predictions[:, 0] if self._one_output else predictions

    @where_rows_are
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction for each row.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return self._in_units(self._answers(X))

    @where_rows_are
    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[Any]:
        """Return intervals that hold the targets of new rows with about the given probability.

        They are those of the jackknife+: quantiles, over all rows of the training set, of what the
        networks learned without that row say, plus or minus the error they make on it. For
        networks that no target shaped, of infinite width, they hold at least ``2 coverage - 1`` of
        new targets whatever the distribution. Others are treated alike, with errors from folds,
        or with what they say learned from all rows. All hold about `coverage` in the mean.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.
        coverage : float, default=0.9
            The probability.

        Returns
        -------
        ndarray of shape (n_samples, 2), or (n_samples, n_outputs, 2) for several outputs
            The lower and the upper ends.
        """
        coverage = parameters.check_share("coverage", coverage)
        answers = self._answers(X)
        X = self._rows(X, reset=False)
        ends = jackknife_plus(self.estimators_, answers, X, self._errors, self._weight, coverage)
        ends = ends * self._scale[:, None] + self._mean[:, None]
        return ends[:, 0] if self._one_output else ends


def _explained(Y: Array, answers: Array, weight: Array | None) -> float:
    """Return R^2, which a single row does not have."""
    return float(r2_score(Y, answers, sample_weight=weight)) if len(Y) > 1 else float("nan")
