"""Timing of contestants in turn within one process, and the outcome of a comparison."""

from __future__ import annotations

import gc
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import Any

# Seconds after which no other round is started.
BUDGET = 150.0
# Seconds from which on a call may leave threads behind, and to wait for these to come to rest.
LONG, PAUSE = 5e-3, 0.2
# A value at or below it is as good as none.
NOTHING = 1e-3


@dataclass(frozen=True)
class Goal:
    """A bound on the value of a comparison."""

    bound: float
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"

    def margin(self, value: float) -> float:
        """Return the factor by which the goal is met; below 1 it is missed."""
        return value / self.bound if self.at_least else self.bound / max(value, NOTHING)


@dataclass(frozen=True)
class Contestant:
    """A call to time.

    Parameters
    ----------
    name : str
        Name in the tables.
    call : callable
        The timed call; the result of the last call is passed to the comparison.
    slow : bool
        Whether it is called only once, without a warm-up.
    """

    name: str
    call: Callable[[], Any]
    slow: bool = False


@dataclass(frozen=True)
class Timing:
    """The seconds of each call of a contestant."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the seconds."""
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile of the seconds."""
        if len(self.seconds) < 2:
            return self.seconds[0], self.seconds[0]
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return low, high


@dataclass(frozen=True)
class Outcome:
    """The outcome of a comparison.

    Parameters
    ----------
    value : float
        The ratio, slope or share to which the goal refers.
    timings : tuple of Timing
        Timings of all contestants.
    note : str
        Further information, such as ranks and accuracies.
    holds : bool
        Whether all other requirements are met.
    """

    value: float
    timings: tuple[Timing, ...]
    note: str = ""
    holds: bool = True


@dataclass(frozen=True)
class Comparison:
    """A named comparison, its goal and its sizes.

    Parameters
    ----------
    name : str
        Name on the command line.
    title : str
        Name in the table.
    goal : Goal
        Bound on the value at full size.
    measure : callable
        ``measure(*sizes, repeats=...)`` returns an `Outcome`.
    full, quick : tuple of int
        The sizes.
    repeats : int
        Number of timed calls of each contestant at full size.
    python312 : bool
        Whether it needs the environment with Python 3.12.
    """

    name: str
    title: str
    goal: Goal
    measure: Callable[..., Outcome]
    full: tuple[int, ...]
    quick: tuple[int, ...]
    repeats: int = 5
    python312: bool = False

    def sizes(self, scale: str) -> tuple[int, ...]:
        """Return the sizes at the scale "full", "quick" or "tiny"."""
        if scale == "tiny":
            return tuple(min(size, max(20, size // 20)) for size in self.quick)
        return self.full if scale == "full" else self.quick

    def run(self, scale: str) -> Outcome:
        """Return the outcome at a scale."""
        repeats = self.repeats if scale == "full" else max(3, self.repeats // 4)
        return self.measure(*self.sizes(scale), repeats=repeats)


def race(
    contestants: Sequence[Contestant], repeats: int
) -> tuple[dict[str, Timing], dict[str, Any]]:
    """Time contestants in turn, every other round backwards, with a pause after long calls.

    Threads of BLAS keep spinning for a while after a call, which would slow down the next one.

    Parameters
    ----------
    contestants : sequence of Contestant
        The calls.
    repeats : int
        The number of rounds, unless time runs out. Slow calls are made in the first only.

    Returns
    -------
    timings, results : dict
        The timing and the result of the last call, by name.
    """
    results = {c.name: c.call() for c in contestants if not c.slow}
    seconds: dict[str, list[float]] = {c.name: [] for c in contestants}
    gc.collect()
    gc.disable()
    try:
        start = perf_counter()
        for k in range(repeats):
            for c in contestants if k % 2 == 0 else reversed(contestants):
                if k == 0 or not c.slow:
                    results[c.name] = None  # frees the memory of the last result
                    begin = perf_counter()
                    results[c.name] = c.call()
                    seconds[c.name].append(perf_counter() - begin)
                    if seconds[c.name][-1] > LONG:
                        sleep(PAUSE)
            if perf_counter() - start > BUDGET:
                break
    finally:
        gc.enable()
    return {name: Timing(name, tuple(each)) for name, each in seconds.items()}, results


def threads() -> int:
    """Return the number of threads that this run may use."""
    return int(os.environ.get("OMP_NUM_THREADS", "1"))
