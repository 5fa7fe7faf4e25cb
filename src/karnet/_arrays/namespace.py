"""Functions of NumPy arrays and of arrays of other libraries, under one name each.

Other rooms compute with arrays of any library, and find here the functions that differ between
libraries.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .devices import WRAPPED, is_cuda, library, log_odds_kernel, own_function
from .devices import check_device as check_device
from .devices import upload as upload

T = TypeVar("T")

# A tuple: to build the union of both types takes longer than some small computations.
NUMPY = (np.ndarray, np.generic)


def is_host(x: Any) -> bool:
    """Return whether x is a NumPy array or a sparse matrix."""
    return isinstance(x, NUMPY) or hasattr(x, "tocsr")


def is_foreign(x: Any) -> bool:
    """Return whether x is an array of another library that follows the array standard."""
    return not is_host(x) and (library(x) in WRAPPED or hasattr(x, "__array_namespace__"))


def is_remote(x: Any) -> bool:
    """Return whether x is an array of another library on a device that NumPy cannot read."""
    if not is_foreign(x):
        return False
    try:
        np.asarray(without_gradient(x)[(slice(0),) * x.ndim])
    except (TypeError, RuntimeError):
        return True
    return False


def without_gradient(x: Any) -> Any:
    """Return x without the record of operations that gradients are computed from, if it has one."""
    return x.detach() if is_foreign(x) and hasattr(x, "detach") else x


def namespace(x: Any) -> Any:
    """Return the module with the functions of the array standard for the library of x."""
    if isinstance(x, NUMPY):
        return np
    if library(x) not in WRAPPED:
        return x.__array_namespace__()
    try:
        import array_api_compat
    except ImportError as error:
        raise ImportError(
            f"arrays of {library(x)} need array-api-compat: pip install 'karnet[gpu]'."
        ) from error
    return array_api_compat.array_namespace(x)


def described(x: Any) -> str:
    """Return the library and the device of an array in words."""
    return f"an array of {library(x)} on {'the CPU' if is_host(x) else x.device}"


def like(x: Any, values: Any) -> Any:
    """Return values, if any, as an array of the library of x on the device of x."""
    if values is None:
        return None
    if is_host(x):
        return values if is_host(values) else to_numpy(values)
    if type(values) is type(x) and values.device == x.device:
        return values
    values = to_numpy(values)
    # A read-only array is copied: torch would warn of shared memory.
    values = values if values.flags.writeable else values.copy()
    return namespace(x).asarray(values, device=x.device)


def to_numpy(x: Any) -> NDArray[Any]:
    """Return x as a NumPy array."""
    if isinstance(x, NUMPY):
        return np.asarray(x)
    if hasattr(x, "cpu"):  # torch
        return np.asarray(without_gradient(x).cpu())
    if hasattr(x, "get"):  # CuPy
        return np.asarray(x.get())
    xp = namespace(x)
    if hasattr(xp, "Device"):  # array-api-strict converts arrays of this device only
        x = xp.asarray(x, device=xp.Device("CPU_DEVICE"))
    return np.asarray(x)


def on_host(thing: T) -> T:
    """Return a dataclass, nested ones included, with all its arrays as NumPy arrays."""
    if is_dataclass(thing) and not isinstance(thing, type):
        return replace(thing, **{e.name: on_host(getattr(thing, e.name)) for e in fields(thing)})
    if hasattr(thing, "shape") and not is_host(thing):
        return to_numpy(thing)  # type: ignore[return-value]
    return thing


def as_type(x: Any, dtype: Any) -> Any:
    """Return x with another dtype."""
    return np.asarray(x, dtype=dtype) if is_host(x) else namespace(x).astype(x, dtype)


def narrowed(x: Any, dtype: Any) -> Any:
    """Return x with another dtype, clipped to its range; x is overwritten."""
    if is_host(x):
        x = np.clip(x, np.finfo(dtype).min, np.finfo(dtype).max, out=x)
    return as_type(x, dtype)


def float64(x: Any) -> Any:
    """Return x in float64."""
    if isinstance(x, np.ndarray):
        return np.asarray(x, dtype=np.float64)
    xp = namespace(x)
    return x if x.dtype == xp.float64 else xp.astype(x, xp.float64)


def _special(name: str, x: Any) -> Any:
    if is_host(x):
        return getattr(special, name)(x)
    own = own_function(x, name)
    return like(x, getattr(special, name)(to_numpy(x))) if own is None else own(x)


expit = partial(_special, "expit")  # 1 / (1 + exp(-x))
log_expit = partial(_special, "log_expit")  # the logarithm of 1 / (1 + exp(-x))
erf = partial(_special, "erf")  # the error function


def is_single(x: Any) -> bool:
    """Return whether x is a NumPy array of single precision."""
    return is_host(x) and x.dtype == np.float32


def exp_in_place(x: Any) -> Any:
    """Return the exponential of x, which may be overwritten."""
    if is_host(x):
        return np.exp(x, out=x)
    own = own_function(x, "exp_in_place")
    return namespace(x).exp(x) if own is None else own(x)


def column_squares(A: Any) -> Any:
    """Return the sum of squares of each column."""
    return np.einsum("ij,ij->j", A, A) if is_host(A) else namespace(A).sum(A * A, axis=0)


def row_squares(A: Any) -> Any:
    """Return the sum of squares of each row."""
    return np.einsum("ij,ij->i", A, A) if is_host(A) else namespace(A).sum(A * A, axis=1)


def joined(parts: list[Any], axis: int = 0) -> Any:
    """Return arrays of one library, concatenated."""
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=axis)


def some_rows(X: Any, rows: slice) -> Any:
    """Return a slice of the rows of an array or sparse matrix."""
    return X[rows] if is_host(X) else X[(rows, ...)]


def selected(table: Any, indices: Any) -> Any:
    """Return the rows of a table at the given indices."""
    if is_host(indices) and is_host(table):
        return table[indices]
    if is_host(indices):
        indices = like(table, indices)
    return namespace(indices).take(like(indices, table), indices, axis=0)


def selected_columns(A: Any, columns: NDArray[Any], buffer: Any = None) -> Any:
    """Return some columns of A, in the given order, in a buffer if that has the shape."""
    if is_host(A):
        fits = buffer is not None and buffer.shape == (len(A), len(columns))
        # Indices that are clipped need no second buffer.
        return np.take(A, columns, axis=1, out=buffer if fits else None, mode="clip")
    return namespace(A).take(A, like(A, columns), axis=1)


def unique(y: Any) -> tuple[Any, Any]:
    """Return the sorted distinct values, and the index of each entry of y among them."""
    if is_host(y):
        return _unique_integers(y) or np.unique(y, return_inverse=True)
    distinct = namespace(y).unique_inverse(y)
    return distinct.values, distinct.inverse_indices


def _unique_integers(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return the result of `unique` without sorting for integers of a small range, else None."""
    if y.dtype.kind not in "iu" or not y.size:
        return None
    low, high = int(y.min()), int(y.max())
    if high - low > y.size + 1000 or not -(2**62) < low <= high < 2**62:
        return None
    shifted = y.astype(np.int64) - low
    present = np.bincount(shifted) > 0
    codes = np.cumsum(present) - 1
    return (np.flatnonzero(present) + low).astype(y.dtype), codes[shifted]


def full(x: Any, shape: tuple[int, ...], value: float) -> Any:
    """Return an array filled with one value, of the library of x on the device of x."""
    xp = namespace(x)
    return xp.full(shape, value, dtype=xp.float64, device=x.device)


def indices(x: Any, n: int) -> Any:
    """Return 0 ... n - 1 as an array of the library of x on the device of x."""
    return namespace(x).arange(n, device=x.device)


def stacked(values: list[Any]) -> Any:
    """Return numbers as one array, on the device of the first that is on a device."""
    first = next((each for each in values if hasattr(each, "shape") and not is_host(each)), None)
    if first is None:
        return np.array(values)
    scalars = (full(first, (), float(x)) if isinstance(x, float | int) else x for x in values)
    return namespace(first).stack(list(scalars))


def log_odds(x: Any, least: float) -> Any:
    """Return ``log|x / (1 - x)|`` on a device, the odds clipped to `least` and ``1 / least``."""
    if is_cuda(x) and (kernel := log_odds_kernel(library(x))) is not None:
        return kernel(x, least)
    xp = namespace(x)
    x = xp.clip(x, -1e300, 1e300)  # the quotient has a limit at infinity, but inf / inf is NaN
    return xp.log(xp.clip(xp.abs(x / (1.0 - x)), least, 1.0 / least))
