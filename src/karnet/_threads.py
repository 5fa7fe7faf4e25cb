"""How many threads BLAS may use, and a context in which it uses one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from threading import RLock, current_thread, main_thread

from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

__all__ = ["ONE_THREAD", "one_thread_if_narrow"]

# Numbers of a matrix from which on LAPACK starts a second thread, which takes long where the cores
# are busy: to limit it takes 20 microseconds. And the smaller side of a matrix up to which a second
# thread gains less than blocks of rows side by side.
SMALL, NARROW = 2500, 1000


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


# Whether other threads or processes, that someone else started, have the other cores.
_SHARED = ContextVar("shared", default=False)


def _is_shared() -> bool:
    """Return whether others work beside this thread: a pool's tasks, or joblib's in threads."""
    if _SHARED.get():
        return True
    # Processes of joblib work in their main thread, and are told how many threads BLAS may use.
    return current_thread() is not main_thread() and get_active_backend()[0].nesting_level > 0


def _now() -> list[int]:
    return [library.num_threads for library in _blas().lib_controllers]


class OneThread:
    """A context in which BLAS uses one thread.

    One thread of Python at a time limits BLAS, and gives back itself what was allowed before:
    threadpoolctl lets no other thread do that. Others go on as things are.
    """

    def __init__(self) -> None:
        self._mine = RLock()
        self._before: list[int] = []

    def allowed(self) -> int:
        """Return how many threads BLAS may use outside; 1 if another thread is inside."""
        if _is_shared():
            return 1
        if not self._mine.acquire(blocking=False):
            return 1
        try:
            return max(self._before or _now(), default=1)
        finally:
            self._mine.release()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Limit BLAS, unless it is limited already or another thread is inside."""
        if not self._mine.acquire(blocking=False):
            yield
            return
        try:
            if self._before:
                yield
                return
            self._before = _now()
            try:
                with _blas().limit(limits=1):
                    yield
            finally:
                self._before = []
        finally:
            self._mine.release()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Limit BLAS, and allow for no other threads inside: a pool of workers has the cores."""
        outside = _SHARED.set(True)
        try:
            with self():
                yield
        finally:
            _SHARED.reset(outside)


ONE_THREAD = OneThread()


def one_thread_if_narrow(m: int, n: int) -> AbstractContextManager[None]:
    """Return the context to work on an m x n matrix in."""
    narrow = min(m, n) <= NARROW
    return ONE_THREAD() if narrow and m * n > SMALL else nullcontext()
