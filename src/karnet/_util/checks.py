"""Checks of arguments: each returns a valid value or raises an error of one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import blas

from .messages import shown
from .types import Array

# Largest parameter that is accepted: its products with other numbers of a fit stay finite.
LARGEST_NUMBER = 1e300
# Numbers up to which BLAS sums squares on one thread and faster than NumPy sums values.
FEW_VALUES = 4096


def real(name: str, values: ArrayLike, dimensions: tuple[int, ...]) -> Array:
    """Return finite real numbers as a float64 array with one of the given numbers of dimensions."""
    if hasattr(values, "tocoo"):
        raise ValueError(f"{name} must be a dense array, but is a sparse matrix.")
    try:
        array = np.asarray(values)
        if array.dtype == object:
            array = array.astype(np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers, in rows of equal length.") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, but its dtype is {array.dtype}.")
    if array.ndim not in dimensions:
        expected = " or ".join(f"{k}-dimensional" for k in dimensions)
        raise ValueError(f"{name} must be {expected}, but its shape is {array.shape}.")
    if array.dtype != np.float64:
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    masked = isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)
    if masked or not all_finite(array):
        raise ValueError(f"{name} must be finite, but holds NaN, infinity or masked values.")
    return array


def all_finite(array: Array) -> bool:
    """Return whether an array holds neither NaN nor infinity."""
    # A finite sum has finite terms, and needs no memory.
    if 0 < array.size <= FEW_VALUES:
        flat = array.ravel()
        return isfinite(blas.ddot(flat, flat)) or bool(np.isfinite(array).all())
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum()) or np.isfinite(array).all())


def check_non_negative(name: str, value: Any) -> float:
    """Return a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name}={shown(value)} must be a number.")
    try:
        number = float(value)
    except OverflowError:
        number = inf
    if not 0.0 <= number < inf:
        raise ValueError(f"{name}={shown(value)} must be finite and not negative.")
    return number


def check_positive(name: str, value: Any) -> float:
    """Return a finite number above 0."""
    if isinstance(value, bool) or not _between(value, 0.0, LARGEST_NUMBER):
        raise ValueError(f"{name}={shown(value)} must be a positive number.")
    return float(value)


def check_share(name: str, value: Any) -> float:
    """Return a number between 0 and 1."""
    if isinstance(value, bool) or not _between(value, 0.0, 1.0):
        raise ValueError(f"{name}={shown(value)} must lie between 0 and 1.")
    return float(value)


def _between(value: Any, low: float, high: float) -> bool:
    try:
        return isinstance(value, Real) and low < float(value) < high
    except OverflowError:
        return False


def check_positive_integer(name: str, value: Any) -> int:
    """Return an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}={shown(value)} must be an integer of at least 1.")
    return int(value)


def check_verbose(value: Any) -> int:
    """Return the level of a parameter `verbose`: an integer of at least 0, or True or False."""
    if not isinstance(value, (Integral, np.bool_)) or value < 0:
        raise ValueError(f"verbose={shown(value)} must be an integer of at least 0.")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={shown(value)} must be True or False.")
    return bool(value)


def check_one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Return one of the allowed names."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}={shown(value)} is not known: give one of {', '.join(allowed)}.")
    return value
