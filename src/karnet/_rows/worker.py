"""How a piece of work behaves on a worker that others use too."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from .._arrays.threads import ONE_THREAD

__all__ = ["on_worker"]

# What glibc is told which size of memory to give back by, and its own default for the other one.
TRIM, MMAP = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
DEFAULT_MMAP = 2**17
# The largest that glibc allows, and more than arrays of a chunk take in all.
KEPT_MMAP, KEPT_TRIM = 2**25, 2**28


@contextmanager
def on_worker() -> Iterator[None]:
    """Work on one thread, with memory at hand, and without warnings of numbers.

    What overflows is looked at in the end, by who asked for the work.
    """
    with ONE_THREAD.alone(), _memory_kept(), np.errstate(all="ignore"):
        yield


@contextmanager
def _memory_kept() -> Iterator[None]:
    """Keep memory that is freed for the next array, and give it back in the end.

    Dask tells its workers to give it back at once. For arrays of a few megabytes, made and freed
    for every chunk of rows, that takes as long as to compute them.
    """
    libc = _glibc()
    if libc is None or TRIM not in os.environ:
        yield
        return
    try:
        libc.mallopt(M_MMAP_THRESHOLD, KEPT_MMAP)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_TRIM)
        yield
    finally:
        libc.mallopt(M_MMAP_THRESHOLD, int(os.environ.get(MMAP, DEFAULT_MMAP)))
        libc.mallopt(M_TRIM_THRESHOLD, int(os.environ[TRIM]))
        libc.malloc_trim(0)


@cache
def _glibc() -> Any:
    """Return the C library if it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None
