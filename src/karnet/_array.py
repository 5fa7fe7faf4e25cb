"""Arrays of other libraries than NumPy: their functions, their device, the way there and back.

Most rooms compute with whatever arrays they are given, and ask here for what libraries call by
different names. This is the only one that knows torch and CuPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from threading import local
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.linalg import blas
from scipy.spatial.distance import cdist

__all__ = [
    "add_to_diagonal",
    "affine",
    "as_type",
    "check_device",
    "cholesky",
    "column_squares",
    "device_of",
    "distances",
    "erf",
    "exp_in_place",
    "expit",
    "float64",
    "free_numbers",
    "full",
    "indices",
    "is_foreign",
    "is_host",
    "is_out_of_memory",
    "joined",
    "like",
    "log_expit",
    "log_odds",
    "namespace",
    "on_host",
    "over_triangle",
    "qr",
    "row_squares",
    "scalar",
    "selected",
    "single_product",
    "slow_in_float64",
    "some_rows",
    "stacked",
    "symmetric_product",
    "to_numpy",
    "unique",
    "upload",
]

Array = NDArray[np.float64]
T = TypeVar("T")

TINY = float(np.finfo(np.float64).eps)
# Numbers that are held at a time on a device that does not say how much memory it has.
ELSEWHERE = 2**24
# Columns from which on a fourth of a symmetric product is mirrored, and what the part that is
# computed should be a multiple of: matrix products of odd shapes take several times as long.
WIDE, ALIGNED = 512, 64
# NVIDIA's generations, by compute capability, that multiply float64 half as fast as float32.
FAST_IN_FLOAT64 = {(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)}
# Rows over which products are summed in float32.
FEW_ROWS = 2**12
# Columns up to which distances are summed one column after the other on CUDA: torch has 256 threads
# for each distance, which few columns leave idle.
FEW_COLUMNS = 64


def _torch() -> Any:
    import torch

    return torch


def is_host(x: Any) -> bool:
    """Return whether x is an array of NumPy, or a sparse matrix."""
    return isinstance(x, np.ndarray | np.generic) or hasattr(x, "tocsr")


def is_foreign(x: Any) -> bool:
    """Return whether x is an array of another library than NumPy that keeps to the standard."""
    known = _library(x) in ("torch", "cupy") or hasattr(x, "__array_namespace__")
    return known and not is_host(x)


def _library(x: Any) -> str:
    return type(x).__module__.partition(".")[0]


def namespace(x: Any) -> Any:
    """Return the module of functions for the library of x, by the names of the array standard."""
    if isinstance(x, np.ndarray | np.generic):
        return np
    if _library(x) not in ("torch", "cupy"):
        return x.__array_namespace__()
    try:
        import array_api_compat
    except ImportError as error:
        raise ImportError(
            f"arrays of {_library(x)} need array-api-compat: pip install 'karnet[gpu]'."
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
    if isinstance(x, np.ndarray | np.generic):
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


def float64(x: Any) -> Any:
    """Return x in float64."""
    if isinstance(x, np.ndarray):
        return np.asarray(x, dtype=np.float64)
    xp = namespace(x)
    return x if x.dtype == xp.float64 else xp.astype(x, xp.float64)


def scalar(value: Any) -> float:
    """Return an array of one number as that number."""
    return float(value)


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
    function = _special_of(_library(x), name)
    return like(x, getattr(special, name)(to_numpy(x))) if function is None else function(x)


@cache
def _special_of(library: str, name: str) -> Callable[[Any], Any] | None:
    if library == "torch":
        torch = _torch()

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
    return x.exp_() if _library(x) == "torch" else namespace(x).exp(x)


def distances(X: Any, Z: Any, p: int) -> Any:
    """Return the sums of absolute differences of rows (p=1), or Euclidean distances (p=2).

    They are exact for equal rows.
    """
    if is_host(X):
        return np.asarray(cdist(X, Z, {1: "cityblock", 2: "euclidean"}[p]))
    if _library(X) == "torch" and not (_is_cuda(X) and X.shape[1] <= FEW_COLUMNS):
        exact = "donot_use_mm_for_euclid_dist"
        return _torch().cdist(X, Z, p=float(p), compute_mode=exact)
    xp, total = namespace(X), full(X, (X.shape[0], Z.shape[0]), 0.0)
    for j in range(X.shape[1]):
        apart = X[:, j : j + 1] - Z[:, j]
        total += xp.abs(apart) if p == 1 else apart * apart
    return total if p == 1 else xp.sqrt(total)


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
    kernel = _log_odds_kernel(_library(x)) if _is_cuda(x) else None
    if kernel is not None:
        return kernel(x, least)
    xp = namespace(x)
    x = xp.clip(x, -1e300, 1e300)  # there is a limit at infinity
    return xp.log(xp.clip(xp.abs(x / (1.0 - x)), least, 1.0 / least))


def _is_cuda(x: Any) -> bool:
    return _library(x) == "cupy" or (_library(x) == "torch" and x.is_cuda)


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
        made = _torch().cuda.jiterator._create_jit_fn(code, least=TINY)
    except (AttributeError, RuntimeError):
        return None
    return lambda x, least: made(x, least=least)


def add_to_diagonal(A: Any, value: float) -> Any:
    """Return ``A + value I``."""
    if not value:
        return A
    return A + value * namespace(A).eye(A.shape[0], dtype=A.dtype, device=A.device)


def free_numbers(x: Any) -> int:
    """Return how many float64 numbers there is room for on the device of x."""
    if _library(x) == "torch" and x.is_cuda:
        torch = _torch()

        kept = torch.cuda.memory_reserved(x.device) - torch.cuda.memory_allocated(x.device)
        return int(torch.cuda.mem_get_info(x.device)[0] + kept) // 8
    if _library(x) == "cupy":
        import cupy

        with x.device:
            return int(cupy.cuda.runtime.memGetInfo()[0]) // 8
    return ELSEWHERE


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error says that a device has no memory left; what was kept is freed."""
    name = type(error).__name__
    if name not in ("OutOfMemoryError", "AcceleratorError") or "memory" not in str(error):
        return False
    if _library(error) == "torch":
        torch = _torch()

        torch.cuda.empty_cache()
    return True


def affine(A: Any, V: Any, w: Any) -> Any:
    """Return ``A V + w``; as one product ``[A, 1] [V; w]`` where memory is what takes time."""
    if _is_cuda(A) and V.shape[1] >= 2 * V.shape[0]:
        # Columns of zeros, for matrix products of odd shapes take several times as long.
        pad = -(V.shape[0] + 1) % 8
        ones, zeros = full(A, (A.shape[0], 1), 1.0), full(A, (A.shape[0], pad), 0.0)
        below = full(A, (pad, V.shape[1]), 0.0)
        return joined([A, ones, zeros], axis=1) @ joined([V, w[None, :], below])
    Z = A @ V
    Z += w
    return Z


def slow_in_float64(x: Any) -> bool:
    """Return whether the device of x multiplies float32 many times faster than float64."""
    if _library(x) == "torch" and x.is_cuda:
        return _torch().cuda.get_device_capability(x.device) not in FAST_IN_FLOAT64
    if _library(x) == "cupy":
        return tuple(map(int, x.device.compute_capability)) not in FAST_IN_FLOAT64
    return False


def single_product(A: Any) -> Any:
    """Return ``A'A`` to about single precision: products in float32, of few rows each."""
    xp = namespace(A)
    single = xp.astype(A, xp.float32)
    K = xp.zeros((A.shape[1], A.shape[1]), dtype=xp.float64, device=A.device)
    for start in range(0, A.shape[0], FEW_ROWS):
        part = single[start : start + FEW_ROWS, :]
        K += xp.astype(part.T @ part, xp.float64)
    return K


def symmetric_product(A: Any) -> Any:
    """Return ``A'A``."""
    n = A.shape[1]
    if is_host(A) or n < WIDE:
        return A.T @ A  # NumPy computes one half only
    half = -(-n // (2 * ALIGNED)) * ALIGNED
    K = namespace(A).empty((n, n), dtype=A.dtype, device=A.device)
    K[:half, :] = A[:, :half].T @ A
    K[half:, :half] = K[:half, half:].T
    K[half:, half:] = A[:, half:].T @ A[:, half:]
    return K


def qr(A: Any, B: Any) -> tuple[Any, Any]:
    """Return R and Q'B of a QR decomposition of A that lies elsewhere than with NumPy."""
    n, xp = A.shape[1], namespace(A)
    k, both = min(A.shape), joined([A, B], axis=1)
    options = {"mode": "r"} if _library(A) == "torch" else {}
    R = xp.linalg.qr(both, **options).R
    return xp.triu(R[:k, :n]), R[:k, n:]


def over_triangle(A: Any, R: Any) -> Any:
    """Return ``A R^-1`` for an upper triangle R; what is below it does not count."""
    if is_host(A):
        return np.asarray(blas.dtrsm(1.0, R, A.T, trans_a=1)).T
    xp = namespace(A)
    if _library(A) == "torch":
        return _torch().linalg.solve_triangular(R, A, upper=True, left=False)
    return xp.linalg.solve(xp.triu(R).T, A.T).T


def cholesky(K: Any) -> tuple[Callable[[Any], Any], float]:
    """Return the map from M to ``K^-1 M`` and the reciprocal condition of K, 0 if there is none.

    K lies elsewhere and is positive definite; to know the condition, its inverse is formed.
    """
    xp = namespace(K)
    if _library(K) == "torch":
        torch = _torch()

        L, info = torch.linalg.cholesky_ex(K)
        if int(info):
            return (lambda M: M), 0.0
        inverse = torch.cholesky_inverse(L)
        return (lambda M: torch.cholesky_solve(M, L)), _reciprocal_condition(K, inverse)
    try:
        L = xp.linalg.cholesky(K)
        inverse = xp.linalg.inv(K)
    except np.linalg.LinAlgError:
        return (lambda M: M), 0.0
    if not scalar(xp.sum(L)) < np.inf:  # CuPy fills what it cannot do with NaN
        return (lambda M: M), 0.0
    return (lambda M: xp.linalg.solve(K, M)), _reciprocal_condition(K, inverse)


def _reciprocal_condition(K: Any, inverse: Any) -> float:
    xp = namespace(K)
    norms = [xp.max(xp.sum(xp.abs(each), axis=0)) for each in (K, inverse)]
    product = scalar(norms[0] * norms[1])
    return 1.0 / product if 1.0 <= product < np.inf else 0.0


def check_device(device: Any) -> str | None:
    """Return the name of a device of torch that is there, or None for NumPy."""
    if device is None:
        return None
    try:
        torch = _torch()
    except ImportError as error:
        raise ImportError(f"device={device!r} needs torch: pip install 'karnet[gpu]'.") from error
    try:
        found = torch.zeros(1, dtype=torch.float64, device=device).device
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise ValueError(
            f"device={device!r} cannot be used here ({reason}): give None for this machine's "
            "processors, or a device that torch can compute on in float64, like 'cuda'."
        ) from error
    return str(found)


def upload(x: Any, device: str) -> Any:
    """Return an array of NumPy as one of torch on a device, copied on a stream of its own.

    Several threads may do so at a time, while others compute.
    """
    torch = _torch()

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
    torch = _torch()

    streams = _STREAMS.__dict__
    if device not in streams:
        streams[device] = torch.cuda.Stream(device)
    return streams[device]


# One stream per thread and device.
_STREAMS = local()
