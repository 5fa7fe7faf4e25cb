"""Kills at any moment: the final name holds the old file or the new one, never a part of it."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

from trust.fault_commands import Writer, strays
from trust.fault_process import (
    Run,
    at_each_step_of_writing,
    killed_at_byte,
    killed_at_step,
    run_all,
)
from trust.fault_process import run_one as run
from trust.record import table

KILLS = (signal.SIGKILL, signal.SIGXFSZ)
HEADER = (
    "writer",
    "kills at random moments",
    "kills at steps of writing",
    "kills inside a write",
    "old file or none",
    "new file",
    "incomplete files",
    "temporary files left",
    "run again",
    "of these failed",
)
# The command is run again, without a fault, after every so many kills.
EVERY = 8


@dataclass
class Counts:
    """The numbers of kills of one writer, and of the files found afterwards."""

    name: str
    seconds: float = 0.0
    killed: dict[str, int] = field(default_factory=lambda: {"random": 0, "step": 0, "byte": 0})
    new: int = 0
    not_new: int = 0
    left: int = 0
    again: int = 0
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def row(self) -> tuple[object, ...]:
        """Return the row of the table."""
        return (
            f"`{self.name}`, {self.seconds:.1f} s",
            *self.killed.values(),
            self.not_new,
            self.new,
            len(self.wrong),
            self.left,
            self.again,
            len(self.failed),
        )


@contextmanager
def folder() -> Iterator[Path]:
    """Provide an empty folder."""
    with TemporaryDirectory(prefix="faults-") as name:
        yield Path(name)


def steps_of(work: Callable[[Path], None]) -> int:
    """Return the number of steps of writing."""
    with folder() as out:

        def counted() -> None:
            work(out)
            print(f"\nsteps {n}")

        n = 0

        def step() -> None:
            nonlocal n
            n += 1

        printed = run(counted, fault=lambda: at_each_step_of_writing(out, step)).out
    return int(printed.rsplit("steps ", 1)[1])


@cache
def largest(work: Callable[[Path], None]) -> tuple[int, float]:
    """Return the size of the largest file that is written, and the duration of the run."""
    seconds = inf
    for _ in range(2):
        with folder() as out:
            seconds = min(seconds, run(partial(work, out)).seconds)
            sizes = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
    return max(sizes), seconds


def plans(
    work: Callable[[Path], None], n_random: int, n_writing: int, rng: random.Random
) -> Iterator[tuple[str, float]]:
    """Yield the kind of each kill and its moment: in seconds, steps or bytes."""
    size, seconds = largest(work)
    n_steps = steps_of(work)
    for _ in range(n_random):
        yield "random", rng.uniform(0.0, seconds)
    for k in sorted(rng.sample(range(n_steps), min(n_writing, n_steps))):
        yield "step", k
    for _ in range(n_writing // 2):
        yield "byte", rng.randrange(size)


def fault_of(kind: str, when: float, out: Path) -> Callable[[], None] | None:
    """Return a function that a process calls before its work, so that it is killed then."""
    if kind == "step":
        return partial(killed_at_step, out, int(when))
    return partial(killed_at_byte, int(when)) if kind == "byte" else None


def kill(writer: Writer, n_random: int, n_writing: int, seed: int = 0) -> Counts:
    """Return the state of the files after kills of one writer."""
    rng = random.Random(seed)
    counts = Counts(writer.name, seconds=largest(writer.work)[1])
    planned = list(plans(writer.work, n_random, n_writing, rng))
    with folder() as top:
        while planned and len(list(top.iterdir())) < 4 * (n_random + n_writing):
            kill_once_each(writer, planned, top, counts)
            # Some runs ended before they were killed, if others slowed down the first runs.
            missing = n_random - counts.killed["random"]
            planned = [("random", rng.uniform(0.0, counts.seconds)) for _ in range(missing)]
        again = sorted(top.iterdir())[::EVERY]
        for ended in run_all(Run(writer.in_folder(out), about=out) for out in again):
            counts.again += 1
            if ended.code or not writer.finished(ended.run.about):
                counts.failed.append(f"{writer.name}, after a kill: {ended.err}")
    return counts


def kill_once_each(
    writer: Writer, planned: list[tuple[str, float]], top: Path, counts: Counts
) -> None:
    """Count the files found after the planned kills."""
    runs = []
    first = len(list(top.iterdir()))
    for number, (kind, when) in enumerate(planned, start=first):
        out = top / str(number)
        out.mkdir()
        if number % 2:
            writer.put_old(out)
        moment = when if kind == "random" else None
        work = writer.in_folder(out)
        runs.append(Run(work, fault_of(kind, when, out), moment, about=(kind, out)))
    for ended in run_all(runs):
        kind, out = ended.run.about
        if ended.killed in KILLS:
            counts.killed[kind] += 1
        elif ended.code:
            counts.wrong.append(f"{writer.name}: {ended.err}")
        else:
            counts.seconds = min(counts.seconds, ended.seconds)
        _look_at(writer, out, counts)


def _look_at(writer: Writer, out: Path, counts: Counts) -> None:
    wrong = writer.faulty(out)
    counts.wrong += wrong
    counts.left += len(strays(out))
    if not wrong and writer.finished(out):
        counts.new += 1
    else:
        counts.not_new += 1


def kill_all(writers: list[Writer], n_random: int = 50, n_writing: int = 20) -> list[Counts]:
    """Return the state of the files after kills of all writers."""
    return [kill(writer, n_random, n_writing, seed) for seed, writer in enumerate(writers)]


def shown(found: list[Counts]) -> str:
    """Return the table of the counts."""
    return table(HEADER, [each.row for each in found])
