"""The KAR network as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import namespace as arrays
from ._estimator import validation
from ._estimator.docs import documented
from ._estimator.first_pass import AsCodes, AsTargets, Scan
from ._estimator.network_base import AnyActivation
from ._estimator.partial_fit import ClassUpdates, NumberUpdates
from ._estimator.scoring import Classifies, Regresses, passes_over, where_rows_are
from ._estimator.targets import class_targets
from ._lstsq.statistics import Moments
from ._rows.memory import Rows, Table
from ._rows.streamed import Passes
from .learner import Plan

__all__ = ["KARClassifier", "KARRegressor"]

# Decisions beyond this are certain to all digits of a probability, and larger ones may overflow.
CERTAIN = 1e30


@documented
class KARClassifier(Classifies, ClassUpdates):
    """Classifier that solves every layer of a neural network by minimum-norm least squares.

    For k = 1 ... n, ``||A_k W_k - B_k||^2 + alpha ||V_k||^2`` is minimised, then the norm of W_k,
    where ``A_k = [1, f(A_{k-1} W_{k-1})]`` is what the layer sees and B_k the class
    indicator pulled back through the inverse activations and the initial weights above. There is
    no gradient, no learning rate and no iteration.

    Parameters
    ----------
    {parameters}
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with those of the rows.
    {random_state}
    {device}

    Attributes
    ----------
    {attributes}
    classes_ : ndarray
        The classes, sorted.
    {features}

    Notes
    -----
    A pulled-back network sees the input only through as many linear scores as there are classes, so
    it cannot learn what no linear score helps with; random hidden layers can.

    Class and sample weights act only as long as the network does not fit every row exactly.

    {notes}

    References
    ----------
    {references}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> from karnet import KARClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> net = make_pipeline(MinMaxScaler(), KARClassifier((10,), random_state=0)).fit(X, y)
    >>> net.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: Sequence[float] = (100,),
        *,
        activation: AnyActivation = "logit",
        output_activation: AnyActivation | None = None,
        hidden: str = "pullback",
        alpha: float = 0.0,
        rcond: float | None = None,
        solver: str = "auto",
        n_sweeps: int = 1,
        n_rounds: int = 2,
        fit_intercept: bool = True,
        direct_links: bool = False,
        init: str | Sequence[ArrayLike] = "normal",
        class_weight: dict[Any, float] | str | None = None,
        random_state: Any = None,
        device: str | None = None,
    ) -> None:
        super().__init__(
            hidden_layer_sizes,
            activation=activation,
            output_activation=output_activation,
            hidden=hidden,
            alpha=alpha,
            rcond=rcond,
            solver=solver,
            n_sweeps=n_sweeps,
            n_rounds=n_rounds,
            fit_intercept=fit_intercept,
            direct_links=direct_links,
            init=init,
            random_state=random_state,
            device=device,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the network.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            The inputs. With a Dask array or data frame y and weights are such too, and all of them
            stay where they are.
        y : array-like of shape (n_samples,)
            The classes, of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A weight of k is k copies of the row, one of 0 leaves it out.
            Weights only act where the network cannot fit all rows exactly.

        Returns
        -------
        self
        """
        passes = passes_over(X, y, sample_weight)
        if passes is not None:
            return self._fit_passes(passes)
        with validation.unchanged_on_failure(self):
            plan, sizes = self._plan(self._default_output)
            X = validation.check_inputs(self, X, reset=True, finite=self.device is None)
            self.classes_, rows = self._coded(X, y, sample_weight)
            self._fit_classes(rows, plan, sizes)
        return self

    def _coded(self, X: Any, y: Any, sample_weight: Any) -> tuple[NDArray[Any], Rows]:
        """Return the classes, and the rows of a weight above 0 with indices into these."""
        weighted = sample_weight is not None or self.class_weight is not None
        if arrays.is_foreign(X) and arrays.is_foreign(y) and not weighted:
            classes, codes = arrays.unique(arrays.namespace(X).reshape(arrays.like(X, y), (-1,)))
            validation.check_labels(arrays.to_numpy(classes), classes.shape[0])
            validation.check_rows(codes, X.shape[0])
            return classes, Rows(X, codes)
        y = validation.check_labels(y, X.shape[0])
        weight = validation.check_weight(sample_weight, len(y))
        X, y, weight = validation.without_zeros(X, y, weight)
        weight = validation.check_class_weight(self.class_weight, y, weight)
        X, y, weight = validation.without_zeros(X, y, weight)
        classes, codes = arrays.unique(y)
        if arrays.is_foreign(X) and classes.dtype.kind in "biuf":
            classes = arrays.like(X, classes)
        return classes, Rows(
            X, arrays.like(X, codes), None if weight is None else arrays.like(X, weight)
        )

    def _fit_passes(self, passes: Passes) -> Self:
        with validation.unchanged_on_failure(self):
            plan, sizes = self._plan(self._default_output)
            scan = Scan.through(passes, None)
            self._take_names(scan.n_features, passes.names)
            labels = scan.labels
            assert labels is not None
            weights = validation.weights_of_classes(self.class_weight, labels.values, labels.totals)
            weighted = scan.weighted or self.class_weight is not None
            prepare = AsCodes(labels, weights, weighted)
            self.classes_ = prepare.classes
            self._fit_classes(scan.table(passes, prepare), plan, sizes)
        return self

    def _fit_classes(self, rows: Table, plan: Plan, sizes: tuple[int, ...]) -> None:
        self._fit_network(rows, plan, *self._start(plan, sizes, rows.n_features))

    @where_rows_are
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return how strongly the network answers with each class.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For more than two classes the network's output G, which was taught 1 for the class of a
            row and 0 for all others. For two classes one column, -1 and 1 where
            the output is what was taught for ``classes_[0]`` and ``classes_[1]``.
        """
        return self._decision(self._inputs(X, "decision_function"))

    def _decision(self, X: Any) -> Any:
        if self.classes_.shape[0] > 2:
            return arrays.narrowed(self._outputs(X), X.dtype)
        f = self.activations_[-1]
        low, high = f.phi(class_targets(f, 2))[:, 0].tolist()
        with np.errstate(over="ignore"):
            decision = (2.0 * self._scores(X) - low - high) / (high - low)
        return arrays.narrowed(decision, X.dtype)[:, 0]

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
        decision = self._decision(self._inputs(X, "predict"))
        xp = arrays.namespace(decision)
        if decision.ndim == 2:
            codes = xp.argmax(decision, axis=1)
        else:
            codes = arrays.as_type(decision > 0.0, xp.int64)
        if arrays.is_foreign(codes) and not arrays.is_foreign(self.classes_):
            codes = arrays.to_numpy(codes)  # words are NumPy's
        return arrays.selected(self.classes_, codes)

    @where_rows_are
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return probabilities of the classes: rising with the decision function, not calibrated.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The logistic function of twice the decision function for two classes, its softmax times
            4 for more: the scale at which a probability near 1/2 changes as the taught
            output of 0 or 1 does.
        """
        decision = self._decision(self._inputs(X, "predict_proba"))
        xp = arrays.namespace(decision)
        decision = xp.clip(decision, -CERTAIN, CERTAIN)
        if decision.ndim == 1:
            return arrays.expit(
                2.0 * arrays.joined([-decision[:, None], decision[:, None]], axis=1)
            )
        raised = xp.exp(4.0 * (decision - xp.max(decision, axis=1, keepdims=True)))
        return raised / xp.sum(raised, axis=1, keepdims=True)


@documented
class KARRegressor(Regresses, NumberUpdates):
    """Regressor that solves every layer of a neural network by minimum-norm least squares.

    For k = 1 ... n, ``||A_k W_k - B_k||^2 + alpha ||V_k||^2`` is minimised, then the norm of W_k,
    where ``A_k = [1, f(A_{k-1} W_{k-1})]`` is what the layer sees and B_k the target
    pulled back through the inverse activations and the initial weights above. There is no gradient,
    no learning rate and no iteration.

    Parameters
    ----------
    {parameters}
    {random_state}
    {device}

    Attributes
    ----------
    {attributes}
    {features}

    Notes
    -----
    With pull-back the initial output weights are drawn for targets of mean 0 and variance 1 and
    then brought to the unit and offset of y, since inverse activations saturate otherwise.

    A pulled-back network sees the input through nearly as few linear scores as there are outputs,
    since the inverse activation is nearly linear over its targets; a wide one with a single output
    tends to the linear fit. Random hidden layers do not.

    Sample weights act only as long as the network does not fit every row exactly.

    {notes}

    References
    ----------
    {references}

    Examples
    --------
    >>> import numpy as np
    >>> from karnet import KARRegressor
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> net = KARRegressor((20,), hidden="random", random_state=0).fit(X, np.sin(6 * X[:, 0]))
    >>> net.score(X, np.sin(6 * X[:, 0])) > 0.99
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        # A few random units need not explain anything: they promise a fit only when wide.
        tags.regressor_tags.poor_score = self.hidden != "pullback"
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the network.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            The inputs. With a Dask array or data frame y and weights are such too, and all of them
            stay where they are.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A weight of k is k copies of the row, one of 0 leaves it out.
            Weights only act where the network cannot fit all rows exactly.

        Returns
        -------
        self
        """
        passes = passes_over(X, y, sample_weight)
        if passes is not None:
            return self._fit_passes(passes)
        with validation.unchanged_on_failure(self):
            plan, sizes = self._plan(self._default_output)
            X = validation.check_inputs(self, X, reset=True, finite=self.device is None)
            rows, moments = self._numbers(X, y, sample_weight, plan)
            self._fit_targets(rows, plan, sizes, moments)
        return self

    def _fit_passes(self, passes: Passes) -> Self:
        with validation.unchanged_on_failure(self):
            plan, sizes = self._plan(self._default_output)
            scan = Scan.through(passes, plan.activations[-1])
            self._take_names(scan.n_features, passes.names)
            self._one_output = not scan.target_shape
            assert scan.moments is not None
            table = scan.table(passes, AsTargets(scan.weighted))
            self._fit_targets(table, plan, sizes, scan.moments)
        return self

    def _fit_targets(
        self, rows: Table, plan: Plan, sizes: tuple[int, ...], moments: Moments
    ) -> None:
        self._fit_network(rows, *self._start(plan, sizes, rows, moments))

    @where_rows_are
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the network's output for each row.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs), as the y of `fit`
        """
        X = self._inputs(X, "predict")
        G = arrays.narrowed(self._outputs(X), X.dtype)
        return G[:, 0] if self._one_output else G
