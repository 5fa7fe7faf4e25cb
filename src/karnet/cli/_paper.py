"""The commands karnet reproduce and karnet datasets: the paper's experiments and its data."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from .._util.extras import require
from .._util.text_table import TextTable
from ._console import DataFolder

if TYPE_CHECKING:
    from ..paper.uci import RunSettings

# The names that `karnet reproduce` takes; written here because importing the experiments is slow.
Experiment = StrEnum("Experiment", "xor iris rounding uci depth choices report all")


class ManySets(TyperCommand):
    """A command whose option --sets takes all names up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its names."""
        spread, option = [], ""
        for arg in args:
            if arg.startswith("-"):
                option = arg if arg == "--sets" else ""
            spread += [option, arg] if option and arg != option else [] if option else [arg]
        return list(super().parse_args(ctx, spread))


def datasets(data: DataFolder = None) -> None:
    """List the paper's data sets and their sources.

    ```text
    karnet datasets --data my-folder
    ```
    """
    from ..datasets import LISTING_HEADER, listing

    rows = tuple((*row[:-1], shorten(row[-1], 60, placeholder=" ...")) for row in listing(data))
    note = "Full texts: karnet.datasets.DATASETS[name].deviation."
    print(TextTable("The paper's 42 data sets", LISTING_HEADER, rows, note))


def reproduce(
    context: typer.Context,
    experiments: Annotated[
        list[Experiment],
        typer.Argument(
            metavar="EXPERIMENT",
            help="The experiments to run; report only writes the report on earlier runs.",
        ),
    ] = [Experiment.xor, Experiment.iris, Experiment.rounding, Experiment.uci],  # noqa: B006
    data: DataFolder = None,
    trials: Annotated[int, typer.Option(min=1, metavar="N", help="Repetitions (paper: 10).")] = 1,
    folds: Annotated[int, typer.Option(min=1, metavar="N", help="Folds of each (paper: 10).")] = 10,
    sets: Annotated[
        list[str],
        typer.Option(metavar="NAME...", help="Data sets by name, or number as in 17 or 1-39."),
    ] = [],  # noqa: B006
    slow_folds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Folds of the baselines.")
    ] = 1,
    time_limit: Annotated[
        float, typer.Option(min=0.0, metavar="S", help="Seconds for one slow training.")
    ] = 20.0,
    jobs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Parallel processes.")
    ] = os.cpu_count() or 1,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")] = Path(
        "reproduction"
    ),
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of splits and weights.")] = 0,
) -> None:
    """Repeat the paper's experiments, print their tables, and write a report as HTML.

    A run that was killed continues where it stopped.

    ```text
    karnet reproduce --time-limit 10
    karnet reproduce uci --sets iris wine --trials 10
    ```
    """
    require("reproduce", "paper", "matplotlib", "pandas", "rich.progress")
    from ..paper import EXPERIMENTS
    from ..paper.methods import EXPERIMENTS_OF_SETS
    from ..paper.report import write_report
    from ..paper.summary import tables
    from ..paper.uci import RunSettings, sets_here

    settings = RunSettings(
        datasets=_named(sets) if sets else sets_here(data),
        n_trials=trials,
        n_folds=folds,
        seed=seed,
        data=data,
        slow_folds=slow_folds,
        time_limit=time_limit,
    )
    for name in [*EXPERIMENTS, *EXPERIMENTS_OF_SETS] if "all" in experiments else experiments:
        results: Iterable[TextTable] = EXPERIMENTS[name]() if name in EXPERIMENTS else ()
        if name in EXPERIMENTS_OF_SETS:
            methods = EXPERIMENTS_OF_SETS[name]
            results = tables(_fits(settings, methods, out, jobs, context.obj), methods)
        for table in results:
            print(table, end="\n\n\n", flush=True)
    print(f"The report is in {write_report(out, settings, context.obj)}.")


def _named(given: Sequence[str]) -> tuple[str, ...]:
    """Return the names of data sets given by name, number, or range of numbers."""
    from ..datasets import DATASETS

    names: list[str] = []
    for each in given:
        first, _, last = each.partition("-")
        if each in DATASETS:
            names.append(each)
        elif first.isdecimal() and (last or first).isdecimal():
            numbers = range(int(first), int(last or first) + 1)
            names += [name for name, spec in DATASETS.items() if spec.number in numbers]
        else:
            raise ValueError(f"--sets {each} is not known: 'karnet datasets' lists the names.")
    return tuple(dict.fromkeys(names))


def _fits(
    settings: RunSettings, methods: Sequence[str], out: Path, jobs: int, line: str
) -> list[Any]:
    """Return the fits of some methods, showing a progress bar meanwhile."""
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

    from ..paper.uci import run_sets

    bar = Progress(
        BarColumn(),
        "{task.percentage:3.0f} %, left",
        TimeRemainingColumn(),
        "{task.description}",
        transient=True,
        disable=not sys.stderr.isatty(),
        speed_estimate_period=600.0,
    )
    with bar:
        task = bar.add_task("", total=None)

        def advance(running: str, done: int, total: int) -> None:
            bar.update(task, description=running, completed=done, total=total)

        return run_sets(settings, methods, out, jobs, advance, line)
