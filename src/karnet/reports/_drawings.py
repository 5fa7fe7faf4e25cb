"""The figures of the report on a fit.

Most do not use scikit-learn's displays: ConfusionMatrixDisplay draws a bitmap and shades counts,
CalibrationDisplay has no intervals and only two classes, and PredictionErrorDisplay has no
prediction intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.inspection import PartialDependenceDisplay

from .._pages.style import COLOURS, INK, LINE, MARKERS, STYLED, WIDTH, rules
from .._util.types import Array
from ..inspection import LayerSpectrumDisplay, LooPathDisplay
from ..tables import wilson
from ._dependence import Response
from ._importances import Importances

# The style of the curves of single rows, and of their mean.
CURVES = {"color": COLOURS[0], "alpha": 0.45, "linewidth": 0.7}
MEAN = {"color": COLOURS[1], "linewidth": 2.0, "linestyle": "-"}


def _axes(height: float) -> tuple[Figure, Any]:
    figure = Figure((WIDTH, height), layout="constrained")
    return figure, figure.subplots()


@STYLED
def confusion(true: Sequence[str], predicted: Sequence[str], classes: Sequence[str]) -> Figure:
    """Return the confusion matrix, its cells shaded by their shares of the true class.

    There are counts for up to 12 classes, and names for up to 30.
    """
    index = {name: k for k, name in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, ([index[name] for name in true], [index[name] for name in predicted]), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    figure, ax = _axes(min(1.2 + 0.34 * len(classes), 5.0))
    # Dark and light text is readable on all of these shades.
    ends = [to_rgba(COLOURS[0], 0.0), to_rgba(COLOURS[0], 0.55)]
    shades = LinearSegmentedColormap.from_list("counts", ends)
    ax.pcolormesh(shares, cmap=shades, vmin=0.0, vmax=1.0, edgecolors=INK, linewidth=0.1)
    if len(classes) <= 12:
        for i, j in np.ndindex(counts.shape):
            ax.text(j + 0.5, i + 0.5, str(counts[i, j]), ha="center", va="center")
    if len(classes) <= 30:
        ticks = np.arange(len(classes)) + 0.5
        ax.set_xticks(ticks, classes, rotation=_rotation(classes))
        ax.set_yticks(ticks, classes)
    ax.invert_yaxis()
    ax.set(xlabel="predicted", ylabel="true")
    ax.tick_params(length=0.0)
    ax.spines[:].set_visible(False)
    return figure


def _rotation(names: Sequence[str]) -> float:
    """Return the angle at which names below an axis do not overlap."""
    return 0.0 if sum(len(name) + 1 for name in names) < 40 else 90.0


@STYLED
def calibration(probabilities: Array, correct: NDArray[np.bool_]) -> Figure:
    """Return the share of correct predictions over the predicted class's probability, by tenths."""
    figure, ax = _axes(3.4)
    order = np.argsort(probabilities, kind="stable")
    groups = [rows for rows in np.array_split(order, 10) if len(rows)]
    predicted = [probabilities[rows].mean() for rows in groups]
    shares = np.array([correct[rows].mean() for rows in groups])
    ends = [wilson(share, len(rows)) for share, rows in zip(shares, groups, strict=True)]
    low, high = np.array(ends).T
    ax.plot([0.0, 1.0], [0.0, 1.0], color=INK, linewidth=0.8, linestyle=":")
    errors = np.maximum([shares - low, high - shares], 0.0)
    ax.errorbar(predicted, shares, errors, marker=MARKERS[0], color=COLOURS[0], linewidth=1.0)
    least = max(min(*predicted, *low) - 0.05, 0.0)
    ax.set(xlim=(least, 1.02), ylim=(least, 1.02), ylabel="share of correct predictions")
    rules(ax, "probability of the predicted class")
    return figure


@STYLED
def true_and_predicted(y: Array, predictions: Array, intervals: Array | None) -> Figure:
    """Return the true over the predicted values, with prediction intervals if there are any."""
    figure, ax = _axes(3.8)
    if intervals is not None:
        style: dict[str, Any] = {"color": COLOURS[1], "alpha": 0.35, "linewidth": 0.8}
        ax.vlines(predictions, *intervals.T, **style)
    ends = [min(predictions.min(), y.min()), max(predictions.max(), y.max())]
    ax.plot(ends, ends, color=INK, linewidth=0.8, linestyle=":")
    ax.plot(predictions, y, MARKERS[0], color=COLOURS[0], markersize=3.0, alpha=0.7)
    rules(ax, "predicted")
    ax.set_ylabel("true")
    return figure


@STYLED
def bars(
    names: Sequence[str], values: Sequence[float], label: str, errors: Sequence[float] | None = None
) -> Figure:
    """Return a horizontal bar for each name, the first one at the top, with errors if any."""
    figure, ax = _axes(0.8 + LINE * len(names) / 72.0)
    style = {"color": COLOURS[0], "height": 0.6, "ecolor": INK, "capsize": 2.0}
    ax.barh(range(len(names)), values, xerr=errors, **style)
    ax.set_yticks(range(len(names)), [literal(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    rules(ax, label)
    return figure


def importances(found: Importances) -> Figure:
    """Return bars in per cent for the 20 most important columns, with standard errors if any."""
    names = list(found.weights)[:20]
    errors = [100 * found.errors[name] for name in names] if found.errors else None
    return bars(names, [100 * found.weights[name] for name in names], found.label, errors)


@STYLED
def dependence(response: Response, name: str, kind: str) -> Figure:
    """Return the partial dependence on a column, with the curves of single rows for numbers."""
    figure, ax = _axes(3.0)
    known = response.frame[response.frame[name].notna()]
    category = kind == "category"
    display = PartialDependenceDisplay.from_estimator(
        response.model,
        known,
        [name],
        kind="average" if category else "both",
        categorical_features=[name] if category else None,
        grid_resolution=16,
        subsample=50,
        random_state=0,
        ax=[ax],
        **response.options,
        **({} if category else {"ice_lines_kw": CURVES, "pd_line_kw": MEAN}),
    )
    if category:
        _tidy_bars(ax, display.pd_results[0]["grid_values"][0])
    else:
        display.deciles_vlines_.ravel()[0].set_color(INK)
        ax.get_legend().remove()
    rules(ax, literal(name))
    ax.set_ylabel(literal(response.label))
    return figure


def _tidy_bars(ax: Any, values: NDArray[Any]) -> None:
    """Let bars begin at zero, and write their names."""
    heights = [bar.get_height() for bar in ax.patches]
    for bar in ax.patches:
        bar.set_color(COLOURS[0])
    ax.set_ylim(min(1.05 * min(heights), 0.0), max(1.05 * max(heights), 0.0))
    names = [literal(str(each)) for each in values]
    ax.set_xticks(range(len(names)), names, rotation=_rotation(names))


def literal(text: str, longest: int = 30) -> str:
    """Return a name as matplotlib writes it, without formulas, cut off if it is long."""
    text = text if len(text) <= longest else f"{text[: longest - 3]}..."
    return text.replace("$", r"\$")


@STYLED
def inspection(
    kind: type[LayerSpectrumDisplay | LooPathDisplay], network: Any, *data: NDArray[Any]
) -> Figure:
    """Return a display of the network for some rows, its legend above the axes."""
    figure, ax = _axes(3.8)
    kind.from_estimator(network, *data, ax=ax, linewidth=1.2)
    handles, labels = ax.get_legend_handles_labels()
    ax.get_legend().remove()
    columns = int(np.clip(64 // max(map(len, labels)), 1, 3))
    figure.set_figheight(3.4 + LINE * -(-len(labels) // columns) / 72.0)
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, fontsize=9.0)
    return figure
