"""How many threads BLAS may use, and a context in which it uses one."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["ONE_THREAD", "one_thread_if_small"]

# Multiplications between which BLAS starts a second thread that costs more than it gains.
TINY, SMALL = 1e6, 2e8


@cache
def _libraries() -> tuple[Any, ...]:
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


class OneThread:
    """A context in which BLAS uses one thread; contexts of several threads may overlap.

    The first to enter limits BLAS, and the last to leave gives back what was allowed before.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0
        self._before: list[int] = []

    def allowed(self) -> int:
        """Return how many threads BLAS may use outside this context."""
        with self._lock:
            return max(self._before if self._n_inside else self._now(), default=1)

    @staticmethod
    def _now() -> list[int]:
        return [library.num_threads for library in _libraries()]

    def __enter__(self) -> None:
        with self._lock:
            if not self._n_inside:
                self._before = self._now()
                for library in _libraries():
                    library.set_num_threads(1)
            self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                for library, n in zip(_libraries(), self._before, strict=True):
                    library.set_num_threads(n)


ONE_THREAD = OneThread()


def one_thread_if_small(m: int, n: int) -> AbstractContextManager[None]:
    """Return the context to work on an m x n matrix in."""
    return ONE_THREAD if TINY < m * n * min(m, n) < SMALL else nullcontext()
