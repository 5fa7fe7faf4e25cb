"""Kills of `karnet reproduce`: finished results are not lost, and files are complete."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from karnet.paper.store import Store
from trust.fault_commands import DRAFT, READERS, command, strays
from trust.fault_kills import EVERY, KILLS, Counts, fault_of, folder, plans
from trust.fault_process import Run, run_all

# A run of the paper's experiments that takes seconds.
SMALL = ("--sets", "iris", "--folds", "4", "--time-limit", "0.05", "--jobs", "1", "--out", "OUT")
JOURNAL = "results.sqlite-journal"
Fits = dict[tuple[Any, ...], tuple[Any, ...]]

reproduce = command("reproduce", "uci", *SMALL)


def fits_in(out: Path) -> Fits:
    """Return the results in the store of a folder, by their keys."""
    if not (out / "results.sqlite").exists():
        return {}
    db = sqlite3.connect(out / "results.sqlite")
    try:
        rows = db.execute("SELECT * FROM fits").fetchall()
    except sqlite3.OperationalError:  # killed before the table was created
        rows = []
    finally:
        db.close()
    return {row[:4]: row for row in rows}


def faulty(out: Path) -> list[str]:
    """Return the incomplete files of a folder."""
    wrong = []
    for path in out.rglob("*"):
        if path.is_dir() or path.name == JOURNAL or path.match(DRAFT):
            continue
        try:
            READERS[path.suffix](path)
        except Exception as error:
            wrong.append(f"karnet reproduce: {path.name} is incomplete ({error})")
    return wrong


def finishing(log: Path, fault: Callable[[], None] | None) -> None:
    """Record the key of every finished result, and prepare the fault."""
    add = Store.add

    def noted(store: Store, fits: list[Any]) -> None:
        add(store, fits)
        with log.open("a") as file:
            file.writelines(f"{tuple(fit.key)!r}\n" for fit in fits)

    Store.add = noted
    if fault is not None:
        fault()


def starts(top: Path) -> list[Path]:
    """Return folders to start from: without results, with some of them, with all of them."""
    nothing, some, complete = (top / name for name in ("nothing", "some", "complete"))
    nothing.mkdir()
    with redirect_stdout(StringIO()):
        reproduce(complete)
    some.mkdir()
    shutil.copy(complete / "results.sqlite", some)
    with sqlite3.connect(some / "results.sqlite") as db:
        db.execute("DELETE FROM fits WHERE method LIKE 'karnet%' AND fold > 1")
    db.close()
    return [nothing, some, complete]


def kill_reproduce(n_random: int = 50, n_writing: int = 20) -> Counts:
    """Return the state of the files after kills of `karnet reproduce`."""
    rng = random.Random(0)
    counts = Counts("karnet reproduce")
    with folder() as top:
        beginnings, runs = starts(top), []
        complete = fits_in(beginnings[-1])
        for number, begin in enumerate(beginnings):
            counts.seconds = _plan(runs, top, begin, (n_random, n_writing), number, rng)
        for ended in run_all(runs):
            kind, out, log = ended.run.about
            if ended.killed in KILLS:
                counts.killed[kind] += 1
            elif ended.code:
                counts.wrong.append(f"karnet reproduce: {ended.err}")
            _look_at(out, log, top, counts, len(complete))
        again = [run.about[1] for run in runs][:: 2 * EVERY]
        for ended in run_all(Run(partial(reproduce, out), about=out) for out in again):
            counts.again += 1
            lost = set(complete) - set(fits_in(ended.run.about))
            if ended.code or lost or faulty(ended.run.about):
                counts.failed.append(f"karnet reproduce, after a kill: {ended.err} {lost}")
    return counts


def _plan(
    runs: list[Run],
    top: Path,
    begin: Path,
    numbers: tuple[int, int],
    which: int,
    rng: random.Random,
) -> float:
    """Add a third of all runs, which start from a folder; return the longest time to a kill."""

    def work(out: Path) -> None:
        shutil.copytree(begin, out, dirs_exist_ok=True)
        reproduce(out)

    n_random, n_writing = (len(range(which, n, 3)) for n in numbers)
    longest = 0.0
    for kind, when in plans(work, n_random, n_writing, rng):
        out = top / f"{begin.name}-{len(runs)}"
        shutil.copytree(begin, out)
        log = top / f"{out.name}.log"
        fault = partial(finishing, log, fault_of(kind, when, out))
        moment = when if kind == "random" else None
        longest = max(longest, moment or 0.0)
        runs.append(Run(partial(reproduce, out), fault, moment, about=(kind, out, log)))
    return longest


def _look_at(out: Path, log: Path, top: Path, counts: Counts, n_all: int) -> None:
    counts.left += len(strays(out))
    before, after = fits_in(top / out.name.split("-")[0]), fits_in(out)
    noted = log.read_text().splitlines() if log.exists() else []
    # The last line may be cut off by the kill.
    lost = set(noted[:-1]) - {repr(key) for key in after}
    changed = {key for key in before if after.get(key) != before[key]}
    counts.wrong += [f"karnet reproduce: {key} is lost or changed" for key in (*lost, *changed)]
    counts.wrong += faulty(out)
    if len(after) == n_all and (out / "report.html").exists():
        counts.new += 1
    else:
        counts.not_new += 1
