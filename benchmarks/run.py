"""Compare karnet with its peers: every comparison in a process of its own, one after the other."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).parent
PYTHON_312 = HERE / ".venv312" / "bin" / "python"
TRAINING = "training"
# What BLAS and OpenMP read when they are loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    options = _parser().parse_args(arguments)
    # Libraries read it when they are loaded, in this process or in one that it starts.
    os.environ |= dict.fromkeys(THREAD_VARIABLES, str(options.threads))
    if options.worker:
        _work(options.worker, options.scale, options.threads)
    else:
        _drive(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        help=f"run these comparisons alone and write no files; '{TRAINING}' is the table of peers",
    )
    parser.add_argument("--list", action="store_true", help="list the comparisons")
    parser.add_argument("--threads", type=int, default=2, help="threads of BLAS and OpenMP")
    parser.add_argument("--out", type=Path, help="folder for the results")
    parser.add_argument(
        "--quick",
        dest="scale",
        action="store_const",
        const="quick",
        default="full",
        help="smaller sizes, fewer repeats",
    )
    parser.add_argument(
        "--tiny", dest="scale", action="store_const", const="tiny", help=argparse.SUPPRESS
    )
    parser.add_argument("--worker", metavar="NAME", help=argparse.SUPPRESS)
    return parser


def _drive(options: argparse.Namespace) -> None:
    from comparisons import COMPARISONS
    from machine import describe_machine, describe_versions
    from report import goals_table, timings_table, training_table, write

    names = [comparison.name for comparison in COMPARISONS]
    if options.list:
        print("\n".join([*names, TRAINING]))
        return
    unknown = set(options.only or ()) - {*names, TRAINING}
    if unknown:
        sys.exit(f"There is no comparison {', '.join(sorted(unknown))}: --list names all.")
    wanted = options.only or [*names, TRAINING]
    lines = [
        _line(comparison, _answer(comparison.name, options, comparison.python312), options.scale)
        for comparison in COMPARISONS
        if comparison.name in wanted
    ]
    rows = _rows(_answer(TRAINING, options)) if TRAINING in wanted else []
    machine = describe_machine(options.threads)
    print(f"\n{machine}\n{describe_versions()}")
    if options.scale != "full":
        print(f"Sizes are {options.scale}: smaller than those that the goals are set for.")
    if lines:
        print(f"\n{goals_table(lines)}")
    if lines and options.only:
        print(f"\n{timings_table(lines)}")
    if rows:
        print(f"\n{training_table(rows)}")
    if not options.only:
        name = "results" if options.scale == "full" else f"results-{options.scale}"
        write(options.out or HERE / name, lines, rows, machine)


def _answer(name: str, options: argparse.Namespace, python312: bool = False) -> dict[str, Any]:
    """Return what a worker says or, under "reason", why it says nothing."""
    if python312 and not PYTHON_312.exists():
        return {"reason": "not installed: needs Python 3.12"}
    python = PYTHON_312 if python312 else sys.executable
    command = [str(python), __file__, "--worker", name, "--threads", str(options.threads)]
    if options.scale != "full":
        command.append(f"--{options.scale}")
    print(f"{name} ... ", end="", file=sys.stderr, flush=True)
    start = perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    print(f"{perf_counter() - start:.0f} s", file=sys.stderr)
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    return {"reason": (done.stderr.strip().splitlines() or ["killed"])[-1]}


def _line(comparison: Any, answer: dict[str, Any], scale: str) -> Any:
    from machine import describe_versions
    from report import Line
    from timing import Timing

    sizes = " x ".join(map(str, comparison.sizes(scale)))
    described = (comparison.name, comparison.title, sizes, comparison.goal)
    if "reason" in answer:
        return Line(*described, describe_versions(), note=answer["reason"])
    timings = tuple(Timing(**timing) for timing in answer["timings"])
    found = {key: answer[key] for key in ("value", "holds", "note")}
    return Line(*described, answer["versions"], timings=timings, **found)


def _rows(answer: dict[str, Any]) -> list[Any]:
    from timing import Timing
    from training import Row

    if "reason" in answer:
        return [Row(TRAINING, reason=answer["reason"])]
    timed = [
        row | {key: Timing(**row[key]) for key in ("fit", "predict") if row[key]}
        for row in answer["rows"]
    ]
    return [Row(**row) for row in timed]


def _work(name: str, scale: str, threads: int) -> None:
    """Make one comparison in this process and print its outcome as one line of JSON."""
    from comparisons import COMPARISONS
    from machine import describe_versions
    from threadpoolctl import threadpool_limits
    from training import side_by_side

    warnings.simplefilter("ignore")  # of convergence, mostly: peers are run with their defaults
    with threadpool_limits(threads):
        if name == TRAINING:
            answer = {"rows": [asdict(row) for row in side_by_side(scale)]}
        else:
            comparison = next(each for each in COMPARISONS if each.name == name)
            answer = asdict(comparison.run(scale))
    print(json.dumps(answer | {"versions": describe_versions()}))


if __name__ == "__main__":
    main()
