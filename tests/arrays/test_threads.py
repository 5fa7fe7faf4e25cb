"""How many threads BLAS may use, whoever else works beside."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from karnet._arrays import threads
from karnet._arrays.threads import ONE_THREAD

ROOT = Path(__file__).parents[2]


def blas_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@contextmanager
def another_thread_inside():
    """Have another thread inside until the block ends."""
    entered, over = threading.Event(), threading.Event()

    def stay():
        with ONE_THREAD():
            entered.set()
            over.wait(timeout=10)

    thread = threading.Thread(target=stay)
    thread.start()
    entered.wait(timeout=10)
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_contexts_of_one_thread_may_be_nested():
    with threadpool_limits(2):
        with ONE_THREAD():
            with ONE_THREAD():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
            assert ONE_THREAD.allowed() == 2
            with ThreadPoolExecutor(1) as pool:
                assert pool.submit(ONE_THREAD.allowed).result() == 1
        assert blas_threads() == {2}


def test_only_the_thread_that_limited_blas_gives_back_what_was_allowed():
    before = blas_threads()
    with another_thread_inside():
        limited = blas_threads()
        with ONE_THREAD():
            assert ONE_THREAD.allowed() == 1
        assert blas_threads() == limited
    assert blas_threads() == before


FORKED = """
import os
from karnet._arrays.threads import ONE_THREAD
from tests.arrays.test_threads import another_thread_inside, blas_threads

with another_thread_inside():
    assert blas_threads() == {1}
    child = os.fork()
    if not child:
        os._exit(0 if blas_threads() == {2} and ONE_THREAD.allowed() == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert blas_threads() == {1}
assert blas_threads() == {2}
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_a_forked_process_is_not_limited_by_threads_it_has_not():
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    settings = os.environ | {"OPENBLAS_NUM_THREADS": "2", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_library_that_threadpoolctl_does_not_know_is_left_alone(monkeypatch):
    monkeypatch.setattr(threads, "_blas", lambda: SimpleNamespace(lib_controllers=[]))
    with ONE_THREAD():
        assert ONE_THREAD.is_inside()
        assert ONE_THREAD.allowed() == 1
    assert not ONE_THREAD.is_inside()
    assert ONE_THREAD.allowed() == 1
