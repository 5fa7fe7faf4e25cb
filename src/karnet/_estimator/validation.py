"""Checks of inputs, targets and weights: each error says in one sentence what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from .._arrays import namespace as arrays
from .._arrays.threads import ONE_THREAD
from .._columns.frames import Column, columns_of, is_frame
from .._rows.memory import block_slices
from .._util.checks import all_finite
from .._util.messages import shown
from ..activations import Array
from .dask_methods import is_dask

# Largest target: sums of squares of larger ones may overflow.
LARGEST_TARGET = 1e140
# Largest sample weight: sums of larger ones times squared targets may overflow.
LARGEST_WEIGHT = 1e20
# Errors raised by conversions of values that are not numbers, or not numbers of float64.
REFUSALS = (TypeError, ValueError, OverflowError)


@contextmanager
def unchanged_on_failure(estimator: object) -> Iterator[None]:
    """Restore the attributes of the estimator if the block raises an error or is interrupted."""
    before, inside = dict(vars(estimator)), ONE_THREAD.is_inside()
    try:
        yield
    except BaseException as error:
        # In one step: another interrupt must not come in between.
        estimator.__dict__ = before
        if not inside:
            ONE_THREAD.leave()
        if isinstance(error, MemoryError) and not str(error):  # from wrappers of LAPACK
            raise MemoryError(
                "there is not enough memory for this: use fewer rows, features or units."
            ) from error
        raise


def check_inputs(estimator: Any, X: Any, *, reset: bool, finite: bool = True) -> Any:
    """Return X as a float array or CSR matrix of finite numbers, feature names checked.

    With ``finite=False`` the check for finite numbers is left to a later pass.
    """
    if is_dask(X):
        raise ValueError(
            "X is a Dask collection, which only fit, score and the methods that predict accept: "
            "compute one block after the other and pass the blocks."
        )
    if arrays.is_remote(X) and not get_tags(estimator).array_api_support:
        raise ValueError(
            f"X is {arrays.described(X)}, which {type(estimator).__name__} cannot use: give a "
            "NumPy array, and device='cuda' to compute on a GPU."
        )
    try:
        checked = _validated(estimator, arrays.without_gradient(X), reset)
    except REFUSALS as error:
        raise _refusal(X, error) from error
    if finite or arrays.is_foreign(checked):
        refuse_infinite(checked, getattr(estimator, "feature_names_in_", None))
    return checked


def check_columns(estimator: Any, X: Any, *, reset: bool) -> tuple[list[Column], list[str]]:
    """Return the columns of a table that need not be numbers, and their names in errors."""
    try:
        if is_frame(X):
            _check_names(X)
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        else:
            options: dict[str, Any] = {"dtype": None, "accept_sparse": "csr"}
            X = validate_data(estimator, X, reset=reset, ensure_all_finite=False, **options)
            X = X.toarray() if hasattr(X, "tocoo") else X
    except REFUSALS as error:
        raise _refusal(X, error) from error
    if not len(X):
        raise ValueError("Found array with 0 sample(s), and a minimum of 1 is required.")
    known = getattr(X, "columns", getattr(estimator, "feature_names_in_", None))
    names = [_column_name(k, known) for k in range(X.shape[1])]
    columns = columns_of(X, names)
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind == "f" and np.isinf(column).any():
            raise ValueError(f"X holds infinity (inf) in column {name}: leave out such values.")
    return columns, names


def _check_names(frame: Any) -> None:
    if len(set(frame.columns)) < len(frame.columns):
        raise ValueError("X must have unique column names.")


def set_columns(estimator: Any, n_features: int, names: Any) -> None:
    """Set the number of the columns of a fit, and their names if they have any."""
    estimator.n_features_in_ = n_features
    estimator.__dict__.pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)


def _validated(estimator: Any, X: Any, reset: bool) -> Any:
    """Return X as scikit-learn validates it; an array on a device stays there."""
    options: dict[str, Any] = {"reset": reset, "ensure_all_finite": False}
    dispatched = is_dispatched(X)
    if dispatched or not arrays.is_remote(X):
        xp = arrays.namespace(X) if dispatched else np
        options |= {"dtype": [xp.float64, xp.float32], "accept_sparse": "csr"}
        return validate_data(estimator, X, **options)
    # Scikit-learn cannot read X: it sees zeros of the same shape, which take no memory.
    xp = arrays.namespace(X)
    kind = complex if xp.isdtype(X.dtype, "complex floating") else float
    validate_data(estimator, np.broadcast_to(np.zeros((), kind), X.shape), **options)
    return X if X.dtype in (xp.float64, xp.float32) else arrays.float64(X)


def is_dispatched(x: Any) -> bool:
    """Return whether scikit-learn computes with x by the functions of the library of x."""
    return arrays.is_foreign(x) and bool(get_config()["array_api_dispatch"])


def checked_block(names: Any, X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Return a block of rows whose inputs are finite."""
    refuse_infinite(X, names)
    return X, y, weight


def check_same_library(X: Any, weights: Any, method: str) -> None:
    """Raise an error if X is of another library, or on another device, than the weights."""
    if not any(is_dispatched(M) or arrays.is_remote(M) for M in (X, weights)):
        return
    mine, fitted = map(arrays.described, (X, weights))
    if mine != fitted:
        raise ValueError(
            f"X of {method}() must use the same namespace and the same device as the X of fit(), "
            f"but is {mine} instead of {fitted}."
        )


def refuse_infinite(X: Any, names: Any) -> None:
    """Raise an error that names the column if there is NaN or infinity in X."""
    if arrays.is_foreign(X):
        xp = arrays.namespace(X)
        # A finite sum has finite terms, and needs no memory.
        if not bool(xp.isfinite(xp.sum(X))) and not bool(xp.all(xp.isfinite(X))):
            _raise_infinite(arrays.to_numpy(X), names)
        return
    for rows in block_slices(*X.shape):
        block = X[rows]
        if not all_finite(block.data if hasattr(block, "tocoo") else block):
            _raise_infinite(block, names)


def plain_inputs(X: Any) -> Any:
    """Return X as a float array or CSR matrix of two dimensions; it may hold NaN and infinity."""
    options = {"dtype": [np.float64, np.float32], "ensure_all_finite": False}
    try:
        return check_array(X, accept_sparse="csr", ensure_min_samples=0, **options)
    except REFUSALS as error:
        raise _refusal(X, error) from error


def _refusal(X: Any, error: Exception) -> Exception:
    """Return an error that describes in one sentence what is wrong with X."""
    return (TypeError if isinstance(error, TypeError) else ValueError)(_sentence(X, str(error)))


def _sentence(X: Any, message: str) -> str:
    """Return one sentence for a message of scikit-learn, which may show the whole table."""
    if "Expected 2D array" in message:
        return (
            f"X must have two dimensions, rows and features, but its shape is {np.shape(X)}: "
            "Reshape your data, one feature with X.reshape(-1, 1), one row with X.reshape(1, -1)."
        )
    if "Complex data not supported" in message:
        return "X must hold real numbers: Complex data not supported."
    if "unique column names" in message:
        return "X has several columns of one name: give each column its own name."
    if "all input features have string names" in message:
        kinds = sorted({type(name).__name__ for name in X.columns})
        return (
            f"the column names of X are of several types ({' and '.join(kinds)}): make all of them "
            "text."
        )
    if message.startswith("The feature names"):
        return message  # a list of several lines
    ragged = "X must hold numbers in rows of equal length."
    if "inhomogeneous shape" in message:
        return ragged
    try:
        column = _column_without_numbers(X)
    except ValueError:
        return ragged
    message = message.partition("\n")[0]
    if column is not None:
        return f"X must hold numbers, but column {column} does not ({message}): encode it first."
    return message


def _column_without_numbers(X: Any) -> str | None:
    # Sparse matrices and arrays of other libraries hold nothing but numbers.
    numbers = hasattr(X, "tocoo") or arrays.is_foreign(X)
    table = np.empty(0) if numbers else np.asarray(X, dtype=object)
    for k in range(table.shape[1] if table.ndim == 2 else 0):
        try:
            table[:, k].astype(np.float64)
        except REFUSALS:
            return _column_name(k, getattr(X, "columns", None))
    return None


def _column_name(k: int, names: Any) -> str:
    return f"{k} (counted from 0)" if names is None else repr(names[k])


def _raise_infinite(block: Any, names: Any) -> None:
    bad = ~np.isfinite(block.toarray() if hasattr(block, "tocoo") else block)
    name = _column_name(int(np.flatnonzero(bad.any(axis=0))[0]), names)
    raise ValueError(
        f"X holds NaN or infinity (inf) in column {name}: fill in or leave out such values first."
    )


def check_real_targets(y: Any, n_rows: int) -> Array:
    """Return y as a finite float64 array of one or two dimensions, with the rows of X."""
    y = _on_host(y)
    try:
        y = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False)
    except REFUSALS as error:
        raise ValueError(
            "y must hold real numbers, one row per sample and one column per output."
        ) from error
    _check_targets(y, n_rows)
    if np.abs(y).max() > LARGEST_TARGET:
        raise ValueError("y holds values too large to be squared: give it in another unit.")
    # Products round differently for columns that are contiguous; results must not depend on it.
    return np.asarray(y, order="C")


def check_labels(targets: Any, n_rows: int) -> NDArray[Any]:
    """Return the targets as one label per row, of any type that can be sorted."""
    y = one_column(_on_host(targets))
    _check_targets(y, n_rows)
    if y.dtype == object:
        check_sortable(y)
    if y.dtype.kind in "fc":
        check_classification_targets(y)
    return y


def one_column(targets: Any) -> NDArray[Any]:
    """Return the targets as one column of labels."""
    try:
        y: NDArray[Any] = np.asarray(column_or_1d(targets, warn=True))
    except REFUSALS as error:
        message = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(f"y must hold one label per row: {message}.") from error
    if y.dtype.kind == "V":
        raise ValueError(f"y holds {y.dtype}, not labels: use integers or text for the classes.")
    return y.astype(object).astype(str) if y.dtype.kind == "T" else y


def check_sortable(y: NDArray[Any]) -> None:
    """Raise an error if labels are missing or cannot be sorted."""
    try:
        missing = any(bool(label is None or label != label) for label in y)
        np.unique(y)
    except REFUSALS as error:
        missing = any(label is None for label in y)
        if not missing:
            raise ValueError(
                f"y holds labels that cannot be sorted ({error}): give all of them one type."
            ) from error
    if missing:
        raise ValueError("y holds missing labels (None or NaN): leave out rows without a class.")


def _on_host(y: Any) -> Any:
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None.")
    return arrays.to_numpy(y) if arrays.is_foreign(y) else y


def check_rows(y: Any, n_rows: int) -> None:
    """Raise an error if the numbers of rows of y and X differ."""
    if y.shape[0] != n_rows:
        raise ValueError(f"y must have as many rows as X, {n_rows}, but has {y.shape[0]}.")


def _check_targets(y: NDArray[Any], n_rows: int) -> None:
    check_rows(y, n_rows)
    if y.dtype.kind in "fc" and not np.isfinite(y).all():
        raise ValueError("y holds NaN or infinity (inf): leave out rows without a target.")


def check_weight(sample_weight: Any, n_rows: int, some_positive: bool = True) -> Array | None:
    """Return sample weights as a float64 array of non-negative numbers that are not all 0."""
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
    if weight.max(initial=0.0) > LARGEST_WEIGHT:
        raise ValueError(f"sample_weight must not exceed {LARGEST_WEIGHT:.0e}: divide all weights.")
    return weight


def without_zeros(X: Any, y: Any, weight: Array | None) -> tuple[Any, Any, Array | None]:
    """Return the rows whose weight is not 0."""
    if weight is None or weight.all():
        return X, y, weight
    kept = weight > 0.0
    return X[arrays.like(X, kept)], y[kept], weight[kept]


def as_real_array(name: str, values: Any) -> Array:
    """Return values as a float64 array; raise an error if they are not numbers."""
    try:
        array = np.array(values)
        if array.dtype.kind in "biuf" or array.dtype == object:
            return array.astype(np.float64)
    except REFUSALS:
        pass
    raise ValueError(f"{name} must hold real numbers only, in rows of equal length.")


def weights_of_classes(
    class_weight: Any, classes: NDArray[Any], totals: NDArray[Any], batch: bool = False
) -> Array:
    """Return one weight per class of rows, which may be a batch without rows of some classes."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        if batch:
            raise ValueError(
                "class_weight='balanced' needs all rows at once: give the weights as a dict, or "
                "use fit."
            )
        per_class = totals.sum() / (len(classes) * totals)
    elif isinstance(class_weight, dict):
        labels = classes.tolist()
        unknown = [] if batch else [label for label in class_weight if label not in labels]
        if unknown and len(class_weight) - len(unknown) < len(classes):
            raise ValueError(f"class_weight names {unknown[0]!r}, a class that y does not hold.")
        per_class = as_real_array("class_weight", [class_weight.get(each, 1.0) for each in labels])
    else:
        raise ValueError(f"class_weight={shown(class_weight)} must be a dict, 'balanced' or None.")
    if not (np.isfinite(per_class) & (per_class >= 0.0)).all() or not per_class.any():
        raise ValueError("class_weight must be finite, not negative, and not zero for every class.")
    return np.asarray(per_class)
