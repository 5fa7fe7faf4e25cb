"""The number of threads of BLAS, and a context in which BLAS uses one thread.

`ThreadpoolController.limit` is not used: an interrupt between its start and the return of its
object would leave the limit behind.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from threading import Event, current_thread, get_ident, main_thread

from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

# Numbers in a matrix above which LAPACK starts a second thread, which takes long on busy cores; to
# limit BLAS takes 20 microseconds.
ONE_THREAD_SIZE = 2500
# The smaller side of a matrix up to which blocks of rows in parallel gain more than a second thread
# of BLAS.
NARROW_SIDE = 1000
# The only key of `OneThread._inside`.
HERE = "here"
# Whether other threads or processes, started by someone else, use the other cores.
_SHARED = ContextVar("shared", default=False)
# Set once the result of the present task of a pool is no longer wanted.
ABANDONED: ContextVar[Event | None] = ContextVar("abandoned", default=None)


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def _is_shared() -> bool:
    """Return whether this thread shares the cores with other tasks of a pool or of joblib."""
    if _SHARED.get():
        return True
    # Processes of joblib work in their main thread, and joblib sets their number of BLAS threads.
    return current_thread() is not main_thread() and get_active_backend()[0].nesting_level > 0


def _now() -> list[int]:
    return [library.num_threads for library in _blas().lib_controllers]


def _allow(n_threads: list[int]) -> None:
    for library, n in zip(_blas().lib_controllers, n_threads, strict=False):
        library.set_num_threads(n)


@dataclass(eq=False)
class _Visit:
    """A stay of one thread in the context, and the numbers of BLAS threads before it."""

    thread: int
    before: list[int] = field(default_factory=list)


class OneThread:
    """A context in which BLAS uses one thread.

    One thread of Python at a time limits BLAS, and the same thread restores the numbers of threads
    before. Other threads change nothing meanwhile. An interrupt, whenever it comes, leaves no limit
    behind.
    """

    def __init__(self) -> None:
        # The thread inside, if there is one: `setdefault` of a dict is atomic.
        self._inside: dict[str, _Visit] = {}

    def allowed(self) -> int:
        """Return the number of BLAS threads outside the context; 1 if another thread is inside.

        It is also 1 for a library that threadpoolctl does not know, such as Apple's Accelerate,
        which divides the work among the cores itself.
        """
        visit = self._inside.get(HERE)
        if _is_shared() or (visit is not None and visit.thread != get_ident()):
            return 1
        return max((visit and visit.before) or _now(), default=1)

    def is_inside(self) -> bool:
        """Return whether this thread is inside."""
        visit = self._inside.get(HERE)
        return visit is not None and visit.thread == get_ident()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Limit BLAS, unless this or another thread is inside."""
        if self.is_inside():
            yield
            return
        visit = _Visit(get_ident())
        try:
            if self._inside.setdefault(HERE, visit) is visit:
                visit.before = _now()
                _allow([1] * len(visit.before))
            yield
        finally:
            try:
                self._end(visit)
            finally:  # an interrupt may have stopped the first call
                self._end(visit)

    def _end(self, visit: _Visit | None) -> None:
        if visit is not None and self._inside.get(HERE) is visit:
            _allow(visit.before)
            del self._inside[HERE]

    def leave(self) -> None:
        """End the stay of this thread after an interrupt on the way in or out.

        It would end by itself, but only when the caught exception, which holds the frame, is freed.
        """
        if self.is_inside():
            self._end(self._inside.get(HERE))

    def forget_others(self) -> None:
        """End the stay of another thread, which does not exist in a forked process."""
        if not self.is_inside():
            self._end(self._inside.get(HERE))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Limit BLAS and start no threads inside: other workers of a pool use the cores."""
        outside = _SHARED.get()
        try:
            _SHARED.set(True)
            with self():
                yield
        finally:
            _SHARED.set(outside)


ONE_THREAD = OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ONE_THREAD.forget_others)


def one_thread_if_narrow(m: int, n: int) -> AbstractContextManager[None]:
    """Return the context for work on an m x n matrix."""
    narrow = min(m, n) <= NARROW_SIDE
    return ONE_THREAD() if narrow and m * n > ONE_THREAD_SIZE else nullcontext()


def stop_if_abandoned() -> None:
    """Raise an error in a task of a pool whose result is no longer wanted.

    Long tasks call this between their steps: only the main thread receives an interrupt.
    """
    abandoned = ABANDONED.get()
    if abandoned is not None and abandoned.is_set():
        raise CancelledError
