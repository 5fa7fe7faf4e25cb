"""Work for a process under load: predictions without end, fits without end, and what they leave."""

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
# One row as a service sends it, some, and enough for several chunks.
HEIGHTS = (1, 1, 1, 50, 50, 20_000)


def rss() -> float:
    """Return the megabytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def table_of_rows(m: int = 20_000) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((m, 10))


def models() -> dict[str, object]:
    """Return fitted networks of every kind that answers."""
    X = table_of_rows(400)
    y = X[:, 0] * X[:, 1]
    nets = {
        "random": KARClassifier((200,), hidden="random", alpha=1e-3, random_state=0),
        "pulled back": KARRegressor((10,), alpha=1e-2, random_state=0),
        "settled": KARClassifierCV(n_estimators=2, width=200, random_state=0),
        "settled, numbers": KARRegressorCV(n_estimators=2, width=200, random_state=0),
    }
    targets = {"Classifier": y > 0, "Regressor": y}
    for net in nets.values():
        net.fit(X, targets["Classifier" if hasattr(net, "predict_proba") else "Regressor"])
    return nets


def answer(net, X):
    return net.predict_proba(X) if hasattr(net, "classes_") else net.predict(X)


class Watched:
    """A context that samples the memory of this process, and says whether it was flat."""

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
        """Return the mean of memory between two fractions of the time."""
        last = self.samples[-1][0]
        between = [mb for at, mb in self.samples if start * last <= at <= end * last]
        return mean(between or [self.samples[-1][1]])

    def growth(self) -> float:
        """Return by which part memory grew from the second fifth of the time to the last."""
        return self.between(0.8, 1.0) / self.between(0.2, 0.4) - 1.0


def predict_for(
    seconds: float, n_threads: int, folder: Path, heights: tuple[int, ...] = HEIGHTS
) -> dict:
    """Predict with kept models from several threads; return counts, mismatches and memory."""
    nets = [load(file) for file in sorted(folder.glob("*.karnet"))]
    X = table_of_rows()
    expected = {(i, m): answer(net, X[:m]) for i, net in enumerate(nets) for m in heights}
    _take_all_arenas(lambda: [answer(net, X[: max(heights)]) for net in nets])
    until = time.perf_counter() + seconds

    def work(seed: int) -> tuple[int, int, int]:
        choose, calls, rows, wrong = random.Random(seed), 0, 0, 0
        while time.perf_counter() < until:
            i, m = choose.randrange(len(nets)), choose.choice(heights)
            wrong += not np.array_equal(answer(nets[i], X[:m]), expected[i, m])
            calls, rows = calls + 1, rows + m
        return calls, rows, wrong

    with Watched() as memory, ThreadPoolExecutor(n_threads) as pool:
        calls, rows, wrong = (sum(of) for of in zip(*pool.map(work, range(n_threads)), strict=True))
    return {"calls": calls, "rows": rows, "wrong": wrong, "mb": rss(), "growth": memory.growth()}


def _take_all_arenas(work) -> None:
    """Do some work on as many threads as glibc has arenas for, each with memory of its own.

    It makes a new one now and then, for a thread that starts before another has quite ended, until
    there are eight for each core: memory that grows for that reason is bounded, and no leak.
    """
    n = 8 * (os.cpu_count() or 1)
    together = threading.Barrier(n)

    def once(_: int) -> None:
        together.wait()
        work()

    with ThreadPoolExecutor(n) as pool:
        list(pool.map(once, range(n)))


def small_fits():
    """Return kinds of fits, each a few milliseconds."""
    X = table_of_rows(60)
    y = X[:, 0] * X[:, 1]

    def learn(net, target=y):
        return lambda: net.fit(X, target).predict(X)

    def learn_in_parts():
        net = KARRegressor((8,), hidden="random", alpha=1e-3, random_state=0)
        net.partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:]).forget(X[:5], y[:5])

    def fail():
        try:
            KARClassifier((8,)).fit(X, np.full(len(X), np.nan))
        except ValueError:
            return
        raise AssertionError("Targets that are not a number were learned.")

    return {
        "pulled back": learn(KARClassifier((8,), random_state=0), y > 0),
        "pulled back, deep": learn(KARRegressor((8, 8), alpha=1e-3, random_state=0)),
        "random": learn(KARClassifier((50,), hidden="random", alpha=1e-3, random_state=0), y > 0),
        "more units than rows": learn(KARRegressor((200,), hidden="random", random_state=0)),
        "rows added and taken out": learn_in_parts,
        "infinitely wide": learn(
            KARRegressor((np.inf,), activation="relu", hidden="random", alpha=1e-3)
        ),
        "refused": fail,
    }


def left_behind() -> dict[str, int]:
    """Return how many objects, threads and open files this process has."""
    gc.collect()
    return {
        "objects": len(gc.get_objects()),
        "threads": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
    }


def fit_many(n_fits: int) -> dict:
    """Learn many small networks in turn; return what that left behind, after a first fifth."""
    kinds = list(small_fits().values())
    for fit in kinds * 20:
        fit()
    before = left_behind()
    with Watched() as memory:
        for fit, _ in zip(cycle(kinds), range(n_fits), strict=False):
            fit()
    after = left_behind()
    more = {what: after[what] - before[what] for what in after}
    return {"calls": n_fits, "mb": rss(), "growth": memory.growth(), "more": more}


if __name__ == "__main__":
    import json

    print(json.dumps(predict_for(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))))
