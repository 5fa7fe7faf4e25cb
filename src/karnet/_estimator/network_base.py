"""The base of KARClassifier and KARRegressor: their parameters, and every way to fit a network."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._arrays.namespace import check_device, is_foreign, like, on_host
from .._arrays.threads import one_thread_if_narrow
from .._network.kernel_map import KernelMap
from .._network.layers import Layer, Network, outputs, scores
from .._rows.device import on_device
from .._rows.memory import Rows, Table
from .._rows.streamed import LocalPasses, Passes, Raw
from .._util.text_table import TextTable
from ..activations import Activation, Array, Function
from ..blocks import Blocks
from ..learner import Plan, Report, learn, learn_by_metric, learn_in_dual
from . import parameters, validation
from .notebook import KAREstimator, table_of_layers
from .targets import AnyTargets, scanned
from .updates import OutputLayer, of_finite_width

AnyActivation = str | Activation | tuple[Function, Function]

# Fitted attributes that only some kinds of networks have.
OPTIONAL = (
    *("coefs_", "intercepts_"),
    *("metric_", "input_metric_"),
    *("X_fit_", "dual_coef_", "intercept_"),
)


class KARNetwork(KAREstimator):
    """The parameters of KARClassifier and KARRegressor, and the network that is fitted."""

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

    # The output activation if none is given; None for the activation of the hidden layers.
    _default_output: Activation | None = None

    @abstractmethod
    def _targets(self, plan: Plan) -> AnyTargets:
        """Return the kind of targets, and what is known of them from earlier rows."""

    @abstractmethod
    def _set_targets(self, targets: Any) -> None:
        """Set the fitted attributes that describe the targets."""

    def fit_blocks(self, blocks: Any) -> Self:
        """Fit the network to blocks of rows, with the result of `fit` for all rows at once.

        The blocks are read once to check them and to find the number of rows, the classes and the
        units of the targets, and again in every pass of the fit: two passes for an output layer,
        one to three for a hidden layer. The next blocks are read while the present ones are
        worked on, and only a few blocks are in memory at a time.

        Parameters
        ----------
        blocks : karnet.blocks.Blocks, list or callable
            The blocks, tuples ``(X, y)`` or ``(X, y, sample_weight)``, or a function that returns
            an iterator over them each time it is called.

        Returns
        -------
        self
        """
        source = Blocks.of(blocks)
        return self._fit(LocalPasses(source, source.names))

    def _fit(self, source: Passes | Raw) -> Self:
        """Fit the network to rows in memory, as one block, or to blocks that are read in passes."""
        with validation.unchanged_on_failure(self):
            plan, draw = parameters.plan_of(self, self._default_output)
            targets: AnyTargets = self._targets(plan)
            rows: Table
            if isinstance(source, tuple):
                X, *others = source
                X = validation.check_inputs(self, X, reset=True, finite=self.device is None)
                targets, rows = targets.in_memory(X, *others)
            else:
                targets, rows = scanned(source, targets)
                validation.set_columns(self, rows.n_features, source.names)
            self._set_targets(targets)
            self._fit_network(rows, *targets.start(plan, draw, rows.n_features))
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """Add rows; the first of them fit the hidden layers too."""
        with validation.unchanged_on_failure(self):
            plan, draw = parameters.plan_of(self, self._default_output)
            if first := not hasattr(self, "layers_"):
                X = validation.check_inputs(self, X, reset=True)
            else:
                X = self._inputs(X, "partial_fit")
            targets, rows = self._targets(plan).in_batch(X, y, sample_weight, classes)
            if first:
                start = targets.start(plan, draw, rows.n_features)
                layer = OutputLayer.first(self, rows, *start)
            else:
                layer = OutputLayer.of(self, targets)
            self._set_targets(targets)
            self._keep(*layer.updated(self._on_device(rows)).solved(), layer.plan, rows.X)
        return self

    @of_finite_width
    def merge(self, other: Self) -> Self:
        """Merge another network into this one, from its statistics alone.

        The result is the network fitted to the rows of both, if no row is in both. Both must have
        the same hidden layers: drawn with the same `random_state`, or given as `init`.

        Parameters
        ----------
        other : estimator of the same class
            A fitted network. It is not changed.

        Returns
        -------
        self

        Notes
        -----
        Only the output layer is solved, exactly for the present hidden layers, with the ridge,
        cut-off and solver of this network.
        """
        with validation.unchanged_on_failure(self):
            if type(other) is not type(self):
                raise ValueError(
                    f"a {type(self).__name__} can be merged with another one only, not with "
                    f"{type(other)}."
                )
            check_is_fitted(self)
            check_is_fitted(other)
            ours, theirs = (getattr(each, "feature_names_in_", None) for each in (self, other))
            if ours is not None and theirs is not None and ours.tolist() != theirs.tolist():
                raise ValueError(
                    f"the networks have features of different names, {ours.tolist()} and "
                    f"{theirs.tolist()}: give both the same columns in the same order."
                )
            mine, others = (each._targets(each._learned_plan) for each in (self, other))
            both = mine.union(others)
            layer = OutputLayer.of(self, both).merge(OutputLayer.of(other, both))
            self._set_targets(both)
            self._keep(*layer.solved(), layer.plan, self.coefs_[-1])
        return self

    @of_finite_width
    def forget(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Remove rows, so that the network is the one fitted without them.

        Parameters
        ----------
        X, y, sample_weight
            Rows that the network was fitted to, with the same targets and weights. Whether it was
            cannot be checked in general.

        Returns
        -------
        self

        Notes
        -----
        Only the output layer is solved, exactly for the present hidden layers. If the remaining
        rows do not determine the weights to 1e-8 in every direction, an error is raised and the
        network is not changed: without a ridge this happens if the network is as wide as there are
        rows. Classes are kept even if no row of theirs is left. The cost is about that of
        `partial_fit`.
        """
        with validation.unchanged_on_failure(self):
            check_is_fitted(self)
            X, known = self._inputs(X, "forget"), self._targets(self._learned_plan)
            _, rows = known.in_batch(X, y, sample_weight, known_only=True)
            layer = OutputLayer.of(self, known)
            layer = layer.updated(self._on_device(rows), remove=True)
            self._keep(*layer.solved(), layer.plan, rows.X)
        return self

    def _fit_network(
        self, rows: Table, plan: Plan, drawn: Sequence[Layer], Y: Array | None
    ) -> None:
        """Fit the network of a plan, starting from the layers drawn."""
        for name in OPTIONAL:
            self.__dict__.pop(name, None)
        rows = self._on_device(rows)
        widest = max(rows.n_features, *(max(layer.V.shape) for layer in drawn), 1)
        # Overflow shows in a result that is not finite, which is an error in the end.
        quiet = np.errstate(over="ignore", invalid="ignore")
        with quiet, one_thread_if_narrow(len(rows), len(rows) if plan.kernel else widest):
            if plan.kernel is not None:
                network, reports = learn_in_dual(rows, plan, Y)
            elif plan.hidden == "metric":
                best = learn_by_metric(rows, plan, drawn, Y)
                network, reports, self.metric_ = best.network, best.reports, best.metric
                self.input_metric_ = np.diag(self.metric_) / len(self.metric_)
            else:
                network, reports = learn(rows, plan, drawn, Y)
        self._keep(network, reports, plan, getattr(rows, "X", None))

    def _on_device(self, rows: Table) -> Table:
        """Return the rows on the device that the fit runs on."""
        device = None if self.device is None else check_device(self.device)
        if device is None or (isinstance(rows, Rows) and is_foreign(rows.X)):
            return rows
        names = getattr(self, "feature_names_in_", None)
        return on_device(rows, device, partial(validation.checked_block, names))

    def _keep(self, network: Network, reports: list[Report], plan: Plan, X: Any) -> None:
        """Set the fitted attributes, as arrays of the kind that X is."""
        self.layers_, self._learned_plan = reports, plan
        self.activations_ = list(plan.activations)
        self._direct_links, self._input_map = network.direct_links, network.input_map
        if network.kernel is not None:
            (last,) = network.layers
            self.X_fit_, self.dual_coef_, self.intercept_ = network.kernel.Z, last.V, last.w
        else:
            self.coefs_ = [layer.V for layer in network.layers]
            self.intercepts_ = [layer.w for layer in network.layers]
        if not is_foreign(X):
            *below, output = reports
            self.layers_ = [*below, replace(output, statistic=on_host(output.statistic))]
        else:
            for name in OPTIONAL:
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
        return [self._network()] if hasattr(self, "layers_") else []

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

    def _layer_table(self) -> TextTable | None:
        return table_of_layers(self) if hasattr(self, "layers_") else None


def start_of_fit(net: KARNetwork, X: Any, y: Any) -> tuple[tuple[Plan, list[Layer], Any], Rows]:
    """Return the plan, the initial layers and the outputs of classes of a fit, and its rows."""
    plan, draw = parameters.plan_of(net, net._default_output)
    targets, rows = net._targets(plan).in_memory(X, y, None)
    return targets.start(plan, draw, X.shape[1]), rows
