"""Compare the speed of karnet with other libraries, each comparison in a separate process."""

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
# Environment variables that BLAS and OpenMP read when they are loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    options = _parser().parse_args(arguments)
    # Libraries read these variables when they are loaded, here or in a worker.
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
        help=f"run only these and write no files; '{TRAINING}' is the table of classifiers",
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
        help="use smaller sizes and fewer repeats",
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
        sys.exit(f"There is no comparison {', '.join(sorted(unknown))}: see --list.")
    wanted = options.only or [*names, TRAINING]
    lines = [
        _line(comparison, _measured(comparison.name, options, comparison.python312), options.scale)
        for comparison in COMPARISONS
        if comparison.name in wanted
    ]
    rows = _rows(_measured(TRAINING, options)) if TRAINING in wanted else []
    machine = describe_machine(options.threads)
    print(f"\n{machine}\n{describe_versions()}")
    if options.scale != "full":
        print(f"Sizes are {options.scale}: the goals refer to larger sizes.")
    if lines:
        print(f"\n{goals_table(lines)}")
    if lines and options.only:
        print(f"\n{timings_table(lines)}")
    if rows:
        print(f"\n{training_table(rows)}")
    if not options.only:
        name = "results" if options.scale == "full" else f"results-{options.scale}"
        write(options.out or HERE / name, lines, rows, machine)


def _measured(name: str, options: argparse.Namespace, python312: bool = False) -> dict[str, Any]:
    """Return the result of a worker or, under "reason", why there is none."""
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


def _line(comparison: Any, result: dict[str, Any], scale: str) -> Any:
    from machine import describe_versions
    from report import Line
    from timing import Timing

    sizes = " x ".join(map(str, comparison.sizes(scale)))
    described = (comparison.name, comparison.title, sizes, comparison.goal)
    if "reason" in result:
        return Line(*described, describe_versions(), note=result["reason"])
    timings = tuple(Timing(**timing) for timing in result["timings"])
    found = {key: result[key] for key in ("value", "holds", "note")}
    return Line(*described, result["versions"], timings=timings, **found)


def _rows(result: dict[str, Any]) -> list[Any]:
    from timing import Timing
    from training import Row

    if "reason" in result:
        return [Row(TRAINING, reason=result["reason"])]
    timed = [
        row | {key: Timing(**row[key]) for key in ("fit", "predict") if row[key]}
        for row in result["rows"]
    ]
    return [Row(**row) for row in timed]


def _work(name: str, scale: str, threads: int) -> None:
    """Run one comparison in this process and print its outcome as one line of JSON."""
    from comparisons import COMPARISONS
    from machine import describe_versions
    from threadpoolctl import threadpool_limits
    from training import side_by_side

    warnings.simplefilter("ignore")  # mostly about convergence: peers run with their defaults
    with threadpool_limits(threads):
        if name == TRAINING:
            result = {"rows": [asdict(row) for row in side_by_side(scale)]}
        else:
            comparison = next(each for each in COMPARISONS if each.name == name)
            result = asdict(comparison.run(scale))
    print(json.dumps(result | {"versions": describe_versions()}))


if __name__ == "__main__":
    main()
