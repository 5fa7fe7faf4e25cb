"""Estimators that select all hyper-parameters by leave-one-out: averages of networks."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from ._estimator import validation
from ._estimator.dask_methods import lazy_for_dask, passes_over
from ._estimator.ensemble_base import KARNetworkCV
from ._estimator.scoring import Scored
from ._estimator.targets import ClassTargets, check_two_classes, in_columns, weighted_rows
from ._model.evidence import FitRows
from ._model.fitted import FittedModel
from ._model.output import ClassOutput, NumberOutput
from ._rows.streamed import Passes, Raw
from ._util.checks import check_share
from ._util.progress import Report
from .learner import indicator

__all__ = ["KARClassifierCV", "KARRegressorCV"]


class KARClassifierCV(Scored, ClassifierMixin, KARNetworkCV):
    """Classifier that averages infinitely wide networks, selected and evaluated by left-out rows.

    Each network minimises ``sum_i w_i ||b + h(x_i) W - e_i||^2 + alpha ||W||^2`` for the class
    indicator e and hidden units h(x), which are an infinitely wide random layer under an input
    metric. One search selects views of the inputs, kernels and rounds of the metric by the squared
    error of rows that shaped nothing, and scales and ridges by the exact leave-one-out error. It
    has up to five starts, each with other rows and metrics of its own. The average has a network of
    every start for each kernel that is nearly the best. Trees divide long tables, and each of their
    leaves has a solution of its own. No parameter needs to be set, and inputs need not be scaled.

    Gaps in a column of numbers are filled with its median, and an indicator of gaps is added. A
    categorical column, or one of text, becomes an indicator for each of its 100 most frequent
    categories. A category that was not seen in `fit` has none of them. A date becomes the time, the
    month, the day of the week and the hour.

    Parameters
    ----------
    n_estimators : int, default=20
        The largest number of networks in the average: the number of kernels times that of starts.
        There are fewer if few kernels are nearly the best, in long or wide tables, and with a short
        time budget.
    alphas : array-like, default=None
        The ridges to select from, relative to the diagonal of the kernel matrix, which is 1. By
        default 19 ridges from 1e-7 to 100.
    width : int, default=None
        The largest number of rows of a kernel matrix, with the square of which the cost of a row
        grows. Trees divide tables of more rows into leaves of at most this number of rows. Leaves
        may be smaller, so that predictions stay fast. None means 4000, and 60000 on a GPU.
    cv : int, splitter or iterable, default=None
        The rows that are left out together. None leaves out one row at a time. With other values,
        which are as in scikit-learn, each set of test rows is left out as a group, in closed form,
        and no start uses rows of a group both to shape its metrics and to judge them. Rows that are
        in no test set have no left-out prediction.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. Sample weights are multiplied by them.
    time_budget : float, default=None
        The time in seconds that `fit` should not exceed. With a short budget, fewer candidates are
        tried, and fewer or smaller networks are fitted.
    random_state : int, RandomState instance or None, default=None
        The random number generator, or its seed, from which folds, samples of rows and trees are
        drawn.
    device : str, default=None
        The device to compute on. None is NumPy on the CPU. With "cuda", or another device of
        PyTorch, the search, the fit and predictions compute there. Fitted attributes and
        predictions are NumPy arrays in either case. This needs ``karnet[gpu]``.
    verbose : int, default=0
        With 1 or more, `fit` prints a line after each step: the rows that it used, the least
        squared error so far, the time since the start, and an estimate of the time left.

    Attributes
    ----------
    model_ : FittedModel
        The fitted average as a value, which all methods and the following attributes read.
    estimators_ : list
        The networks in the average, each with its `shape`, `alpha_`, `activation`,
        `hidden_layer_sizes`, `dual_coef_`, `intercept_` and `X_fit_`. `dual_coef_` and
        `intercept_` are lists with an array for each tree. A short table has one tree of one leaf.
    weights_ : ndarray of shape (n_networks,)
        The weights of the networks, equal for all networks of a kernel. They are not negative. If
        their sum is not 1, the mean of the targets has the rest.
    best_score_ : float
        The accuracy of the average's left-out predictions.
    cv_results_ : dict of ndarray
        The candidates of the search, best first, as a dict that pandas converts to a table.
    loo_decision_function_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        The left-out decision function of each row: the average over networks whose metric the row
        did not shape, fitted without it. It is NaN for rows without such a network, which long or
        wide tables and averages of few networks may have, and with `cv` for rows in no test set.
    feature_importances_ : ndarray of shape (n_features,)
        The rise of the left-out error when the values of a feature are shuffled, as a share of the
        sum over all features. The error is the squared error of a regressor, and the error rate of
        a classifier, in which a row counts as wrong in part if the score of its class differs from
        the largest other score by less than a width of at most 0.5, which is chosen for the table.
        Rises of less than two standard errors are 0. All indicators of a column are shuffled
        together. Features that say the same share their importance. It is computed when it is first
        asked for, from up to 2000 rows.
    feature_importances_se_ : ndarray of shape (n_features,)
        The standard errors of `feature_importances_`.
    input_metric_ : ndarray of shape (n_features,)
        The diagonal of the input metric: how strongly predictions change with each feature in units
        of the views, all indicators of a column together. It sums to one.
    knee_ : float
        Probabilities are the softmax of ``log(softplus(f / knee_)) / temperature_`` for scores f
        of the classes, and of ``f / temperature_`` if the knee is infinite.
    temperature_ : float
        The number by which logits are divided before the softmax.
    doubt_ : float
        The probability that is spread equally over all classes: that of half a row.
    classes_ : ndarray
        The classes, sorted.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str
        Names of the features seen during `fit`, if all of them are strings.

    References
    ----------
    A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in
    neural networks and backpropagation-free machine learning models", Science, 2024.

    M. Sadinle, J. Lei and L. Wasserman, "Least ambiguous set-valued classifiers with bounded error
    levels", 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from karnet import KARClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> net = KARClassifierCV(random_state=0).fit(X, y)
    >>> net.best_score_ > 0.95
    True
    """

    model_: FittedModel[ClassOutput]

    def __init__(
        self,
        *,
        n_estimators: int = 20,
        alphas: ArrayLike | None = None,
        width: int | None = None,
        cv: Any = None,
        class_weight: dict[Any, float] | str | None = None,
        time_budget: float | None = None,
        random_state: Any = None,
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            alphas=alphas,
            width=width,
            cv=cv,
            time_budget=time_budget,
            random_state=random_state,
            device=device,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Select networks and fit them.

        Parameters
        ----------
        X : array-like, data frame, CSR matrix or Dask collection of shape (n_samples, n_features)
            The inputs. A data frame of pandas or polars may have gaps, categories, text and dates,
            and an array may have NaN. With a Dask array or data frame, which must hold numbers, y
            and the weights must be Dask collections too. The networks keep the rows in memory, in
            single precision.
        y : array-like of shape (n_samples,)
            The classes, of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights. A weight of 0 leaves the row out.

        Returns
        -------
        self
        """
        return self._fit(passes_over(X, y, sample_weight) or (X, y, sample_weight))

    def _fit(self, source: Passes | Raw, report: Report | None = None) -> Self:
        """Fit; `report` is called after each step, whatever `verbose` is."""
        with validation.unchanged_on_failure(self):
            targets = ClassTargets(self.class_weight)
            encoder, inputs, y, sample_weight = self._read(source, targets.check)
            coding, kept, codes, weight = targets.coded(np.arange(len(inputs)), y, sample_weight)
            self.classes_ = coding.classes
            check_two_classes(self.classes_)
            splits = self._splits(source, inputs, y, kept, targets.check)
            fit = FitRows(encoder, inputs, kept, codes, self._clipped(weight))
            Y = indicator(codes, len(self.classes_))
            average, problem = self._average(fit, Y, splits, codes, report)
            output = ClassOutput.of(codes, average.left_out, average.honest, fit.weight)
            self._keep(average, problem, output, fit)
        return self

    knee_ = property(attrgetter("model_.output.calibration.knee"))
    temperature_ = property(attrgetter("model_.output.calibration.temperature"))
    doubt_ = property(attrgetter("model_.output.calibration.doubt"))

    @lazy_for_dask
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Predict a score for each class.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            The mean output of the networks, whose target is 1 for the class of a row and 0 for all
            others. For two classes, the score of the second class less that of the first.
        """
        return self._of_rows(FittedModel.decision, X)

    @lazy_for_dask
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = self._of_rows(FittedModel.scores, X).argmax(axis=1)
        return np.asarray(self.classes_[codes])

    @lazy_for_dask
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Predict probabilities of the classes, calibrated on left-out predictions.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._of_rows(FittedModel.probabilities, X)

    @lazy_for_dask
    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[Any]:
        """Predict sets of classes that contain the class of a row with about a given probability.

        They are conformal sets: those classes whose probability is at least a threshold, which the
        left-out probabilities of the classes of the training set reach with the given frequency.
        One more row, which does not reach it, is counted. Sample weights are counts, and rows
        without a left-out prediction do not count. On average over tables, sets contain about
        `coverage` of new classes, or more if single classes do. A set is never empty, and contains
        all classes if n rows are too few for the coverage, which is then above ``n / (n + 1)``.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.
        coverage : float, default=0.9
            The probability.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes)
            Whether each class is in the set, in the order of `classes_`.
        """
        return self._of_rows(FittedModel.sets, X, check_share("coverage", coverage))


class KARRegressorCV(Scored, RegressorMixin, KARNetworkCV):
    """Regressor that averages infinitely wide networks, selected and evaluated by left-out rows.

    Each network minimises ``sum_i w_i ||b + h(x_i) W - y_i||^2 + alpha ||W||^2`` for hidden units
    h(x), which are an infinitely wide random layer under an input metric. They are selected as
    those of `KARClassifierCV`. No parameter needs to be set, and inputs need not be scaled.

    Gaps, categories and dates in the inputs are encoded as in `KARClassifierCV`.

    Parameters
    ----------
    n_estimators : int, default=20
        The largest number of networks in the average: the number of kernels times that of starts.
        There are fewer if few kernels are nearly the best, in long or wide tables, and with a short
        time budget.
    alphas : array-like, default=None
        The ridges to select from, relative to the diagonal of the kernel matrix, which is 1. By
        default 19 ridges from 1e-7 to 100.
    width : int, default=None
        The largest number of rows of a kernel matrix, with the square of which the cost of a row
        grows. Trees divide tables of more rows into leaves of at most this number of rows. Leaves
        may be smaller, so that predictions stay fast. None means 4000, and 60000 on a GPU.
    cv : int, splitter or iterable, default=None
        The rows that are left out together. None leaves out one row at a time. With other values,
        which are as in scikit-learn, each set of test rows is left out as a group, in closed form,
        and no start uses rows of a group both to shape its metrics and to judge them. Rows that are
        in no test set have no left-out prediction.
    time_budget : float, default=None
        The time in seconds that `fit` should not exceed. With a short budget, fewer candidates are
        tried, and fewer or smaller networks are fitted.
    random_state : int, RandomState instance or None, default=None
        The random number generator, or its seed, from which folds, samples of rows and trees are
        drawn.
    device : str, default=None
        The device to compute on. None is NumPy on the CPU. With "cuda", or another device of
        PyTorch, the search, the fit and predictions compute there. Fitted attributes and
        predictions are NumPy arrays in either case. This needs ``karnet[gpu]``.
    verbose : int, default=0
        With 1 or more, `fit` prints a line after each step: the rows that it used, the least
        squared error so far, the time since the start, and an estimate of the time left.

    Attributes
    ----------
    model_ : FittedModel
        The fitted average as a value, which all methods and the following attributes read.
    estimators_ : list
        The networks in the average, each with its `shape`, `alpha_`, `activation`,
        `hidden_layer_sizes`, `dual_coef_`, `intercept_` and `X_fit_`. `dual_coef_` and
        `intercept_` are lists with an array for each tree. A short table has one tree of one leaf.
        They predict in units of the standard deviation of y.
    weights_ : ndarray of shape (n_networks,)
        The weights of the networks, equal for all networks of a kernel. They are not negative. If
        their sum is not 1, the mean of the targets has the rest.
    best_score_ : float
        The R^2 of the average's left-out predictions.
    cv_results_ : dict of ndarray
        The candidates of the search, best first, as a dict that pandas converts to a table.
    loo_decision_function_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The left-out prediction of each row: the average over networks whose metric the row did not
        shape, fitted without it. It is NaN for rows without such a network, which long or wide
        tables and averages of few networks may have, and with `cv` for rows in no test set.
    feature_importances_ : ndarray of shape (n_features,)
        The rise of the left-out error when the values of a feature are shuffled, as a share of the
        sum over all features. The error is the squared error of a regressor, and the error rate of
        a classifier, in which a row counts as wrong in part if the score of its class differs from
        the largest other score by less than a width of at most 0.5, which is chosen for the table.
        Rises of less than two standard errors are 0. All indicators of a column are shuffled
        together. Features that say the same share their importance. It is computed when it is first
        asked for, from up to 2000 rows.
    feature_importances_se_ : ndarray of shape (n_features,)
        The standard errors of `feature_importances_`.
    input_metric_ : ndarray of shape (n_features,)
        The diagonal of the input metric: how strongly predictions change with each feature in units
        of the views, all indicators of a column together. It sums to one.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str
        Names of the features seen during `fit`, if all of them are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from karnet import KARRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> net = KARRegressorCV(random_state=0).fit(X, y)
    >>> net.best_score_ > 0.45
    True
    """

    model_: FittedModel[NumberOutput]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Select networks and fit them.

        Parameters
        ----------
        X : array-like, data frame, CSR matrix or Dask collection of shape (n_samples, n_features)
            The inputs. A data frame of pandas or polars may have gaps, categories, text and dates,
            and an array may have NaN. With a Dask array or data frame, which must hold numbers, y
            and the weights must be Dask collections too. The networks keep the rows in memory, in
            single precision.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The targets.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights. A weight of 0 leaves the row out.

        Returns
        -------
        self
        """
        return self._fit(passes_over(X, y, sample_weight) or (X, y, sample_weight))

    def _fit(self, source: Passes | Raw, report: Report | None = None) -> Self:
        """Fit; `report` is called after each step, whatever `verbose` is."""
        with validation.unchanged_on_failure(self):
            check = validation.check_real_targets
            encoder, inputs, y, sample_weight = self._read(source, check)
            kept, numbers, weight = weighted_rows(check, np.arange(len(inputs)), y, sample_weight)
            targets, weight = in_columns(numbers), self._clipped(weight)
            output = NumberOutput.of(targets, weight, numbers.ndim == 1)
            Y, strata = output.standardised(targets), np.zeros(len(targets), dtype=np.intp)
            splits = self._splits(source, inputs, y, kept, check)
            fit = FitRows(encoder, inputs, kept, Y, weight)
            self._keep(*self._average(fit, Y, splits, strata, report), output, fit)
        return self

    @lazy_for_dask
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the targets of each row.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs), like the y of `fit`
        """
        return self._of_rows(FittedModel.decision, X)

    @lazy_for_dask
    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[Any]:
        """Predict intervals that contain the targets of new rows with about a given probability.

        They are the prediction plus or minus a quantile of the sizes of left-out errors, which is
        the same for all rows. On average, the intervals contain about `coverage` of new targets.
        There is no guarantee for every distribution, because the judging rows have a part in the
        selection of kernels, scales and ridges.

        If n rows are too few for the coverage, which is then above ``n / (n + 1)``, the interval of
        the largest error is widened as that of Student's distribution would be. Every interval
        contains its prediction.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_samples, n_features)
            The inputs.
        coverage : float, default=0.9
            The probability.

        Returns
        -------
        ndarray of shape (n_samples, 2), or (n_samples, n_outputs, 2) for several outputs
            The lower and the upper ends.
        """
        return self._of_rows(FittedModel.intervals, X, check_share("coverage", coverage))
