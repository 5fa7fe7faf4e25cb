"""The paper's baseline: a feedforward network trained by Levenberg-Marquardt.

The training follows MATLAB's documentation of ``feedforwardnet`` and ``trainlm``. Each step changes
all weights by ``-(J'J + mu I)^-1 J'e``, with the errors e of the outputs and their derivatives J, a
matrix of (rows x outputs) by (weights). Its size makes the method slow and limits its memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._estimator import parameters, validation
from .._estimator.network_base import AnyActivation
from .._network.layers import Layer, Network, outputs
from .._rows.memory import Rows, dense
from .._util.checks import check_non_negative, check_positive_integer
from ..activations import ACTIVATIONS, Activation, Array, Function, resolve_activation
from ..learner import indicator

Layers = tuple[Layer, ...]
# The activation of a regressor's output layer.
IDENTITY = ACTIVATIONS["identity"]
# The least mu: smaller values do not change J'J, and take many increases to matter again.
MU_MIN = 1e-20


def jacobian(layers: Layers, X: Array) -> tuple[Array, Array]:
    """Return the outputs G of a network and their derivatives J with respect to all weights.

    The derivatives with respect to the pre-activations of layer k are computed from the last layer
    to the first, ``dG / dZ_k = (dG / dZ_{k+1} V_{k+1}') f'(Z_k)``; multiplied by ``A_k``, they are
    the derivatives with respect to ``W_k``. J has shape (rows, outputs, weights), with the weights
    in the order ``W_1 ... W_n``, each ``[w; V]`` row by row.
    """
    seen, linear = [X], []
    for layer in layers:
        linear.append(layer.linear(seen[-1]))
        seen.append(layer.f(linear[-1]))
    G = seen.pop()
    m, q = G.shape
    stop = sum(layer.V.size + layer.w.size for layer in layers)
    J = np.empty((m, q, stop))
    S = np.eye(q)
    for layer, A, Z in zip(reversed(layers), reversed(seen), reversed(linear), strict=True):
        S = S * _derivative(layer.f)(Z)[:, None, :]
        start = stop - layer.V.size - layer.w.size
        block = J[:, :, start:stop].reshape(m, q, len(layer.V) + 1, len(layer.w))  # a view
        block[:, :, 0] = S
        np.multiply(A[:, None, :, None], S[:, :, None, :], out=block[:, :, 1:])
        S, stop = S @ layer.V.T, start
    return G, J


def _derivative(f: Activation) -> Function:
    if f.derivative is None:
        raise ValueError(f"activation {f.name!r} has no derivative, which training needs.")
    return f.derivative


@dataclass(frozen=True)
class Rules:
    """Damping of steps and criteria to stop; the defaults are those of ``trainlm``."""

    mu: float = 1e-3
    mu_decrease: float = 0.1  # times mu after a step that lowers the loss
    mu_increase: float = 10.0  # times mu after a step that does not, and is undone
    mu_max: float = 1e10
    max_iter: int = 1000
    max_fail: int = 6  # consecutive epochs without progress on the validation rows
    goal: float = 0.0
    min_gradient: float = 1e-7
    time_limit: float = np.inf


class Training(NamedTuple):
    """The result of training: the layers, their loss, the epochs, and the reason to stop."""

    layers: Layers
    loss: float
    n_iter: int
    stop_reason: str


@np.errstate(over="ignore", invalid="ignore")  # steps that overflow are undone
def train(layers: Layers, rows: Rows, held_out: Rows, rules: Rules) -> Training:
    """Reduce the mean squared error of a network on the rows by Levenberg-Marquardt.

    Return the layers with the least error on the validation rows or, without these, the last ones.
    """
    start = perf_counter()
    mu, loss, n_iter, fails = rules.mu, mean_squared_error(layers, rows), 0, 0
    best, best_held_out = (layers, loss), mean_squared_error(layers, held_out)
    H, g = _normal_equations(layers, rows)
    while True:
        gradient = 2.0 / rows.y.size * float(np.linalg.norm(g))
        reasons = {
            "goal": loss <= rules.goal,
            "validation": fails >= rules.max_fail,
            "epochs": n_iter >= rules.max_iter,
            "gradient": gradient <= rules.min_gradient,
            "mu": mu > rules.mu_max,
            "time": perf_counter() - start >= rules.time_limit,
        }
        if any(reasons.values()):
            return Training(*best, n_iter, next(name for name in reasons if reasons[name]))
        moved = _moved(layers, _step(H, g, mu))
        error = mean_squared_error(moved, rows)
        if not error < loss:
            mu *= rules.mu_increase
            continue
        layers, loss, n_iter, mu = moved, error, n_iter + 1, max(mu * rules.mu_decrease, MU_MIN)
        error = mean_squared_error(layers, held_out)
        fails += 1
        if error < best_held_out or len(held_out) == 0:
            best, best_held_out, fails = (layers, loss), error, 0
        del H  # makes room for the next Jacobian
        H, g = _normal_equations(layers, rows)


def mean_squared_error(layers: Layers, rows: Rows) -> float:
    """Return the mean squared error of a network over rows and outputs; 0 without rows."""
    return float(np.mean((outputs(Network(layers), rows.X) - rows.y) ** 2)) if len(rows) else 0.0


def _normal_equations(layers: Layers, rows: Rows) -> tuple[Array, Array]:
    """Return ``J'J`` and ``J'e``."""
    G, J = jacobian(layers, rows.X)
    J = J.reshape(G.size, -1)
    return J.T @ J, J.T @ (G - rows.y).ravel()


def _step(H: Array, g: Array, mu: float) -> Array:
    """Return ``-(H + mu I)^-1 g``, or no step if the matrix is numerically singular."""
    damped = np.array(H.T, order="F")  # H is symmetric; in this order it is factorised in place
    np.fill_diagonal(damped, H.diagonal() + mu)
    try:
        factor = cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return np.zeros_like(g)
    step = -cho_solve(factor, g, check_finite=False)
    return step if np.isfinite(step).all() else np.zeros_like(g)


def _moved(layers: Layers, step: Array) -> Layers:
    moved = []
    for layer in layers:
        own, step = np.split(step, [layer.V.size + layer.w.size])
        W = own.reshape(-1, len(layer.w))
        moved.append(Layer(layer.V + W[1:], layer.w + W[0], layer.f))
    return tuple(moved)


def _draw(
    rng: Any, X: Array, widths: Sequence[int], activations: Sequence[Activation], span: float
) -> Layers:
    """Return random layers; each unit fills a random part of the middle of its f's domain."""
    layers: list[Layer] = []
    A = X
    for h, f in zip(widths, activations, strict=True):
        V = rng.uniform(-1.0, 1.0, (A.shape[1], h))
        low, high = np.clip([-2.0, 2.0], *f.domain)
        centre, reach = (low + high) / 2.0, span * (high - low) / 2.0
        low, high = np.sort(rng.uniform(centre - reach, centre + reach, (2, h)), axis=0)
        Z = A @ V
        lowest, size = Z.min(axis=0), np.abs(Z).max(axis=0)
        # A unit that is constant up to rounding must not get large weights.
        least = 1e-6 * size + np.finfo(np.float64).eps
        scale = (high - low) / np.maximum(Z.max(axis=0) - lowest, least)
        layers.append(Layer(V * scale, low - lowest * scale, f))
        A = f(layers[-1].linear(A))
    return tuple(layers)


class _LevenbergMarquardt(BaseEstimator):
    """The parameters and the training that classifier and regressor share."""

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (10,),
        *,
        activation: AnyActivation = "logit",
        output_activation: AnyActivation | None = None,
        max_iter: int = 1000,
        validation_fraction: float = 0.15,
        test_fraction: float = 0.15,
        init_span: float = 0.1,
        memory_limit: float = 2**31,
        time_limit: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.output_activation = output_activation
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.test_fraction = test_fraction
        self.init_span = init_span
        self.memory_limit = memory_limit
        self.time_limit = time_limit
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = tags.regressor_tags is not None
        # A step across a pole of logit may end anywhere.
        (tags.classifier_tags or tags.regressor_tags).poor_score = True
        return tags

    def _fit_network(self, X: Any, Y: Array, default_output: Activation | None) -> None:
        seconds = self.time_limit
        rules = Rules(
            max_iter=check_positive_integer("max_iter", self.max_iter),
            time_limit=np.inf if seconds is None else check_non_negative("time_limit", seconds),
        )
        span = check_non_negative("init_span", self.init_span)
        widths = (*parameters.check_sizes(self.hidden_layer_sizes), Y.shape[1])
        activations = self._activations(len(widths) - 1, default_output)
        rng = parameters.check_generator(self.random_state)
        fitted, held_out = self._divide(len(Y), rng)
        self._check_memory(len(fitted), (X.shape[1], *widths))
        rows, others = (Rows(dense(X[part]), Y[part]) for part in (fitted, held_out))
        drawn = _draw(rng, rows.X, widths, activations, span)
        layers, self.loss_, self.n_iter_, self.stop_reason_ = train(drawn, rows, others, rules)
        self.coefs_, self.intercepts_ = [each.V for each in layers], [each.w for each in layers]
        self.activations_ = activations

    def _activations(self, n_hidden: int, default: Activation | None) -> list[Activation]:
        """Return f_1 ... f_n; `default=None` means the hidden f, as in `KARClassifier`."""
        f = resolve_activation(self.activation)
        output = default or (f if f.invertible or not n_hidden else IDENTITY)
        if self.output_activation is not None:
            output = resolve_activation(self.output_activation, "output_activation")
        activations = [f] * n_hidden + [output]
        for each in activations:
            _derivative(each)
        return activations

    def _divide(self, m: int, rng: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the training rows and the validation rows; the test rows are not used."""
        held = check_non_negative("validation_fraction", self.validation_fraction)
        unused = check_non_negative("test_fraction", self.test_fraction)
        n_held, n_unused = int(held * m + 0.5), int(unused * m + 0.5)
        if n_held + n_unused >= m:
            raise ValueError(
                f"validation_fraction={held} and test_fraction={unused} leave none of "
                f"n_samples={m} rows to train on: reduce them."
            )
        order = rng.permutation(m)
        return order[n_held + n_unused :], order[:n_held]

    def _check_memory(self, m: int, widths: Sequence[int]) -> None:
        n = sum((a + 1) * b for a, b in pairwise(widths))
        needed = 8 * (m * widths[-1] * n + n * n)
        limit = check_non_negative("memory_limit", self.memory_limit)
        if needed > limit:
            raise MemoryError(
                f"Levenberg-Marquardt needs {needed / 2**30:.3g} GiB for the Jacobian J of "
                f"{m * widths[-1]} errors by {n} weights and for J'J, but memory_limit={limit:.0f} "
                f"allows {limit / 2**30:.3g} GiB."
            )

    def _outputs(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        X = validation.check_inputs(self, X, reset=False)
        layers = map(Layer, self.coefs_, self.intercepts_, self.activations_)
        return np.asarray(outputs(Network(tuple(layers)), X), dtype=X.dtype)


class LevenbergMarquardtClassifier(_LevenbergMarquardt, ClassifierMixin, BaseEstimator):
    """Neural network classifier trained by Levenberg-Marquardt.

    Steps ``-(J'J + mu I)^-1 J'(G - Y)`` reduce ``mean((G - Y)^2)``, with the outputs G and class
    indicators Y (one column for two classes, 1 for the second). As in MATLAB's ``trainlm``, mu
    starts at 1e-3 and is divided or multiplied by 10 after each success or failure, up to 1e10;
    70 % of the rows are for training, 15 % for validation, and 15 % are not used. Training ends
    after six consecutive epochs without progress in validation, and keeps the best weights.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(10,)
        Units of each hidden layer.
    activation, output_activation : str or Activation, default="logit" and None
        As in `KARClassifier`; they need a derivative, but no inverse.
    max_iter : int, default=1000
        The largest number of epochs.
    validation_fraction, test_fraction : float, default=0.15
        Shares of the rows for validation, and of unused rows. Without validation, the last weights
        are kept.
    init_span : float, default=0.1
        Weights are drawn uniformly from (-1, 1), then scaled and shifted such that each unit's
        pre-activations of the training rows fill a random part of the middle of its activation's
        domain, or of (-2, 2) if the domain is unbounded; `init_span` is the share of the domain
        that is the middle. This follows Nguyen and Widrow, MATLAB's default. Training that starts
        near the poles of logit often fails.
    memory_limit : float, default=2**31
        The most bytes of J and J'J together; a larger problem raises a MemoryError before they are
        allocated. (The factor of J'J is as large as J'J, but J is freed before.)
    time_limit : float, default=None
        Seconds after which no further step is tried; the current step is completed.
    random_state : int, RandomState instance or None, default=None
        The seed of the division of the rows and of the weights.

    Attributes
    ----------
    coefs_, intercepts_, activations_, classes_
        As in `KARClassifier`.
    n_iter_ : int
        Number of epochs, that is of steps that lowered the loss.
    loss_ : float
        Mean squared error of the kept weights on the training rows.
    stop_reason_ : {"epochs", "goal", "gradient", "mu", "validation", "time"}
        The reason why training ended.

    Notes
    -----
    Inputs and targets are not scaled; ``feedforwardnet`` maps both to [-1, 1] by default.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the network to inputs X and classes y of any type."""
        with validation.unchanged_on_failure(self):
            X = validation.check_inputs(self, X, reset=True)
            y = validation.check_labels(y, X.shape[0])
            self.classes_, codes = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError("y must hold at least two classes, but holds one class only.")
            E = indicator(codes, len(self.classes_))
            self._fit_network(X, E[:, 1:] if E.shape[1] == 2 else E, default_output=None)
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the outputs, one column per class; for two classes 2 G - 1 in one dimension."""
        G = self._outputs(X)
        return 2.0 * G[:, 0] - 1.0 if G.shape[1] == 1 else G

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of the largest output; of two classes, the second if G > 1/2."""
        decision = self.decision_function(X)
        codes = decision.argmax(axis=1) if decision.ndim == 2 else (decision > 0.0).astype(int)
        return np.asarray(self.classes_[codes])


class LevenbergMarquardtRegressor(_LevenbergMarquardt, RegressorMixin, BaseEstimator):
    """Neural network regressor trained by Levenberg-Marquardt.

    Training, parameters and attributes are those of `LevenbergMarquardtClassifier`; Y are the
    targets, and ``output_activation=None`` means the identity, as in `KARRegressor`.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the network to inputs X and targets y of one column or several."""
        with validation.unchanged_on_failure(self):
            X = validation.check_inputs(self, X, reset=True)
            y = validation.check_real_targets(y, X.shape[0])
            self._fit_network(X, y[:, None] if y.ndim == 1 else y, default_output=IDENTITY)
            self._one_output = y.ndim == 1
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted targets, in the shape of the y given to `fit`."""
        G = self._outputs(X)
        return G[:, 0] if self._one_output else G
