"""karnet reproduce and karnet datasets: the paper's experiments and its data."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from .. import datasets
from .._util.extras import require
from .._util.text_table import TextTable
from ..paper import EXPERIMENTS
from ..paper.methods import EXPERIMENTS_OF_SETS
from ..paper.run import Settings, run_sets, sets_here
from ..paper.store import Fit
from ..paper.summary import tables
from ._console import EXIT_CODES, sentences
from ._options import DataFolder, line_of

__all__ = ["add_to"]

WIDTH_OF_DEVIATION = 60
ALL = (*EXPERIMENTS, *EXPERIMENTS_OF_SETS)
FOLDER = Path("reproduction")
KNOWN = (*ALL, "report", "all")
EXAMPLES = """
Run the paper's experiments again, print their tables, and write a report as HTML.

A run that is killed goes on where it was.

```text
karnet reproduce --time-limit 10
karnet reproduce uci --sets iris wine --trials 10
```
"""
LISTING = """
List the paper's data sets and where they come from.

```text
karnet datasets --data my-folder
```
"""


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


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("reproduce", help=EXAMPLES, epilog=EXIT_CODES, cls=ManySets)(sentences(reproduce))
    app.command("datasets", help=LISTING, epilog=EXIT_CODES)(sentences(list_datasets))


def _known(names: list[str]) -> list[str]:
    for name in names:
        if name not in KNOWN:
            raise typer.BadParameter(f"{name} is none of {', '.join(KNOWN)}")
    return names


def list_datasets(data: DataFolder = None) -> None:
    """List the paper's data sets and where they come from."""
    rows = tuple((*row[:-1], _shortened(row[-1])) for row in datasets.listing(data))
    note = "Full texts: karnet.datasets.DATASETS[name].deviation."
    print(TextTable("The paper's 42 data sets", datasets.LISTING_HEADER, rows, note))


def _shortened(text: str) -> str:
    return text if len(text) <= WIDTH_OF_DEVIATION else f"{text[: WIDTH_OF_DEVIATION - 4]} ..."


def reproduce(
    context: typer.Context,
    experiments: Annotated[
        list[str],
        typer.Argument(
            metavar="EXPERIMENT",
            callback=_known,
            help=f"Any of {', '.join(ALL)}; all; or report, which only writes the report of what "
            "was run before.",
        ),
    ] = [*EXPERIMENTS, "uci"],  # noqa: B006
    data: DataFolder = None,
    trials: Annotated[int, typer.Option(min=1, metavar="N", help="Repetitions (paper: 10).")] = 1,
    folds: Annotated[int, typer.Option(min=1, metavar="N", help="Folds of each (paper: 10).")] = 10,
    sets: Annotated[
        list[str],
        typer.Option(metavar="NAME...", help="Data sets by name, or number as in 17 or 1-39."),
    ] = [],  # noqa: B006
    slow_folds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Folds of baselines and deep networks.")
    ] = 1,
    time_limit: Annotated[
        float, typer.Option(min=0.0, metavar="S", help="Seconds for one slow training.")
    ] = 20.0,
    jobs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Processes side by side.")
    ] = os.cpu_count() or 1,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results go.")] = FOLDER,
    seed: Annotated[int, typer.Option(metavar="N", help="What is drawn is drawn with this.")] = 0,
) -> None:
    """Run the paper's experiments again."""
    require("reproduce", "paper", "matplotlib", "pandas", "rich.progress")
    settings = Settings(
        datasets=_named(sets) if sets else sets_here(data),
        n_trials=trials,
        n_folds=folds,
        seed=seed,
        data=data,
        slow_folds=slow_folds,
        time_limit=time_limit,
    )
    line = line_of(context)
    for name in ALL if "all" in experiments else experiments:
        if name in EXPERIMENTS:
            _print(EXPERIMENTS[name]())
        if name in EXPERIMENTS_OF_SETS:
            methods = EXPERIMENTS_OF_SETS[name]
            _print(tables(_fits(settings, methods, out, jobs, line), methods))
    from ..paper.report import write_report

    print(f"The report is in {write_report(out, settings, line)}.")


def _print(results: Sequence[TextTable]) -> None:
    for table in results:
        print(table, end="\n\n\n", flush=True)


def _named(given: Sequence[str]) -> tuple[str, ...]:
    """Return the names of data sets that are given by name, number, or range of numbers."""
    names: list[str] = []
    for each in given:
        first, _, last = each.partition("-")
        if each in datasets.DATASETS:
            names.append(each)
        elif first.isdecimal() and (last or first).isdecimal():
            numbers = range(int(first), int(last or first) + 1)
            names += [name for name, spec in datasets.DATASETS.items() if spec.number in numbers]
        else:
            raise ValueError(f"--sets {each} is not known: 'karnet datasets' lists the names.")
    return tuple(dict.fromkeys(names))


def _fits(settings: Settings, methods: Sequence[str], out: Path, jobs: int, line: str) -> list[Fit]:
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

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
