"""Interrupts, at any moment, and too little memory leave everything as it was."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from contextlib import closing

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from karnet import KARClassifierCV, KARRegressor
from karnet._arrays import threads
from karnet._arrays.threads import ONE_THREAD, stop_if_abandoned
from karnet._estimator.validation import unchanged_on_failure
from karnet._rows.memory import in_order
from karnet._search import search
from karnet.cli import main

X = np.random.default_rng(0).standard_normal((60, 3))


def blas_threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


@contextlib.contextmanager
def interrupting(number, *files):
    """Interrupt the block the `number`-th time that Python lets itself be interrupted.

    That is where a function begins and where one of C has ended, here of some files only.
    """
    left = number

    def step(frame, event, _):
        nonlocal left
        if event in ("call", "c_return") and frame.f_code.co_filename in files:
            left -= 1
            if left < 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(step)
    try:
        yield
    finally:
        sys.setprofile(None)


def interrupted_at(number, work, *files):
    """Return whether work was interrupted, the `number`-th time that it could be."""
    try:
        with interrupting(number, *files):
            work()
    except KeyboardInterrupt:
        return True
    return False


def limited_twice():
    with ONE_THREAD(), ONE_THREAD():
        assert blas_threads()[0] == 1


def test_an_interrupt_at_any_moment_gives_blas_its_threads_back():
    with threadpool_limits(2):
        before, number = blas_threads(), 0
        assert ONE_THREAD.allowed() == 2
        while interrupted_at(number, limited_twice, threads.__file__, contextlib.__file__):
            assert blas_threads() == before
            assert ONE_THREAD.allowed() == 2
            number += 1
        # Another thread is not kept out either.
        found = []
        thread = threading.Thread(target=lambda: found.append(ONE_THREAD.allowed()))
        thread.start()
        thread.join()
        assert found == [2]
    assert number > 10


def test_whoever_catches_an_interrupt_of_a_fit_has_all_threads_already():
    net = KARRegressor((20,), hidden="random", alpha=1.0)

    def fit():
        net.fit(np.repeat(X, 20, axis=0), np.repeat(X[:, 0], 20))

    def still_limited(number):
        try:
            fit_interrupted(number)
        except KeyboardInterrupt:
            return blas_threads() != before
        return None

    def fit_interrupted(number):
        with interrupting(number, threads.__file__, contextlib.__file__):
            fit()

    with threadpool_limits(2):
        before, number = blas_threads(), 0
        while (limited := still_limited(number)) is not None:
            assert not limited
            number += 1
    assert number > 20


def test_blocks_that_have_not_begun_are_not_begun_after_an_interrupt():
    begun = []

    def work(k):
        begun.append(k)
        time.sleep(0.02)

    def interrupt():
        with closing(in_order(work, list(range(20)))) as found:
            for _ in found:
                raise KeyboardInterrupt

    with threadpool_limits(2), pytest.raises(KeyboardInterrupt):
        interrupt()
    n_begun = len(begun)
    assert n_begun <= 4
    time.sleep(0.05)
    assert len(begun) == n_begun


def test_a_task_that_has_begun_ends_at_its_next_step_after_an_interrupt():
    steps, end = [], threading.Event()

    def work(k):
        while k and not end.is_set():  # without the stop, the pool would wait for this task
            stop_if_abandoned()
            steps.append(k)
            time.sleep(0.001)

    def interrupt():
        with closing(in_order(work, [0, 1, 2])) as found:
            for _ in found:
                raise KeyboardInterrupt

    watchdog = threading.Timer(60.0, end.set)
    watchdog.start()
    with threadpool_limits(2), pytest.raises(KeyboardInterrupt):
        interrupt()
    watchdog.cancel()
    assert not end.is_set()
    assert set(steps) <= {1, 2}


@pytest.mark.parametrize("number", [10, 40, 70])
def test_an_interrupted_search_leaves_no_thread_behind(number):
    before = threading.active_count()
    with (
        threadpool_limits(2),
        pytest.raises(KeyboardInterrupt) as raised,
        interrupting(number, search.__file__),
    ):
        KARClassifierCV(random_state=0).fit(X, X[:, 0] > 0)
    # Although the caught exception still holds all frames.
    assert raised.tb is not None
    assert threading.active_count() <= before


def test_a_lack_of_memory_is_a_sentence_even_if_lapack_says_nothing():
    net = KARRegressor()

    def short(message):
        with unchanged_on_failure(net):
            net.coefs_ = []
            raise MemoryError(message)

    for message, said in (("", "not enough memory for this: use fewer"), ("1 GB", "^1 GB$")):
        with pytest.raises(MemoryError, match=said):
            short(message)
        assert not hasattr(net, "coefs_")


def test_an_interrupt_before_a_command_begins_is_one_line_too(monkeypatch, capsys):
    typer = pytest.importorskip("typer")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(typer.Typer, "__call__", interrupt)
    with pytest.raises(SystemExit) as end:
        main(["datasets"])
    assert end.value.code == 130
    assert capsys.readouterr().err == "karnet: interrupted.\n"
