"""Ctrl-C during a fit: it returns soon, and the estimator is unchanged."""

from __future__ import annotations

import contextlib
import pickle
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from threadpoolctl import threadpool_info

import karnet
from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV
from trust.record import table

HEADER = (
    "call",
    "duration",
    "interrupts",
    "longest time to return",
    "median",
    "interrupts at function calls",
    "estimator changed",
    "BLAS limited",
    "threads or processes left",
)
# Prefixes of the files whose functions are interrupted.
WATCHED = (str(Path(karnet.__file__).parent), contextlib.__file__)
# Program that sends an interrupt to its parent after a given delay, and prints the time.
SENDER = """
import os, signal, sys, time
print("ready", flush=True)
for line in sys.stdin:
    time.sleep(float(line))
    now = time.monotonic()
    os.kill(os.getppid(), signal.SIGINT)
    print(now, flush=True)
"""
# Seconds within which an interrupted call must return.
SOON = 1.0


@dataclass(frozen=True)
class Case:
    """A long call of an estimator, which may already be fitted."""

    name: str
    estimator: Any
    act: Callable[[Any], object]
    first: Callable[[Any], object]
    # Whether the call needs a fitted estimator.
    needs_fit: bool = False


@dataclass
class Counts:
    """The effects of interrupts on one call."""

    name: str
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    n_moments: int = 0
    changed: list[str] = field(default_factory=list)
    limited: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def row(self) -> tuple[object, ...]:
        """Return the row of the table."""
        worst, median = max(self.latencies, default=0.0), np.median(self.latencies or [0.0])
        return (
            self.name,
            f"{self.seconds:.2f} s",
            len(self.latencies),
            f"{1000 * worst:.0f} ms",
            f"{1000 * median:.0f} ms",
            self.n_moments,
            *map(len, (self.changed, self.limited, self.left)),
        )

    @property
    def wrong(self) -> list[str]:
        """Return all failures."""
        late = [f"{self.name}: {each:.2f} s to come back" for each in self.latencies if each > SOON]
        return [*late, *self.changed, *self.limited, *self.left]


@dataclass(frozen=True)
class Surroundings:
    """The state of the process that an interrupt must not change."""

    blas: tuple[Any, ...]
    threads: frozenset[str]
    children: frozenset[str]

    @classmethod
    def now(cls) -> Surroundings:
        """Return the present state."""
        blas = tuple((each["filepath"], each["num_threads"]) for each in threadpool_info())
        threads = frozenset(each.name for each in threading.enumerate() if each.is_alive())
        return cls(blas, threads, frozenset(_children()))


def _children() -> Iterator[str]:
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            yield from path.read_text().split()


def state(estimator: Any) -> bytes:
    """Return the pickled attributes of an estimator."""
    return pickle.dumps(vars(estimator))


@contextmanager
def sender() -> Iterator[Callable[[float], Callable[[], float]]]:
    """Provide a function that schedules an interrupt and returns a function for its time."""
    command = [sys.executable, "-c", SENDER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        to, back = process.stdin, process.stdout

        def send(delay: float) -> Callable[[], float]:
            to.write(f"{delay}\n")
            to.flush()
            return lambda: float(back.readline())

        back.readline()
        yield send
        to.close()


def prepared(case: Case, fitted: bool) -> bytes:
    """Return the pickled estimator of a case, fitted to other rows or not at all."""
    estimator = pickle.loads(pickle.dumps(case.estimator))
    if fitted or case.needs_fit:
        case.first(estimator)
    return pickle.dumps(estimator)


def interrupt(case: Case, times: int, seed: int = 0) -> Counts:
    """Return the effects of interrupts at random moments."""
    rng, counts = random.Random(seed), Counts(case.name)
    starts = [prepared(case, fitted) for fitted in (False, True)]
    for start in starts:  # the second run has everything loaded
        estimator, begin = pickle.loads(start), time.perf_counter()
        case.act(estimator)
        counts.seconds = time.perf_counter() - begin
    with sender() as send:
        around = Surroundings.now()
        while len(counts.latencies) < times:
            start = starts[len(counts.latencies) % 2]
            delay = rng.uniform(0.0, 0.95 * counts.seconds)
            _interrupt_once(case, start, send, delay, around, counts)
    return counts


def _interrupt_once(
    case: Case,
    start: bytes,
    send: Callable[[float], Callable[[], float]],
    delay: float,
    around: Surroundings,
    counts: Counts,
) -> None:
    """Interrupt a call, and record the effects unless the interrupt came before or after it."""
    estimator = pickle.loads(start)
    before, acting = state(estimator), False
    try:
        sent = send(delay)
        acting = True
        case.act(estimator)
        acting = False
        time.sleep(10.0)
    except KeyboardInterrupt:
        back = time.monotonic()
    if acting:
        counts.latencies.append(back - sent())
        _compare(case, estimator, before, around, counts)


def _compare(
    case: Case, estimator: Any, before: bytes, around: Surroundings, counts: Counts
) -> None:
    now, end = Surroundings.now(), time.monotonic() + SOON
    # Threads and processes that are about to end have time to do so.
    while now != around and time.monotonic() < end:
        time.sleep(0.001)
        now = Surroundings.now()
    if state(estimator) != before:
        counts.changed.append(f"{case.name}: the estimator is not as before")
    if now.blas != around.blas:
        counts.limited.append(f"{case.name}: BLAS had {around.blas} and has {now.blas}")
    if more := (now.threads - around.threads) | (now.children - around.children):
        counts.left.append(f"{case.name}: {sorted(more)} are left")


# Interrupts at every moment that Python has for them


def moments_of(act: Callable[[], object]) -> int:
    """Return the number of moments at which karnet's code can be interrupted in this thread."""
    n = 0

    def count() -> None:
        nonlocal n
        n += 1

    with _at_moments(count):
        act()
    return n


@contextmanager
def _at_moments(step: Callable[[], None]) -> Iterator[None]:
    """Call `step` where Python can be interrupted: at calls, and when C functions return."""

    def watch(frame: Any, event: str, _: Any) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(WATCHED):
            step()

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(None)


def interrupt_everywhere(case: Case, times: int, counts: Counts, seed: int = 0) -> None:
    """Count the effects of interrupts at moments drawn from all possible ones."""
    rng = random.Random(seed)
    starts = [prepared(case, fitted) for fitted in (False, True)]
    n = moments_of(lambda: case.act(pickle.loads(starts[0])))
    around = Surroundings.now()
    # The last moment belongs to the profiler itself.
    for number in sorted(rng.sample(range(n - 1), min(times, n - 1))):
        estimator = pickle.loads(starts[number % 2])
        before, left = state(estimator), number

        def step() -> None:
            nonlocal left
            left -= 1
            if left == -1:
                raise KeyboardInterrupt

        try:
            with _at_moments(step):
                case.act(estimator)
        except KeyboardInterrupt:
            counts.n_moments += 1
            _compare(case, estimator, before, around, counts)


# What is interrupted


def cases(m: int, h: int) -> list[Case]:
    """Return long calls with about m rows and h units."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 10))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    labels = np.digitize(y, [-0.5, 0.5])
    few = slice(0, max(m // 200, 120))
    half = slice(0, m // 2)
    blocks = [(X[i : i + m // 8], y[i : i + m // 8]) for i in range(0, m, m // 8)]
    random_net = {"hidden": "random", "alpha": 1.0, "random_state": 0}
    number, classes = KARRegressor((h,), **random_net), KARClassifier((h,), **random_net)
    other = KARRegressor((h,), **random_net).fit(X[half], y[half])

    def fit_few(targets: Any) -> Callable[[Any], object]:
        return lambda net: net.fit(X[few], targets[few])

    def case(name: str, net: Any, act: Callable[[Any], object], targets: Any = y) -> Case:
        return Case(name, net, act, fit_few(targets))

    def changing(name: str, act: Callable[[Any], object]) -> Case:
        return Case(name, number, act, lambda net: net.fit(X[half], y[half]), needs_fit=True)

    cv = {"n_estimators": 3, "random_state": 0}
    return [
        case(
            "`KARClassifier.fit`",
            KARClassifier((h // 2,), random_state=0),
            lambda net: net.fit(X, labels),
            labels,
        ),
        case("`KARRegressor.fit`, random", number, lambda net: net.fit(X, y)),
        case(
            "`KARRegressor.fit`, metric",
            KARRegressor((h // 4,), hidden="metric", activation="tanh", random_state=0),
            lambda net: net.fit(X[half], y[half]),
        ),
        case(
            "`KARClassifierCV.fit`",
            KARClassifierCV(**cv),
            lambda net: net.fit(X[few], labels[few]),
            labels,
        ),
        case("`KARRegressorCV.fit`", KARRegressorCV(**cv), lambda net: net.fit(X[few], y[few])),
        case("`fit_blocks`", number, lambda net: net.fit_blocks(blocks)),
        case("`partial_fit`", classes, lambda net: net.partial_fit(X, labels), labels),
        changing("`merge`", lambda net: net.merge(other)),
        changing("`forget`", lambda net: net.forget(X[: m // 4], y[: m // 4])),
    ]


def dask_cases(m: int, h: int, client: Any) -> list[Case]:
    """Return fits of Dask collections, in threads and on a cluster."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 10))
    y = np.sin(X[:, 0])
    rows, targets = da.from_array(X, chunks=(m // 16, -1)), da.from_array(y, chunks=m // 16)
    net = KARRegressor((h,), hidden="random", alpha=1.0, random_state=0)

    def in_threads(net: Any) -> None:
        net.fit(rows, targets)

    def on_cluster(net: Any) -> None:
        with client.as_current():
            net.fit(rows, targets)

    def first(net: Any) -> None:
        net.fit(X[:300], y[:300])

    return [
        Case("`fit` of Dask collections, in threads", net, in_threads, first),
        Case("`fit` of Dask collections, on a cluster", net, on_cluster, first),
    ]


def shown(found: list[Counts]) -> str:
    """Return the table of what was found."""
    return table(HEADER, [each.row for each in found])
