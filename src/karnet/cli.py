"""The command line."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from . import __version__, datasets
from .paper import EXPERIMENTS, Table
from .paper.methods import EXPERIMENTS_OF_SETS
from .paper.run import Settings, run_sets, sets_here
from .paper.store import Fit
from .paper.summary import tables

__all__ = ["main"]

WIDTH_OF_DEVIATION = 60
ALL = (*EXPERIMENTS, *EXPERIMENTS_OF_SETS)
EXTRAS = ("matplotlib", "pandas", "rich.progress")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name."""
    parser = _parser()
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(arguments)
    options.line = shlex.join(["karnet", *arguments])
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
        "experiments",
        nargs="*",
        metavar="experiment",
        type=_experiment,  # choices would refuse the default
        default=[*EXPERIMENTS, "uci"],
        help=f"any of {', '.join(ALL)}; all; or report, which only writes the report of what was "
        f"run before (default: {' '.join(EXPERIMENTS)} uci)",
    )
    add = reproduce.add_argument
    add("--trials", type=_count, default=1, metavar="N", help="repetitions (paper: 10)")
    add("--folds", type=_count, default=10, metavar="N", help="folds of each (paper: 10)")
    add(
        "--sets",
        nargs="+",
        metavar="NAME",
        help="data sets by name, or number as in 17 or 1-39 (default: all that are here)",
    )
    add(
        "--slow-folds",
        type=_count,
        default=1,
        metavar="N",
        help="folds of baselines, deep networks",
    )
    add("--time-limit", type=_seconds, default=20.0, metavar="S", help="for one slow training")
    add("--jobs", type=_count, default=os.cpu_count(), metavar="N", help="processes side by side")
    add("--out", type=Path, default=Path("reproduction"), metavar="DIR", help="where results go")
    add("--seed", type=int, default=0, metavar="N", help="what is drawn is drawn with this")
    return parser


def _experiment(text: str) -> str:
    known = (*ALL, "report", "all")
    if text not in known:
        raise argparse.ArgumentTypeError(f"{text} is none of {', '.join(known)}")
    return text


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1")
    return number


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds >= 0.0:
        raise argparse.ArgumentTypeError(f"{text} must not be negative")
    return seconds


def _list_datasets(options: argparse.Namespace) -> None:
    rows = tuple((*row[:-1], _shortened(row[-1])) for row in datasets.listing(options.data))
    note = "Full texts: karnet.datasets.DATASETS[name].deviation."
    print(Table("The paper's 42 data sets", datasets.LISTING_HEADER, rows, note))


def _shortened(text: str) -> str:
    return text if len(text) <= WIDTH_OF_DEVIATION else f"{text[: WIDTH_OF_DEVIATION - 4]} ..."


def _reproduce(options: argparse.Namespace) -> None:
    _check_extras()
    settings = _settings(options)
    chosen = ALL if "all" in options.experiments else options.experiments
    for name in chosen:
        if name in EXPERIMENTS:
            _print(EXPERIMENTS[name]())
        if name in EXPERIMENTS_OF_SETS:
            methods = EXPERIMENTS_OF_SETS[name]
            _print(tables(_fits(settings, methods, options), methods))
    from .paper.report import write_report

    print(f"The report is in {write_report(options.out, settings, options.line)}.")


def _check_extras() -> None:
    """Refuse at once what would fail for want of a package after a long run."""
    if not all(find_spec(name.partition(".")[0]) and find_spec(name) for name in EXTRAS):
        raise ImportError(
            "reproduce needs matplotlib, pandas and rich: pip install 'karnet[paper]'."
        )


def _print(results: Sequence[Table]) -> None:
    for table in results:
        print(table, end="\n\n\n", flush=True)


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        datasets=_named(options.sets) if options.sets else sets_here(options.data),
        n_trials=options.trials,
        n_folds=options.folds,
        seed=options.seed,
        data=options.data,
        slow_folds=options.slow_folds,
        time_limit=options.time_limit,
    )


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


def _fits(settings: Settings, methods: Sequence[str], options: argparse.Namespace) -> list[Fit]:
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

        return run_sets(settings, methods, options.out, options.jobs, advance, options.line)
