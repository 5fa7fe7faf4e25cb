"""What a user may get wrong, each answered with one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from .activations import ACTIVATIONS, Activation, Array
from .blocks import block_slices

__all__ = [
    "check_given_weights",
    "check_inputs",
    "check_invertible",
    "check_one_of",
    "check_positive_integer",
    "check_real_targets",
    "check_sizes",
    "check_weight",
    "unchanged_on_failure",
]


@contextmanager
def unchanged_on_failure(estimator: object) -> Iterator[None]:
    """Put the estimator's attributes back as they were if the block does not end well."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def check_inputs(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return X as a float array or CSR matrix of finite numbers, feature names checked."""
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
    )
    for rows in block_slices(X.shape[0], X.shape[1]):
        block = X[rows]
        finite = np.isfinite(block.data if hasattr(block, "tocoo") else block)
        if not finite.all():
            _refuse_infinite(estimator, block)
    return X


def _refuse_infinite(estimator: Any, block: Any) -> None:
    bad = ~np.isfinite(block.toarray() if hasattr(block, "tocoo") else block)
    column = int(np.flatnonzero(bad.any(axis=0))[0])
    names = getattr(estimator, "feature_names_in_", None)
    name = f"{column} (counted from 0)" if names is None else repr(names[column])
    raise ValueError(
        f"X holds NaN or infinity (inf) in column {name}: fill in or leave out such values first."
    )


def check_real_targets(y: Any, X: Any) -> Array:
    """Return y as a finite float64 array with one or two dimensions and as many rows as X."""
    refuse_missing_targets(y)
    try:
        y = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y must hold numbers, one row per sample and one column per output ({error})."
        ) from error
    check_consistent_length(X, y)
    refuse_infinite_targets(y)
    return np.asarray(y)


def refuse_missing_targets(y: Any) -> None:
    """Raise an error if there are no targets."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None.")


def refuse_infinite_targets(y: NDArray[Any]) -> None:
    """Raise an error if the targets are numbers that are not all finite."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y holds NaN or infinity (inf): leave out rows without a known target.")


def check_weight(sample_weight: Any, n_rows: int) -> Array | None:
    """Return weights as a float64 array of non-negative numbers that are not all 0."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n_rows, weight)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one entry per row of X, ({n_rows},), "
            f"but its shape is {weight.shape}."
        )
    if not (np.isfinite(weight) & (weight >= 0.0)).all() or not weight.any():
        raise ValueError("sample_weight must be finite, not negative, and not zero for every row.")
    return weight


def check_sizes(sizes: Any) -> tuple[int, ...]:
    """Return the widths of the hidden layers."""
    given = sizes
    if isinstance(sizes, Integral):
        sizes = (sizes,)
    if isinstance(sizes, str) or not isinstance(sizes, (Sequence, np.ndarray)):
        raise ValueError(f"hidden_layer_sizes={given!r} must be a tuple of integers, like (100,).")
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
            raise ValueError(
                f"hidden_layer_sizes={given!r} must hold integers of at least 1, "
                "or nothing for a network without hidden layers."
            )
    return tuple(int(size) for size in sizes)


def check_positive_integer(name: str, value: Any) -> int:
    """Return an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r} must be an integer of at least 1.")
    return int(value)


def check_one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Return one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}={value!r} is not known: give one of {', '.join(allowed)}.")
    return value


def check_invertible(name: str, f: Activation, remedy: str) -> None:
    """Raise an error if targets cannot be pulled back through f."""
    if not f.invertible:
        invertible = ", ".join(key for key, each in ACTIVATIONS.items() if each.invertible)
        raise ValueError(f"{name}={f.name!r} has no inverse: {remedy} or one of {invertible}.")


def check_given_weights(init: Any, shapes: Sequence[tuple[int, int]]) -> list[Array]:
    """Return given weights, bias rows first, as float64 arrays of the shapes that are needed."""
    wanted = ", ".join(map(str, shapes)) or "none"
    if not isinstance(init, Sequence) or len(init) != len(shapes):
        raise ValueError(f"init must be a list of {len(shapes)} arrays, of shapes {wanted}.")
    weights = []
    for k, (given, shape) in enumerate(zip(init, shapes, strict=True)):
        W = np.array(given, dtype=np.float64)
        if W.shape != shape:
            raise ValueError(f"init[{k}] has shape {W.shape}, but {shape} is needed, bias first.")
        if not np.isfinite(W).all():
            raise ValueError(f"init[{k}] must be finite, but holds NaN or infinity.")
        weights.append(W)
    return weights
