"""Single fits on the paper's data sets: what is to be made, and how one is made."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import nan
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import joblib
import numpy as np
import scipy
import sklearn
from sklearn.exceptions import ConvergenceWarning

from .. import __version__
from ..datasets import DATASETS, Loaded, load
from .methods import METHODS
from .protocol import Array, Inputs, choose_width, inputs, parts
from .store import Fit, Key

__all__ = ["Settings", "Task", "run", "run_all", "tasks"]

VERSIONS = (
    f"karnet {__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
    f"scikit-learn {sklearn.__version__}"
)


@dataclass(frozen=True)
class Settings:
    """What a run is asked for.

    Attributes
    ----------
    datasets : tuple of str
        Names of the data sets.
    n_trials, n_folds : int
        Repetitions, and folds of each.
    seed : int
        What splits and weights are drawn with.
    data : Path or None
        The user's folder of data sets.
    slow_folds : int
        Folds that slow methods are trained on, in the first trial only.
    time_limit : float
        Seconds after which Levenberg-Marquardt tries no other step.
    """

    datasets: tuple[str, ...]
    n_trials: int = 1
    n_folds: int = 10
    seed: int = 0
    data: Path | None = None
    slow_folds: int = 1
    time_limit: float = 20.0

    def __str__(self) -> str:
        """Return what a single fit depends on: fits of equal settings may stand side by side."""
        return f"folds {self.n_folds}, seed {self.seed}, time limit {self.time_limit:g} s"


@dataclass(frozen=True)
class Task:
    """One fit that is to be made: a method on one part of one data set."""

    method: str
    dataset: str
    trial: int
    fold: int
    settings: Settings

    @property
    def key(self) -> Key:
        """Return the key of the fit that this task leads to."""
        return self.method, self.dataset, self.trial, self.fold

    @property
    def effort(self) -> int:
        """Return roughly how long this takes, in no unit."""
        size = DATASETS[self.dataset].here
        return 1000 + size.rows * size.classes * (10 if METHODS[self.method].slow else 1)


def tasks(settings: Settings, methods: Sequence[str]) -> list[Task]:
    """Return every fit of a run, the longest first, so that processes end at the same time."""
    return sorted(_tasks(settings, methods), key=lambda task: -task.effort)


def _tasks(settings: Settings, methods: Sequence[str]) -> Iterator[Task]:
    for name in settings.datasets:
        n_parts = len(parts(_prepared(name, settings.data)[0], 0, settings.n_folds, settings.seed))
        for method in map(METHODS.__getitem__, methods):
            if DATASETS[name].number not in method.numbers:
                continue
            n_trials = 1 if method.slow else settings.n_trials
            n_folds = min(n_parts, settings.slow_folds) if method.slow else n_parts
            for trial in range(n_trials):
                for fold in range(n_folds):
                    yield Task(method.name, name, trial, fold, settings)


@lru_cache(maxsize=2)
def _prepared(name: str, data: Path | None) -> tuple[Loaded, Inputs]:
    loaded = load(name, data)
    return loaded, inputs(loaded.X)


def run(task: Task) -> Fit:
    """Choose the width on the training part alone, train there, score on the rest."""
    start = process_time()
    settings, coding = task.settings, METHODS[task.method].coding
    data, X = _prepared(task.dataset, settings.data)
    part = parts(data, task.trial, settings.n_folds, settings.seed)[task.fold]
    seed = settings.seed + 1000 * task.trial + task.fold
    with sklearn.config_context(assume_finite=True), warnings.catch_warnings():
        # MLPClassifier ends after 200 epochs by default, and is compared as it is by default.
        warnings.simplefilter("ignore", ConvergenceWarning)
        net = _network(task, X[part.train], data.y[part.train], seed)
        accuracy, cpu, wall, note = _measured(
            net, *coding(X[part.train], X[part.test]), data.y[part.train], data.y[part.test]
        )
    structure = "-".join(map(str, net.hidden_layer_sizes))
    in_all = process_time() - start
    return Fit(*task.key, structure, accuracy, cpu, wall, in_all, seed, VERSIONS, note)


def _network(task: Task, X: Inputs, y: Array, seed: int) -> Any:
    """Return the unfitted network, its width given or chosen on these rows."""
    method = METHODS[task.method]

    def make(width: int) -> Any:
        return method.make(method.sizes(width), seed, task.settings.time_limit)

    width = method.given_width(DATASETS[task.dataset])
    if width is None:
        folds = method.n_inner_folds
        width = choose_width(make, X, y, seed, method.coding, method.widths, folds)
    return make(width)


def _measured(
    net: Any, X_train: Array, X_test: Array, y_train: Array, y_test: Array
) -> tuple[float, float, float, str]:
    """Return accuracy, CPU and wall time of the training, and what there is to say about it."""
    cpu, wall = process_time(), perf_counter()
    try:
        net.fit(X_train, y_train)
    except MemoryError:
        return nan, nan, nan, "out of memory"
    cpu, wall = process_time() - cpu, perf_counter() - wall
    note = "time limit" if getattr(net, "stop_reason_", "") == "time" else ""
    return float(np.mean(net.predict(X_test) == y_test)), cpu, wall, note


def run_all(todo: Sequence[Task], n_jobs: int) -> Iterator[Fit]:
    """Yield the fits of the tasks as they are ready, each made on one thread."""
    with joblib.parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
        # In batches of one, nothing that is ready waits for what is not.
        yield from joblib.Parallel(return_as="generator_unordered", batch_size=1)(
            joblib.delayed(run)(task) for task in todo
        )
