"""Process that runs the cases of one target and logs the outcome of each.

``python -m trust.fuzz_worker TARGET CASES SEED FOLDER``. `FOLDER/now` describes the running case,
so that a crash can be attributed; `FOLDER/log` has a line for every finished case.
"""

from __future__ import annotations

import os
import resource
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from trust.fuzz_case import Case, judge

# Bytes of address space of a worker.
MEMORY = 6 * 2**30
# Cases that Hypothesis draws from one seed; it keeps all of them in memory.
AT_ONCE = 500


def _arrays(folder: Path) -> Any:
    from trust.fuzz_arrays import array_cases

    return array_cases()


def _averages(folder: Path) -> Any:
    from trust.fuzz_arrays import cv_cases

    return cv_cases()


def _parameters(folder: Path) -> Any:
    from trust.fuzz_parameters import parameter_cases

    return parameter_cases()


def _parameters_of_averages(folder: Path) -> Any:
    from trust.fuzz_parameters import cv_parameter_cases

    return cv_parameter_cases()


def _models(folder: Path) -> Any:
    from trust.fuzz_models import SEEDS, model_cases, warm

    warm(folder, SEEDS)
    return model_cases(folder, SEEDS)


def _pipelines(folder: Path) -> Any:
    from trust.fuzz_models import TABLES, model_cases, warm

    warm(folder, TABLES)
    return model_cases(folder, TABLES)


def _tables(folder: Path) -> Any:
    from trust.fuzz_tables import table_cases

    return table_cases(folder)


def _exports(folder: Path) -> Any:
    from trust.fuzz_onnx import onnx_cases

    return onnx_cases()


TARGETS: dict[str, Callable[[Path], Any]] = {
    "arrays": _arrays,
    "arrays, CV": _averages,
    "parameters": _parameters,
    "parameters, CV": _parameters_of_averages,
    "model files": _models,
    "model files, pipelines": _pipelines,
    "tables": _tables,
    "ONNX": _exports,
}


class Log:
    """The log of cases, which remains if the process crashes."""

    def __init__(self, folder: Path) -> None:
        self._now = os.open(folder / "now", os.O_RDWR | os.O_CREAT)
        self._log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def run(self, case: Case, folder: Path) -> None:
        """Judge a case, and log its outcome."""
        about = case.about.encode(errors="replace")[:2000]
        os.pwrite(self._now, about.ljust(2000), 0)
        verdict = judge(case, folder)
        message = f"{verdict.about} | {case.about}" if verdict.broken else ""
        line = "\t".join([verdict.kind, " ".join(message.split())[:1500]])
        os.write(self._log, (line + "\n").encode(errors="replace"))


def run(target: str, n_cases: int, number: int, folder: Path) -> None:
    """Run `n_cases` cases of a target."""
    files = folder / "files"
    files.mkdir(exist_ok=True)
    log, done = Log(folder), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = TARGETS[target](files)
    while done < n_cases:
        before = done
        wanted = min(AT_ONCE, n_cases - done)

        @seed(number)
        @settings(
            max_examples=wanted,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(cases)
        def each(case: Case) -> None:
            nonlocal done
            log.run(case, files)
            done += 1

        each()
        number += 1
        if done == before:
            raise AssertionError(f"there are no cases of {target}")


def limit_memory() -> None:
    """Limit the memory of this process to `MEMORY`."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    limit_memory()
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
