"""A run over data sets: what is still to do, what came out, and the table of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..datasets import DATASETS, available
from .store import Fit, Store
from .table import Table
from .uci import run_all, tasks

__all__ = ["PAPER_MEAN", "Settings", "accuracy_table", "run_uci", "sets_here"]

# Sets 1 to 39, two layers, width by cross-validation.
PAPER_MEAN = 79.39
AVERAGED = range(1, 40)
# Called with the fit just made, how many are done, and how many there are in all.
Progress = Callable[[Fit, int, int], None]


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
    """

    datasets: tuple[str, ...]
    n_trials: int = 1
    n_folds: int = 10
    seed: int = 0
    data: Path | None = None

    def __str__(self) -> str:
        return f"trials {self.n_trials}, folds {self.n_folds}, seed {self.seed}"


def sets_here(data: Path | None = None) -> tuple[str, ...]:
    """Return the names of the data sets that can be had without a download."""
    return tuple(name for name, source in available(data).items() if source not in (None, "openml"))


def run_uci(settings: Settings, out: Path, n_jobs: int, progress: Progress) -> Table:
    """Make every fit that is not in the store yet, and return the table of all.

    Parameters
    ----------
    settings : Settings
        What to run.
    out : Path
        The folder for the store and for the fits as CSV.
    n_jobs : int
        How many processes work side by side.
    progress : callable
        Told of every fit.

    Returns
    -------
    Table
    """
    out.mkdir(parents=True, exist_ok=True)
    asked = (settings.n_trials, settings.n_folds, settings.seed, settings.data)
    todo = list(tasks(settings.datasets, *asked))
    with Store(out / "results.sqlite", str(settings)) as store:
        known = store.keys()
        missing = [task for task in todo if task.key not in known]
        for n_made, fit in enumerate(run_all(missing, n_jobs), start=1):
            store.add([fit])
            progress(fit, len(todo) - len(missing) + n_made, len(todo))
        store.write_csv(out / "results.csv")
        wanted = {task.key for task in todo}
        return accuracy_table([fit for fit in store.fits() if fit.key in wanted], settings)


def accuracy_table(fits: list[Fit], settings: Settings) -> Table:
    """Return mean accuracy, chosen width and training time of each set, and the mean of sets."""
    by_set = defaultdict(list)
    for fit in fits:
        by_set[fit.dataset].append(fit)
    rows, accuracies = [], []
    for name in sorted(by_set, key=lambda name: DATASETS[name].number):
        accuracy = 100 * float(np.mean([fit.accuracy for fit in by_set[name]]))
        if DATASETS[name].number in AVERAGED:
            accuracies.append(accuracy)
        width = float(np.median([int(fit.structure.split("-")[-1]) for fit in by_set[name]]))
        cpu = 1e3 * float(np.mean([fit.cpu for fit in by_set[name]]))
        number = str(DATASETS[name].number)
        rows.append((number, name, f"{accuracy:.1f} %", f"{width:g}", f"{cpu:.1f} ms"))
    mean = f"{np.mean(accuracies):.2f} %" if accuracies else "-"
    return Table(
        f"Two-layer KARnet, width by cross-validation inside the training part ({settings})",
        ("", "data set", "accuracy", "width", "training time"),
        tuple(rows),
        f"Mean over {len(accuracies)} of the sets 1 to 39: {mean}; over all 39, the paper reports "
        f"{PAPER_MEAN} %.",
    )
