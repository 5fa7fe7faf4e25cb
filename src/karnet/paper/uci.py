"""Fits on the paper's data sets: the list of planned fits, one fit, and a resumable run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
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
from ..datasets import DATASETS, Loaded, available, load
from .methods import METHODS
from .protocol import Array, Inputs, choose_width, inputs, parts
from .store import Fit, Key, Store
from .summary import write_summary

# The versions that every fit is stored with.
VERSIONS = (
    f"karnet {__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
    f"scikit-learn {sklearn.__version__}"
)
# Receives the running fits, and the finished and the total effort.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Settings:
    """The settings of a run."""

    datasets: tuple[str, ...]
    n_trials: int = 1
    n_folds: int = 10
    seed: int = 0  # of splits and weights
    data: Path | None = None  # the user's folder of data sets
    slow_folds: int = 1  # folds of the first trial that slow methods are trained on
    time_limit: float = 20.0  # seconds after which Levenberg-Marquardt tries no further step

    def __str__(self) -> str:
        """Return the settings that change a single fit; only fits of equal ones are comparable."""
        return f"folds {self.n_folds}, seed {self.seed}, time limit {self.time_limit:g} s"


@dataclass(frozen=True)
class PlannedFit:
    """One fit to be made: a method on one part of one data set."""

    method: str
    dataset: str
    trial: int
    fold: int
    settings: Settings

    @property
    def key(self) -> Key:
        """Return the key of the fit."""
        return self.method, self.dataset, self.trial, self.fold

    @property
    def effort(self) -> int:
        """Return a rough measure of the time that the fit takes."""
        size = DATASETS[self.dataset].here
        return 1000 + size.rows * size.classes * (10 if METHODS[self.method].slow else 1)


def planned_fits(settings: Settings, methods: Sequence[str]) -> list[PlannedFit]:
    """Return all fits of a run, the longest first, so that processes end at the same time."""
    return sorted(_all_fits(settings, methods), key=lambda fit: -fit.effort)


def _all_fits(settings: Settings, methods: Sequence[str]) -> Iterator[PlannedFit]:
    for name in settings.datasets:
        n_parts = len(parts(_prepared(name, settings.data)[0], 0, settings.n_folds, settings.seed))
        for method in map(METHODS.__getitem__, methods):
            if DATASETS[name].number not in method.numbers:
                continue
            n_trials = 1 if method.slow else settings.n_trials
            n_folds = min(n_parts, settings.slow_folds) if method.slow else n_parts
            for trial in range(n_trials):
                for fold in range(n_folds):
                    yield PlannedFit(method.name, name, trial, fold, settings)


@lru_cache(maxsize=2)
def _prepared(name: str, data: Path | None) -> tuple[Loaded, Inputs]:
    loaded = load(name, data)
    return loaded, inputs(loaded.X)


def run(planned: PlannedFit) -> Fit:
    """Choose the width on the training part, train there, and score on the test part."""
    start = process_time()
    settings, coding = planned.settings, METHODS[planned.method].coding
    data, X = _prepared(planned.dataset, settings.data)
    part = parts(data, planned.trial, settings.n_folds, settings.seed)[planned.fold]
    seed = settings.seed + 1000 * planned.trial + planned.fold
    with sklearn.config_context(assume_finite=True), warnings.catch_warnings():
        # MLPClassifier is compared with its defaults, of which one ends training at 200 epochs.
        warnings.simplefilter("ignore", ConvergenceWarning)
        net = _network(planned, X[part.train], data.y[part.train], seed)
        accuracy, cpu, wall, note = _measured(
            net, *coding(X[part.train], X[part.test]), data.y[part.train], data.y[part.test]
        )
    structure = "-".join(map(str, net.hidden_layer_sizes))
    in_all = process_time() - start
    return Fit(*planned.key, structure, accuracy, cpu, wall, in_all, seed, VERSIONS, note)


def _network(planned: PlannedFit, X: Inputs, y: Array, seed: int) -> Any:
    """Return the unfitted network, its width given or chosen on these rows."""
    method = METHODS[planned.method]

    def make(width: int) -> Any:
        return method.network(width, seed, planned.settings.time_limit)

    width = method.given_width(DATASETS[planned.dataset])
    if width is None:
        folds = method.n_inner_folds
        width = choose_width(make, X, y, seed, method.coding, method.widths, folds)
    return make(width)


def _measured(
    net: Any, X_train: Array, X_test: Array, y_train: Array, y_test: Array
) -> tuple[float, float, float, str]:
    """Return accuracy, CPU and wall time of a training, and a note if it ended early."""
    cpu, wall = process_time(), perf_counter()
    try:
        net.fit(X_train, y_train)
    except MemoryError:
        return nan, nan, nan, "out of memory"
    cpu, wall = process_time() - cpu, perf_counter() - wall
    note = "time limit" if getattr(net, "stop_reason_", "") == "time" else ""
    return float(np.mean(net.predict(X_test) == y_test)), cpu, wall, note


def run_all(planned: Iterable[PlannedFit], n_jobs: int) -> Iterator[Fit]:
    """Yield fits as soon as they are ready, each made on one thread."""
    with joblib.parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
        # With batches of one, no finished fit waits for an unfinished one.
        yield from joblib.Parallel(return_as="generator_unordered", batch_size=1)(
            joblib.delayed(run)(each) for each in planned
        )


def sets_here(data: Path | None = None) -> tuple[str, ...]:
    """Return the names of the data sets that are available without a download."""
    return tuple(name for name, source in available(data).items() if source not in (None, "openml"))


def run_sets(
    settings: Settings,
    methods: Sequence[str],
    out: Path,
    n_jobs: int,
    progress: Progress,
    command: str = "",
) -> list[Fit]:
    """Make all fits that are not in the store yet, and return all fits in the order of their keys.

    The folder `out` holds the store, results.sqlite, its content as results.csv, and means over
    fits in summary.csv. `progress` is called at the start and after every fit; `command`, the
    command line of the run, is kept in the store.
    """
    out.mkdir(parents=True, exist_ok=True)
    planned = {each.key: each for each in planned_fits(settings, methods)}
    with Store(out / "results.sqlite", str(settings)) as store:
        if command:
            store.add_command(command)
        finished = store.keys()
        left = {key: each for key, each in planned.items() if key not in finished}
        total = sum(each.effort for each in planned.values())

        def report() -> None:
            # Fits are started in order.
            running = [f"{each.dataset}: {each.method}" for each in islice(left.values(), n_jobs)]
            progress(" | ".join(running), total - sum(e.effort for e in left.values()), total)

        report()
        for fit in run_all(list(left.values()), n_jobs):
            store.add([fit])
            del left[fit.key]
            report()
        store.write_csv(out / "results.csv")
        fits = store.fits()
    write_summary(out / "summary.csv", fits)
    return [fit for fit in fits if fit.key in planned]
