"""What the docstrings of all estimators share, written once."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["documented"]

C = TypeVar("C", bound=type)

PARAMETERS = """
    hidden_layer_sizes : tuple of int or inf, default=(100,)
        Units of each hidden layer; ``()`` for a single layer without hidden ones. ``(inf,)``, or
        for "relu" as many ``inf`` as layers, makes them infinitely wide: see Notes.
    activation : str, Activation or pair of callables, default="logit"
        The activation f of the hidden layers: a key of ``karnet.activations.ACTIVATIONS``, an
        ``Activation``, or f and its inverse. Pull-back needs one that has an inverse, "metric" one
        that has a derivative, best a bounded one: "relu", or "tanh" if inputs are few.
    output_activation : str, Activation or pair of callables, default=None
        The activation of the output layer. None: for numbers the identity, for classes that of the
        hidden layers, or the identity if that has no inverse. It
        needs an inverse, unless there is no hidden layer: then one without is
        taken through the exponential (the paper's Theorem 1).
    hidden : {"pullback", "random", "metric"}, default="pullback"
        "pullback", the paper's algorithm, solves every hidden layer for a target pulled back from
        the output. "random" leaves hidden layers as drawn and solves the output layer alone.
        "metric" does the same, then redraws the first hidden layer for the directions of the input
        that turned out to matter: see Notes.
    alpha : float, default=0.0
        Ridge of every layer that is solved. With a ridge biases are free; without one they count in
        the norm that is kept small, as in the paper.
    rcond : float, default=None
        Singular values at most this much times the largest count as zero, on centred columns
        scaled to unit length. None: 1e-9 for a matrix that a pulled-back layer made, which is
        numerically singular by nature, and machine precision for any other.
    solver : {"auto", "cholesky", "qr", "svd"}, default="auto"
        How least-squares problems are solved, see `karnet.lstsq`.
    n_sweeps : int, default=1
        How often pull-back and solves are gone through, each time with the weights just found; the
        sweep with the smallest output residual is kept. The paper uses one.
    n_rounds : int, default=2
        How often ``hidden="metric"`` redraws; others do not use it.
    fit_intercept : bool, default=True
        Whether the output layer has a bias. Hidden layers always have.
    direct_links : bool, default=False
        Whether the input is joined to the last hidden layer, so that the output layer sees both.
        Pull-back goes through the hidden units alone.
    init : {"normal", "uniform", "cauchy"} or list of arrays, default="normal"
        The weights learning starts from: standard normal, uniform on (-1, 1), standard Cauchy (with
        biases uniform on (-pi, pi), the phases of "cos" and "sin"), or given, one array
        per hidden layer with the bias as its first row. For pull-back they are those of the
        second to the last layer (the last without its first row if ``fit_intercept=False``), for
        other hidden layers those of the first to the last but one."""

RANDOM_STATE = """
    random_state : int, RandomState instance or None, default=None
        What weights are drawn with."""

DEVICE = """
    device : str, default=None
        None computes with NumPy on this machine's processors. "cuda", or another device of torch,
        is where blocks of rows are copied to and worked on, the next ones copied meanwhile; what is
        learned and predicted are arrays of NumPy all the same. That needs ``karnet[gpu]``. Arrays
        of torch or CuPy need no `device`: under scikit-learn's ``array_api_dispatch=True`` they are
        worked on where they are."""

CV_DEVICE = """
    device : str, default=None
        None computes with NumPy on this machine's processors. "cuda", or another device of torch,
        is where blocks of rows are copied to: there hidden layers of finite width, those of tables
        of more than `width` rows, are learned, and all networks predict. What comes first stays
        here: views of the inputs, the search, and layers of infinite width, whose matrices are
        small; and so does what only intervals need. What is learned and predicted are arrays of
        NumPy all the same. That needs ``karnet[gpu]``."""

ATTRIBUTES = """
    coefs_, intercepts_ : lists of arrays
        Weights and bias of each layer, in the form of scikit-learn's ``MLPClassifier`` and
        ``MLPRegressor``; not for infinite width.
    activations_ : list of Activation
        The activation of each layer.
    layers_ : list of karnet.learner.Report
        Of each layer: rank, solver used, residual, share of values outside the activation's domain,
        and of targets outside that of its inverse; for the last one, what is kept of its rows.
    metric_ : ndarray of shape (n_features, n_features)
        For ``hidden="metric"``, the matrix M that the first hidden layer was drawn with, of trace
        n_features: the identity if the layer as first drawn was kept.
    feature_importances_ : ndarray of shape (n_features,)
        The diagonal of M at sum one: how much each feature matters, in squares of its own unit.
    X_fit_, dual_coef_, intercept_ : ndarrays
        For infinite width, the rows learned from, their coefficients D, and the bias b."""

FEATURES = """
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str
        Their names, if all are strings."""

NOTES = """
    With ``hidden="metric"``, M is the mean outer product of the derivatives of the output (before
    its activation) by the input. Weights of the first hidden layer drawn as G become ``M^{1/2} G``,
    biases stay, and the output layer is solved again, `n_rounds` times. Of all rounds, the one as
    drawn included, that with the least exact leave-one-out squared error (at the default `rcond`)
    is kept. Labels shaped such a layer, so its leave-one-out error is optimistic: judge it on rows
    it has not seen. Standardise the inputs, since weights of all features are drawn alike.

    Infinitely wide layers need ``hidden="random"``. They have no weights: the output layer is
    solved in the dual, where their products are known in closed form, a kernel of `karnet.kernels`
    at scale 1, so standardise the inputs. "relu" layers are those of rows [1, x] brought to length
    one and of standard normal weights without further biases, each layer of h units multiplied by
    ``sqrt(2 / h)``. "cos" and "sin" are a single layer of units of all phases, multiplied by
    ``sqrt(2 / h)``: ``init="normal"`` gives the Gaussian kernel (finite layers drawn so have normal
    biases, and differ), "cauchy" the Laplace kernel of absolute differences. Direct links add the
    product of the inputs. The bias is always free, ``alpha=0`` is the limit of small ridges,
    `rcond` and `solver` are not used, sparse inputs are made dense, and the cost is the cube of the
    number of rows: so up to a few thousand.

    Dask arrays and data frames are learned from where they are, in a few passes that send only
    statistics of the size of the layers, and the network is that of the same rows in memory, bit
    for bit. Answers to them are Dask arrays, yet to be computed. That needs `karnet[dask]`.

    With finite width, what the output layer's rows have come to is kept, so that `partial_fit`,
    `merge` and `forget` can add rows and take them out exactly. That takes about
    ``8 (h + 1) (h + q)`` bytes for h columns and q outputs or classes, in memory and in a file."""

REFERENCES = """
    K.-A. Toh, Z. Lin, Z. Li, B. Oh and L. Sun, "Gradient-Free Learning Based on the Kernel and the
    Range Space", 2018.

    A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in
    neural networks and backpropagation-free machine learning models", Science, 2024 (the metric).

    Y. Cho and L. Saul, "Kernel Methods for Deep Learning", 2009 (infinite width)."""

CV_PARAMETERS = """
    n_estimators : int, default=8
        Most networks that are averaged; those much worse than the best are not.
    alphas : array-like, default=None
        Ridges to choose from, as shares of the mean eigenvalue of the products of hidden layers.
        None: 17 from 1e-6 to 100.
    width : int, default=1500
        Up to so many rows hidden layers are infinitely wide, and learning costs the cube of the
        number of rows. Beyond, they have so many units.
    cv : int, splitter or iterable, default=None
        What networks are judged by: None for leave-one-out, or as in scikit-learn."""

CV_BUDGET = """
    time_budget : float, default=None
        Seconds that `fit` should take at most; less is tried where it is short.
    random_state : int, RandomState instance or None, default=None
        What folds, and samples of long tables, are drawn with."""

CV_MEMBERS = """
    estimators_ : list
        The networks that are averaged, each with its `shape`, `alpha_`, `activation`,
        `hidden_layer_sizes`, `dual_coef_`, `intercept_` and `X_fit_`."""

CV_RESULTS = """
    cv_results_ : dict of ndarray
        What was tried, the best first: pandas makes a table of it."""

CV_IMPORTANCES = """
    feature_importances_ : ndarray of shape (n_features,)
        The diagonal of the input metric: how strongly the answers change with each feature."""

SHARED = {
    "{parameters}": PARAMETERS,
    "{random_state}": RANDOM_STATE,
    "{device}": DEVICE,
    "{attributes}": ATTRIBUTES,
    "{features}": FEATURES,
    "{notes}": NOTES,
    "{references}": REFERENCES,
    "{cv_parameters}": CV_PARAMETERS,
    "{cv_budget}": CV_BUDGET,
    "{cv_device}": CV_DEVICE,
    "{cv_members}": CV_MEMBERS,
    "{cv_results}": CV_RESULTS,
    "{cv_importances}": CV_IMPORTANCES,
}


def documented(cls: C) -> C:
    """Fill what all estimators share into the docstring of one, where it names them in braces."""
    for name, text in SHARED.items():
        if cls.__doc__:
            cls.__doc__ = cls.__doc__.replace(name, text.strip())
    return cls
