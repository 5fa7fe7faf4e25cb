"""What is to be measured, in which order, and the processes that do it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from threading import local
from types import MappingProxyType
from typing import Any

from .data import N_FOLDS, Kind, Problem, extent
from .peers import CONTENDERS
from .store import Key, Result
from .worker import TOO_SLOW

__all__ = ["Plan", "Workers", "absences", "keys"]

BENCHMARKS = Path(__file__).parents[1]
PYTHONS: Mapping[str, Path] = MappingProxyType(
    {
        "main": Path(sys.executable),
        "gfdl": BENCHMARKS / ".venv312" / "bin" / "python",
        "xrfm": BENCHMARKS / ".venv-xrfm" / "bin" / "python",
    }
)
# What BLAS and OpenMP read when they are loaded.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Plan:
    """How much is to be measured.

    Parameters
    ----------
    contenders : sequence of str
        Who takes part.
    n_repeats, n_folds : int or None
        Repeats, and folds of each; None: as many as `extent` says.
    """

    contenders: Sequence[str]
    n_repeats: int | None = None
    n_folds: int | None = None


def keys(problems: Sequence[Problem], plan: Plan) -> list[Key]:
    """Return every fit of a run: the smallest data set first, on each fold all contenders."""
    return [
        Key(contender, problem.name, repeat, fold)
        for problem in sorted(problems, key=lambda problem: problem.n_rows)
        for repeat in range(plan.n_repeats or extent(problem.n_rows)[0])
        for fold in range(min(plan.n_folds or extent(problem.n_rows)[1], N_FOLDS))
        for contender in plan.contenders
    ]


class EndedError(Exception):
    """A worker ended before it answered.

    Parameters
    ----------
    code : int
        What it ended with.
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"process ended with code {code}")
        self.too_slow = code == TOO_SLOW


class Worker:
    """A process in one environment that measures one fit after the other."""

    def __init__(self, python: Path) -> None:
        self._process = subprocess.Popen(
            [str(python), "-m", "benchmarks.quality.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=BENCHMARKS.parent,
            env=os.environ | ONE_THREAD,
        )

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer, or raise EndedError where none comes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(question), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return dict(json.loads(line))
        raise EndedError(self._process.wait())

    def end(self) -> None:
        """End the process; it is never in the middle of anything that matters."""
        self._process.kill()
        self._process.wait()


def absences(contenders: Iterable[str]) -> dict[str, str]:
    """Return why contenders cannot take part, by name; empty text for one that can."""
    workers: dict[Path, Worker] = {}
    reasons: dict[str, str] = {}
    for name in contenders:
        python = PYTHONS[CONTENDERS[name].environment]
        if not python.exists():
            reasons[name] = f"not installed: {python.relative_to(BENCHMARKS.parent)} is not there"
            continue
        if python not in workers:
            workers[python] = Worker(python)
        reason = workers[python].ask({"contender": name})["reason"]
        reasons[name] = f"not installed: {reason}" if reason else ""
    for worker in workers.values():
        worker.end()
    return reasons


class Workers:
    """As many fits side by side as there are jobs, each in the environment of its contender.

    Parameters
    ----------
    n_jobs : int
        How many fits are made at the same time.
    limit : int
        Seconds of CPU time after which a fit is given up, and with it the contender on that set.
    """

    def __init__(self, n_jobs: int, limit: int) -> None:
        self._n_jobs, self._limit = n_jobs, limit
        self._mine = local()
        self._all: list[Worker] = []
        self._too_slow: set[tuple[str, str]] = set()

    def measure(self, todo: Sequence[Key], kinds: Mapping[str, Kind]) -> Iterator[Result]:
        """Yield the results as they are ready; fits are begun in the order of `todo`."""
        with ThreadPoolExecutor(self._n_jobs) as pool:
            futures = [pool.submit(self._measure, key, kinds[key.dataset]) for key in todo]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                self._end()

    def _measure(self, key: Key, kind: Kind) -> Result:
        where = (key.contender, key.dataset)
        if where in self._too_slow:
            return Result(*key, kind, error=f"not tried: more than {self._limit} s on another fold")
        try:
            return Result(**self._ask(key))
        except EndedError as error:
            if error.too_slow:
                self._too_slow.add(where)
            reason = f"more than {self._limit} s of CPU time" if error.too_slow else str(error)
            return Result(*key, kind, error=reason)

    def _ask(self, key: Key) -> dict[str, Any]:
        """Ask this thread's worker in the contender's environment, which is started if need be."""
        environment = CONTENDERS[key.contender].environment
        workers: dict[str, Worker] = self._mine.__dict__
        if environment not in workers:
            workers[environment] = Worker(PYTHONS[environment])
            self._all.append(workers[environment])
        try:
            return workers[environment].ask({"key": key, "limit": self._limit})
        except EndedError:
            del workers[environment]
            raise

    def _end(self) -> None:
        for worker in self._all:
            worker.end()
