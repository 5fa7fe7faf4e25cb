"""A run over data sets: what is still to do, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from ..datasets import available
from .store import Fit, Key, Store
from .summary import write_summary
from .uci import Settings, Task, run_all, tasks

__all__ = ["Settings", "run_sets", "sets_here"]

# Called with what is running, and how much is done of how much, in units of expected effort.
Progress = Callable[[str, int, int], None]


def sets_here(data: Path | None = None) -> tuple[str, ...]:
    """Return the names of the data sets that can be had without a download."""
    return tuple(name for name, source in available(data).items() if source not in (None, "openml"))


def run_sets(
    settings: Settings,
    methods: Sequence[str],
    out: Path,
    n_jobs: int,
    progress: Progress,
    command: str = "",
) -> list[Fit]:
    """Make every fit that is not in the store yet, and return all that were asked for.

    Parameters
    ----------
    settings : Settings
        What to run.
    methods : sequence of str
        Names of the methods, as in `METHODS`.
    out : Path
        The folder for the store, results.sqlite, and for all that is in it as results.csv; what
        it comes to is in summary.csv.
    n_jobs : int
        How many processes work side by side.
    progress : callable
        Told at the start and after every fit what is running, and how much is done.
    command : str, optional
        What the run was called with.

    Returns
    -------
    list of Fit
        In the order of their keys.
    """
    out.mkdir(parents=True, exist_ok=True)
    asked = {task.key: task for task in tasks(settings, methods)}
    with Store(out / "results.sqlite", str(settings)) as store:
        if command:
            store.add_command(command)
        known = store.keys()
        left = {key: task for key, task in asked.items() if key not in known}
        total = _effort(asked)
        progress(_running(left, n_jobs), total - _effort(left), total)
        for fit in run_all(list(left.values()), n_jobs):
            store.add([fit])
            del left[fit.key]
            progress(_running(left, n_jobs), total - _effort(left), total)
        store.write_csv(out / "results.csv")
        fits = store.fits()
    write_summary(out / "summary.csv", fits)
    return [fit for fit in fits if fit.key in asked]


def _effort(left: dict[Key, Task]) -> int:
    return sum(task.effort for task in left.values())


def _running(left: dict[Key, Task], n_jobs: int) -> str:
    """Return what the processes are at: tasks are begun in order."""
    return " | ".join(f"{task.dataset}: {task.method}" for task in islice(left.values(), n_jobs))
