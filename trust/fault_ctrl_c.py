"""Ctrl-C during a command: exit code 130, one line, no incomplete file."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from trust.fault_commands import Writer, strays
from trust.fault_kills import folder, largest
from trust.fault_process import Ended, Run, run_all
from trust.fault_reproduce import SMALL, Fits, faulty, fits_in, reproduce
from trust.record import table

HEADER = (
    "command",
    "interrupts",
    "exit code 130 and one line",
    "ended before",
    "longest time to end",
    "incomplete files",
    "files or processes left",
    "other endings",
)
MESSAGE = "karnet: interrupted."
# Seconds within which a command must end.
SOON = 1.0
# Seconds for a command that must first end two other processes.
WITH_OTHERS = 3.0


@dataclass
class Counts:
    """The numbers of interrupted runs of a command, by how they ended."""

    name: str
    soon: float = SOON
    interrupted: int = 0
    before: int = 0
    latencies: list[float] = field(default_factory=list)
    half: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    @property
    def row(self) -> tuple[object, ...]:
        """Return the row of the table."""
        n = self.interrupted + self.before + len(self.other)
        worst = f"{1000 * max(self.latencies, default=0.0):.0f} ms"
        found = (self.half, self.left, self.other)
        return f"`{self.name}`", n, self.interrupted, self.before, worst, *map(len, found)

    @property
    def wrong(self) -> list[str]:
        """Return all failures."""
        late = [f"{self.name}: {each:.2f} s to end" for each in self.latencies if each > self.soon]
        return [*late, *self.half, *self.left, *self.other]

    def note(self, ended: Ended) -> None:
        """Count how one run ended."""
        if ended.code == 130 and ended.message == MESSAGE:
            self.interrupted += 1
            self.latencies.append(ended.latency or 0.0)
        elif ended.code == 0:
            self.before += 1
        else:
            self.other.append(f"{self.name}: {ended.code} {ended.killed} {ended.err[-600:]}")


def interrupt_command(writer: Writer, times: int, seed: int = 0) -> Counts:
    """Return how a command ends if it is interrupted at random moments."""
    rng, counts = random.Random(seed), Counts(writer.name)
    seconds = largest.__wrapped__(writer.work)[1]
    with folder() as top:
        runs = []
        for k in range(times):
            out = top / str(k)
            out.mkdir()
            if k % 2:
                writer.put_old(out)
            moment, work = rng.uniform(0.0, 0.95 * seconds), writer.in_folder(out)
            runs.append(Run(work, None, moment, signal.SIGINT, about=out))
        for ended in run_all(runs, at_once=1):
            counts.note(ended)
            counts.half += writer.faulty(ended.run.about)
            counts.left += strays(ended.run.about)
    return counts


def interrupt_reproduce(some: Path, times: int, seed: int = 0) -> Counts:
    """Return how `karnet reproduce` ends if it is interrupted."""
    rng, counts, before = random.Random(seed), Counts("karnet reproduce"), fits_in(some)
    with folder() as top:
        runs = []
        for k in range(times):
            out = top / str(k)
            shutil.copytree(some, out)
            moment = rng.uniform(0.0, 2.0)
            runs.append(Run(partial(reproduce, out), None, moment, signal.SIGINT, about=out))
        for ended in run_all(runs, at_once=1):
            _note_reproduced(counts, ended, ended.run.about, before)
    return counts


def _note_reproduced(counts: Counts, ended: Ended, out: Path, before: Fits) -> None:
    counts.note(ended)
    counts.half += faulty(out)
    after = fits_in(out)
    counts.half += [f"{key} is lost" for key in before if after.get(key) != before[key]]
    counts.left += strays(out)


def interrupt_two_jobs(times: int) -> Counts:
    """Return how `karnet reproduce --jobs 2` ends if it is interrupted."""
    counts, known = Counts("karnet reproduce --jobs 2", WITH_OTHERS), _orphans()
    line = ["reproduce", "uci", *SMALL]
    line[line.index("--jobs") + 1] = "2"
    call = [sys.executable, "-c", "from karnet.cli import main; main()"]
    for k in range(times):
        with folder() as out:
            arguments = [each.replace("OUT", str(out)) for each in line]
            process = subprocess.Popen(
                [*call, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            while process.poll() is None and len(fits_in(out)) <= k:
                time.sleep(0.01)
            before = fits_in(out)
            process.send_signal(signal.SIGINT)
            sent = time.monotonic()
            err = process.communicate()[1]
            latency = time.monotonic() - sent
            ended = Ended(Run(print), process.returncode, None, "", err, 0.0, latency)
            _note_reproduced(counts, ended, out, before)
            counts.left += _left(known)
    return counts


def _orphans() -> set[str]:
    """Return the worker processes of joblib whose parent has ended."""
    return {path.name for path in Path("/proc").glob("[0-9]*") if _is_orphan(path)}


def _is_orphan(process: Path) -> bool:
    try:
        parent = (process / "stat").read_text().rsplit(")", 1)[1].split()[1]
        return parent == "1" and "loky" in (process / "cmdline").read_text()
    except OSError:
        return False


def _left(known: set[str]) -> list[str]:
    """Return worker processes that are still running after five seconds."""
    end = time.monotonic() + 5.0
    while (found := _orphans() - known) and time.monotonic() < end:
        time.sleep(0.1)
    return [f"process {pid}" for pid in found]


def shown(found: list[Counts]) -> str:
    """Return the table of the counts."""
    return table(HEADER, [each.row for each in found])
