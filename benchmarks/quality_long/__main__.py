"""Compare accuracy, time and memory of karnet with other libraries on tables of many rows.

A run that was killed is continued: stored results of the same versions are not measured again.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from time import strftime

from ..quality.drive import check_names
from ..quality.store import Store
from .drive import Plan, installed_versions, keys, run
from .peers import CONTENDERS
from .report import make, restore
from .results import Key, Result
from .tables import Loader, all_tables

HERE = Path(__file__).parent
STORE = HERE / "measured" / "results.sqlite"
PAGE = HERE.parents[1] / "docs" / "quality-long.md"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    options = _parser().parse_args(arguments)
    with Store(options.store, Result, Key) as store:
        if options.command == "restore":
            restore(options.out, store)
        if options.command in ("run", "all"):
            _run(options, store)
        if options.command in ("report", "all"):
            report = make(store.results(), store.absent())
            report.write(options.page, options.out)
            print(report.text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality_long", description=__doc__)
    parser.add_argument(
        "command",
        choices=("run", "report", "all", "restore"),
        nargs="?",
        default="all",
        help="restore: store the results of the CSV file, as in a new checkout; default: all",
    )
    for flag, what in (
        ("--only", "tables; default: all that are available"),
        ("--contenders", f"default: all, which are {', '.join(CONTENDERS)}"),
    ):
        parser.add_argument(flag, nargs="+", default=[], metavar="NAME", help=what)
    named = os.environ.get("KARNET_LONG")
    parser.add_argument(
        "--long",
        type=Path,
        default=Path(named).expanduser() if named else None,
        metavar="DIR",
        help="folder of tables, NPZ or Parquet; default: the one that KARNET_LONG names",
    )
    parser.add_argument("--own", type=Path, metavar="DIR", help="another folder of tables")
    parser.add_argument(
        "--limit",
        type=int,
        default=1800,
        metavar="SECONDS",
        help="stop a fit that takes more CPU time, with its predictions; default: %(default)s",
    )
    parser.add_argument(
        "--again",
        choices=("errors", "all"),
        nargs="?",
        const="all",
        help="measure all selected fits again, or those that failed",
    )
    parser.add_argument("--store", type=Path, default=STORE, help="SQLite file of results")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the CSV file")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page in Markdown")
    return parser


def _run(options: argparse.Namespace, store: Store[Result]) -> None:
    check_names("contender", options.contenders, CONTENDERS)
    tables = _tables(options)
    installed = installed_versions(options.contenders or list(CONTENDERS), store)
    asked = keys(list(tables), installed)
    if options.again:
        store.forget(asked, errors_only=options.again == "errors")
    n_todo = len(set(asked) - store.keys())
    print(f"{len(asked)} fits, {len(asked) - n_todo} of them stored", flush=True)
    plan = Plan(options.limit, options.store.parent)
    for done, result in enumerate(run(tables, installed, store, plan), start=1):
        print(f"{strftime('%H:%M:%S')} {done}/{n_todo} {_line(result)}", flush=True)


def _tables(options: argparse.Namespace) -> dict[str, Loader]:
    folders = [folder for folder in (options.long, options.own) if folder is not None]
    try:
        tables = all_tables(*folders)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    if options.long is None:
        print("KARNET_LONG names no folder: only the other tables are measured.")
    check_names("table", options.only, tables)
    return {name: tables[name] for name in options.only or tables}


def _line(result: Result) -> str:
    where = f"{result.dataset} {result.contender}"
    if result.error:
        return f"{where}: {result.error}"
    score = result.accuracy if result.kind == "classification" else result.r2
    return f"{where}: {score:.4f}, fit {result.fit_wall:.2f} s, {result.memory / 1e6:.0f} MB"


if __name__ == "__main__":
    # Workers must not outlive the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    main()
