"""Number of running threads while joblib cross-validates networks."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import joblib
import numpy as np
from sklearn.model_selection import cross_val_score

from karnet import KARClassifier

BACKENDS = ("loky", "threading")
PROC = Path("/proc")


def children(pid: int) -> list[int]:
    """Return a process and all of its descendants."""
    found = [pid]
    for process in found:
        for task in (PROC / str(process) / "task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:
                continue
    return found


def runnable_threads(pids: list[int], but: int) -> int:
    """Return the number of threads that are running or ready to run, except one."""
    count = 0
    for pid in pids:
        for task in (PROC / str(pid) / "task").glob("*/stat"):
            if task.parent.name == str(but):
                continue
            try:
                # The name in brackets may contain any character.
                count += task.read_text().rpartition(")")[2].split()[0] == "R"
            except OSError:
                continue
    return count


def busy_threads(backend: str, m: int = 40_000, folds: int = 8) -> dict:
    """Cross-validate with a worker per core; return statistics of the number of running threads."""
    X = np.random.default_rng(0).standard_normal((m, 20))
    y = X[:, 0] * X[:, 1] > 0.0
    net = KARClassifier((300,), hidden="random", alpha=1e-3, random_state=0)
    samples: list[int] = []
    over = threading.Event()
    # The process that distributes the work does little itself.
    skipped = 1 if backend == "loky" else 0

    def sample() -> None:
        while not over.wait(0.005):
            pids = children(os.getpid())[skipped:]
            samples.append(runnable_threads(pids, threading.get_native_id()))

    with joblib.parallel_config(backend, n_jobs=-1):
        # Workers start and import modules first; only their work is sampled.
        cross_val_score(net, X[:1000], y[:1000], cv=folds)
        sampler = threading.Thread(target=sample)
        sampler.start()
        try:
            cross_val_score(net, X, y, cv=folds)
        finally:
            over.set()
            sampler.join()
    cores = os.cpu_count() or 1
    return {
        "samples": len(samples),
        "mean": float(np.mean(samples)),
        "maximum": max(samples),
        "more than cores": float(np.mean(np.array(samples) > cores)),
    }
