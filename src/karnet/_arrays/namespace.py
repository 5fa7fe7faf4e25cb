"""Arrays of other libraries than NumPy: their functions, their device, the way there and back.

Most rooms compute with whatever arrays they are given, and ask here for what libraries call by
different names. This is the only one that knows torch and CuPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from threading import local
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .._util.messages import shown

__all__ = [
    "SETTINGS",
    "as_type",
    "check_device",
    "column_squares",
    "device_of",
    "erf",
    "exp_in_place",
    "expit",
    "float64",
    "free_numbers",
    "full",
    "indices",
    "is_cuda",
    "is_foreign",
    "is_host",
    "is_out_of_memory",
    "joined",
    "library",
    "like",
    "log_expit",
    "log_odds",
    "namespace",
    "narrowed",
    "on_host",
    "row_squares",
    "selected",
    "some_rows",
    "stacked",
    "to_numpy",
    "torch_itself",
    "unique",
    "upload",
]

Array = NDArray[np.float64]
T = TypeVar("T")

TINY = float(np.finfo(np.float64).eps)


@dataclass
class DeviceSettings:
    """Assumptions about devices that computations depend on."""

    # Free memory, in numbers, of a device that does not report it.
    free_numbers: int = 2**24
    # Columns up to which CUDA sums distances column by column: for each distance torch starts 256
    # threads, which few columns leave idle.
    few_columns: int = 64
    # Whether devices multiply float32 much faster than float64; None to ask each device.
    slow_in_float64: bool | None = None


SETTINGS = DeviceSettings()
# Small problems ask for these so often that they would feel a union made anew.
NUMPY = (np.ndarray, np.generic)


def torch_itself() -> Any:
    """Return the module torch."""
    import torch

    return torch


def is_host(x: Any) -> bool:
    """Return whether x is an array of NumPy, or a sparse matrix."""
    return isinstance(x, NUMPY) or hasattr(x, "tocsr")


def is_foreign(x: Any) -> bool:
    """Return whether x is an array of another library than NumPy that keeps to the standard."""
    known = library(x) in ("torch", "cupy") or hasattr(x, "__array_namespace__")
    return known and not is_host(x)


def library(x: Any) -> str:
    """Return the name of the library that x is of."""
    return type(x).__module__.partition(".")[0]


def namespace(x: Any) -> Any:
    """Return the module of functions for the library of x, by the names of the array standard."""
    if isinstance(x, NUMPY):
        return np
    if library(x) not in ("torch", "cupy"):
        return x.__array_namespace__()
    try:
        import array_api_compat
    except ImportError as error:
        raise ImportError(
            f"arrays of {library(x)} need array-api-compat: pip install 'karnet[gpu]'."
        ) from error
    return array_api_compat.array_namespace(x)


def device_of(x: Any) -> Any:
    """Return the device that x lies on."""
    return None if is_host(x) else x.device


def like(x: Any, values: Any) -> Any:
    """Return values, if any, as an array of the library of x, on its device."""
    if values is None:
        return None
    if is_host(x):
        return values if is_host(values) else to_numpy(values)
    if type(values) is type(x) and values.device == x.device:
        return values
    if not isinstance(values, np.ndarray):
        values = to_numpy(values)
    # What cannot be written to is copied: torch would warn of sharing it.
    values = values if values.flags.writeable else values.copy()
    return namespace(x).asarray(values, device=x.device)


def to_numpy(x: Any) -> NDArray[Any]:
    """Return x as an array of NumPy."""
    if isinstance(x, NUMPY):
        return np.asarray(x)
    if hasattr(x, "cpu"):  # torch
        return np.asarray(x.detach().cpu())
    if hasattr(x, "get"):  # CuPy
        return np.asarray(x.get())
    xp = namespace(x)
    if hasattr(xp, "Device"):  # array-api-strict lets no other device be read
        x = xp.asarray(x, device=xp.Device("CPU_DEVICE"))
    return np.asarray(x)


def on_host(thing: T) -> T:
    """Return a dataclass with all arrays in it, and in dataclasses in it, as arrays of NumPy."""
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = {each.name: getattr(thing, each.name) for each in fields(thing)}
        return replace(thing, **{name: on_host(part) for name, part in parts.items()})
    if hasattr(thing, "shape") and not is_host(thing):
        return to_numpy(thing)  # type: ignore[return-value]
    return thing


def as_type(x: Any, dtype: Any) -> Any:
    """Return x with numbers of another type."""
    return np.asarray(x, dtype=dtype) if is_host(x) else namespace(x).astype(x, dtype)


def narrowed(x: Any, dtype: Any) -> Any:
    """Return x, overwritten, with numbers of a type; what that cannot hold is its largest one."""
    if is_host(x):
        x = np.clip(x, np.finfo(dtype).min, np.finfo(dtype).max, out=x)
    return as_type(x, dtype)


def float64(x: Any) -> Any:
    """Return x in float64."""
    if isinstance(x, np.ndarray):
        return np.asarray(x, dtype=np.float64)
    xp = namespace(x)
    return x if x.dtype == xp.float64 else xp.astype(x, xp.float64)


def expit(x: Any) -> Any:
    """Return ``1 / (1 + exp(-x))``."""
    return _special("expit", x)


def log_expit(x: Any) -> Any:
    """Return the logarithm of ``1 / (1 + exp(-x))``."""
    return _special("log_expit", x)


def erf(x: Any) -> Any:
    """Return the error function."""
    return _special("erf", x)


def _special(name: str, x: Any) -> Any:
    if is_host(x):
        return getattr(special, name)(x)
    function = _special_of(library(x), name)
    return like(x, getattr(special, name)(to_numpy(x))) if function is None else function(x)


@cache
def _special_of(library: str, name: str) -> Callable[[Any], Any] | None:
    if library == "torch":
        torch = torch_itself()
        known = {
            "expit": torch.sigmoid,
            "log_expit": torch.nn.functional.logsigmoid,
            "erf": torch.erf,
        }
        return known[name]
    if library == "cupy":
        import cupyx.scipy.special

        return getattr(cupyx.scipy.special, name, None)
    return None


def exp_in_place(x: Any) -> Any:
    """Return the exponential of x, which may be overwritten."""
    if is_host(x):
        return np.exp(x, out=x)
    return x.exp_() if library(x) == "torch" else namespace(x).exp(x)


def column_squares(A: Any) -> Any:
    """Return the sums of the squares of each column."""
    return np.einsum("ij,ij->j", A, A) if is_host(A) else namespace(A).sum(A * A, axis=0)


def row_squares(A: Any) -> Any:
    """Return the sums of the squares of each row."""
    return np.einsum("ij,ij->i", A, A) if is_host(A) else namespace(A).sum(A * A, axis=1)


def joined(parts: list[Any], axis: int = 0) -> Any:
    """Return arrays of one library one after the other."""
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=axis)


def some_rows(X: Any, rows: slice) -> Any:
    """Return a slice of the rows of an array or sparse matrix."""
    return X[rows] if is_host(X) else X[(rows, ...)]


def selected(table: Any, indices: Any) -> Any:
    """Return the rows of a table that indices name."""
    if is_host(indices):
        return table[indices]
    return namespace(indices).take(like(indices, table), indices, axis=0)


def unique(y: Any) -> tuple[Any, Any]:
    """Return the distinct values, sorted, and the index of each of y among them."""
    if is_host(y):
        return _unique_integers(y) or np.unique(y, return_inverse=True)
    found = namespace(y).unique_inverse(y)
    return found.values, found.inverse_indices


def _unique_integers(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return what `unique` does for integers near each other, without sorting; None for others."""
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
    """Return an array of one value, of the library of x and on its device."""
    xp = namespace(x)
    return xp.full(shape, value, dtype=xp.float64, device=x.device)


def indices(x: Any, n: int) -> Any:
    """Return 0 ... n - 1, of the library of x and on its device."""
    return namespace(x).arange(n, device=x.device)


def stacked(values: list[Any]) -> Any:
    """Return numbers, some of which may lie on a device, as one array there."""
    there = next((each for each in values if hasattr(each, "shape") and not is_host(each)), None)
    if there is None:
        return np.array(values)
    return namespace(there).stack([_on(there, each) for each in values])


def _on(x: Any, value: Any) -> Any:
    return full(x, (), float(value)) if isinstance(value, float | int) else value


def log_odds(x: Any, least: float) -> Any:
    """Return ``log|x / (1 - x)|`` of an array elsewhere, odds kept between `least` and 1 / it."""
    kernel = _log_odds_kernel(library(x)) if is_cuda(x) else None
    if kernel is not None:
        return kernel(x, least)
    xp = namespace(x)
    x = xp.clip(x, -1e300, 1e300)  # there is a limit at infinity
    return xp.log(xp.clip(xp.abs(x / (1.0 - x)), least, 1.0 / least))


def is_cuda(x: Any) -> bool:
    """Return whether x lies on a GPU of NVIDIA's."""
    return library(x) == "cupy" or (library(x) == "torch" and x.is_cuda)


@cache
def _log_odds_kernel(library: str) -> Callable[[Any, float], Any] | None:
    """Return one kernel for what takes six otherwise, each as long as memory is."""
    body = (
        "T o = fabs(x / (T(1) - x)); o = fabs(x) > T(1e300) ? T(1) : o; "
        "o = o < least ? least : o; T y = log(o > T(1) / least ? T(1) / least : o);"
    )
    if library == "cupy":
        import cupy

        return cupy.ElementwiseKernel("T x, T least", "T z", f"{body} z = y;", "log_odds")
    code = f"template <typename T> T log_odds(T x, T least) {{ {body} return y; }}"
    try:
        made = torch_itself().cuda.jiterator._create_jit_fn(code, least=TINY)
    except (AttributeError, RuntimeError):
        return None
    return lambda x, least: made(x, least=least)


def free_numbers(x: Any) -> int:
    """Return how many float64 numbers there is room for on the device of x."""
    if library(x) == "torch" and x.is_cuda:
        torch = torch_itself()
        kept = torch.cuda.memory_reserved(x.device) - torch.cuda.memory_allocated(x.device)
        return int(torch.cuda.mem_get_info(x.device)[0] + kept) // 8
    if library(x) == "cupy":
        import cupy

        with x.device:
            return int(cupy.cuda.runtime.memGetInfo()[0]) // 8
    return SETTINGS.free_numbers


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error says that a device has no memory left; what was kept is freed."""
    name = type(error).__name__
    if name not in ("OutOfMemoryError", "AcceleratorError") or "memory" not in str(error):
        return False
    if library(error) == "torch":
        torch = torch_itself()
        torch.cuda.empty_cache()
    return True


def check_device(device: Any) -> str | None:
    """Return the name of a device of torch that is there, or None for NumPy."""
    if device is None:
        return None
    try:
        torch = torch_itself()
    except ImportError as error:
        raise ImportError(
            f"device={shown(device)} needs torch: pip install 'karnet[gpu]'."
        ) from error
    try:
        found = torch.zeros(1, dtype=torch.float64, device=device).device
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise ValueError(
            f"device={shown(device)} cannot be used here ({reason}): give None for this machine's "
            "processors, or a device that torch can compute on in float64, like 'cuda'."
        ) from error
    return str(found)


def upload(x: Any, device: str) -> Any:
    """Return an array of NumPy as one of torch on a device, copied on a stream of its own.

    Several threads may do so at a time, while others compute.
    """
    torch = torch_itself()
    here = torch.from_numpy(np.array(x, order="C") if device == "cpu" else _writeable(x))
    if not device.startswith("cuda"):
        return here.to(device)
    stream = _copy_stream(device)
    with torch.cuda.stream(stream):
        there = here.pin_memory().to(device, non_blocking=True)
    stream.synchronize()
    there.record_stream(torch.cuda.default_stream(device))
    return there


def _writeable(x: NDArray[Any]) -> NDArray[Any]:
    """Return x as torch wants it: in one piece, and not marked as read-only."""
    x = np.ascontiguousarray(x)
    return x if x.flags.writeable else x.copy()


def _copy_stream(device: str) -> Any:
    torch = torch_itself()
    streams = _STREAMS.__dict__
    if device not in streams:
        streams[device] = torch.cuda.Stream(device)
    return streams[device]


# One stream per thread and device.
_STREAMS = local()
