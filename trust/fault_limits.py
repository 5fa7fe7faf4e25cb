"""A full disk, a read-only folder, and two runs at once with the same output."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from trust.fault_commands import Writer, strays
from trust.fault_kills import folder, largest
from trust.fault_process import Ended, Run, no_room_above, run_all, run_one
from trust.fault_reproduce import faulty, fits_in, reproduce
from trust.record import table

# Environment variable of a process that has a mount namespace of its own.
ALONE = "KARNET_FAULTS_ALONE"
HEADER = (
    "fault",
    "runs",
    "one sentence, exit code 2",
    "succeeded",
    "incomplete files",
    "results lost",
    "temporary files left",
    "other endings",
)


@dataclass
class Counts:
    """The numbers of runs with a fault, by how they ended."""

    name: str
    refused: int = 0
    well: int = 0
    half: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    @property
    def row(self) -> tuple[object, ...]:
        """Return the row of the table."""
        found = (self.half, self.lost, self.left, self.other)
        n = self.refused + self.well + len(self.other)
        return (self.name, n, self.refused, self.well, *map(len, found))

    @property
    def wrong(self) -> list[str]:
        """Return all failures."""
        return [*self.half, *self.lost, *self.left, *self.other]

    def note(self, who: str, ended: Ended, out: Path) -> None:
        """Count how one run ended, and the files that it left."""
        if ended.code == 0:
            self.well += 1
        elif ended.code == 2 and ended.message:
            self.refused += 1
        else:
            self.other.append(f"{who}: {ended.code}, {ended.killed}, {ended.err.strip()[-500:]}")
        self.left += [f"{who}: {name}" for name in strays(out)]


def alone() -> bool:
    """Return whether this process has its own mount namespace; restart it in one if possible."""
    if os.environ.get(ALONE):
        return True
    command = ["unshare", "--map-root-user", "--mount"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*command, "true"], check=False, capture_output=True).returncode
    ):
        return False
    os.environ[ALONE] = "1"
    os.execvp(command[0], [*command, sys.executable, *sys.orig_argv[1:]])
    raise AssertionError


@contextmanager
def small_disk(where: Path, n_bytes: int) -> Iterator[None]:
    """Mount a disk of the given size over a folder."""
    size = f"size={max(n_bytes, 4096)}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", where], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", where], check=True)


def read_only(where: Path) -> None:
    """Make a mounted disk read-only."""
    subprocess.run(["mount", "-o", "remount,ro", where], check=True)


def no_room(writers: list[Writer], shares: tuple[float, ...]) -> Counts:
    """Return how all writers end if the file size is limited to a share of their output."""
    counts = Counts("limited file size (`RLIMIT_FSIZE`)")
    with folder() as top:
        runs = []
        for writer in writers:
            size = largest(writer.work)[0]
            for k, share in enumerate(shares):
                out = top / str(len(runs))
                out.mkdir()
                if k % 2:
                    writer.put_old(out)
                limit = partial(no_room_above, int(share * size))
                runs.append(Run(writer.in_folder(out), limit, about=(writer, out)))
        for ended in run_all(runs):
            writer, out = ended.run.about
            counts.note(writer.name, ended, out)
            counts.half += writer.faulty(out)
    return counts


def on_small_disks(writers: list[Writer], shares: tuple[float, ...]) -> Counts:
    """Return how all writers end on disks with room for a share of their output."""
    counts = Counts("a full disk (tmpfs)")
    for writer in writers:
        size = largest(writer.work)[0]
        for k, share in enumerate(shares):
            with folder() as out, small_disk(out, int(share * size)):
                if k % 2:
                    writer.put_old(out)
                ended = run_one(writer.in_folder(out))
                counts.note(writer.name, ended, out)
                counts.half += writer.faulty(out)
    return counts


def in_read_only_folders(writers: list[Writer]) -> Counts:
    """Return how all writers end in a read-only folder."""
    counts = Counts("a read-only folder")
    for writer in writers:
        for old in (False, True):
            with folder() as out, small_disk(out, 2**20):
                if old:
                    writer.put_old(out)
                read_only(out)
                ended = run_one(writer.in_folder(out))
                counts.note(writer.name, ended, out)
                before = list(writer.readers) if old and writer.replaces else []
                if sorted(path.name for path in out.iterdir()) != sorted(before):
                    counts.half.append(f"{writer.name}: something was written")
    return counts


def reproduce_without_room(top: Path, some: Path, shares: tuple[float, ...]) -> Counts:
    """Return how `karnet reproduce` ends with a limited file size, and whether results stay."""
    counts = Counts("`karnet reproduce`, limited file size")
    store = (some / "results.sqlite").stat().st_size
    before, runs = fits_in(some), []
    for share in shares:
        out = top / f"full-{share}"
        shutil.copytree(some, out)
        limit = partial(no_room_above, int(share * store))
        runs.append(Run(partial(reproduce, out), limit, about=out))
    for ended in run_all(runs):
        _note_reproduced(counts, ended, ended.run.about, before)
    return counts


def reproduce_on_small_disks(some: Path, shares: tuple[float, ...]) -> Counts:
    """Return how `karnet reproduce` ends on a full disk and on a read-only disk."""
    counts = Counts("`karnet reproduce`, a full disk and a read-only disk (tmpfs)")
    store = (some / "results.sqlite").stat().st_size
    before = fits_in(some)
    for share in (*shares, None):
        with folder() as out, small_disk(out, int((share or 100.0) * store)):
            shutil.copy(some / "results.sqlite", out)
            if share is None:
                read_only(out)
            ended = run_one(partial(reproduce, out))
            # Read from a copy: SQLite may write even to read.
            with folder() as copy:
                shutil.copytree(out, copy, dirs_exist_ok=True)
                _note_reproduced(counts, ended, copy, before)
    return counts


def _note_reproduced(counts: Counts, ended: Ended, out: Path, before: dict[object, object]) -> None:
    counts.note("karnet reproduce", ended, out)
    counts.half += faulty(out)
    after = fits_in(out)
    counts.lost += [f"{key} is lost" for key in before if after.get(key) != before[key]]


def at_once(writers: list[Writer], times: int, seed: int = 0) -> Counts:
    """Return how pairs of runs with the same output end."""
    counts, rng = Counts("two runs at once with the same output"), random.Random(seed)
    for writer in writers:
        seconds = largest(writer.work)[1]
        for k in range(times):
            with folder() as out:
                if k % 2:
                    writer.put_old(out)
                delay = rng.uniform(0.0, 0.3 * seconds) if k else 0.0
                works = (writer.in_folder(out), partial(_later, delay, writer.in_folder(out)))
                for ended in run_all(Run(work) for work in works):
                    counts.half += writer.faulty(out)
                    counts.note(writer.name, ended, empty)
                counts.left += strays(out)
                if not writer.finished(out):
                    counts.half.append(f"{writer.name}: no new file after two runs")
    return counts


empty = Path(os.devnull)


def _later(delay: float, work: partial[None]) -> None:
    import time

    time.sleep(delay)
    work()


def reproduce_at_once(top: Path, starts: list[Path]) -> Counts:
    """Return how two runs of `karnet reproduce` in the same folder end."""
    counts = Counts("two runs of `karnet reproduce` at once in the same folder")
    complete = fits_in(starts[-1])
    for begin in starts:
        for delay in (0.0, 0.5):
            out = top / f"at-once-{begin.name}-{delay}"
            shutil.copytree(begin, out)
            works = (partial(reproduce, out), partial(_later, delay, partial(reproduce, out)))
            for ended in run_all(Run(work) for work in works):
                counts.note("karnet reproduce", ended, empty)
                counts.half += faulty(out)
            _note_missing(counts, out, complete, fits_in(begin))
    return counts


def _note_missing(
    counts: Counts, out: Path, complete: dict[object, object], before: dict[object, object]
) -> None:
    after = fits_in(out)
    counts.left += strays(out)
    counts.lost += [f"{key} is missing" for key in complete if key not in after]
    counts.lost += [f"{key} is changed" for key in before if after.get(key) != before[key]]
    n_lines = len((out / "results.csv").read_text().splitlines())
    if n_lines != 1 + len(after):
        counts.lost.append(f"results.csv has {n_lines - 1} of {len(after)} results")


def shown(found: list[Counts]) -> str:
    """Return the table of the counts."""
    return table(HEADER, [each.row for each in found])
