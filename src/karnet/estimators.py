"""The KAR network as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from ._arrays import namespace as arrays
from ._estimator.dask_methods import lazy_for_dask, passes_over
from ._estimator.network_base import AnyActivation, KARNetwork
from ._estimator.scoring import Scored
from ._estimator.targets import ClassTargets, NumberTargets, class_outputs
from ._estimator.updates import of_finite_width
from .activations import resolve_activation
from .learner import Plan

__all__ = ["KARClassifier", "KARRegressor"]

# Decisions beyond this number have a probability of 0 or 1 to all digits; larger ones may overflow.
CERTAIN_DECISION = 1e30


class KARClassifier(Scored, ClassifierMixin, KARNetwork):
    """Classifier that solves every layer of a neural network by minimum-norm least squares.

    For k = 1 ... n, ``||A_k W_k - B_k||^2 + alpha ||V_k||^2`` is minimised, then the norm of W_k,
    where ``A_k = [1, f(A_{k-1} W_{k-1})]`` are the inputs of the layer and B_k is the class
    indicator pulled back through the inverse activations and the initial weights of the layers
    above. There is no gradient, no learning rate and no iteration.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or inf, default=(100,)
        The number of units of each hidden layer; ``()`` for a network without hidden layers.
        ``(inf,)``, or for "relu" one ``inf`` per layer, makes hidden layers infinitely wide: see
        Notes.
    activation : str, Activation or pair of callables, default="logit"
        The activation f of the hidden layers: a key of ``karnet.activations.ACTIVATIONS``, an
        ``Activation``, or f and its inverse. ``hidden="pullback"`` needs an activation with an
        inverse. ``hidden="metric"`` needs one with a derivative and works best with "relu", or
        with "tanh" if there are few inputs.
    output_activation : str, Activation or pair of callables, default=None
        The activation of the output layer. By default it is the identity for a regressor and the
        activation of the hidden layers for a classifier, or the identity if that has no inverse.
        It needs an inverse if there are hidden layers. Without hidden layers, an activation that
        has no inverse is solved through the exponential (Theorem 1 of the paper).
    hidden : {"pullback", "random", "metric"}, default="pullback"
        How hidden layers are fitted. "pullback", the algorithm of the paper, solves every hidden
        layer for the target pulled back from the output. "random" keeps the initial weights of the
        hidden layers and solves the output layer only. "metric" starts like "random", then redraws
        the first hidden layer along the directions of the input that matter most: see Notes.
    alpha : float, default=0.0
        The ridge of every layer that is solved. With a ridge, biases are not penalised; without
        one, they are part of the norm that is minimised, as in the paper.
    rcond : float, default=None
        Cut-off for singular values relative to the largest one, for columns that are centred and
        scaled to unit length. By default 1e-9 for the inputs of a layer above a pulled-back one,
        which are numerically singular by nature, and machine precision otherwise.
    solver : {"auto", "cholesky", "sketch", "qr", "svd"}, default="auto"
        The solver of the least-squares problems, see `karnet.lstsq`.
    n_sweeps : int, default=1
        The number of sweeps of pull-back and solves, each of which starts from the weights of the
        one before. The sweep with the smallest residual of the output layer is kept. The paper
        uses one sweep.
    n_rounds : int, default=2
        The number of times that ``hidden="metric"`` redraws the first hidden layer. It is not used
        otherwise.
    fit_intercept : bool, default=True
        Whether the output layer has a bias. Hidden layers always have one.
    direct_links : bool, default=False
        Whether the output layer also sees the inputs of the network, next to the last hidden
        layer. Targets are pulled back through the hidden units only.
    init : {"normal", "uniform", "cauchy"} or list of arrays, default="normal"
        The initial weights: standard normal, uniform on (-1, 1), standard Cauchy (with biases
        uniform on (-pi, pi), the phases of "cos" and "sin"), or one given array per hidden layer,
        with the bias as its first row. For ``hidden="pullback"`` they are the weights of the
        second to the last layer (the last one without its first row if ``fit_intercept=False``),
        otherwise those of all layers but the last.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. Sample weights are multiplied by them.
    random_state : int, RandomState instance or None, default=None
        The random number generator, or its seed, from which the initial weights are drawn.
    device : str, default=None
        The device to compute on. None is NumPy on the CPU. With "cuda", or another device of
        PyTorch, blocks of rows are copied to the device and processed there, the next blocks being
        copied meanwhile; fitted attributes and predictions are NumPy arrays in either case. This
        needs ``karnet[gpu]``. PyTorch and CuPy arrays on a GPU need no `device`: they are processed
        where they are, and so are those in host memory under scikit-learn's
        ``array_api_dispatch=True``.

    Attributes
    ----------
    coefs_, intercepts_ : lists of arrays
        The weights and the bias of each layer, in the form of scikit-learn's ``MLPClassifier`` and
        ``MLPRegressor``; not for infinite width.
    activations_ : list of Activation
        The activation of each layer.
    layers_ : list of karnet.learner.Report
        A report on each layer: rank, solver, residual, the share of values outside the domain of
        the activation, the share of targets outside the domain of its inverse and, for the output
        layer, the statistics of its rows.
    metric_ : ndarray of shape (n_features, n_features)
        For ``hidden="metric"``, the matrix M with which the first hidden layer was drawn, of trace
        n_features; the identity if the initial layer was kept.
    input_metric_ : ndarray of shape (n_features,)
        The diagonal of M divided by its sum: how strongly predictions change with each feature, in
        squares of its own unit. It is not an importance.
    X_fit_, dual_coef_, intercept_ : ndarrays
        For infinite width, the rows of the training set, their coefficients D, and the bias b.
    classes_ : ndarray
        The classes, sorted.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str
        Names of the features seen during `fit`, if all of them are strings.

    Notes
    -----
    A pulled-back network depends on the input only through as many linear scores as there are
    classes, so it fails where no linear score is informative; random hidden layers do not.

    Class and sample weights have an effect only if the network cannot fit every row exactly.

    With ``hidden="metric"``, weights G of the first hidden layer become ``M^{1/2} G``, where M is
    the mean outer product of the derivatives of the output (before its activation) with respect to
    the input, and the output layer is solved again, `n_rounds` times. The round with the smallest
    exact leave-one-out squared error (at the default `rcond`) is kept, which may be the initial
    one. This error is optimistic, since the targets shaped the layer: evaluate the network on
    other rows. Standardise the inputs, since the weights of all features are drawn alike.

    Infinitely wide layers need ``hidden="random"``. They have no weights: the output layer is
    solved in the dual, with a kernel of `karnet.kernels` at scale 1, so standardise the inputs.
    "relu" layers see rows [1, x] scaled to length one and have standard normal weights, no further
    biases and a factor ``sqrt(2 / h)`` for h units. "cos" and "sin" are a single layer of units of
    all phases with the same factor: ``init="normal"`` gives the Gaussian kernel (finite layers have
    normal biases instead, and differ), "cauchy" the Laplace kernel of absolute differences. Direct
    links add the product of the inputs. The bias is never penalised, ``alpha=0`` is the limit of
    small ridges, `rcond` and `solver` are not used, and sparse inputs are made dense. The cost
    grows with the cube of the number of rows, so use at most a few thousand rows.

    Dask arrays and data frames are processed where they are, in a few passes that send only
    statistics of the size of the layers. The network is bit for bit the one fitted to the same
    rows in memory, and predictions for a Dask collection are lazy Dask arrays. This needs
    ``karnet[dask]``.

    With finite width, the statistics of the output layer are kept, so that `partial_fit`, `merge`
    and `forget` can add and remove rows exactly. They take about ``8 (h + 1) (h + q)`` bytes for h
    columns and q outputs or classes, in memory and in a file.

    References
    ----------
    K.-A. Toh, Z. Lin, Z. Li, B. Oh and L. Sun, "Gradient-Free Learning Based on the Kernel and the
    Range Space", 2018.

    A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in
    neural networks and backpropagation-free machine learning models", Science, 2024 (the metric).

    Y. Cho and L. Saul, "Kernel Methods for Deep Learning", 2009 (infinite width).

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
        """Fit the network.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            The inputs. With a Dask array or data frame, y and the weights must be Dask collections
            too; none of them is loaded into memory.
        y : array-like of shape (n_samples,)
            The classes, of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights. A weight of k is the same as k copies of the row, and a weight of 0
            leaves the row out. Weights have an effect only if the network cannot fit every row
            exactly.

        Returns
        -------
        self
        """
        return self._fit(passes_over(X, y, sample_weight) or (X, y, sample_weight))

    @of_finite_width
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to the network.

        The first call draws the hidden layers or, with "pullback" and "metric", fits them, unless
        `fit` has done so. Afterwards they stay fixed, and the output layer is the exact solution
        for all rows so far. To fit the hidden layers to all rows, use `fit` or `fit_blocks`. New
        classes may appear in later calls.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array-like, optional
            Classes that y may not hold yet. The first call needs at least two classes, in y or
            here.

        Returns
        -------
        self

        Notes
        -----
        Each call reads its rows once, or twice if Gram products are not accurate enough, and
        solves the output layer: for a width of h this takes about ``h^3`` multiplications and
        ``h^2`` per row. ``class_weight="balanced"`` is an error, since it needs all rows at once.
        """
        return self._partial_fit(X, y, sample_weight, classes)

    def _targets(self, plan: Plan) -> ClassTargets:
        return ClassTargets(self.class_weight, getattr(self, "classes_", None))

    def _set_targets(self, targets: ClassTargets) -> None:
        self.classes_ = targets.classes

    @lazy_for_dask
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Predict a score for each class.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For more than two classes, the output G of the network, whose target is 1 for the class
            of a row and 0 for all others. For two classes, one column, which is -1 or 1 where the
            output equals the target of ``classes_[0]`` or ``classes_[1]``.
        """
        return self._decision(self._inputs(X, "decision_function"))

    def _decision(self, X: Any) -> Any:
        if self.classes_.shape[0] > 2:
            return arrays.narrowed(self._outputs(X), X.dtype)
        f = self.activations_[-1]
        low, high = f.phi(class_outputs(f, 2))[:, 0].tolist()
        with np.errstate(over="ignore"):
            decision = (2.0 * self._scores(X) - low - high) / (high - low)
        return arrays.narrowed(decision, X.dtype)[:, 0]

    @lazy_for_dask
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row.

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
            codes = arrays.to_numpy(codes)  # only NumPy has arrays of text
        return arrays.selected(self.classes_, codes)

    @lazy_for_dask
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Predict probabilities of the classes, which rise with the decision function.

        They are not calibrated.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            For two classes, the logistic function of twice the decision function; for more, the
            softmax of four times the decision function. At this scale a probability near 1/2
            changes as fast as the output whose targets are 0 and 1.
        """
        decision = self._decision(self._inputs(X, "predict_proba"))
        xp = arrays.namespace(decision)
        decision = xp.clip(decision, -CERTAIN_DECISION, CERTAIN_DECISION)
        if decision.ndim == 1:
            return arrays.expit(
                2.0 * arrays.joined([-decision[:, None], decision[:, None]], axis=1)
            )
        raised = xp.exp(4.0 * (decision - xp.max(decision, axis=1, keepdims=True)))
        return raised / xp.sum(raised, axis=1, keepdims=True)


class KARRegressor(Scored, RegressorMixin, KARNetwork):
    """Regressor that solves every layer of a neural network by minimum-norm least squares.

    For k = 1 ... n, ``||A_k W_k - B_k||^2 + alpha ||V_k||^2`` is minimised, then the norm of W_k,
    where ``A_k = [1, f(A_{k-1} W_{k-1})]`` are the inputs of the layer and B_k is the target pulled
    back through the inverse activations and the initial weights of the layers above. There is no
    gradient, no learning rate and no iteration.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or inf, default=(100,)
        The number of units of each hidden layer; ``()`` for a network without hidden layers.
        ``(inf,)``, or for "relu" one ``inf`` per layer, makes hidden layers infinitely wide: see
        Notes.
    activation : str, Activation or pair of callables, default="logit"
        The activation f of the hidden layers: a key of ``karnet.activations.ACTIVATIONS``, an
        ``Activation``, or f and its inverse. ``hidden="pullback"`` needs an activation with an
        inverse. ``hidden="metric"`` needs one with a derivative and works best with "relu", or
        with "tanh" if there are few inputs.
    output_activation : str, Activation or pair of callables, default=None
        The activation of the output layer. By default it is the identity for a regressor and the
        activation of the hidden layers for a classifier, or the identity if that has no inverse.
        It needs an inverse if there are hidden layers. Without hidden layers, an activation that
        has no inverse is solved through the exponential (Theorem 1 of the paper).
    hidden : {"pullback", "random", "metric"}, default="pullback"
        How hidden layers are fitted. "pullback", the algorithm of the paper, solves every hidden
        layer for the target pulled back from the output. "random" keeps the initial weights of the
        hidden layers and solves the output layer only. "metric" starts like "random", then redraws
        the first hidden layer along the directions of the input that matter most: see Notes.
    alpha : float, default=0.0
        The ridge of every layer that is solved. With a ridge, biases are not penalised; without
        one, they are part of the norm that is minimised, as in the paper.
    rcond : float, default=None
        Cut-off for singular values relative to the largest one, for columns that are centred and
        scaled to unit length. By default 1e-9 for the inputs of a layer above a pulled-back one,
        which are numerically singular by nature, and machine precision otherwise.
    solver : {"auto", "cholesky", "sketch", "qr", "svd"}, default="auto"
        The solver of the least-squares problems, see `karnet.lstsq`.
    n_sweeps : int, default=1
        The number of sweeps of pull-back and solves, each of which starts from the weights of the
        one before. The sweep with the smallest residual of the output layer is kept. The paper
        uses one sweep.
    n_rounds : int, default=2
        The number of times that ``hidden="metric"`` redraws the first hidden layer. It is not used
        otherwise.
    fit_intercept : bool, default=True
        Whether the output layer has a bias. Hidden layers always have one.
    direct_links : bool, default=False
        Whether the output layer also sees the inputs of the network, next to the last hidden
        layer. Targets are pulled back through the hidden units only.
    init : {"normal", "uniform", "cauchy"} or list of arrays, default="normal"
        The initial weights: standard normal, uniform on (-1, 1), standard Cauchy (with biases
        uniform on (-pi, pi), the phases of "cos" and "sin"), or one given array per hidden layer,
        with the bias as its first row. For ``hidden="pullback"`` they are the weights of the
        second to the last layer (the last one without its first row if ``fit_intercept=False``),
        otherwise those of all layers but the last.
    random_state : int, RandomState instance or None, default=None
        The random number generator, or its seed, from which the initial weights are drawn.
    device : str, default=None
        The device to compute on. None is NumPy on the CPU. With "cuda", or another device of
        PyTorch, blocks of rows are copied to the device and processed there, the next blocks being
        copied meanwhile; fitted attributes and predictions are NumPy arrays in either case. This
        needs ``karnet[gpu]``. PyTorch and CuPy arrays on a GPU need no `device`: they are processed
        where they are, and so are those in host memory under scikit-learn's
        ``array_api_dispatch=True``.

    Attributes
    ----------
    coefs_, intercepts_ : lists of arrays
        The weights and the bias of each layer, in the form of scikit-learn's ``MLPClassifier`` and
        ``MLPRegressor``; not for infinite width.
    activations_ : list of Activation
        The activation of each layer.
    layers_ : list of karnet.learner.Report
        A report on each layer: rank, solver, residual, the share of values outside the domain of
        the activation, the share of targets outside the domain of its inverse and, for the output
        layer, the statistics of its rows.
    metric_ : ndarray of shape (n_features, n_features)
        For ``hidden="metric"``, the matrix M with which the first hidden layer was drawn, of trace
        n_features; the identity if the initial layer was kept.
    input_metric_ : ndarray of shape (n_features,)
        The diagonal of M divided by its sum: how strongly predictions change with each feature, in
        squares of its own unit. It is not an importance.
    X_fit_, dual_coef_, intercept_ : ndarrays
        For infinite width, the rows of the training set, their coefficients D, and the bias b.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str
        Names of the features seen during `fit`, if all of them are strings.

    Notes
    -----
    With pull-back, the initial output weights are drawn for targets of mean 0 and variance 1 and
    then rescaled to the unit and offset of y, since inverse activations saturate otherwise.

    A pulled-back network depends on the input through hardly more linear scores than there are
    outputs, since the inverse activation is nearly linear over its targets; a wide network with a
    single output tends to the linear fit. Random hidden layers do not.

    Sample weights have an effect only if the network cannot fit every row exactly.

    The notes of `KARClassifier` on ``hidden="metric"``, infinite width, Dask and updates, and its
    references, hold for this estimator too.

    Examples
    --------
    >>> import numpy as np
    >>> from karnet import KARRegressor
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> net = KARRegressor((20,), hidden="random", random_state=0).fit(X, np.sin(6 * X[:, 0]))
    >>> net.score(X, np.sin(6 * X[:, 0])) > 0.99
    True
    """

    _default_output = resolve_activation("identity")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        # A good fit needs many random units; a few may explain nothing.
        tags.regressor_tags.poor_score = self.hidden != "pullback"
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the network.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            The inputs. With a Dask array or data frame, y and the weights must be Dask collections
            too; none of them is loaded into memory.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The targets.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights. A weight of k is the same as k copies of the row, and a weight of 0
            leaves the row out. Weights have an effect only if the network cannot fit every row
            exactly.

        Returns
        -------
        self
        """
        return self._fit(passes_over(X, y, sample_weight) or (X, y, sample_weight))

    @of_finite_width
    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows to the network.

        The first call draws the hidden layers or, with "pullback" and "metric", fits them, unless
        `fit` has done so. Afterwards they stay fixed, and the output layer is the exact solution
        for all rows so far. To fit the hidden layers to all rows, use `fit` or `fit_blocks`.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self

        Notes
        -----
        Each call reads its rows once, or twice if Gram products are not accurate enough, and
        solves the output layer: for a width of h this takes about ``h^3`` multiplications and
        ``h^2`` per row.
        """
        return self._partial_fit(X, y, sample_weight)

    def _targets(self, plan: Plan) -> NumberTargets:
        output = plan.activations[-1]
        if not hasattr(self, "intercepts_"):
            return NumberTargets(output)
        return NumberTargets(output, self.intercepts_[-1].shape[0], self._one_output)

    def _set_targets(self, targets: NumberTargets) -> None:
        self._one_output = targets.one_output

    @lazy_for_dask
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the targets of each row.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs), like the y of `fit`
        """
        X = self._inputs(X, "predict")
        G = arrays.narrowed(self._outputs(X), X.dtype)
        return G[:, 0] if self._one_output else G
