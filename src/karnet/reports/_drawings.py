"""The figures of a report on a fit; each is drawn from numbers that are already there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .._pages.style import COLOURS, INK, LINE, MARKERS, STYLED, WIDTH, rules
from ..inspection import LayerSpectrumDisplay, LooPathDisplay

__all__ = ["calibration", "confusion", "importances", "residuals", "ridge_path", "spectrum"]

Array = NDArray[np.float64]
# Classes up to which a cell has its number written in it, and are named.
FEW, MANY = 12, 30
# Groups of rows of similar confidence.
GROUPS = 10


@STYLED
def confusion(true: Sequence[str], said: Sequence[str], classes: Sequence[str]) -> Figure:
    """Return how often each class was taken for each, shaded by share of the true class."""
    place = {name: k for k, name in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, ([place[name] for name in true], [place[name] for name in said]), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    figure = Figure((WIDTH, min(1.2 + 0.34 * len(classes), 5.0)), layout="constrained")
    ax = figure.subplots()
    ax.pcolormesh(shares, cmap=_shades(), vmin=0.0, vmax=1.0, edgecolors=INK, linewidth=0.1)
    if len(classes) <= FEW:
        for i, j in np.ndindex(counts.shape):
            ax.text(j + 0.5, i + 0.5, str(counts[i, j]), ha="center", va="center")
    ticks = np.arange(len(classes)) + 0.5
    if len(classes) <= MANY:
        ax.set_xticks(ticks, classes, rotation=0 if _short(classes) else 90)
        ax.set_yticks(ticks, classes)
    ax.invert_yaxis()
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    ax.tick_params(length=0.0)
    ax.spines[:].set_visible(False)
    return figure


def _shades() -> Any:
    """Return shades from nothing to a colour that dark and light text can be read on."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    ends = [to_rgba(COLOURS[0], 0.0), to_rgba(COLOURS[0], 0.55)]
    return LinearSegmentedColormap.from_list("counts", ends)


def _short(names: Sequence[str]) -> bool:
    return sum(len(name) + 1 for name in names) < 40


@STYLED
def calibration(confidence: Array, right: NDArray[np.bool_]) -> Figure:
    """Return how often answers are right, over how probable they were said to be."""
    figure = Figure((WIDTH, 3.4), layout="constrained")
    ax = figure.subplots()
    groups = [
        rows for rows in np.array_split(np.argsort(confidence, kind="stable"), GROUPS) if len(rows)
    ]
    said = [confidence[rows].mean() for rows in groups]
    true = np.array([right[rows].mean() for rows in groups])
    n = np.array([len(rows) for rows in groups])
    error = 1.96 * np.sqrt(np.maximum(true * (1.0 - true), 0.25 / n) / n)
    low, high = np.minimum(error, true), np.minimum(error, 1.0 - true)
    ax.plot([0.0, 1.0], [0.0, 1.0], color=INK, linewidth=0.8, linestyle=":")
    ax.errorbar(said, true, [low, high], marker=MARKERS[0], color=COLOURS[0], linewidth=1.0)
    least = max(min(min(said), float(np.min(true - low))) - 0.05, 0.0)
    ax.set_xlim(least, 1.02)
    ax.set_ylim(least, 1.02)
    rules(ax, "probability of the answer, as said")
    ax.set_ylabel("share that is right")
    return figure


@STYLED
def residuals(y: Array, answers: Array, intervals: Array | None) -> Figure:
    """Return the truth over the prediction, with intervals if there are some."""
    figure = Figure((WIDTH, 3.8), layout="constrained")
    ax = figure.subplots()
    if intervals is not None:
        order = np.argsort(answers)
        low, high = intervals[order].T
        style: dict[str, Any] = {"color": COLOURS[1], "alpha": 0.35, "linewidth": 0.8}
        ax.vlines(answers[order], low, high, **style)
    ends = [min(answers.min(), y.min()), max(answers.max(), y.max())]
    ax.plot(ends, ends, color=INK, linewidth=0.8, linestyle=":")
    ax.plot(answers, y, MARKERS[0], color=COLOURS[0], markersize=3.0, alpha=0.7)
    rules(ax, "predicted")
    ax.set_ylabel("true")
    return figure


@STYLED
def importances(names: Sequence[str], shares: Sequence[float], label: str) -> Figure:
    """Return a bar for each column."""
    figure = Figure((WIDTH, 0.8 + LINE * len(names) / 72.0), layout="constrained")
    ax = figure.subplots()
    ax.barh(range(len(names)), 100 * np.asarray(shares), color=COLOURS[0], height=0.6)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    rules(ax, label)
    return figure


@STYLED
def spectrum(network: Any, V: Array) -> Figure:
    """Return the singular values of what the layers see."""
    figure = Figure((WIDTH, 3.8), layout="constrained")
    ax = figure.subplots()
    LayerSpectrumDisplay.from_estimator(network, V, ax=ax, linewidth=1.2)
    return _with_legend_above(figure, ax)


@STYLED
def ridge_path(network: Any, V: Array, y: NDArray[Any]) -> Figure:
    """Return the leave-one-out score over ridges."""
    figure = Figure((WIDTH, 3.8), layout="constrained")
    ax = figure.subplots()
    LooPathDisplay.from_estimator(network, V, y, ax=ax, linewidth=1.2)
    return _with_legend_above(figure, ax)


def _with_legend_above(figure: Figure, ax: Any) -> Figure:
    handles, labels = ax.get_legend_handles_labels()
    ax.get_legend().remove()
    columns = 1 if max(map(len, labels)) > 20 else 3
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, fontsize=9.0)
    return figure
