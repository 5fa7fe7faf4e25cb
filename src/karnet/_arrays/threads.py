"""How many threads BLAS may use, and a context in which it uses one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from threading import current_thread, get_ident, main_thread

from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

__all__ = ["ONE_THREAD", "one_thread_if_narrow"]

# Numbers of a matrix from which on LAPACK starts a second thread, which takes long where the cores
# are busy: to limit it takes 20 microseconds. And the smaller side of a matrix up to which a second
# thread gains less than blocks of rows side by side.
SMALL, NARROW = 2500, 1000
HERE = "here"


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


@dataclass(eq=False)
class _Visit:
    """A time inside, of one thread, and how many threads BLAS was allowed before."""

    thread: int
    before: list[int] = field(default_factory=list)


class OneThread:
    """A context in which BLAS uses one thread.

    One thread of Python at a time limits BLAS, and gives back itself what was allowed before:
    threadpoolctl lets no other one do so. Others go on as things are. An interrupt, wherever it
    comes, leaves no limit behind.
    """

    def __init__(self) -> None:
        # Who is inside, if anybody: a dict is asked and changed in one go.
        self._inside: dict[str, _Visit] = {}

    def allowed(self) -> int:
        """Return how many threads BLAS may use outside; 1 if another thread is inside."""
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
        """Limit BLAS, unless it is limited already or another thread is inside."""
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
            finally:  # an interrupt may have come meanwhile
                self._end(visit)

    def _end(self, visit: _Visit | None) -> None:
        if visit is not None and self._inside.get(HERE) is visit:
            _allow(visit.before)
            del self._inside[HERE]

    def leave(self) -> None:
        """End what an interrupt on the way in or out may have left begun by this thread.

        It would end by itself, but not before whoever has caught the interrupt lets go of it.
        """
        if self.is_inside():
            self._end(self._inside.get(HERE))

    def forget_others(self) -> None:
        """End what another thread began, which is not there in a process forked from its own."""
        if not self.is_inside():
            self._end(self._inside.get(HERE))

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
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ONE_THREAD.forget_others)


def one_thread_if_narrow(m: int, n: int) -> AbstractContextManager[None]:
    """Return the context to work on an m x n matrix in."""
    narrow = min(m, n) <= NARROW
    return ONE_THREAD() if narrow and m * n > SMALL else nullcontext()
