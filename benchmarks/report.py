"""Tables, CSV files and a plot of the outcomes."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from text_table import aligned_table
from timing import Goal, Timing
from training import Row

MET, MISSED, OURS, THEIRS = "#2a7f62", "#c0504d", "#2a7f62", "#777777"
TIMES = ("calls", "median_s", "min_s", "quartile1_s", "quartile3_s")


@dataclass(frozen=True)
class Line:
    """A comparison in the table, with its outcome or the reason why there is none."""

    name: str
    title: str
    sizes: str
    goal: Goal
    versions: str
    value: float | None = None
    holds: bool = True
    note: str = ""
    timings: tuple[Timing, ...] = ()

    @property
    def verdict(self) -> str:
        """Whether the goal is met, and the share of the goal if it is missed."""
        if self.value is None:
            return "not measured"
        if not self.holds:
            return "missed: see note"
        margin = self.goal.margin(self.value)
        return "met" if margin >= 1.0 else f"missed: {100.0 * margin:.3g} % of the goal"


def goals_table(lines: Sequence[Line]) -> str:
    """Return the comparisons with a goal as a table in Markdown."""
    head = ("name", "compared", "sizes", "value", "goal", "verdict", "note")
    return aligned_table(
        head,
        [
            (
                line.name,
                line.title,
                line.sizes,
                "" if line.value is None else f"{line.value:.3g}",
                str(line.goal),
                line.verdict,
                line.note,
            )
            for line in lines
        ],
    )


def timings_table(lines: Sequence[Line]) -> str:
    """Return the times of all contestants as a table in Markdown."""
    return aligned_table(
        ("name", "contestant", *TIMES),
        [
            (line.name, timing.name, *map(str, _times(timing)))
            for line in lines
            for timing in line.timings
        ],
    )


def training_table(rows: Sequence[Row]) -> str:
    """Return the comparison of classifiers as a table in Markdown."""
    head = ("classifier", "fit, s", "predict, s", "test accuracy")
    return aligned_table(
        head,
        [
            (row.name, _spread(row.fit), _spread(row.predict), f"{row.accuracy:.3f}")
            if row.fit
            else (row.name, row.reason, "", "")
            for row in rows
        ],
    )


def _spread(timing: Timing | None) -> str:
    if timing is None:
        return ""
    low, high = timing.quartiles
    return f"{timing.median:.3g} ({low:.3g} to {high:.3g})"


def write(folder: Path, lines: Sequence[Line], rows: Sequence[Row], machine: str) -> None:
    """Write goals.csv, timings.csv, training.csv, and the plot as SVG and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    here = (machine, lines[0].versions)
    _write_csv(
        folder / "goals.csv",
        ("name", "compared", "sizes", "value", "goal", "verdict", "note", "machine", "versions"),
        (
            (x.name, x.title, x.sizes, x.value, x.goal, x.verdict, x.note, machine, x.versions)
            for x in lines
        ),
    )
    _write_csv(
        folder / "timings.csv",
        ("name", "sizes", "contestant", *TIMES, "machine", "versions"),
        (
            (line.name, line.sizes, timing.name, *_times(timing), machine, line.versions)
            for line in lines
            for timing in line.timings
        ),
    )
    fit, predict = ([f"{what}_{time}" for time in TIMES] for what in ("fit", "predict"))
    _write_csv(
        folder / "training.csv",
        ("classifier", *fit, *predict, "accuracy", "reason", "machine", "versions"),
        (
            (row.name, *_times(row.fit), *_times(row.predict), row.accuracy, row.reason, *here)
            for row in rows
        ),
    )
    _plot(folder, lines, rows, machine)


def _times(timing: Timing | None) -> tuple[Any, ...]:
    if timing is None:
        return ("",) * len(TIMES)
    seconds = (timing.median, min(timing.seconds), *timing.quartiles)
    return len(timing.seconds), *(f"{each:.6g}" for each in seconds)


def _write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def _plot(folder: Path, lines: Sequence[Line], rows: Sequence[Row], machine: str) -> None:
    mpl.use("agg")
    mpl.rcParams.update({"svg.hashsalt": "karnet", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 6), layout="constrained")
    _plot_goals(left, [line for line in lines if line.value is not None])
    _plot_training(right, [row for row in rows if row.fit])
    figure.suptitle(machine)
    figure.savefig(folder / "bench.svg", metadata={"Date": None})
    figure.savefig(folder / "bench.png", dpi=120)
    plt.close(figure)


def _plot_goals(axes: Any, lines: Sequence[Line]) -> None:
    """Draw the factor by which each goal is met, on a logarithmic axis."""
    for k, line in enumerate(reversed(lines)):
        assert line.value is not None
        margin = min(max(line.goal.margin(line.value), 0.02), 50.0)
        axes.barh(k, margin - 1.0, left=1.0, color=MET if line.verdict == "met" else MISSED)
        # The label is on the side of 1 without the bar.
        side, gap = ("right", -4) if margin >= 1.0 else ("left", 4)
        _annotate(axes, f"{line.value:.3g} ({line.goal})", (1.0, k), gap, side)
    axes.set_yticks(range(len(lines)), [line.name for line in reversed(lines)])
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.2), max(high, 5.0))
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("times over the goal; labels: value (goal)")
    axes.set_title("Goals")


def _plot_training(axes: Any, rows: Sequence[Row]) -> None:
    """Draw the time to fit on a logarithmic axis, with the test accuracy as label."""
    for k, row in enumerate(reversed(rows)):
        assert row.fit is not None
        axes.barh(k, row.fit.median, color=OURS if row.name.startswith("karnet") else THEIRS)
        _annotate(axes, f"{row.accuracy:.3f}", (row.fit.median, k), 4, "left")
    axes.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel("time to fit, s; labels: test accuracy")
    axes.set_title("Training side by side")


def _annotate(axes: Any, text: str, at: tuple[float, float], gap: int, side: str) -> None:
    axes.annotate(text, at, xytext=(gap, 0), textcoords="offset points", ha=side, va="center")
