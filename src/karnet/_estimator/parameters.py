"""From the parameters of a network to its plan and its initial layers; each is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._lstsq.solve import check_rcond, check_solver
from .._network.kernel_map import infinite_layers
from .._network.layers import Layer
from .._util.checks import check_flag, check_non_negative, check_one_of, check_positive_integer
from .._util.messages import shown
from ..activations import ACTIVATIONS, Activation, Array, resolve_activation, through_exp
from ..learner import Plan
from .validation import as_real_array

# Units of the largest layer that is accepted: no machine has memory for more.
MOST_UNITS = 2**48


def plan_of(
    net: Any, default_output: Activation | None
) -> tuple[Plan, Callable[[int, int], list[Layer]]]:
    """Return the plan that the parameters of a network describe, and a draw of initial layers.

    Infinitely wide layers are not drawn: the plan has their kernel. Without `default_output` the
    output activation is that of the hidden layers.
    """
    depth = infinite_depth(net.hidden_layer_sizes)
    sizes = () if depth else check_sizes(net.hidden_layer_sizes)
    n_layers = depth or len(sizes)
    f = resolve_activation(net.activation)
    hidden = _hidden(net.hidden, f, n_layers, depth > 0)
    n_sweeps = check_positive_integer("n_sweeps", net.n_sweeps)
    if n_sweeps > 1 and hidden != "pullback":
        raise ValueError(
            f"n_sweeps={n_sweeps} needs hidden='pullback': with hidden={hidden!r} every layer is "
            "solved once, so use n_sweeps=1."
        )
    if net.output_activation is not None:
        output = resolve_activation(net.output_activation, "output_activation")
        if n_layers:
            check_invertible("output_activation", output, "use 'identity'")
    else:  # a hidden activation without an inverse cannot be that of the output
        usable = f if f.invertible or not n_layers else resolve_activation("identity")
        output = default_output or usable
    input_map = None
    if not output.invertible:
        input_map, output = through_exp(output)
    direct_links = check_flag("direct_links", net.direct_links)
    plan = Plan(
        activations=(f,) * n_layers + (output,),
        hidden=hidden,
        alpha=check_non_negative("alpha", net.alpha),
        solver=check_solver(net.solver),
        rcond=check_rcond(net.rcond),
        n_sweeps=n_sweeps,
        n_rounds=check_positive_integer("n_rounds", net.n_rounds),
        fit_intercept=check_flag("fit_intercept", net.fit_intercept),
        direct_links=direct_links,
        input_map=input_map,
        kernel=infinite_layers(f, depth, net.init, direct_links) if depth else None,
    )
    return plan, partial(initial_layers, net, plan, sizes)


def _hidden(value: Any, f: Activation, n_layers: int, infinite: bool) -> str:
    """Return how hidden layers are fitted, if their activation and number allow for it."""
    hidden = check_one_of("hidden", value, ("pullback", "random", "metric"))
    if infinite and hidden != "random":
        raise ValueError(
            f"hidden={hidden!r} needs finite hidden_layer_sizes: infinitely wide layers have no "
            "weights to fit, use hidden='random'."
        )
    if hidden == "metric":
        if f.derivative is None:
            raise ValueError(
                f"activation={shown(f.name)} has no derivative, which hidden='metric' needs: use "
                "hidden='random' or an Activation that has one."
            )
        if not n_layers:
            raise ValueError("hidden='metric' needs a hidden layer: hidden_layer_sizes is ().")
    if hidden == "pullback" and n_layers:
        check_invertible("activation", f, "use hidden='random'")
    return hidden


def check_invertible(name: str, f: Activation, remedy: str) -> None:
    """Raise an error if targets cannot be pulled back through f."""
    if not f.invertible:
        invertible = ", ".join(key for key, each in ACTIVATIONS.items() if each.invertible)
        raise ValueError(f"{name}={shown(f.name)} has no inverse: {remedy} or one of {invertible}.")


def check_sizes(sizes: Any) -> tuple[int, ...]:
    """Return the widths of the hidden layers."""
    widths = _widths(sizes)
    if any(isinstance(n, bool) or not isinstance(n, Integral) or n < 1 for n in widths):
        raise ValueError(
            f"hidden_layer_sizes={shown(sizes)} must hold integers of at least 1, like (100,), or "
            "() for a network without hidden layers."
        )
    if any(n > MOST_UNITS for n in widths):
        raise ValueError(f"hidden_layer_sizes={shown(sizes)} must hold integers up to 2**48.")
    return tuple(map(int, widths))


def _widths(sizes: Any) -> Any:
    """Return layer sizes as a sequence; a single size is one entry."""
    is_sequence = isinstance(sizes, (Sequence, np.ndarray)) and np.ndim(sizes) == 1
    return sizes if is_sequence else (sizes,)


def infinite_depth(sizes: Any) -> int:
    """Return the number of infinitely wide hidden layers; 0 if all layers are finite."""
    infinite = [isinstance(n, (float, np.floating)) and n == np.inf for n in _widths(sizes)]
    if any(infinite) and not all(infinite):
        raise ValueError(
            f"hidden_layer_sizes={shown(sizes)} mixes finite and infinite widths: make all of them "
            "inf or none."
        )
    return sum(infinite)


def initial_layers(net: Any, plan: Plan, sizes: tuple[int, ...], d: int, q: int) -> list[Layer]:
    """Return the initial layers for d inputs and q outputs.

    With pull-back they are all layers but the first, otherwise all layers but the last.
    """
    widths, activations = (d, *sizes), plan.activations[: len(sizes)]
    biases = [True] * len(sizes)
    if sizes and plan.hidden == "pullback":
        widths, activations = (*sizes, q), plan.activations[1:]
        biases[-1] = plan.fit_intercept
    shapes = [(widths[k] + bias, widths[k + 1]) for k, bias in enumerate(biases)]
    try:
        weights = _initial_weights(net, shapes, biases)
    except (MemoryError, OverflowError) as error:
        raise MemoryError(
            f"hidden_layer_sizes={shown(net.hidden_layer_sizes)} takes more memory than there is: "
            "use smaller layers."
        ) from error
    return [
        Layer(W[1:], W[0], f) if bias else Layer(W, np.zeros(W.shape[1]), f)
        for W, bias, f in zip(weights, biases, activations, strict=True)
    ]


def _initial_weights(net: Any, shapes: list[tuple[int, int]], biases: list[bool]) -> list[Array]:
    rng = check_generator(net.random_state)
    if not isinstance(net.init, str):
        return _given_weights(net.init, shapes)
    init = check_one_of("init", net.init, ("normal", "uniform", "cauchy"))
    if init == "normal":
        return [rng.standard_normal(shape) for shape in shapes]
    if init == "uniform":
        return [rng.uniform(-1.0, 1.0, shape) for shape in shapes]
    weights = [np.asarray(rng.standard_cauchy(shape)) for shape in shapes]
    for W, bias in zip(weights, biases, strict=True):
        W[: int(bias)] = rng.uniform(-np.pi, np.pi, (int(bias), W.shape[1]))
    return weights


def check_generator(random_state: Any) -> np.random.RandomState:
    """Return the random number generator of a `random_state`."""
    try:
        generator: np.random.RandomState = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state={shown(random_state)} must be an integer, a RandomState or None."
        ) from error
    return generator


def _given_weights(init: Any, shapes: Sequence[tuple[int, int]]) -> list[Array]:
    """Return given weights, bias rows first, as float64 arrays of the required shapes."""
    if not isinstance(init, Sequence) or len(init) != len(shapes):
        required = ", ".join(map(str, shapes)) or "none"
        raise ValueError(f"init must be a list of {len(shapes)} arrays, of shapes {required}.")
    weights = []
    for k, (given, shape) in enumerate(zip(init, shapes, strict=True)):
        W = as_real_array(f"init[{k}]", given)
        if W.shape != shape:
            raise ValueError(f"init[{k}] has shape {W.shape}, but {shape} is needed, bias first.")
        if not np.isfinite(W).all():
            raise ValueError(f"init[{k}] must be finite, but holds NaN or infinity.")
        weights.append(W)
    return weights
