"""The paper's 42 data sets: accuracy and training time of KARnet, width by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter, process_time

import joblib
import numpy as np
import scipy
import sklearn

from .. import __version__
from ..datasets import Loaded, load
from ..estimators import KARClassifier
from .protocol import choose_width, coding, parts
from .store import Fit, Key

__all__ = ["DEPTHS", "Task", "run", "run_all", "tasks"]

# Hidden layers of each depth, in units of the chosen width, as in the paper's last figure.
DEPTHS = {2: (1,), 3: (2, 1), 4: (4, 2, 1)}
VERSIONS = (
    f"karnet {__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
    f"scikit-learn {sklearn.__version__}"
)


@dataclass(frozen=True)
class Task:
    """One fit that is to be made: a network of some depth on one part of one data set."""

    depth: int
    dataset: str
    trial: int
    fold: int
    n_folds: int
    seed: int
    data: Path | None = None

    @property
    def key(self) -> Key:
        """Return the key of the fit that this task leads to."""
        return f"karnet, {self.depth} layers", self.dataset, self.trial, self.fold


def tasks(
    datasets: Sequence[str],
    n_trials: int,
    n_folds: int,
    seed: int,
    data: Path | None = None,
    depth: int = 2,
) -> Iterator[Task]:
    """Yield the tasks of a run."""
    for name in datasets:
        n_parts = len(parts(_loaded(name, data), 0, n_folds, seed))
        for trial in range(n_trials):
            for fold in range(n_parts):
                yield Task(depth, name, trial, fold, n_folds, seed, data)


@lru_cache(maxsize=2)
def _loaded(name: str, data: Path | None) -> Loaded:
    return load(name, data)


def run(task: Task) -> Fit:
    """Choose the width on the training part alone, train there, score on the rest."""
    data = _loaded(task.dataset, task.data)
    part = parts(data, task.trial, task.n_folds, task.seed)[task.fold]
    seed = task.seed + 1000 * task.trial + task.fold
    X, y = data.X.iloc[part.train], data.y[part.train]

    def make(width: int) -> KARClassifier:
        sizes = tuple(width * factor for factor in DEPTHS[task.depth])
        return KARClassifier(sizes, random_state=seed)

    net = make(choose_width(make, X, y, seed, coding))
    X_train, X_test = coding(X, data.X.iloc[part.test])
    cpu, wall = process_time(), perf_counter()
    net.fit(X_train, y)
    cpu, wall = process_time() - cpu, perf_counter() - wall
    accuracy = float(net.score(X_test, data.y[part.test]))
    structure = "-".join(map(str, net.hidden_layer_sizes))
    return Fit(*task.key, structure, accuracy, cpu, wall, seed, VERSIONS)


def run_all(todo: Sequence[Task], n_jobs: int) -> Iterator[Fit]:
    """Yield the fits of the tasks as they are ready, each made on one thread."""
    with joblib.parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
        yield from joblib.Parallel(return_as="generator_unordered")(
            joblib.delayed(run)(task) for task in todo
        )
