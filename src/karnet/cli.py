"""The command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from . import __version__, datasets
from .paper import EXPERIMENTS, Table
from .paper.run import Settings, run_uci, sets_here
from .paper.store import Fit

__all__ = ["main"]

WIDTH_OF_DEVIATION = 60


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        options.command(options)
    except (OSError, ValueError, ImportError) as error:
        parser.exit(1, f"karnet: {error}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="karnet", description="Neural networks trained in closed form."
    )
    parser.add_argument("--version", action="version", version=f"karnet {__version__}")
    commands = parser.add_subparsers(title="commands", required=True)
    folder = argparse.ArgumentParser(add_help=False)
    folder.add_argument(
        "--data", type=Path, metavar="DIR", help="folder of data sets as CSV (or KARNET_DATA)"
    )
    listing = commands.add_parser(
        "datasets", parents=[folder], help="list the paper's data sets and where they come from"
    )
    listing.set_defaults(command=_list_datasets)
    reproduce = commands.add_parser(
        "reproduce", parents=[folder], help="run the paper's experiments again, print their tables"
    )
    reproduce.set_defaults(command=_reproduce)
    reproduce.add_argument(
        "experiment", nargs="?", choices=[*EXPERIMENTS, "uci", "all"], default="all"
    )
    add = reproduce.add_argument
    add("--trials", type=_count, default=1, metavar="N", help="repetitions of uci (paper: 10)")
    add("--folds", type=_count, default=10, metavar="N", help="folds of each (paper: 10)")
    add("--sets", nargs="+", metavar="NAME", help="data sets of uci (default: all that are here)")
    add("--jobs", type=_count, default=os.cpu_count(), metavar="N", help="processes side by side")
    add("--out", type=Path, default=Path("reproduction"), metavar="DIR", help="where results go")
    add("--seed", type=int, default=0, metavar="N", help="what is drawn is drawn with this")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1")
    return number


def _list_datasets(options: argparse.Namespace) -> None:
    rows = tuple((*row[:-1], _shortened(row[-1])) for row in datasets.listing(options.data))
    note = "Full texts: karnet.datasets.DATASETS[name].deviation."
    print(Table("The paper's 42 data sets", datasets.LISTING_HEADER, rows, note))


def _shortened(text: str) -> str:
    return text if len(text) <= WIDTH_OF_DEVIATION else f"{text[: WIDTH_OF_DEVIATION - 4]} ..."


def _reproduce(options: argparse.Namespace) -> None:
    for name, experiment in EXPERIMENTS.items():
        if options.experiment in (name, "all"):
            for table in experiment():
                print(table, end="\n\n\n", flush=True)
    if options.experiment in ("uci", "all"):
        print(_run_uci(options))
        print(f"\nEvery fit is in {options.out / 'results.csv'}.")


def _run_uci(options: argparse.Namespace) -> Table:
    try:
        from rich.progress import BarColumn, Progress, TimeRemainingColumn
    except ImportError as error:
        raise ImportError("uci needs rich and pandas: pip install 'karnet[paper]'.") from error
    names = tuple(options.sets or sets_here(options.data))
    unknown = [name for name in names if name not in datasets.DATASETS]
    if unknown:
        raise ValueError(f"--sets {unknown[0]} is not known: 'karnet datasets' lists the names.")
    settings = Settings(names, options.trials, options.folds, options.seed, options.data)
    bar = Progress(
        "{task.description}",
        BarColumn(),
        "{task.completed}/{task.total}",
        TimeRemainingColumn(),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("uci", total=None)

        def advance(fit: Fit, n_done: int, n_all: int) -> None:
            bar.update(task, description=fit.dataset, completed=n_done, total=n_all)

        return run_uci(settings, options.out, options.jobs, advance)
