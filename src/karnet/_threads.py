"""How many threads BLAS may use, and a context in which it uses one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from threading import current_thread, get_ident, main_thread

from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

__all__ = ["ONE_THREAD", "one_thread_if_narrow"]

# Numbers of a matrix from which on LAPACK starts a second thread, which takes long where the cores
# are busy: to limit it takes 20 microseconds. And the smaller side of a matrix up to which a second
# thread gains less than blocks of rows side by side.
SMALL, NARROW = 2500, 1000
THREAD = "thread"


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


def _allow(n_threads: list[int]) -> None:
    for library, n in zip(_blas().lib_controllers, n_threads, strict=False):
        library.set_num_threads(n)


class OneThread:
    """A context in which BLAS uses one thread.

    One thread of Python at a time limits BLAS, and gives back itself what was allowed before.
    Others go on as things are. An interrupt, wherever it comes, leaves no limit behind.
    """

    def __init__(self) -> None:
        # The thread that is inside, if there is one: a dict is asked and changed in one go.
        self._inside: dict[str, int] = {}
        self._before: list[int] = []

    def allowed(self) -> int:
        """Return how many threads BLAS may use outside; 1 if another thread is inside."""
        if _is_shared() or self._inside.get(THREAD, get_ident()) != get_ident():
            return 1
        return max(self._before or _now(), default=1)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Limit BLAS, unless it is limited already or another thread is inside."""
        me = get_ident()
        if self._inside.get(THREAD) == me:
            yield
            return
        try:
            if self._inside.setdefault(THREAD, me) == me:
                self._before = _now()
                _allow([1] * len(self._before))
            yield
        finally:
            try:
                self._give_back(me)
            finally:  # an interrupt may have come meanwhile
                self._give_back(me)

    def _give_back(self, thread: int) -> None:
        if self._inside.get(THREAD) == thread:
            _allow(self._before)
            self._before = []
            del self._inside[THREAD]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Limit BLAS, and allow for no other threads inside: a pool of workers has the cores."""
        outside = _SHARED.get()
        try:
            _SHARED.set(True)
            with self():
                yield
        finally:
            _SHARED.set(outside)


ONE_THREAD = OneThread()


def one_thread_if_narrow(m: int, n: int) -> AbstractContextManager[None]:
    """Return the context to work on an m x n matrix in."""
    narrow = min(m, n) <= NARROW
    return ONE_THREAD() if narrow and m * n > SMALL else nullcontext()
