"""What every estimator of a KAR network shares: the parameters and the network they describe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from . import _validation as validation
from ._lstsq import check_non_negative, check_rcond, check_solver
from ._threads import one_thread_if_narrow
from .activations import Activation, Array, Function, resolve_activation, through_exp
from .blocks import Rows
from .learner import Plan, learn
from .network import Layer, Network

__all__ = ["AnyActivation", "KARNetwork"]

AnyActivation = str | Activation | tuple[Function, Function]


class KARNetwork(BaseEstimator):
    """What classifier and regressor share: the parameters and the network they describe."""

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (100,),
        *,
        activation: AnyActivation = "logit",
        output_activation: AnyActivation | None = None,
        hidden: str = "pullback",
        alpha: float = 0.0,
        rcond: float | None = None,
        solver: str = "auto",
        n_sweeps: int = 1,
        fit_intercept: bool = True,
        direct_links: bool = False,
        init: str | Sequence[ArrayLike] = "normal",
        random_state: Any = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.output_activation = output_activation
        self.hidden = hidden
        self.alpha = alpha
        self.rcond = rcond
        self.solver = solver
        self.n_sweeps = n_sweeps
        self.fit_intercept = fit_intercept
        self.direct_links = direct_links
        self.init = init
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _plan(self, default_output: Activation | None) -> tuple[Plan, tuple[int, ...]]:
        """Return what the parameters ask for; `default_output` None stands for the hidden f."""
        sizes = validation.check_sizes(self.hidden_layer_sizes)
        hidden = validation.check_one_of("hidden", self.hidden, ("pullback", "random"))
        f = resolve_activation(self.activation)
        if sizes and hidden == "pullback":
            validation.check_invertible("activation", f, "use hidden='random'")
        n_sweeps = validation.check_positive_integer("n_sweeps", self.n_sweeps)
        if n_sweeps > 1 and hidden == "random":
            raise ValueError(f"n_sweeps={n_sweeps} needs hidden='pullback': random layers stay.")
        output, input_map = self._output_activation(f, default_output, bool(sizes)), None
        if not output.invertible:
            input_map, output = through_exp(output)
        plan = Plan(
            activations=(f,) * len(sizes) + (output,),
            hidden=hidden,
            alpha=check_non_negative("alpha", self.alpha),
            solver=check_solver(self.solver),
            rcond=check_rcond(self.rcond),
            n_sweeps=n_sweeps,
            fit_intercept=validation.check_flag("fit_intercept", self.fit_intercept),
            direct_links=validation.check_flag("direct_links", self.direct_links),
            input_map=input_map,
        )
        return plan, sizes

    def _output_activation(
        self, f: Activation, default: Activation | None, has_hidden: bool
    ) -> Activation:
        if self.output_activation is None:
            if default is not None:
                return default
            # A hidden activation without inverse cannot be the output's too.
            return f if f.invertible or not has_hidden else resolve_activation("identity")
        output = resolve_activation(self.output_activation, "output_activation")
        if has_hidden:
            validation.check_invertible("output_activation", output, "use 'identity'")
        return output

    def _draw(self, plan: Plan, sizes: tuple[int, ...], d: int, q: int) -> list[Layer]:
        """Return the layers learning starts from: those above the first, or all below the last."""
        widths, activations = (d, *sizes), plan.activations[:-1]
        biases = [True] * len(sizes)
        if sizes and plan.hidden == "pullback":
            widths, activations = (*sizes, q), plan.activations[1:]
            biases[-1] = plan.fit_intercept
        shapes = [(widths[k] + bias, widths[k + 1]) for k, bias in enumerate(biases)]
        return [
            Layer(W[1:], W[0], f) if bias else Layer(W, np.zeros(W.shape[1]), f)
            for W, bias, f in zip(self._initial_weights(shapes), biases, activations, strict=True)
        ]

    def _initial_weights(self, shapes: list[tuple[int, int]]) -> list[Array]:
        rng = validation.check_generator(self.random_state)
        if not isinstance(self.init, str):
            return validation.check_given_weights(self.init, shapes)
        if validation.check_one_of("init", self.init, ("normal", "uniform")) == "normal":
            return [rng.standard_normal(shape) for shape in shapes]
        return [rng.uniform(-1.0, 1.0, shape) for shape in shapes]

    def _fit_network(
        self, rows: Rows, plan: Plan, drawn: Sequence[Layer], Y: Array | None = None
    ) -> None:
        widest = max(rows.X.shape[1], *(max(layer.V.shape) for layer in drawn), 1)
        with one_thread_if_narrow(len(rows), widest):
            network, self.layers_ = learn(rows, plan, drawn, Y)
        self.coefs_ = [layer.V for layer in network.layers]
        self.intercepts_ = [layer.w for layer in network.layers]
        self.activations_ = [layer.f for layer in network.layers]
        self._direct_links, self._input_map = network.direct_links, network.input_map

    def _network(self) -> Network:
        layers = zip(self.coefs_, self.intercepts_, self.activations_, strict=True)
        return Network(
            tuple(Layer(*layer) for layer in layers), self._direct_links, self._input_map
        )

    def _inputs(self, X: Any) -> Any:
        check_is_fitted(self)
        return validation.check_inputs(self, X, reset=False)
