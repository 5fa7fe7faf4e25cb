"""The list of fits to measure, and the processes that measure them."""

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
from .peers import CONTENDERS, Contender
from .store import Key, Result
from .worker import TOO_SLOW

BENCHMARKS = Path(__file__).parents[1]
PYTHONS: Mapping[str, Path] = MappingProxyType(
    {
        "main": Path(sys.executable),
        "gfdl": BENCHMARKS / ".venv312" / "bin" / "python",
        "xrfm": BENCHMARKS / ".venv-xrfm" / "bin" / "python",
    }
)
WORKER = "benchmarks.quality.worker"
# Environment variables that BLAS and OpenMP read when they are loaded.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Plan:
    """The extent of a run.

    Parameters
    ----------
    contenders : sequence of str
        Names of the contenders.
    n_repeats, n_folds : int or None
        Repeats, and folds of each; by default those of `extent`.
    """

    contenders: Sequence[str]
    n_repeats: int | None = None
    n_folds: int | None = None


def keys(problems: Sequence[Problem], plan: Plan) -> list[Key]:
    """Return every fit of a run, with small data sets first and all contenders on each fold."""
    return [
        Key(contender, problem.name, repeat, fold)
        for problem in sorted(problems, key=lambda problem: problem.n_rows)
        for repeat in range(plan.n_repeats or extent(problem.n_rows)[0])
        for fold in range(min(plan.n_folds or extent(problem.n_rows)[1], N_FOLDS))
        for contender in plan.contenders
    ]


def check_names(what: str, asked: Iterable[str], known: Iterable[str]) -> None:
    """End the program if a name of the command line is unknown."""
    unknown = set(asked) - set(known)
    if unknown:
        sys.exit(f"There is no {what} {', '.join(sorted(unknown))}: use {', '.join(known)}.")


class EndedError(Exception):
    """A worker ended before it returned a result.

    Parameters
    ----------
    code : int
        Its exit code.
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"process ended with code {code}")
        self.too_slow = code == TOO_SLOW

    def reason(self, limit: int) -> str:
        """Return why there is no result of a fit that was allowed so many seconds."""
        return f"more than {limit} s of CPU time" if self.too_slow else str(self)


class Worker:
    """A process in one environment that measures one fit after another.

    Parameters
    ----------
    python : Path
        The environment's interpreter.
    module : str
        The program, which calls `worker.serve`.
    """

    def __init__(self, python: Path, module: str = WORKER) -> None:
        self._process = subprocess.Popen(
            [str(python), "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=BENCHMARKS.parent,
            env=os.environ | ONE_THREAD,
        )

    def request(self, task: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request, or raise EndedError if the process ends."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(task), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return dict(json.loads(line))
        raise EndedError(self._process.wait())

    def end(self) -> None:
        """Kill the process, which has no state to save."""
        self._process.kill()
        self._process.wait()


def standings(contenders: Iterable[Contender], module: str = WORKER) -> dict[str, dict[str, str]]:
    """Return what workers say about contenders, by name.

    The entry "reason" says why a contender cannot run; it is empty for those that can.
    """
    workers: dict[Path, Worker] = {}
    found: dict[str, dict[str, str]] = {}
    for contender in contenders:
        python = PYTHONS[contender.environment]
        if not python.exists():
            missing = python.relative_to(BENCHMARKS.parent)
            found[contender.name] = {"reason": f"{missing} is missing"}
            continue
        if python not in workers:
            workers[python] = Worker(python, module)
        found[contender.name] = workers[python].request({"contender": contender.name})
    for worker in workers.values():
        worker.end()
    for standing in found.values():
        standing["reason"] = f"not installed: {standing['reason']}" * bool(standing["reason"])
    return found


class Workers:
    """Several fits at the same time, each in the environment of its contender.

    Parameters
    ----------
    n_jobs : int
        Number of fits at the same time.
    limit : int
        Seconds of CPU time after which a fit is stopped, and its contender skipped on that set.
    """

    def __init__(self, n_jobs: int, limit: int) -> None:
        self._n_jobs, self._limit = n_jobs, limit
        self._mine = local()
        self._all: list[Worker] = []
        self._too_slow: set[tuple[str, str]] = set()

    def measure(self, todo: Sequence[Key], kinds: Mapping[str, Kind]) -> Iterator[Result]:
        """Yield results as they are ready; fits start in the order of `todo`."""
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
            return Result(*key, kind, error=error.reason(self._limit))

    def _ask(self, key: Key) -> dict[str, Any]:
        """Return the result of this thread's worker in the contender's environment."""
        environment = CONTENDERS[key.contender].environment
        workers: dict[str, Worker] = self._mine.__dict__
        if environment not in workers:
            workers[environment] = Worker(PYTHONS[environment])
            self._all.append(workers[environment])
        try:
            return workers[environment].request({"key": key, "limit": self._limit})
        except EndedError:
            del workers[environment]
            raise

    def _end(self) -> None:
        for worker in self._all:
            worker.end()
