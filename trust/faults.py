"""Kills, full disks, interrupts, lost workers and little memory: `python -m trust.faults`.

With `--quick`, fewer of each, and no page is written.
"""

from __future__ import annotations

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
    """A table of the page: what it shows, what was found, what should not have been."""

    title: str
    text: str
    shown: str
    wrong: list[str]
    n: int


class Sizes(NamedTuple):
    """How much of everything: kills at random moments, steps of writing, shares of room, ..."""

    kills: int
    writing: int
    shares: tuple[float, ...]
    pairs: int
    interrupts: int
    moments: int
    rows: tuple[int, int]


FULL = Sizes(50, 12, (0.0, 0.01, 0.3, 0.6, 0.999), 4, 20, 60, (80_000, 400))
QUICK = Sizes(3, 3, (0.0, 0.6), 1, 1, 8, (1500, 30))
# Of all that write.
QUICK_WRITERS = ("karnet predict, CSV", "karnet.save")


def kills(all_writers: list[Writer], sizes: Sizes, quick: bool) -> Part:
    """Kill everything that writes."""
    found = fault_kills.kill_all(all_writers, sizes.kills, sizes.writing)
    if not quick:
        # Some end before they are killed.
        found.append(kill_reproduce(sizes.kills + sizes.kills // 6, sizes.writing))
    wrong = [text for each in found for text in (*each.wrong, *each.failed)]
    n_killed = sum(sum(each.killed.values()) for each in found)
    missing = [
        f"{each.name}: killed {each.killed['random']} times only"
        for each in found
        if not quick and each.killed["random"] < sizes.kills
    ]
    text = (
        "SIGKILL at moments drawn uniformly over the whole run; at steps of writing: before and "
        "after opening, flushing, moving and removing a file; and by the system itself in the "
        "middle of a write, at a byte drawn at random. Half of the runs replace an old file. "
        "Afterwards the final name holds nothing, the old file bit for bit, or a new one that can "
        "be read; what a killed process leaves behind is named `.karnet-….part` and never read. "
        "`karnet reproduce` begins from nothing, from some results and from all of them: every "
        "result that was finished is there afterwards, unchanged. Where a run ended before its "
        "kill, it is not counted as killed."
    )
    return Part("Killed", text, fault_kills.shown(found), wrong + missing, n_killed)


def limits(all_writers: list[Writer], sizes: Sizes, quick: bool, alone: bool) -> Part:
    """Fill disks, forbid writing, and run things twice at once."""
    found = [fault_limits.no_room(all_writers, sizes.shares)]
    if alone:
        found.append(fault_limits.on_small_disks(all_writers, sizes.shares[1:]))
        found.append(fault_limits.in_read_only_folders(all_writers))
    found.append(fault_limits.at_once(all_writers, sizes.pairs))
    if not quick:
        found += _reproduce_limits(alone)
    text = (
        "A run that finds no room ends with one sentence and exit code 2, or an OSError for "
        "functions, and leaves the old files and no others; where a file is smaller than the "
        "limit it ends well. Two runs on the same output both end well, and the file is that of "
        "one of them."
    )
    if not alone:
        text += " No disk could be mounted here, so full and read-only disks were not tried."
    shown = fault_limits.shown(found)
    n = sum(each.refused + each.well + len(each.other) for each in found)
    return Part(
        "No room, and two at once", text, shown, [text for each in found for text in each.wrong], n
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
        "SIGINT at random moments from the first line of the command on; while Python still loads "
        "its libraries before that, it answers itself, with a traceback. Nothing is left half-"
        "written, and no process is left running."
    )
    shown = fault_ctrl_c.shown(found)
    n = sum(each.said for each in found)
    return Part("Ctrl-C, commands", text, shown, [text for each in found for text in each.wrong], n)


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
        "SIGINT at random moments of fits that take about a second, and KeyboardInterrupt where "
        "a function begins or one of C has ended, drawn from all such moments of a small fit. The "
        "estimator is as before, unfitted or fitted, bit for bit; BLAS may use as many threads as "
        "before, and no thread or process is left. One call of BLAS or LAPACK cannot be "
        "interrupted: blocks are small, but the equations of a layer of thousands of units take "
        "seconds to solve."
    )
    n = sum(len(each.latencies) + each.n_moments for each in found)
    return Part("Ctrl-C, fits", text, fault_interrupts.shown(found), wrong, n)


def lost_on_dask() -> Part:
    """Lose workers and schedulers."""
    found = [fault_dask.on_cluster(name) for name in fault_dask.ON_CLUSTER]
    found.append(fault_dask.without_scheduler())
    text = "Two workers learn from 30 blocks, in two passes; the fault comes in the second one."
    wrong = [text for each in found for text in each.wrong]
    return Part("Dask", text, fault_dask.shown(found), wrong, len(found))


def little_memory(quick: bool) -> Part:
    """Learn with little memory."""
    found = fault_memory.in_fresh_process(quick)
    text = (
        "`RLIMIT_AS`, on one thread of BLAS. What does not fit says so in one sentence, and an "
        "estimator, unfitted or fitted, is as before. With more threads there are two things that "
        "karnet cannot mend, both where memory ends within some kilobytes of a thread's start: "
        "OpenBLAS crashes if it finds no room for the buffer of a second thread, and CPython waits "
        "for ever for a thread that could not begin."
    )
    wrong = [text for each in found for text in each.wrong]
    return Part("Memory", text, fault_memory.shown(found), wrong, len(found))


def run(quick: bool, alone: bool) -> Iterator[Part]:
    """Yield all parts; those that start processes by forking before any thread is started."""
    sizes = QUICK if quick else FULL
    # Runs side by side share the cores.
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
    """Let everything be loaded once, so that every other process begins with it."""
    for writer in all_writers:
        with folder() as out:
            writer.work(out)


def timed(part: Callable[[], Part]) -> Part:
    """Return a part, and print it with how long it took."""
    start = time.perf_counter()
    found = part()
    print(f"\n## {found.title}, {time.perf_counter() - start:.0f} s\n\n{found.shown}", flush=True)
    for text in found.wrong:
        print(f"WRONG: {text}", flush=True)
    return found


def main(arguments: Sequence[str]) -> int:
    """Run everything, write the page, and return 1 if anything was wrong."""
    quick = "--quick" in arguments
    alone = fault_limits.alone()
    start = time.perf_counter()
    parts = list(run(quick, alone))
    seconds = time.perf_counter() - start
    wrong = [text for part in parts for text in part.wrong]
    n = sum(part.n for part in parts)
    used = sum(os.times()[:4])
    print(
        f"\n{n} faults in {seconds:.0f} s, {used:.0f} s of processors; "
        f"{len(wrong)} of them not survived as they should."
    )
    if not quick:
        texts = [f"## {part.title}\n\n{part.text}\n\n{part.shown}" for part in parts]
        verdict = "Every bar is met." if not wrong else "Missed:\n\n- " + "\n- ".join(wrong)
        counts = f"{n} faults in {seconds:.0f} s"
        page = write_page("faults", "Faults", COMMAND, counts, [verdict, *texts])
        print(f"The page is {page.relative_to(Path.cwd())}.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
