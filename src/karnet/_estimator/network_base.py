"""What every estimator of a KAR network shares: the parameters and the network they describe."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._arrays.namespace import check_device, is_foreign, like, on_host
from .._arrays.threads import one_thread_if_narrow
from .._lstsq.solve import check_non_negative, check_rcond, check_solver
from .._network.infinite_width import KernelMap, infinite_layers
from .._network.layers import Layer, Network, outputs, scores
from .._rows.device import on_device
from .._rows.memory import Rows, Table
from .._rows.streamed import LocalPasses, Passes, Streamed
from .._util.messages import shown
from ..activations import Activation, Array, Function, resolve_activation, through_exp
from ..blocks import Blocks
from ..learner import Plan, Report, learn, learn_by_metric, learn_in_dual
from . import parameters, validation
from .notebook import ShowsLayers

__all__ = ["AnyActivation", "KARNetwork"]

AnyActivation = str | Activation | tuple[Function, Function]

# What one kind of network has and another has not.
LEARNED = (
    *("coefs_", "intercepts_"),
    *("metric_", "feature_importances_"),
    *("X_fit_", "dual_coef_", "intercept_"),
)


class KARNetwork(ShowsLayers, BaseEstimator):
    """What classifier and regressor share: the parameters and the network they describe."""

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
        random_state: Any = None,
        device: str | None = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.output_activation = output_activation
        self.hidden = hidden
        self.alpha = alpha
        self.rcond = rcond
        self.solver = solver
        self.n_sweeps = n_sweeps
        self.n_rounds = n_rounds
        self.fit_intercept = fit_intercept
        self.direct_links = direct_links
        self.init = init
        self.random_state = random_state
        self.device = device

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        return tags

    def __setstate__(self, state: dict[str, Any]) -> None:
        # What was kept before a parameter came has its default.
        defaults = type(self)().get_params(deep=False)
        super().__setstate__(state | {name: defaults[name] for name in defaults.keys() - state})

    def _plan(self, default_output: Activation | None) -> tuple[Plan, tuple[int, ...]]:
        """Return what the parameters ask for; `default_output` None stands for the hidden f.

        Infinitely wide layers have no sizes: the plan has their kernel.
        """
        depth = parameters.infinite_depth(self.hidden_layer_sizes)
        sizes = () if depth else parameters.check_sizes(self.hidden_layer_sizes)
        n_layers = depth or len(sizes)
        f = resolve_activation(self.activation)
        hidden = self._hidden(f, n_layers)
        n_sweeps = parameters.check_positive_integer("n_sweeps", self.n_sweeps)
        if n_sweeps > 1 and hidden != "pullback":
            raise ValueError(f"n_sweeps={n_sweeps} needs hidden='pullback': others solve once.")
        output, input_map = self._output_activation(f, default_output, n_layers > 0), None
        if not output.invertible:
            input_map, output = through_exp(output)
        direct_links = parameters.check_flag("direct_links", self.direct_links)
        plan = Plan(
            activations=(f,) * n_layers + (output,),
            hidden=hidden,
            alpha=check_non_negative("alpha", self.alpha),
            solver=check_solver(self.solver),
            rcond=check_rcond(self.rcond),
            n_sweeps=n_sweeps,
            n_rounds=parameters.check_positive_integer("n_rounds", self.n_rounds),
            fit_intercept=parameters.check_flag("fit_intercept", self.fit_intercept),
            direct_links=direct_links,
            input_map=input_map,
            kernel=infinite_layers(f, depth, self.init, direct_links) if depth else None,
        )
        return plan, sizes

    def _hidden(self, f: Activation, n_layers: int) -> str:
        """Return how hidden layers are learned, if their activation and number allow for it."""
        known = ("pullback", "random", "metric")
        hidden = parameters.check_one_of("hidden", self.hidden, known)
        if self._infinite and hidden != "random":
            raise ValueError(
                f"hidden={hidden!r} needs finite hidden_layer_sizes: infinitely wide layers have "
                "no weights to learn, use hidden='random'."
            )
        if hidden == "metric":
            parameters.check_differentiable("activation", f)
            if not n_layers:
                raise ValueError("hidden='metric' needs a hidden layer: hidden_layer_sizes is ().")
        if hidden == "pullback" and n_layers:
            parameters.check_invertible("activation", f, "use hidden='random'")
        return hidden

    @property
    def _infinite(self) -> bool:
        """Whether hidden layers are infinitely wide, so that there are no weights."""
        return parameters.infinite_depth(self.hidden_layer_sizes) > 0

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
            parameters.check_invertible("output_activation", output, "use 'identity'")
        return output

    def _draw(self, plan: Plan, sizes: tuple[int, ...], d: int, q: int) -> list[Layer]:
        """Return the layers learning starts from: those above the first, or all below the last."""
        widths, activations = (d, *sizes), plan.activations[: len(sizes)]
        biases = [True] * len(sizes)
        if sizes and plan.hidden == "pullback":
            widths, activations = (*sizes, q), plan.activations[1:]
            biases[-1] = plan.fit_intercept
        shapes = [(widths[k] + bias, widths[k + 1]) for k, bias in enumerate(biases)]
        try:
            weights = self._initial_weights(shapes, biases)
        except (MemoryError, OverflowError) as error:
            raise MemoryError(
                f"hidden_layer_sizes={shown(self.hidden_layer_sizes)} takes more memory than there "
                "is: give smaller layers."
            ) from error
        return [
            Layer(W[1:], W[0], f) if bias else Layer(W, np.zeros(W.shape[1]), f)
            for W, bias, f in zip(weights, biases, activations, strict=True)
        ]

    def _initial_weights(self, shapes: list[tuple[int, int]], biases: list[bool]) -> list[Array]:
        rng = parameters.check_generator(self.random_state)
        if not isinstance(self.init, str):
            return parameters.check_given_weights(self.init, shapes)
        init = parameters.check_one_of("init", self.init, ("normal", "uniform", "cauchy"))
        if init == "normal":
            return [rng.standard_normal(shape) for shape in shapes]
        if init == "uniform":
            return [rng.uniform(-1.0, 1.0, shape) for shape in shapes]
        weights = [np.asarray(rng.standard_cauchy(shape)) for shape in shapes]
        for W, bias in zip(weights, biases, strict=True):
            W[: int(bias)] = rng.uniform(-np.pi, np.pi, (int(bias), W.shape[1]))
        return weights

    def fit_blocks(self, blocks: Any) -> Self:
        """Learn the network from blocks of rows, as `fit` would from all of them.

        Blocks are read once to check them and to know rows, classes and units, and again for every
        pass that learning makes: two for an output layer, one to three for a hidden layer. Reading
        goes on while blocks are worked on, and memory holds a few of them, whatever their number.

        Parameters
        ----------
        blocks : karnet.blocks.Blocks, list or callable
            What gives the blocks, tuples ``(X, y)`` or ``(X, y, sample_weight)``, each time anew.

        Returns
        -------
        self
        """
        source = Blocks.of(blocks)
        return self._fit_passes(LocalPasses(source, source.names))

    @abstractmethod
    def _fit_passes(self, passes: Passes) -> Self:
        """Learn the network from rows that are read anew for every pass."""

    def _take_names(self, n_features: int, names: Sequence[str] | None) -> None:
        """Remember what `validate_data` would of the features of a table."""
        self.n_features_in_ = n_features
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _fit_network(
        self, rows: Table, plan: Plan, drawn: Sequence[Layer], Y: Array | None = None
    ) -> None:
        for name in LEARNED:
            self.__dict__.pop(name, None)
        rows = self._on_device(rows)
        widest = max(rows.n_features, *(max(layer.V.shape) for layer in drawn), 1)
        # What overflows is not finite in the end, and refused there.
        quiet = np.errstate(over="ignore", invalid="ignore")
        with quiet, one_thread_if_narrow(len(rows), len(rows) if plan.kernel else widest):
            if plan.kernel is not None:
                network, reports = learn_in_dual(rows, plan, Y)
            elif plan.hidden == "metric":
                best = learn_by_metric(rows, plan, drawn, Y)
                network, reports, self.metric_ = best.network, best.reports, best.metric
                self.feature_importances_ = np.diag(self.metric_) / len(self.metric_)
            else:
                network, reports = learn(rows, plan, drawn, Y)
        self._keep(network, reports, plan, getattr(rows, "X", None))

    def _on_device(self, rows: Table) -> Table:
        """Return the rows where they are to be learned from."""
        device = check_device(self.device)
        lives_elsewhere = isinstance(rows, Rows) and is_foreign(rows.X)
        if device is None or lives_elsewhere or not isinstance(rows, Rows | Streamed):
            return rows
        return on_device(rows, device, partial(validation.checked_block, self._names()))

    def _names(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def _keep(self, network: Network, reports: list[Report], plan: Plan, X: Any) -> None:
        """Keep what was learned, as arrays of the kind that X is."""
        self.layers_, self._learned_plan = reports, plan
        self.activations_ = list(plan.activations)
        self._direct_links, self._input_map = network.direct_links, network.input_map
        if isinstance(network.input_map, KernelMap):
            (last,) = network.layers
            self.X_fit_, self.dual_coef_, self.intercept_ = network.input_map.Z, last.V, last.w
        else:
            self.coefs_ = [layer.V for layer in network.layers]
            self.intercepts_ = [layer.w for layer in network.layers]
        if not is_foreign(X):
            self.layers_ = [replace(each, statistic=on_host(each.statistic)) for each in reports]
        else:
            for name in LEARNED:
                if isinstance(value := self.__dict__.get(name), list):
                    setattr(self, name, [like(X, each) for each in value])
                elif value is not None:
                    setattr(self, name, like(X, value))
            if isinstance(self._input_map, KernelMap):
                self._input_map = self._input_map.at(self.X_fit_)

    def _network(self) -> Network:
        if isinstance(self._input_map, KernelMap):
            layers = [Layer(self.dual_coef_, self.intercept_, self.activations_[-1])]
        else:
            parts = zip(self.coefs_, self.intercepts_, self.activations_, strict=True)
            layers = [Layer(*part) for part in parts]
        return Network(tuple(layers), self._direct_links, self._input_map)

    def _networks(self) -> list[Network]:
        """Return the networks whose mean is predicted: one."""
        return [self._network()]

    def _inputs(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        X = validation.check_inputs(self, X, reset=False)
        weights = self.dual_coef_ if hasattr(self, "dual_coef_") else self.coefs_[0]
        validation.check_same_library(X, weights, f"{type(self).__name__}.{method}")
        return X

    def _scores(self, X: Any) -> Any:
        return scores(self._network(), X, check_device(self.device))

    def _outputs(self, X: Any) -> Any:
        return outputs(self._network(), X, check_device(self.device))
