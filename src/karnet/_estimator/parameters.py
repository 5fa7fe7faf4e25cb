"""What a user may get wrong in the parameters of an estimator, each answered with one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._util.checks import (
    check_flag,
    check_one_of,
    check_positive,
    check_positive_integer,
    check_share,
)
from .._util.messages import shown
from ..activations import ACTIVATIONS, Activation, Array
from .validation import as_real_array

__all__ = [
    "check_differentiable",
    "check_flag",
    "check_generator",
    "check_given_weights",
    "check_invertible",
    "check_one_of",
    "check_positive",
    "check_positive_integer",
    "check_share",
    "check_sizes",
    "infinite_depth",
]


# No machine has memory for more.
LARGEST_SIZE = 2**48


def check_sizes(sizes: Any) -> tuple[int, ...]:
    """Return the widths of the hidden layers."""
    given = sizes
    if isinstance(sizes, Integral):
        sizes = (sizes,)
    if (
        isinstance(sizes, str)
        or not isinstance(sizes, (Sequence, np.ndarray))
        or np.ndim(sizes) != 1
    ):
        raise ValueError(
            f"hidden_layer_sizes={shown(given)} must be a tuple of integers, like (100,)."
        )
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
            raise ValueError(
                f"hidden_layer_sizes={shown(given)} must hold integers of at least 1, "
                "or nothing for a network without hidden layers."
            )
    if any(size > LARGEST_SIZE for size in sizes):
        raise ValueError(f"hidden_layer_sizes={shown(given)} must hold integers up to 2**48.")
    return tuple(int(size) for size in sizes)


def infinite_depth(sizes: Any) -> int:
    """Return the number of infinitely wide hidden layers; 0 if there are none but finite ones."""
    widths = (
        sizes if isinstance(sizes, (Sequence, np.ndarray)) and np.ndim(sizes) == 1 else (sizes,)
    )
    infinite = [isinstance(width, (float, np.floating)) and width == np.inf for width in widths]
    if any(infinite) and not all(infinite):
        raise ValueError(
            f"hidden_layer_sizes={shown(sizes)} mixes finite and infinite widths: make all of them "
            "inf or none."
        )
    return sum(infinite)


def check_generator(random_state: Any) -> np.random.RandomState:
    """Return the generator that `random_state` stands for."""
    try:
        generator: np.random.RandomState = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state={shown(random_state)} must be an integer, a RandomState or None."
        ) from error
    return generator


def check_invertible(name: str, f: Activation, remedy: str) -> None:
    """Raise an error if targets cannot be pulled back through f."""
    if not f.invertible:
        invertible = ", ".join(key for key, each in ACTIVATIONS.items() if each.invertible)
        raise ValueError(f"{name}={shown(f.name)} has no inverse: {remedy} or one of {invertible}.")


def check_differentiable(name: str, f: Activation) -> None:
    """Raise an error if the sensitivity of f to its input is not known."""
    if f.derivative is None:
        raise ValueError(
            f"{name}={shown(f.name)} has no derivative, which hidden='metric' needs: use "
            "hidden='random' or an Activation that has one."
        )


def check_given_weights(init: Any, shapes: Sequence[tuple[int, int]]) -> list[Array]:
    """Return given weights, bias rows first, as float64 arrays of the shapes that are needed."""
    wanted = ", ".join(map(str, shapes)) or "none"
    if not isinstance(init, Sequence) or len(init) != len(shapes):
        raise ValueError(f"init must be a list of {len(shapes)} arrays, of shapes {wanted}.")
    weights = []
    for k, (given, shape) in enumerate(zip(init, shapes, strict=True)):
        W = as_real_array(f"init[{k}]", given)
        if W.shape != shape:
            raise ValueError(f"init[{k}] has shape {W.shape}, but {shape} is needed, bias first.")
        if not np.isfinite(W).all():
            raise ValueError(f"init[{k}] must be finite, but holds NaN or infinity.")
        weights.append(W)
    return weights
