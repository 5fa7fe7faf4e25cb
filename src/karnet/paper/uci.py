"""Fits on the paper's data sets: the list of all fits, one fit, and a run that can be resumed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice, product
from math import isnan, nan
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import joblib
import numpy as np
import scipy
import sklearn
from sklearn.exceptions import ConvergenceWarning

from .. import __version__
from .._util.types import AnyArray
from ..datasets import DATASETS, Loaded, available, load
from .methods import METHODS
from .protocol import MixedRows, choose_width, inputs, parts
from .store import Fit, Key, Store, write_csv
from .summary import write_summary

# The versions that every fit is stored with.
VERSIONS = (
    f"karnet {__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
    f"scikit-learn {sklearn.__version__}"
)


@dataclass(frozen=True)
class RunSettings:
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


def effort(fit: Key) -> int:
    """Return a rough measure of the time that a fit takes."""
    size = DATASETS[fit.dataset].here
    method = METHODS[fit.method]
    # Measured on sets of 600 to 2000 rows: three layers take 9 times as long as two, four 30 to 50.
    return 1000 + size.rows * size.classes * (10 if method.slow else sum(method.factors) ** 2)


def planned_fits(settings: RunSettings, methods: Sequence[str]) -> list[Key]:
    """Return all fits of a run, the longest first, so that processes end at the same time."""
    keys = []
    for name in settings.datasets:
        n_parts = len(parts(_prepared(name, settings.data)[0], 0, settings.n_folds, settings.seed))
        for method in map(METHODS.__getitem__, methods):
            if DATASETS[name].number in method.numbers:
                n_trials = 1 if method.slow else settings.n_trials
                n_folds = min(n_parts, settings.slow_folds) if method.slow else n_parts
                runs = product(range(n_trials), range(n_folds))
                keys += [Key(method.name, name, *each) for each in runs]
    return sorted(keys, key=effort, reverse=True)


@lru_cache(maxsize=2)
def _prepared(name: str, data: Path | None) -> tuple[Loaded, MixedRows]:
    loaded = load(name, data)
    return loaded, inputs(loaded.X)


def run(fit: Key, settings: RunSettings) -> Fit:
    """Choose the width on the training part, train there, and score on the test part."""
    start = process_time()
    method = METHODS[fit.method]
    data, X = _prepared(fit.dataset, settings.data)
    part = parts(data, fit.trial, settings.n_folds, settings.seed)[fit.fold]
    X_train, y_train = X[part.train], data.y[part.train]
    seed = settings.seed + 1000 * fit.trial + fit.fold
    make = partial(method.network, seed=seed, time_limit=settings.time_limit)
    with sklearn.config_context(assume_finite=True), warnings.catch_warnings():
        # MLPClassifier is compared with its defaults, of which one ends training at 200 epochs.
        warnings.simplefilter("ignore", ConvergenceWarning)
        width = method.given_width(DATASETS[fit.dataset])
        if width is None:
            options = (method.coding, method.widths, method.n_inner_folds)
            width = choose_width(make, X_train, y_train, seed, *options)
        net = make(width)
        coded, X_test = method.coding(X_train, X[part.test])
        cpu, wall, note = _train(net, coded, y_train)
        right = [nan] if isnan(cpu) else net.predict(X_test) == data.y[part.test]
    accuracy = float(np.mean(right))
    structure = "-".join(map(str, net.hidden_layer_sizes))
    in_all = process_time() - start
    return Fit(*fit, structure, accuracy, cpu, wall, in_all, seed, VERSIONS, note)


def _train(net: Any, X: AnyArray, y: AnyArray) -> tuple[float, float, str]:
    """Return CPU and wall time of a training, and a note if it ended early."""
    cpu, wall = process_time(), perf_counter()
    try:
        net.fit(X, y)
    except MemoryError:
        return nan, nan, "out of memory"
    note = "time limit" if getattr(net, "stop_reason_", "") == "time" else ""
    return process_time() - cpu, perf_counter() - wall, note


def run_all(fits: Iterable[Key], settings: RunSettings, n_jobs: int) -> Iterator[Fit]:
    """Yield fits as soon as they are ready, each made on one thread."""
    with joblib.parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
        # With batches of one, no finished fit waits for an unfinished one.
        yield from joblib.Parallel(return_as="generator_unordered", batch_size=1)(
            joblib.delayed(run)(fit, settings) for fit in fits
        )


def sets_here(data: Path | None = None) -> tuple[str, ...]:
    """Return the names of the data sets that are available without a download."""
    return tuple(name for name, source in available(data).items() if source not in (None, "openml"))


def run_sets(
    settings: RunSettings,
    methods: Sequence[str],
    out: Path,
    n_jobs: int,
    progress: Callable[[str, int, int], None],
    command: str = "",
) -> list[Fit]:
    """Make all fits that are not in the store yet, and return all fits in the order of their keys.

    The folder `out` holds the store, results.sqlite, its content as results.csv, and means over
    fits in summary.csv. `progress` is called at the start and after every fit, with the running
    fits, the finished and the total effort. `command`, the command line of the run, is stored.
    """
    out.mkdir(parents=True, exist_ok=True)
    planned = planned_fits(settings, methods)
    with Store(out / "results.sqlite", str(settings)) as store:
        if command:
            store.add_command(command)
        finished = store.keys()
        left = dict.fromkeys(key for key in planned if key not in finished)
        total = sum(map(effort, planned))

        def report() -> None:
            # Fits are started in order.
            running = [f"{key.dataset}: {key.method}" for key in islice(left, n_jobs)]
            progress(" | ".join(running), total - sum(map(effort, left)), total)

        report()
        for fit in run_all(list(left), settings, n_jobs):
            store.add([fit])
            del left[fit.key]
            report()
        fits = store.fits()
    write_csv(out / "results.csv", Fit._fields, fits)
    write_summary(out / "summary.csv", fits)
    wanted = set(planned)
    return [fit for fit in fits if fit.key in wanted]
