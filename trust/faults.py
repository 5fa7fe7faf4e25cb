"""Kills, full disks, interrupts, lost workers and too little memory.

`python -m trust.faults` writes docs/trust/faults.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from trust import (
    fault_ctrl_c,
    fault_dask,
    fault_interrupts,
    fault_kills,
    fault_limits,
    fault_memory,
)
from trust.fault_commands import Writer, openml, write_inputs, writers
from trust.fault_kills import folder
from trust.fault_reproduce import kill_reproduce, starts
from trust.record import write_page

COMMAND = "make faults"


class Part(NamedTuple):
    """A section of the page: its title, text and table, the failures, and the number of faults."""

    title: str
    text: str
    table: str
    wrong: list[str]
    n: int


class Sizes(NamedTuple):
    """The numbers of kills, interrupts and runs, and the shares of disk space that are left."""

    kills: int
    writing: int
    shares: tuple[float, ...]
    pairs: int
    interrupts: int
    moments: int
    rows: tuple[int, int]


FULL = Sizes(50, 12, (0.0, 0.01, 0.3, 0.6, 0.999), 4, 20, 60, (80_000, 400))
QUICK = Sizes(3, 3, (0.0, 0.6), 1, 1, 8, (1500, 30))
# Writers that --quick tests.
QUICK_WRITERS = ("karnet predict, CSV", "karnet.save")


def kills(all_writers: list[Writer], sizes: Sizes, quick: bool) -> Part:
    """Kill every command and function that writes."""
    found = fault_kills.kill_all(all_writers, sizes.kills, sizes.writing)
    if not quick:
        # Some runs end before they are killed.
        found.append(kill_reproduce(sizes.kills + sizes.kills // 6, sizes.writing))
    wrong = [text for each in found for text in (*each.wrong, *each.failed)]
    n_killed = sum(sum(each.killed.values()) for each in found)
    missing = [
        f"{each.name}: killed {each.killed['random']} times only"
        for each in found
        if not quick and each.killed["random"] < sizes.kills
    ]
    text = (
        "SIGKILL is sent at random moments of the whole run and at steps of writing: before and "
        "after a file is opened, flushed, moved or removed. The system also kills runs in the "
        "middle of a write, at a random byte. Half of the runs replace an old file. Afterwards "
        "there is either no file under the final name, the old file bit for bit, or a complete "
        "new file. Files that a killed process leaves behind are named `.karnet-….part` and are "
        "never read. `karnet reproduce` starts with no results, with some of them and with all "
        "of them: afterwards every finished result is still there and unchanged. A run that ends "
        "before its kill is not counted as killed."
    )
    return Part("Killed", text, fault_kills.shown(found), wrong + missing, n_killed)


def limits(all_writers: list[Writer], sizes: Sizes, quick: bool, alone: bool) -> Part:
    """Fill disks, forbid writing, and run every writer twice at once."""
    found = [fault_limits.no_room(all_writers, sizes.shares)]
    if alone:
        found.append(fault_limits.on_small_disks(all_writers, sizes.shares[1:]))
        found.append(fault_limits.in_read_only_folders(all_writers))
    found.append(fault_limits.at_once(all_writers, sizes.pairs))
    if not quick:
        found += _reproduce_limits(alone)
    text = (
        "If there is no room, a command ends with a one-sentence error and exit code 2, and a "
        "function raises an OSError. Old files stay, and no other files are left. If a file is "
        "smaller than the limit, the run succeeds. Two runs with the same output both succeed, "
        "and the file is the result of one of them."
    )
    if not alone:
        text += " No disk could be mounted here, so full and read-only disks were not tested."
    shown = fault_limits.shown(found)
    n = sum(each.refused + each.well + len(each.other) for each in found)
    return Part(
        "No space left, and two runs at once",
        text,
        shown,
        [text for each in found for text in each.wrong],
        n,
    )


def _reproduce_limits(alone: bool) -> Iterator[fault_limits.Counts]:
    with folder() as top:
        begun = starts(top)
        shares = (0.0, 0.5, 1.0, 1.5, 3.0)
        yield fault_limits.reproduce_without_room(top, begun[1], shares)
        if alone:
            yield fault_limits.reproduce_on_small_disks(begun[1], (1.0, 1.5, 3.0, 10.0))
        yield fault_limits.reproduce_at_once(top, begun)


def commands_interrupted(all_writers: list[Writer], sizes: Sizes, quick: bool) -> Part:
    """Interrupt the commands."""
    named = [writer for writer in all_writers if writer.name.startswith("karnet ")]
    found = [fault_ctrl_c.interrupt_command(writer, sizes.interrupts) for writer in named]
    if not quick:
        with folder() as top:
            begun = starts(top)
            found.append(fault_ctrl_c.interrupt_reproduce(begun[1], sizes.interrupts))
        found.append(fault_ctrl_c.interrupt_two_jobs(sizes.interrupts // 4))
    text = (
        "SIGINT is sent at random moments after the first line of the command has run. Before "
        "that, while Python loads its libraries, Python itself ends with a traceback. No "
        "half-written file and no running process is left."
    )
    shown = fault_ctrl_c.shown(found)
    n = sum(each.interrupted for each in found)
    return Part(
        "Ctrl-C during commands", text, shown, [text for each in found for text in each.wrong], n
    )


def fits_interrupted(sizes: Sizes, quick: bool) -> Part:
    """Interrupt fits."""
    found, wrong = [], []
    with ExitStack() as stack:
        long = fault_interrupts.cases(*sizes.rows)
        short: list[Any] = fault_interrupts.cases(*QUICK.rows)
        if not quick:
            client = stack.enter_context(fault_dask.cluster())
            long += fault_interrupts.dask_cases(*sizes.rows, client)
            short += [None, None]
        for case, small in zip(long, short, strict=True):
            counts = fault_interrupts.interrupt(case, sizes.interrupts)
            if small is not None:
                fault_interrupts.interrupt_everywhere(small, sizes.moments, counts)
            found.append(counts)
            wrong += counts.wrong
    text = (
        "SIGINT is sent at random moments of fits that take about a second. In addition, "
        "KeyboardInterrupt is raised where a Python function begins or a C function has "
        "returned, at moments drawn from all such moments of a small fit. Afterwards the "
        "estimator, fitted or not, is unchanged bit for bit, BLAS may use the same number of "
        "threads as before, and no thread or process is left. A single call of BLAS or LAPACK "
        "cannot be interrupted: calls on blocks are short, but solving a layer of thousands of "
        "units takes seconds."
    )
    n = sum(len(each.latencies) + each.n_moments for each in found)
    return Part("Ctrl-C during fits", text, fault_interrupts.shown(found), wrong, n)


def lost_on_dask() -> Part:
    """Lose workers and schedulers."""
    found = [fault_dask.on_cluster(name) for name in fault_dask.ON_CLUSTER]
    found.append(fault_dask.without_scheduler())
    text = (
        "Two workers fit a network to 30 blocks in two passes. The fault occurs in the second pass."
    )
    wrong = [text for each in found for text in each.wrong]
    return Part("Dask", text, fault_dask.shown(found), wrong, len(found))


def little_memory(quick: bool) -> Part:
    """Fit with too little memory."""
    found = fault_memory.in_fresh_process(quick)
    text = (
        "Memory is limited with `RLIMIT_AS`, and BLAS uses one thread. A fit that does not fit "
        "into memory raises an error of one sentence, and the estimator, fitted or not, is "
        "unchanged. With more threads there are two failures that karnet cannot prevent, both if "
        "memory runs out within a few kilobytes of a thread's start: OpenBLAS crashes if it "
        "cannot allocate the buffer of a second thread, and CPython waits forever for a thread "
        "that could not start."
    )
    wrong = [text for each in found for text in each.wrong]
    return Part("Memory", text, fault_memory.shown(found), wrong, len(found))


def run(quick: bool, alone: bool) -> Iterator[Part]:
    """Yield all sections; those that fork processes come before any thread is started."""
    sizes = QUICK if quick else FULL
    # Runs at the same time share the cores.
    with threadpool_limits(1), folder() as inputs, openml():
        with redirect_stdout(StringIO()):
            write_inputs(inputs)
            all_writers = [
                writer for writer in writers(inputs) if not quick or writer.name in QUICK_WRITERS
            ]
            _warm_up(all_writers)
        for part in _of_writers(all_writers, sizes, quick, alone):
            yield timed(part)
    yield timed(lambda: little_memory(quick))
    yield timed(lambda: fits_interrupted(sizes, quick))
    if not quick:
        yield timed(lost_on_dask)


def _of_writers(
    all_writers: list[Writer], sizes: Sizes, quick: bool, alone: bool
) -> Sequence[Callable[[], Part]]:
    return (
        lambda: kills(all_writers, sizes, quick),
        lambda: limits(all_writers, sizes, quick, alone),
        lambda: commands_interrupted(all_writers, sizes, quick),
    )


def _warm_up(all_writers: list[Writer]) -> None:
    """Run every writer once, so that forked processes have all modules loaded."""
    for writer in all_writers:
        with folder() as out:
            writer.work(out)


def timed(part: Callable[[], Part]) -> Part:
    """Return a section, and print it with its duration."""
    start = time.perf_counter()
    found = part()
    print(f"\n## {found.title}, {time.perf_counter() - start:.0f} s\n\n{found.table}", flush=True)
    for text in found.wrong:
        print(f"FAILED: {text}", flush=True)
    return found


def main(arguments: Sequence[str]) -> int:
    """Run everything, write the page, and return 1 if there was a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="test few faults and write no page")
    quick = parser.parse_args(arguments).quick
    alone = fault_limits.alone()
    start = time.perf_counter()
    parts = list(run(quick, alone))
    seconds = time.perf_counter() - start
    wrong = [text for part in parts for text in part.wrong]
    n = sum(part.n for part in parts)
    used = sum(os.times()[:4])
    print(
        f"\n{n} faults in {seconds:.0f} s, {used:.0f} s of processor time; {len(wrong)} failures."
    )
    if not quick:
        texts = [f"## {part.title}\n\n{part.text}\n\n{part.table}" for part in parts]
        verdict = (
            "Every requirement is met." if not wrong else "Failures:\n\n- " + "\n- ".join(wrong)
        )
        counts = f"{n} faults in {seconds:.0f} s"
        page = write_page("faults", "Faults", COMMAND, counts, [verdict, *texts])
        print(f"The page is {page.relative_to(Path.cwd())}.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
