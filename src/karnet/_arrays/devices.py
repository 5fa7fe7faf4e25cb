"""PyTorch and CuPy: their own functions, their devices and the memory of these.

Only this module names the two libraries; all others ask it for functions that the array standard
lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from threading import local
from typing import Any

import numpy as np

from .._util.messages import shown

# Libraries whose functions array-api-compat gives the names of the array standard.
WRAPPED = ("torch", "cupy")
# Compute capabilities of NVIDIA's GPUs that multiply float64 at half the speed of float32.
FAST_IN_FLOAT64 = {(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)}


@dataclass
class DeviceSettings:
    """Assumptions about devices."""

    # Free memory, in float64 numbers, of a device that does not report it.
    free_numbers: int = 2**24
    # Columns up to which CUDA sums distances column by column: for each distance torch starts 256
    # threads, which few columns leave idle.
    few_columns: int = 64
    # Whether devices multiply float32 many times faster than float64; None to ask each device.
    slow_in_float64: bool | None = None


SETTINGS = DeviceSettings()
# One stream per thread and device.
_STREAMS = local()


def _torch() -> Any:
    import torch

    return torch


def library(x: Any) -> str:
    """Return the name of the library whose class x is an instance of."""
    return type(x).__module__.partition(".")[0]


def is_cuda(x: Any) -> bool:
    """Return whether x is on an NVIDIA GPU."""
    return library(x) == "cupy" or (library(x) == "torch" and x.is_cuda)


def own_function(x: Any, name: str) -> Callable[..., Any] | None:
    """Return a function that the library of x has beyond the array standard, if it does."""
    return _own_functions(library(x)).get(name)


@cache
def _own_functions(library: str) -> dict[str, Callable[..., Any]]:
    if library == "torch":
        torch = _torch()
        exact = {"compute_mode": "donot_use_mm_for_euclid_dist"}
        solve = torch.linalg.solve_triangular
        return {
            "expit": torch.sigmoid,
            "log_expit": torch.nn.functional.logsigmoid,
            "erf": torch.erf,
            "exp_in_place": torch.exp_,
            "distances": lambda X, Z, p: torch.cdist(X, Z, p=float(p), **exact),
            "triangle": lambda A: torch.linalg.qr(A, mode="r").R,
            "cholesky": _cholesky,
            "cholesky_factor": _cholesky_factor,
            "solve_triangle": lambda R, B, transposed: (
                solve(R.mT, B, upper=False) if transposed else solve(R, B, upper=True)
            ),
            "pivots": lambda A: (torch.linalg.lu_factor_ex(A)[1] - 1).tolist(),
            "signed_sums": _signed_sums,
        }
    if library == "cupy":
        import cupyx.scipy.special as special

        names = ("expit", "log_expit", "erf")
        return {name: getattr(special, name) for name in names if hasattr(special, name)}
    return {}


def _cholesky(K: Any) -> tuple[Callable[[Any], Any], Any] | None:
    """Return the map from M to ``K^-1 M`` and the inverse of K, or None if K is not definite."""
    torch = _torch()
    L, info = torch.linalg.cholesky_ex(K)
    if int(info):
        return None
    return (lambda M: torch.cholesky_solve(M, L)), torch.cholesky_inverse(L)


def _cholesky_factor(K: Any) -> Any:
    R, info = _torch().linalg.cholesky_ex(K, upper=True)
    return None if int(info) else R


def _signed_sums(A: Any, places: Any, signs: Any, n_sums: int) -> Any:
    """Return sums of rows of A as sums over bags of rows: without atomic additions."""
    torch = _torch()
    places, order = torch.sort(places.T.reshape(-1), stable=True)
    starts = torch.searchsorted(places, torch.arange(n_sums, device=A.device))
    bags = torch.nn.functional.embedding_bag
    signs = signs.T.reshape(-1)[order]
    return bags(order % A.shape[0], A, starts, mode="sum", per_sample_weights=signs)


@cache
def log_odds_kernel(library: str) -> Callable[[Any, float], Any] | None:
    """Return one CUDA kernel for ``log|x / (1 - x)|``: separate ones read memory six times."""
    body = (
        "T o = fabs(x / (T(1) - x)); o = fabs(x) > T(1e300) ? T(1) : o; "
        "o = o < least ? least : o; T y = log(o > T(1) / least ? T(1) / least : o);"
    )
    if library == "cupy":
        import cupy

        return cupy.ElementwiseKernel("T x, T least", "T z", f"{body} z = y;", "log_odds")
    code = f"template <typename T> T log_odds(T x, T least) {{ {body} return y; }}"
    try:
        kernel = _torch().cuda.jiterator._create_jit_fn(code, least=float(np.finfo(float).eps))
    except (AttributeError, RuntimeError):
        return None
    return lambda x, least: kernel(x, least=least)


def slow_in_float64(x: Any) -> bool:
    """Return whether the device of x multiplies float32 many times faster than float64."""
    if not is_cuda(x):
        return bool(SETTINGS.slow_in_float64) and library(x) in WRAPPED
    if SETTINGS.slow_in_float64 is not None:
        return SETTINGS.slow_in_float64
    if library(x) == "torch":
        return _torch().cuda.get_device_capability(x.device) not in FAST_IN_FLOAT64
    return tuple(map(int, x.device.compute_capability)) not in FAST_IN_FLOAT64


def free_numbers(x: Any, enough: int) -> int:
    """Return how many float64 numbers fit in the free memory of the device of x.

    Memory that a library holds for itself is asked for only if there is not `enough` without it.
    """
    if not is_cuda(x):
        return SETTINGS.free_numbers
    if library(x) == "torch":
        cuda = _torch().cuda
        free = int(cuda.mem_get_info(x.device)[0])
        if free < 8 * enough:
            held = cuda.memory_stats(x.device)
            free += held["reserved_bytes.all.current"] - held["allocated_bytes.all.current"]
        return free // 8
    import cupy

    with x.device:
        return int(cupy.cuda.runtime.memGetInfo()[0]) // 8


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error reports that a device has no free memory; cached memory is freed."""
    name = type(error).__name__
    if name not in ("OutOfMemoryError", "AcceleratorError") or "memory" not in str(error):
        return False
    if library(error) == "torch":
        _torch().cuda.empty_cache()
    return True


def check_device(device: Any) -> str | None:
    """Return the name of an available torch device, or None for NumPy."""
    if device is None:
        return None
    try:
        torch = _torch()
    except ImportError as error:
        raise ImportError(
            f"device={shown(device)} needs torch: pip install 'karnet[gpu]'."
        ) from error
    try:
        available = torch.zeros(1, dtype=torch.float64, device=device).device
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise ValueError(
            f"device={shown(device)} cannot be used here ({reason}): give None for this machine's "
            "processors, or a device that torch can compute on in float64, like 'cuda'."
        ) from error
    _load_solvers(str(available))
    return str(available)


@cache
def _load_solvers(device: str) -> None:
    """Load the linear algebra of a device: torch fails if several threads do so at a time."""
    torch = _torch()
    torch.linalg.cholesky(torch.ones((1, 1), dtype=torch.float64, device=device))


def upload(x: Any, device: str) -> Any:
    """Return a NumPy array as a torch tensor on a device, copied on a separate stream.

    Several threads may copy at a time while others compute.
    """
    torch = _torch()
    # Torch requires contiguous and writeable arrays.
    x = np.array(x, order="C") if device == "cpu" else np.require(x, None, ["C", "W"])
    host = torch.from_numpy(x)
    if not device.startswith("cuda"):
        return host.to(device)
    streams = _STREAMS.__dict__
    if device not in streams:
        streams[device] = torch.cuda.Stream(device)
    stream = streams[device]
    with torch.cuda.stream(stream):
        tensor = host.pin_memory().to(device, non_blocking=True)
    stream.synchronize()
    tensor.record_stream(torch.cuda.default_stream(device))
    return tensor
