"""Predictions and fits for a process under load, and measurements of what they leave behind."""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from statistics import mean

import numpy as np

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV, load

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
# Numbers of rows: one as in a service, some, and enough for several chunks.
ROW_COUNTS = (1, 1, 1, 50, 50, 20_000)


def rss() -> float:
    """Return the resident memory of this process in megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def table_of_rows(m: int = 20_000) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((m, 10))


def models() -> dict[str, object]:
    """Return fitted networks of every kind of estimator."""
    X = table_of_rows(400)
    y = X[:, 0] * X[:, 1]
    nets = {
        "random": KARClassifier((200,), hidden="random", alpha=1e-3, random_state=0),
        "pulled back": KARRegressor((10,), alpha=1e-2, random_state=0),
        "selected": KARClassifierCV(n_estimators=2, width=200, random_state=0),
        "selected, regression": KARRegressorCV(n_estimators=2, width=200, random_state=0),
    }
    targets = {"Classifier": y > 0, "Regressor": y}
    for net in nets.values():
        net.fit(X, targets["Classifier" if hasattr(net, "predict_proba") else "Regressor"])
    return nets


def predictions(net, X):
    return net.predict_proba(X) if hasattr(net, "classes_") else net.predict(X)


class Watched:
    """A context that samples the memory of this process."""

    def __enter__(self):
        self.samples, self.began = [(0.0, rss())], time.perf_counter()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def _sample(self):
        while not self._over.wait(0.05):
            self.samples.append((time.perf_counter() - self.began, rss()))

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def between(self, start: float, end: float) -> float:
        """Return the mean memory between two fractions of the time."""
        last = self.samples[-1][0]
        between = [mb for at, mb in self.samples if start * last <= at <= end * last]
        return mean(between or [self.samples[-1][1]])

    def growth(self) -> float:
        """Return the relative growth of memory from the second fifth of the time to the last."""
        return self.between(0.8, 1.0) / self.between(0.2, 0.4) - 1.0


def predict_for(
    seconds: float, n_threads: int, folder: Path, row_counts: tuple[int, ...] = ROW_COUNTS
) -> dict:
    """Predict with saved models in several threads; return counts, mismatches and memory."""
    nets = [load(file) for file in sorted(folder.glob("*.karnet"))]
    X = table_of_rows()
    expected = {(i, m): predictions(net, X[:m]) for i, net in enumerate(nets) for m in row_counts}
    _take_all_arenas(lambda: [predictions(net, X[: max(row_counts)]) for net in nets])
    until = time.perf_counter() + seconds

    def work(seed: int) -> tuple[int, int, int]:
        choose, calls, rows, wrong = random.Random(seed), 0, 0, 0
        while time.perf_counter() < until:
            i, m = choose.randrange(len(nets)), choose.choice(row_counts)
            wrong += not np.array_equal(predictions(nets[i], X[:m]), expected[i, m])
            calls, rows = calls + 1, rows + m
        return calls, rows, wrong

    with Watched() as memory, ThreadPoolExecutor(n_threads) as pool:
        calls, rows, wrong = (sum(of) for of in zip(*pool.map(work, range(n_threads)), strict=True))
    return {"calls": calls, "rows": rows, "wrong": wrong, "mb": rss(), "growth": memory.growth()}


def _take_all_arenas(work) -> None:
    """Work in as many threads as glibc has memory arenas.

    glibc creates a new arena if a thread starts before another one has ended, up to eight per core.
    Growth of memory for that reason is bounded, and not a leak.
    """
    n = 8 * (os.cpu_count() or 1)
    together = threading.Barrier(n)

    def once(_: int) -> None:
        together.wait()
        work()

    with ThreadPoolExecutor(n) as pool:
        list(pool.map(once, range(n)))


def small_fits():
    """Return kinds of fits that take a few milliseconds each."""
    X = table_of_rows(60)
    y = X[:, 0] * X[:, 1]

    def fit(net, target=y):
        return lambda: net.fit(X, target).predict(X)

    def fit_in_parts():
        net = KARRegressor((8,), hidden="random", alpha=1e-3, random_state=0)
        net.partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:]).forget(X[:5], y[:5])

    def fail():
        try:
            KARClassifier((8,)).fit(X, np.full(len(X), np.nan))
        except ValueError:
            return
        raise AssertionError("A fit to targets that are not a number succeeded.")

    return {
        "pulled back": fit(KARClassifier((8,), random_state=0), y > 0),
        "pulled back, deep": fit(KARRegressor((8, 8), alpha=1e-3, random_state=0)),
        "random": fit(KARClassifier((50,), hidden="random", alpha=1e-3, random_state=0), y > 0),
        "more units than rows": fit(KARRegressor((200,), hidden="random", random_state=0)),
        "rows added and taken out": fit_in_parts,
        "infinitely wide": fit(
            KARRegressor((np.inf,), activation="relu", hidden="random", alpha=1e-3)
        ),
        "refused": fail,
    }


def left_behind() -> dict[str, int]:
    """Return the numbers of objects, threads and open files of this process."""
    gc.collect()
    return {
        "objects": len(gc.get_objects()),
        "threads": threading.active_count(),
        "open files": len(os.listdir("/proc/self/fd")),
    }


def fit_many(n_fits: int) -> dict:
    """Fit many small networks in turn; return the growth of memory and of other resources."""
    kinds = list(small_fits().values())
    for fit in kinds * 20:
        fit()
    before = left_behind()
    with Watched() as memory:
        for fit, _ in zip(cycle(kinds), range(n_fits), strict=False):
            fit()
    after = left_behind()
    more = {things: after[things] - before[things] for things in after}
    return {"calls": n_fits, "mb": rss(), "growth": memory.growth(), "more": more}


if __name__ == "__main__":
    import json

    print(json.dumps(predict_for(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))))
