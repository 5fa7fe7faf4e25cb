"""The paper's figures, drawn from results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .._pages.style import COLOURS, INK, LINE, MARKERS, SHADES, STYLED, WIDTH, rules, svg
from .._util.atomic_file import whole_file
from . import iris, xor

# The number of each row of a figure, and a note that takes its place if it is NaN, by method.
Series = Mapping[str, Sequence[tuple[float, str]]]


@STYLED
def save(figure: Figure, folder: Path, name: str) -> str:
    """Write a figure as SVG and PNG, and return the SVG for a page."""
    folder.mkdir(parents=True, exist_ok=True)
    text = svg(figure, name)
    look: dict[str, Any] = {"facecolor": "white", "dpi": 150, "metadata": {"Software": None}}
    with whole_file(folder / f"{name}.png") as unfinished:
        figure.savefig(unfinished, format="png", **look)
    with whole_file(folder / f"{name}.svg") as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
    return text[text.index("<svg") :]


@STYLED
def xor_surfaces(studies: Sequence[xor.Study]) -> Figure:
    """Draw the outputs over the plane, a row per kind of network, a column per depth."""
    names = list(dict.fromkeys(each.network for each in studies))
    depths = sorted({each.n_layers for each in studies})
    figure = Figure((WIDTH, 0.7 + 2.5 * len(names)), layout="constrained")
    grid = figure.subplots(len(names), len(depths), sharex=True, sharey=True, squeeze=False)
    corners = (xor.GRID[0], xor.GRID[-1]) * 2
    look = {"cmap": SHADES, "vmin": 0.0, "vmax": 1.0, "interpolation": "nearest"}
    for each in studies:
        ax = grid[names.index(each.network), depths.index(each.n_layers)]
        surface = np.clip(each.surface, 0.0, 1.0)
        shades = ax.imshow(surface, origin="lower", extent=corners, **look)
        ax.contour(xor.GRID, xor.GRID, each.surface, levels=[0.5], colors="#303030", linewidths=1.0)
        for target, marker in ((0.0, "o"), (1.0, "s")):
            points, face = xor.X[target == xor.TARGETS], SHADES(target)
            ax.plot(*points.T, marker, color=face, markeredgecolor="white", markersize=7.0)
        ax.set(xticks=[0.0, 1.0], yticks=[0.0, 1.0])
        name = f"{each.network}\n" if each.n_layers == depths[0] else ""
        ax.set_title(f"{name}{each.n_layers} layers", loc="left")
    bar = figure.colorbar(shades, ax=grid, orientation="horizontal", aspect=40, extend="both")
    bar.set_label("output")
    bar.outline.set_visible(False)
    return figure


@STYLED
def iris_outputs(fits: Sequence[iris.Fitted]) -> Figure:
    """Draw the targets of the training rows and the outputs of the networks, by class."""
    figure = Figure((WIDTH, 2.4 * len(fits)), layout="constrained")
    for ax, each in zip(figure.subplots(len(fits), 1, sharex=True), fits, strict=True):
        rows = np.arange(len(each.targets))
        for k, (colour, marker) in enumerate(zip(COLOURS, MARKERS, strict=True)):
            ax.step(rows, each.targets[:, k], where="mid", color=INK, linewidth=0.6)
            style = {"color": colour, "markersize": 3.0, "linestyle": ""}
            ax.plot(each.outputs[:, k], marker=marker, label=f"class {k + 1}", **style)
        error = np.abs(each.outputs - each.targets).max()
        ax.set_title(f"h = {each.width}: largest error {error:.0e}", loc="left")
        ax.set_ylabel("output")
    ax.set_xlabel("training row (line: target)")
    handles = ax.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper left", ncols=3, markerscale=2.0)
    return figure


@STYLED
def iris_sweeps(pair: tuple[iris.Sweep, iris.Sweep]) -> Figure:
    """Draw sums of squared errors and error rates over widths, without an output bias and with it.

    The upper half has a point for every trial; the lower half shows means over trials.
    """
    figure = Figure((WIDTH, 5.6), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    top.set_yscale("log")
    for each, colour, marker in zip(pair, COLOURS, MARKERS, strict=False):
        title = "output bias" if each.bias else "no output bias"
        if each.step is not None:
            top.axvline(each.step - 0.5, color=colour, linestyle=":", linewidth=1.2)
        widths = np.array(iris.WIDTHS) + (0.15 if each.bias else -0.15)
        style = {"color": colour, "marker": marker, "markersize": 4.0}
        repeated = np.repeat(widths, each.sse.shape[1])
        top.plot(repeated, each.sse.ravel(), linestyle="", label=title, alpha=0.8, **style)
        bottom.plot(widths, 100 * each.test_error.mean(axis=1), linestyle="-", **style)
        style["markerfacecolor"] = "none"
        bottom.plot(widths, 100 * each.train_error.mean(axis=1), linestyle="--", **style)
    top.set_ylabel("sum of squared errors")
    bottom.set(xlabel="units h of every hidden layer", xticks=iris.WIDTHS[::2])
    bottom.set_ylabel("wrong class, %")
    bottom.set_ylim(bottom=-3.0)
    bottom.set_title("full line: test rows; dashed, hollow: training rows", loc="left")
    figure.legend(*top.get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return figure


@STYLED
def per_set(rows: Sequence[str], series: Series, label: str, log: bool) -> Figure:
    """Draw a row of dots per data set, with a colour and a shape per method."""
    figure, ax = _figure_of_rows(rows, label, 1.3)
    if log:
        ax.set_xscale("log")
    # Notes are where dots are rare: times at the right, accuracies at the left.
    where, side = (0.99, "right") if log else (0.01, "left")
    for (title, cells), colour, marker in zip(series.items(), COLOURS, MARKERS, strict=False):
        style: dict[str, Any] = {"color": colour, "label": title, "alpha": 0.85, "zorder": 3}
        ax.plot([value for value, _ in cells], range(len(rows)), marker, **style)
        style = {"color": colour, "fontsize": 9.0, "va": "center", "ha": side}
        for k, (value, note) in enumerate(cells):
            if np.isnan(value) and note:
                ax.text(where, k, note, transform=ax.get_yaxis_transform(), **style)
    figure.legend(loc="outside upper left", ncols=1 if len(series) > 2 else 2)
    return figure


@STYLED
def differences(rows: Sequence[str], values: NDArray[np.float64], label: str) -> Figure:
    """Draw a row per variation with a dot at its difference, and a line at zero."""
    figure, ax = _figure_of_rows(rows, label, 1.0)
    ax.axvline(0.0, color=INK, linewidth=1.0)
    ax.hlines(range(len(rows)), 0.0, values, color=COLOURS[0], linewidth=1.5)
    ax.plot(values, range(len(rows)), MARKERS[0], color=COLOURS[0])
    return figure


def _figure_of_rows(rows: Sequence[str], label: str, margin: float) -> tuple[Figure, Axes]:
    figure = Figure((WIDTH, margin + LINE * len(rows) / 72.0), layout="constrained")
    ax = figure.subplots()
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    rules(ax, label)
    return figure, ax
