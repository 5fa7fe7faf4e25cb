"""Estimators that settle everything themselves: averages of networks chosen by leave-one-out."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.metrics import r2_score
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from . import _validation as validation
from ._average import Average, Limits, learn_average
from ._intervals import jackknife_plus
from ._members import Splits, Targets
from ._threads import ONE_THREAD
from .activations import Array
from .learner import indicator
from .loo import accuracy, log_loss

__all__ = ["KARClassifierCV", "KARRegressorCV"]

# Ridges as shares of the mean eigenvalue of the hidden layer's products.
RIDGES = np.logspace(-6, 2, 17)
# The least and the largest temperature tried, as powers of e.
COLDEST, HOTTEST = -4.0, 2.0


class KARNetworkCV(BaseEstimator):
    """What the classifier and the regressor share: the parameters, and how members are learned."""

    def __init__(
        self,
        *,
        n_estimators: int = 8,
        alphas: ArrayLike | None = None,
        width: int = 1500,
        cv: Any = None,
        time_budget: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.alphas = alphas
        self.width = width
        self.cv = cv
        self.time_budget = time_budget
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _limits(self) -> Limits:
        seconds = np.inf
        if self.time_budget is not None:
            seconds = validation.check_positive("time_budget", self.time_budget)
        return Limits(
            validation.check_positive_integer("n_estimators", self.n_estimators),
            validation.check_positive_integer("width", self.width),
            seconds,
        )

    def _ridges(self) -> Array:
        if self.alphas is None:
            return RIDGES
        ridges = validation.as_real_array("alphas", self.alphas).ravel()
        if not len(ridges) or not (np.isfinite(ridges) & (ridges > 0.0)).all():
            raise ValueError(f"alphas={self.alphas!r} must hold positive, finite numbers.")
        return np.sort(ridges)

    def _splits(self, X: Array, y: NDArray[Any], kept: NDArray[np.bool_]) -> Splits:
        """Return the rows that are left out together, counted among those kept."""
        if self.cv is None:
            return None
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        place = np.cumsum(kept) - 1
        tests = [np.asarray(test) for _, test in splitter.split(X, y)]
        return [place[test[kept[test]]] for test in tests if kept[test].any()]

    def _learn(
        self,
        X: Array,
        Y: Array,
        weight: Array | None,
        splits: Splits,
        strata: NDArray[np.intp],
    ) -> Average:
        """Learn from rows of positive weight."""
        limits, ridges = self._limits(), self._ridges()
        if len(X) < 2:
            raise ValueError(f"X must have at least two rows, but has {len(X)} (n_samples=1).")
        rng = validation.check_generator(self.random_state)
        weights = np.ones(len(X)) if weight is None else weight
        targets = Targets(Y, weights, ridges, splits)
        with ONE_THREAD():
            average = learn_average(X, targets, strata, limits, rng)
        self.estimators_ = average.members
        self.cv_results_ = _results(average)
        self.feature_importances_ = average.importances(X, weights)
        return average

    def _answers(self, X: Any) -> Array:
        check_is_fitted(self)
        X = _dense(validation.check_inputs(self, X, reset=False))
        with ONE_THREAD():
            return np.asarray(sum(member(X) for member in self.estimators_) / len(self.estimators_))


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def _results(average: Average) -> dict[str, NDArray[Any]]:
    """Return what was tried, one column for each property; pandas reads it."""
    chosen = {member.shape for member in average.members}
    columns: dict[str, list[Any]] = {
        "view": [member.shape.view for member in average.tried],
        "kernel": [member.shape.kernel for member in average.tried],
        "activation": [member.activation for member in average.tried],
        "depth": [member.shape.depth for member in average.tried],
        "scale": [member.scale for member in average.tried],
        "metric_rounds": [member.shape.rounds for member in average.tried],
        "alpha": [member.alpha_ for member in average.tried],
        "squared_error": [member.error for member in average.tried],
        "averaged": [member.shape in chosen for member in average.tried],
    }
    return {name: np.array(values) for name, values in columns.items()}


class KARClassifierCV(ClassifierMixin, KARNetworkCV):
    """Classifier that averages a few wide networks, chosen and judged by leave-one-out.

    Minimises, for each member, ``sum_i w_i ||b + h(x_i) W - e_i||^2 + alpha ||W||^2`` for the class
    indicator e and hidden units h(x) that are infinitely wide random layers (of finite width for
    tables of more than `width` rows). Views of the inputs, activations, scales, depths, ridges and
    rounds of the input metric are chosen by the exact leave-one-out squared error or, where labels
    shaped the hidden layer, by folds that had no part in that. Nothing needs to be set, and inputs
    need not be scaled.

    Parameters
    ----------
    n_estimators : int, default=8
        Most networks that are averaged; those much worse than the best are not.
    alphas : array-like, default=None
        Ridges to choose from, as shares of the mean eigenvalue of the products of hidden layers.
        None: 17 from 1e-6 to 100.
    width : int, default=1500
        Up to so many rows hidden layers are infinitely wide, and learning costs the cube of the
        number of rows. Beyond, they have so many units.
    cv : int, splitter or iterable, default=None
        What networks are judged by: None for leave-one-out, or as in scikit-learn.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with those of the rows.
    time_budget : float, default=None
        Seconds that `fit` should take at most; less is tried where it is short.
    random_state : int, RandomState instance or None, default=None
        What folds, and samples of long tables, are drawn with.

    Attributes
    ----------
    estimators_ : list
        The networks that are averaged, each with its `shape`, `alpha_`, `activation`,
        `hidden_layer_sizes`, `dual_coef_`, `intercept_` and `X_fit_`.
    best_score_ : float
        The accuracy of the average, of rows it was learned without.
    cv_results_ : dict of ndarray
        What was tried, the best first: pandas makes a table of it.
    loo_decision_function_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        The decision function of each row, learned without it.
    feature_importances_ : ndarray of shape (n_features,)
        The diagonal of the input metric: how strongly the answers change with each feature.
    temperature_ : float
        What the decision function is divided by before its softmax is a probability.
    classes_ : ndarray
        The classes, sorted.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str
        Their names, if all are strings.

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
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            alphas=alphas,
            width=width,
            cv=cv,
            time_budget=time_budget,
            random_state=random_state,
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
        with validation.unchanged_on_failure(self):
            X = _dense(validation.check_inputs(self, X, reset=True))
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
            weight = None if weight is None else weight[kept]
            average = self._learn(X[kept], Y, weight, self._splits(X, y, kept), codes)
            self._judge(average, codes, weight)
            decision = np.empty((len(X), len(self.classes_)))
            decision[kept] = average.left_out
            if not kept.all():
                decision[~kept] = average(X[~kept])
            self.loo_decision_function_ = _of_two(decision)
        return self

    def _judge(self, average: Average, codes: NDArray[np.intp], weight: Array | None) -> None:
        seen = average.honest & ~np.isnan(average.left_out[:, 0])
        left_out, codes = average.left_out[seen], codes[seen]
        weight = None if weight is None else weight[seen]
        self.best_score_ = accuracy(codes, left_out, weight)
        found = minimize_scalar(
            lambda t: log_loss(codes, left_out, np.exp(t), weight),
            bounds=(COLDEST, HOTTEST),
            method="bounded",
        )
        self.temperature_ = float(np.exp(found.x))

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
        return np.asarray(softmax(self._answers(X) / self.temperature_, axis=1))


def _of_two(decision: Array) -> Array:
    return decision[:, 1] - decision[:, 0] if decision.shape[1] == 2 else decision


class KARRegressorCV(RegressorMixin, KARNetworkCV):
    """Regressor that averages a few wide networks, chosen and judged by leave-one-out.

    Minimises, for each member, ``sum_i w_i ||b + h(x_i) W - y_i||^2 + alpha ||W||^2`` for hidden
    units h(x) that are infinitely wide random layers (of finite width for tables of more than
    `width` rows). Views of the inputs, activations, scales, depths, ridges and rounds of the input
    metric are chosen by the exact leave-one-out squared error or, where targets shaped the hidden
    layer, by folds that had no part in that. Nothing needs to be set, and inputs need not be
    scaled.

    Parameters
    ----------
    n_estimators : int, default=8
        Most networks that are averaged; those much worse than the best are not.
    alphas : array-like, default=None
        Ridges to choose from, as shares of the mean eigenvalue of the products of hidden layers.
        None: 17 from 1e-6 to 100.
    width : int, default=1500
        Up to so many rows hidden layers are infinitely wide, and learning costs the cube of the
        number of rows. Beyond, they have so many units.
    cv : int, splitter or iterable, default=None
        What networks are judged by: None for leave-one-out, or as in scikit-learn.
    time_budget : float, default=None
        Seconds that `fit` should take at most; less is tried where it is short.
    random_state : int, RandomState instance or None, default=None
        What folds, and samples of long tables, are drawn with.

    Attributes
    ----------
    estimators_ : list
        The networks that are averaged, each with its `shape`, `alpha_`, `activation`,
        `hidden_layer_sizes`, `dual_coef_`, `intercept_` and `X_fit_`. They answer in units of the
        standard deviation of y.
    best_score_ : float
        The R^2 of the average, of rows it was learned without.
    cv_results_ : dict of ndarray
        What was tried, the best first: pandas makes a table of it.
    loo_decision_function_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The prediction for each row, learned without it.
    feature_importances_ : ndarray of shape (n_features,)
        The diagonal of the input metric: how strongly the answers change with each feature.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str
        Their names, if all are strings.

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
        with validation.unchanged_on_failure(self):
            X = _dense(validation.check_inputs(self, X, reset=True))
            y = validation.check_real_targets(y, len(X))
            weight = validation.check_weight(sample_weight, len(y))
            kept = np.ones(len(y), dtype=bool) if weight is None else weight > 0.0
            weight = None if weight is None else weight[kept]
            targets = y.reshape(len(y), -1)[kept]
            self._mean = np.average(targets, axis=0, weights=weight)
            spread = np.sqrt(np.average((targets - self._mean) ** 2, axis=0, weights=weight))
            self._scale = np.where(spread > 0.0, spread, 1.0)
            self._one_output = y.ndim == 1
            Y = (targets - self._mean) / self._scale
            strata = np.zeros(len(Y), dtype=np.intp)
            average = self._learn(X[kept], Y, weight, self._splits(X, y, kept), strata)
            seen = average.honest & ~np.isnan(average.left_out[:, 0])
            if seen.sum() > 1:
                of_seen = None if weight is None else weight[seen]
                self.best_score_ = float(
                    r2_score(Y[seen], average.left_out[seen], sample_weight=of_seen)
                )
            else:
                self.best_score_ = float("nan")
            predictions = np.empty((len(X), Y.shape[1]))
            predictions[kept] = average.left_out
            if not kept.all():
                predictions[~kept] = average(X[~kept])
            self.loo_decision_function_ = self._in_units(predictions)
            self._errors = Y - average.left_out
            self._weight = weight
        return self

    def _in_units(self, answers: Array) -> Array:
        predictions = answers * self._scale + self._mean
        return predictions[:, 0] if self._one_output else predictions

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

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[Any]:
        """Return intervals that hold the targets of new rows with about the given probability.

        They are those of the jackknife+: quantiles, over all rows of the training set, of what the
        networks learned without that row say, plus or minus the error they make on it. It
        is at least ``2 coverage - 1`` for any distribution, and about `coverage` in practice.

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
        answers = self._answers(X)
        if not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage={coverage!r} must lie between 0 and 1.")
        X = _dense(validation.check_inputs(self, X, reset=False))
        ends = jackknife_plus(self.estimators_, answers, X, self._errors, self._weight, coverage)
        ends = ends * self._scale[:, None] + self._mean[:, None]
        return ends[:, 0] if self._one_output else ends


def _explained(Y: Array, answers: Array, weight: Array | None) -> float:
    """Return R^2, which a single row does not have."""
    return float(r2_score(Y, answers, sample_weight=weight)) if len(Y) > 1 else float("nan")
