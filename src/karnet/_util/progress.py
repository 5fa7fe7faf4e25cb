"""The progress of a fit: the steps that are done, and the time that the others may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, isfinite
from time import perf_counter


@dataclass(frozen=True)
class Step:
    """A step of a fit that has ended."""

    name: str
    rows: int  # the rows that it used
    error: float  # the least squared error of left-out rows so far
    seconds: float  # since the start of the fit
    left: float  # the seconds that the remaining steps may take

    @property
    def share(self) -> float:
        """The share of the fit that is done."""
        return self.seconds / (self.seconds + self.left)

    def __str__(self) -> str:
        error = f", best error {self.error:.4g}" if isfinite(self.error) else ""
        times = f"{_rounded(self.seconds)}, about {_rounded(self.left)} left"
        return f"{self.name}: {self.rows} rows{error}, {times}"


def _rounded(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes:
        return f"{minutes} min {rest} s"
    return f"{seconds:.1f} s"


# Called with each step when it ends.
Report = Callable[[Step], None]


def lines_of(name: str) -> Report:
    """Return a report that prints a line for each step of an estimator, like scikit-learn's."""
    return lambda step: print(f"[{name}] {step}", flush=True)  # noqa: T201


@dataclass
class Progress:
    """The steps of a fit, each of which is reported when it ends.

    Each stage of the fit has some planned work, in units of which only the ratios matter. The time
    left is that of the planned work at the speed of the work that is done.
    """

    report: Report | None = None
    most_seconds: float = inf  # the time limit of the fit
    start: float = field(default_factory=perf_counter)
    planned: dict[str, float] = field(default_factory=dict)
    done: float = 0.0
    error: float = inf

    def plan(self, **work: float) -> None:
        """Set the work that remains in some stages."""
        self.planned |= work

    def step(
        self, stage: str, which: str, rows: int, work: float = 1.0, error: float = inf
    ) -> None:
        """Report a step of a stage that has ended."""
        self.error = min(self.error, error)
        self.done += work
        self.planned[stage] = max(self.planned.get(stage, 0.0) - work, 0.0)
        if self.report is None:
            return
        seconds = perf_counter() - self.start
        left = seconds / self.done * sum(self.planned.values())
        left = min(left, max(self.most_seconds - seconds, 0.0))
        self.report(Step(f"{stage}, {which}", rows, self.error, seconds, left))
