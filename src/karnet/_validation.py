"""What a user may get wrong, each answered with one sentence."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from . import _array as arrays
from ._rows import block_slices
from .activations import ACTIVATIONS, Activation, Array

__all__ = [
    "as_real_array",
    "check_class_weight",
    "check_differentiable",
    "check_flag",
    "check_generator",
    "check_given_weights",
    "check_inputs",
    "check_invertible",
    "check_labels",
    "check_one_of",
    "check_positive",
    "check_positive_integer",
    "check_real_targets",
    "check_rows",
    "check_same_library",
    "check_sizes",
    "check_weight",
    "checked_block",
    "infinite_depth",
    "is_dask",
    "plain_inputs",
    "refuse_infinite",
    "unchanged_on_failure",
    "weights_of_classes",
    "without_zeros",
]

# Sums of squares of larger ones may overflow.
LARGEST_TARGET = 1e140


@contextmanager
def unchanged_on_failure(estimator: object) -> Iterator[None]:
    """Put the estimator's attributes back as they were if the block does not end well."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException as error:
        # In one go: another interrupt must not come in between.
        estimator.__dict__ = before
        if isinstance(error, MemoryError) and not str(error):  # as LAPACK's wrappers say it
            raise MemoryError(
                "there is not enough memory for this: use fewer rows, features or units."
            ) from error
        raise


def is_dask(*tables: Any) -> bool:
    """Return whether one of the tables is a Dask collection, which NumPy would pull into memory."""
    dask = sys.modules.get("dask")  # without it there are none
    return dask is not None and any(map(dask.is_dask_collection, tables))


def check_inputs(estimator: Any, X: Any, *, reset: bool, finite: bool = True) -> Any:
    """Return X as a float array or CSR matrix of finite numbers, feature names checked.

    Whether numbers are finite need not be found out if they are checked later.
    """
    if is_dask(X):
        raise ValueError(
            "X is a Dask collection, which fit, score and the methods that predict take, and no "
            "others: give one computed block of it after the other."
        )
    try:
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=_floats(X),
            ensure_all_finite=False,
        )
    except (TypeError, ValueError) as error:
        raise type(error)(_one_sentence(X, error)) from error
    if finite or arrays.is_foreign(checked):
        refuse_infinite(checked, getattr(estimator, "feature_names_in_", None))
    return checked


def checked_block(names: Any, X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Return a block of rows whose inputs are finite."""
    refuse_infinite(X, names)
    return X, y, weight


def _floats(X: Any) -> list[Any]:
    """Return the types of numbers that X may hold."""
    if not arrays.is_foreign(X) or not get_config()["array_api_dispatch"]:
        return [np.float64, np.float32]
    xp = arrays.namespace(X)
    return [xp.float64, xp.float32]


def check_same_library(X: Any, weights: Any, method: str) -> None:
    """Raise an error if X is of another library, or on another device, than what was learned."""
    if not get_config()["array_api_dispatch"]:
        return
    kinds = [(type(each), arrays.device_of(each)) for each in (X, weights)]
    if (arrays.is_foreign(X) or arrays.is_foreign(weights)) and kinds[0] != kinds[1]:
        raise ValueError(
            f"X of {method}() must use the same namespace and the same device as the X of fit(), "
            f"but is a {kinds[0][0].__name__} on {kinds[0][1]} instead of a "
            f"{kinds[1][0].__name__} on {kinds[1][1]}."
        )


def refuse_infinite(X: Any, names: Any) -> None:
    """Raise an error that names the column if there is NaN or infinity in X."""
    if arrays.is_foreign(X):
        xp = arrays.namespace(X)
        # A finite sum has finite terms, and takes no room.
        if not bool(xp.isfinite(xp.sum(X))) and not bool(xp.all(xp.isfinite(X))):
            _say_where_infinite(arrays.to_numpy(X), names)
        return
    for rows in block_slices(*X.shape):
        block = X[rows]
        values = block.data if hasattr(block, "tocoo") else block
        with np.errstate(over="ignore", invalid="ignore"):
            # A finite sum has finite terms, and takes no room.
            fine = np.isfinite(np.sum(values)) or np.isfinite(values).all()
        if not fine:
            _say_where_infinite(block, names)


def plain_inputs(X: Any) -> Any:
    """Return X as a float array or CSR matrix of two dimensions; it may hold NaN and infinity."""
    try:
        kinds = [np.float64, np.float32]
        return check_array(
            X, accept_sparse="csr", dtype=kinds, ensure_all_finite=False, ensure_min_samples=0
        )
    except (TypeError, ValueError) as error:
        raise type(error)(_one_sentence(X, error)) from error


def _one_sentence(X: Any, error: Exception) -> str:
    """Return what is wrong with X; scikit-learn may print the whole table, or no column."""
    said = str(error)
    if "Expected 2D array" in said:
        return (
            f"X must have two dimensions, rows and features, but its shape is {np.shape(X)}: "
            "Reshape your data, one feature with X.reshape(-1, 1), one row with X.reshape(1, -1)."
        )
    if "Complex data not supported" in said:
        return "X must hold real numbers: Complex data not supported."
    column = _column_without_numbers(X)
    if column is not None:
        return f"X must hold numbers, but column {column} does not ({said}): encode it first."
    return said


def _column_without_numbers(X: Any) -> str | None:
    if np.ndim(X) != 2 or hasattr(X, "tocoo"):
        return None
    names = getattr(X, "columns", None)
    table = np.asarray(X, dtype=object)
    for k in range(table.shape[1]):
        try:
            table[:, k].astype(np.float64)
        except (TypeError, ValueError):
            return _column_name(k, names)
    return None


def _column_name(k: int, names: Any) -> str:
    return f"{k} (counted from 0)" if names is None else repr(names[k])


def _say_where_infinite(block: Any, names: Any) -> None:
    bad = ~np.isfinite(block.toarray() if hasattr(block, "tocoo") else block)
    name = _column_name(int(np.flatnonzero(bad.any(axis=0))[0]), names)
    raise ValueError(
        f"X holds NaN or infinity (inf) in column {name}: fill in or leave out such values first."
    )


def check_real_targets(y: Any, n_rows: int) -> Array:
    """Return y as a finite float64 array with one or two dimensions and as many rows as X."""
    _refuse_no_targets(y)
    y = arrays.to_numpy(y) if arrays.is_foreign(y) else y
    try:
        y = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "y must hold real numbers, one row per sample and one column per output."
        ) from error
    check_rows(y, n_rows)
    _refuse_infinite_targets(y)
    if np.abs(y).max() > LARGEST_TARGET:
        raise ValueError("y holds values too large to be squared: give it in another unit.")
    # Products round differently on columns in one piece; results must not depend on that.
    return np.asarray(y, order="C")


def check_labels(targets: Any, n_rows: int) -> NDArray[Any]:
    """Return the targets as one label per row, of any type that can be sorted."""
    _refuse_no_targets(targets)
    targets = arrays.to_numpy(targets) if arrays.is_foreign(targets) else targets
    y: NDArray[Any] = np.asarray(column_or_1d(targets, warn=True))
    check_rows(y, n_rows)
    _refuse_infinite_targets(y)
    if y.dtype == object and any(label is None or label != label for label in y):
        raise ValueError("y holds missing labels (None or NaN): leave out rows without a class.")
    if y.dtype.kind in "fc":
        check_classification_targets(y)
    try:
        if y.dtype == object:
            np.unique(y)
    except TypeError as error:
        raise ValueError(
            f"y holds labels that cannot be sorted ({error}): give all of them one type."
        ) from error
    return y


def _refuse_no_targets(y: Any) -> None:
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None.")


def check_rows(y: Any, n_rows: int) -> None:
    """Raise an error if y has not as many rows as X."""
    if y.shape[0] != n_rows:
        raise ValueError(f"y must have as many rows as X, {n_rows}, but has {y.shape[0]}.")


def _refuse_infinite_targets(y: NDArray[Any]) -> None:
    if y.dtype.kind in "fc" and not np.isfinite(y).all():
        raise ValueError("y holds NaN or infinity (inf): leave out rows without a known target.")


def check_weight(sample_weight: Any, n_rows: int, some_positive: bool = True) -> Array | None:
    """Return weights as a float64 array of non-negative numbers that are not all 0."""
    if sample_weight is None:
        return None
    if arrays.is_foreign(sample_weight):
        sample_weight = arrays.to_numpy(sample_weight)
    weight = as_real_array("sample_weight", sample_weight)
    if weight.ndim == 0:
        weight = np.full(n_rows, weight)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one entry per row of X, ({n_rows},), "
            f"but its shape is {weight.shape}."
        )
    if not (np.isfinite(weight) & (weight >= 0.0)).all() or (some_positive and not weight.any()):
        raise ValueError("sample_weight must be finite, not negative, and not zero for every row.")
    return weight


def without_zeros(
    X: Any, y: NDArray[Any], weight: Array | None
) -> tuple[Any, NDArray[Any], Array | None]:
    """Return the rows whose weight is not 0."""
    if weight is None or weight.all():
        return X, y, weight
    kept = weight > 0.0
    return X[arrays.like(X, kept)], y[kept], weight[kept]


def as_real_array(name: str, values: Any) -> Array:
    """Return values as a float64 array, or say that they are no numbers."""
    try:
        array = np.array(values)
        if array.dtype.kind in "biuf" or array.dtype == object:
            return array.astype(np.float64)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} must hold real numbers only, in rows of equal length.")


def check_class_weight(class_weight: Any, y: NDArray[Any], weight: Array | None) -> Array | None:
    """Return the weights of the rows times those of their classes."""
    if class_weight is None:
        return weight
    classes, codes = np.unique(y, return_inverse=True)
    per_class = weights_of_classes(class_weight, classes, np.bincount(codes, weight))
    return np.asarray(per_class[codes] if weight is None else weight * per_class[codes])


def weights_of_classes(class_weight: Any, classes: NDArray[Any], totals: NDArray[Any]) -> Array:
    """Return one weight per class; `totals` are the weights of their rows in all."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        per_class = totals.sum() / (len(classes) * totals)
    elif isinstance(class_weight, dict):
        unknown = [label for label in class_weight if label not in classes.tolist()]
        if unknown and len(class_weight) - len(unknown) < len(classes):
            raise ValueError(f"class_weight names {unknown[0]!r}, a class that y does not hold.")
        per_class = as_real_array(
            "class_weight", [class_weight.get(label, 1.0) for label in classes.tolist()]
        )
    else:
        raise ValueError(f"class_weight={class_weight!r} must be a dict, 'balanced' or None.")
    if not (np.isfinite(per_class) & (per_class >= 0.0)).all() or not per_class.any():
        raise ValueError("class_weight must be finite, not negative, and not zero for every class.")
    return np.asarray(per_class)


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
        raise ValueError(f"hidden_layer_sizes={given!r} must be a tuple of integers, like (100,).")
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
            raise ValueError(
                f"hidden_layer_sizes={given!r} must hold integers of at least 1, "
                "or nothing for a network without hidden layers."
            )
    return tuple(int(size) for size in sizes)


def infinite_depth(sizes: Any) -> int:
    """Return the number of infinitely wide hidden layers; 0 if there are none but finite ones."""
    widths = (
        sizes if isinstance(sizes, (Sequence, np.ndarray)) and np.ndim(sizes) == 1 else (sizes,)
    )
    infinite = [isinstance(width, (float, np.floating)) and width == np.inf for width in widths]
    if any(infinite) and not all(infinite):
        raise ValueError(
            f"hidden_layer_sizes={sizes!r} mixes finite and infinite widths: make all of them inf "
            "or none."
        )
    return sum(infinite)


def check_positive_integer(name: str, value: Any) -> int:
    """Return an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r} must be an integer of at least 1.")
    return int(value)


def check_positive(name: str, value: Any) -> float:
    """Return a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < np.inf:
        raise ValueError(f"{name}={value!r} must be a positive number.")
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r} must be True or False.")
    return bool(value)


def check_generator(random_state: Any) -> np.random.RandomState:
    """Return the generator that `random_state` stands for."""
    try:
        generator: np.random.RandomState = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state={random_state!r} must be an integer, a RandomState or None."
        ) from error
    return generator


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


def check_differentiable(name: str, f: Activation) -> None:
    """Raise an error if the sensitivity of f to its input is not known."""
    if f.derivative is None:
        raise ValueError(
            f"{name}={f.name!r} has no derivative, which hidden='metric' needs: use "
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
