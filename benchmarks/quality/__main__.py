"""Compare the accuracy of karnet with other libraries on the same folds of the same data sets.

A run that was killed is continued: stored results are not measured again.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from time import strftime

from .data import PROBLEMS, Problem, load
from .drive import Plan, Workers, check_names, keys, standings
from .peers import CONTENDERS
from .report import make, restore
from .store import Key, Result, Store

HERE = Path(__file__).parent
STORE = HERE / "measured" / "results.sqlite"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    # Workers must not outlive the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    options = _parser().parse_args(arguments)
    check_names("contender", [*options.only, *options.without], list(CONTENDERS))
    with Store(options.store, Result, Key) as store:
        if options.command == "restore":
            restore(options.out, store)
        if options.command in ("run", "all"):
            check_names("set", options.sets, list(PROBLEMS))
            _run(options, store)
        if options.command in ("report", "all"):
            _report(options, store)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument(
        "command",
        choices=("run", "report", "all", "restore"),
        nargs="?",
        default="all",
        help="restore: store the means of the CSV files, as in a new checkout; default: all",
    )
    for flag, what in (
        ("--only", f"contenders; default: all, which are {', '.join(CONTENDERS)}"),
        ("--without", "contenders to leave out"),
        ("--sets", "data sets; default: all that are available"),
    ):
        parser.add_argument(flag, nargs="+", default=[], metavar="NAME", help=what)
    parser.add_argument(
        "--repeats", type=int, help="number of repeats; default: by the size of a set"
    )
    parser.add_argument("--folds", type=int, help="number of the 5 folds; default: by size")
    parser.add_argument(
        "--time-limit",
        type=int,
        default=1800,
        metavar="SECONDS",
        help="skip a contender on a set if a fit takes more CPU time; default: %(default)s",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="fits at the same time, one thread each"
    )
    parser.add_argument(
        "--forget",
        choices=("errors", "all"),
        help="measure failed fits, or all, of the selected contenders and sets again",
    )
    parser.add_argument("--store", type=Path, default=STORE, help="SQLite file of results")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the report")
    return parser


def _contenders(options: argparse.Namespace) -> list[str]:
    asked = options.only or list(CONTENDERS)
    return [name for name in asked if name not in options.without]


def _run(options: argparse.Namespace, store: Store[Result]) -> None:
    problems = _problems(options.sets or list(PROBLEMS), store)
    contenders = _contenders(options)
    for name, standing in standings([CONTENDERS[name] for name in contenders]).items():
        store.note_absent(name, standing["reason"])
        if standing["reason"]:
            contenders.remove(name)
            print(f"{name}: {standing['reason']}")
    asked = keys(problems, Plan(contenders, options.repeats, options.folds))
    if options.forget:
        store.forget(asked, errors_only=options.forget == "errors")
    known = store.keys()
    todo = [key for key in asked if key not in known]
    kinds = {problem.name: problem.kind for problem in problems}
    print(f"{len(asked)} fits, {len(asked) - len(todo)} of them stored", flush=True)
    workers = Workers(options.jobs, options.time_limit)
    for done, result in enumerate(workers.measure(todo, kinds), start=1):
        store.add(result)
        print(f"{strftime('%H:%M:%S')} {done}/{len(todo)} {_line(result)}", flush=True)


def _problems(names: Sequence[str], store: Store[Result]) -> list[Problem]:
    problems = []
    for name in names:
        try:
            problems.append(load(name))
            store.note_absent(name, "")
        except FileNotFoundError as error:
            store.note_absent(name, str(error))
            print(f"{name}: {error}")
    return problems


def _line(result: Result) -> str:
    where = f"{result.dataset} {result.repeat}.{result.fold} {result.contender}"
    if result.error:
        return f"{where}: {result.error}"
    score = result.accuracy if result.kind == "classification" else result.r2
    return f"{where}: {score:.3f}, fit {result.fit_wall:.2f} s"


def _report(options: argparse.Namespace, store: Store[Result]) -> None:
    report = make(store.results(), store.absent(), _contenders(options))
    report.write(options.out)
    print(report.text)


if __name__ == "__main__":
    main()
