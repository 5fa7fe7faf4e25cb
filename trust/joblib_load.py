"""How many threads want a core while joblib cross-validates networks."""

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
    """Return a process and all that it started."""
    found = [pid]
    for process in found:
        for task in (PROC / str(process) / "task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:
                continue
    return found


def wanting_a_core(pids: list[int], but: int) -> int:
    """Count threads that run or could run."""
    count = 0
    for pid in pids:
        for task in (PROC / str(pid) / "task").glob("*/stat"):
            if task.parent.name == str(but):
                continue
            try:
                # The name, in brackets, may hold anything.
                count += task.read_text().rpartition(")")[2].split()[0] == "R"
            except OSError:
                continue
    return count


def busy_threads(backend: str, m: int = 40_000, folds: int = 8) -> dict:
    """Cross-validate with a worker per core; return how many threads wanted a core meanwhile."""
    X = np.random.default_rng(0).standard_normal((m, 20))
    y = X[:, 0] * X[:, 1] > 0.0
    net = KARClassifier((300,), hidden="random", alpha=1e-3, random_state=0)
    looks: list[int] = []
    over = threading.Event()
    # The process that deals out work to others does little itself.
    skipped = 1 if backend == "loky" else 0

    def look() -> None:
        while not over.wait(0.005):
            pids = children(os.getpid())[skipped:]
            looks.append(wanting_a_core(pids, threading.get_native_id()))

    with joblib.parallel_config(backend, n_jobs=-1):
        # Workers start and import first; only their work is looked at.
        cross_val_score(net, X[:1000], y[:1000], cv=folds)
        looker = threading.Thread(target=look)
        looker.start()
        try:
            cross_val_score(net, X, y, cv=folds)
        finally:
            over.set()
            looker.join()
    cores = os.cpu_count() or 1
    return {
        "looks": len(looks),
        "mean": float(np.mean(looks)),
        "most": max(looks),
        "more than cores": float(np.mean(np.array(looks) > cores)),
    }
