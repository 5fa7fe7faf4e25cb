"""Contestants timed in turn within one process, and what a comparison of them came to."""

from __future__ import annotations

import gc
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import Any

__all__ = ["Comparison", "Contestant", "Goal", "Outcome", "Timing", "race", "threads"]

# Seconds after which a race starts no other round.
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
        """Return how many times over the goal is met; below 1 it is missed."""
        return value / self.bound if self.at_least else self.bound / max(value, NOTHING)


@dataclass(frozen=True)
class Contestant:
    """Something to time.

    Parameters
    ----------
    name : str
        What it is called in the tables.
    call : callable
        What is timed; results of the last call are handed to the comparison.
    slow : bool
        Whether one call, without a warm-up, has to do.
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
    """What a comparison came to.

    Parameters
    ----------
    value : float
        The ratio, slope or share that the goal is about.
    timings : tuple of Timing
        Of all contestants.
    note : str
        What else is worth knowing: ranks, accuracies.
    holds : bool
        Whether all holds that must hold besides the goal.
    """

    value: float
    timings: tuple[Timing, ...]
    note: str = ""
    holds: bool = True


@dataclass(frozen=True)
class Comparison:
    """A named comparison, its goal, and the sizes it is made at.

    Parameters
    ----------
    name : str
        What it is called on the command line.
    title : str
        What it is called in the table.
    goal : Goal
        What its value must reach, at full size.
    measure : callable
        ``measure(*sizes, repeats=...)`` returns an `Outcome`.
    full, quick : tuple of int
        The sizes.
    repeats : int
        How often each contestant is timed at full size.
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

    Threads of BLAS spin for a while after work, and the next one is not to pay for that.

    Parameters
    ----------
    contestants : sequence of Contestant
        Who takes part.
    repeats : int
        The number of rounds, unless time runs out. The slow take part in the first only.

    Returns
    -------
    timings, results : dict
        By name: the timing, and what the last call returned.
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
                    results[c.name] = None  # the memory of the last result is free again
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
