"""The sections of the report on a fit, and its page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .. import __version__, tables
from .._estimator.notebook import layer_table
from .._pages import environment
from .._pages import html as page
from .._pages.style import svg
from .._rows.memory import evenly_spaced
from .._util.text_table import TextTable
from ..inspection import LayerSpectrumDisplay, LooPathDisplay
from ..tables import Score, Table, TableFit, Target
from . import _drawings as drawings
from ._card import LABELS, Card, score_words
from ._dependence import Response, drawable_columns
from ._held_out import COVERAGE, HeldOut, Refit, held_out
from ._importances import CORRELATED, Importances

# The libraries whose versions the page names.
LIBRARIES = ("karnet", "numpy", "scipy", "scikit-learn", *tables.PACKAGES, "matplotlib")
# The largest number of rows that a figure is drawn from.
MAX_ROWS = 1000
# The captions of figures of partial dependence, and what these show.
CURVES = "Thin curves are single rows, the thick curve is their mean."
BARS = "The mean prediction if all rows had this category."
ABOUT_CURVES = (
    "A curve is the prediction for a row with other values of the column. Curves that are not "
    "parallel show that other columns change the effect. Short lines at the bottom are deciles of "
    "the column: values far from them, and values that do not go with the rest of a row, are rare "
    "in the table."
)
# The sentence on the page of a small table.
TOO_FEW_ROWS = "There are too few rows to hold some out."


def write_fit_report(
    path: Path,
    table: Table,
    fitted: TableFit,
    again: Refit,
    times: Mapping[str, float],
    command: str,
) -> None:
    """Write a page on a model: a model card, its data, scores, importances and networks.

    Parameters
    ----------
    path : Path
        The file, which is written completely or not at all.
    table : Table
        The table that the model was fitted on, or a sample of it.
    fitted : TableFit
        The model.
    again : callable
        Fits the same kind of model on a part of the rows, to evaluate it on the others.
    times : mapping of str to float
        The seconds that each step took; the time of predicting is added.
    command : str
        The command that asked for the report.
    """
    other = held_out(table, fitted, again)
    about, network = fitted.model.table_, type(tables.network_of(fitted.model)).__name__
    importances = Importances.of(fitted, other)
    card = Card.of(table, fitted, other, importances)
    chapters = {
        "card": ("Model card", card.summary(_first_scores(fitted, other))),
        "errors": ("Where it is wrong most", card.wrong_most()),
        "limits": ("What it must not be used for", card.limits()),
        "scores": ("Scores", _scores(fitted, other)),
        "data": ("Data", _data(table, fitted)),
        "predictions": ("Predictions for held-out rows", _predictions(other)),
        "columns": ("Importance of the columns", _importances(importances)),
        "dependence": ("Dependence on the columns", _dependence(table, fitted, importances)),
        "network": ("The network", _network(table, fitted)),
        "environment": ("Time and environment", _environment(times, other, command)),
    }
    kind = "number" if about["task"] == "regression" else "class"
    introduction = (
        f"karnet {__version__} fitted a {network} that predicts {about['target']!r}, a {kind}, "
        f"from {len(about['columns'])} columns. It was fitted on {about['rows']} rows; its "
        "layers are solved in closed form."
    )
    page.write(path, f"Predicting {about['target']} from {table.name}", introduction, chapters)


def _score_row(score: Score, evaluated_on: str) -> tuple[str, ...]:
    value, interval = score_words(score)
    return LABELS[score.name], value, interval.strip("()") or "-", evaluated_on


def _first_scores(fitted: TableFit, other: HeldOut | None) -> list[tuple[Score, str]]:
    """Return the scores of the model card, and the rows that they were computed from."""
    found = []
    if fitted.left_out is None:
        found.append((_left_out_score(fitted), f"by {fitted.judged_by}"))
    if other is not None:
        found.append((other.scores[0], f"on {len(other.y)} held-out rows"))
    return found


def _scores(fitted: TableFit, other: HeldOut | None) -> list[str]:
    rows = []
    if fitted.left_out is None:
        rows = [_score_row(_left_out_score(fitted), fitted.judged_by)]
    if other is not None:
        evaluated_on = f"{len(other.y)} held-out rows, model fitted on the others"
        rows += [_score_row(each, evaluated_on) for each in other.scores]
    header = ("score", "value", "95 % interval", "evaluated on")
    return [
        page.table(TextTable("Scores", header, tuple(rows), "")),
        *([] if other else [page.note(TOO_FEW_ROWS)]),
        page.note(
            "Leave-one-out predicts each row by networks that were fitted without it. A 95 % "
            "interval is for the score on all rows of the same kind."
        ),
    ]


def _left_out_score(fitted: TableFit) -> Score:
    """Return the score of the fit, with an interval if the left-out predictions are available."""
    y, network = fitted.target.y, tables.network_of(fitted.model)
    if fitted.target.task == "classification":
        return Score("accuracy", fitted.score, *tables.wilson(fitted.score, len(y)))
    predictions = getattr(network, "loo_decision_function_", np.full(len(y), np.nan))
    available = ~np.isnan(predictions)
    if not available.any():
        return Score("r2", fitted.score, np.nan, np.nan)
    around = tables.scores(y[available], predictions[available], None)[0]
    return Score("r2", fitted.score, around.low, around.high)


def _data(table: Table, fitted: TableFit) -> list[str]:
    kinds = tables.kinds_of(fitted.model)
    names = list(kinds)[:500]
    frame = table.frame(names)
    rows = tuple((name, kinds[name], *_summary(kinds[name], frame[name])) for name in names)
    header = ("column", "read as", "gaps", "values", "summary")
    return [
        page.bullets([*table.notes, *fitted.target.notes]),
        page.table(TextTable("Target", *_target_rows(fitted.target), "")),
        page.table(TextTable("Columns", header, rows, "")),
    ]


def _summary(kind: str, column: Any) -> tuple[str, str, str]:
    """Return the share of gaps, the number of distinct values and a summary of a column."""
    if kind == "number":
        column = pd.to_numeric(column, errors="coerce")
    elif column.dtype.kind not in "fM":
        column = column.where(column.str.strip() != "")
    values = column.dropna()
    if values.empty:
        summary = "-"
    elif kind == "number":
        low, middle, high = np.quantile(values.to_numpy(float), [0.0, 0.5, 1.0])
        summary = f"{low:.4g} to {high:.4g}, median {middle:.4g}"
    elif kind == "date":
        summary = f"{values.min()!s:.19} to {values.max()!s:.19}"
    else:
        counts = values.value_counts()
        frequent = [f"{value!s:.20} ({n})" for value, n in counts.head(3).items()]
        summary = ", ".join([*frequent, *(["..."] if len(counts) > 3 else [])])
    gaps = f"{100 * (1 - len(values) / max(len(column), 1)):.1f} %"
    return gaps, str(values.nunique()), summary


def _target_rows(target: Target) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return a header, and rows for the 40 largest classes or the quantiles of a target."""
    if target.task == "regression":
        quantiles = np.quantile(target.y, [0.0, 0.25, 0.5, 0.75, 1.0])
        header = ("minimum", "lower quartile", "median", "upper quartile", "maximum")
        return header, (tuple(f"{each:.6g}" for each in quantiles),)
    names, counts = np.unique(target.y, return_counts=True)
    order, n = np.argsort(-counts, kind="stable")[:40], len(target.y)
    rows = ((str(names[k]), str(counts[k]), f"{100 * counts[k] / n:.1f} %") for k in order)
    return ("class", "rows", "share"), tuple(rows)


def _predictions(other: HeldOut | None) -> list[str]:
    if other is None:
        return [page.paragraph(TOO_FEW_ROWS)]
    if other.classes is None:
        return [_true_and_predicted(other)]
    names = other.classes.astype(str)
    predicted, true = names[other.predictions.argmax(axis=1)], other.y.astype(str)
    known = np.isin(true, names)
    matrix = drawings.confusion(true[known].tolist(), predicted[known].tolist(), names.tolist())
    curve = drawings.calibration(other.predictions.max(axis=1), other.correct)
    return [
        page.figures(
            page.figure(
                svg(matrix, "confusion"),
                "Confusion matrix",
                "The number of held-out rows of each class and each predicted class.",
            ),
            page.figure(
                svg(curve, "calibration"),
                "Calibration",
                "Groups of held-out rows of similar probability, with 95 % intervals. On the "
                "dotted line, predictions are correct as often as their probability says.",
            ),
        )
    ]


def _true_and_predicted(other: HeldOut) -> str:
    rows = evenly_spaced(len(other.y), MAX_ROWS)
    found, ends = other.intervals, None
    text = "Held-out rows; on the dotted line the prediction is exact."
    if found is not None:
        rows, ends = found.rows, found.ends
        text += (
            f" Vertical lines are {100 * COVERAGE:.0f} % prediction intervals; they contain "
            f"{100 * found.inside:.0f} % of the true values."
        )
    drawing = drawings.true_and_predicted(other.y[rows], other.predictions[rows], ends)
    return page.figure(svg(drawing, "predictions"), "True and predicted values", text)


def _importances(found: Importances) -> list[str]:
    if not found.weights:
        return [page.paragraph("This network has no importances, and no rows were held out.")]
    drawing = drawings.importances(found)
    return [
        page.figure(svg(drawing, "importances"), "Importances", found.caption),
        page.note(CORRELATED),
    ]


def _dependence(table: Table, fitted: TableFit, found: Importances) -> list[str]:
    kinds, response = tables.kinds_of(fitted.model), Response.of(table, fitted)
    names = drawable_columns(response.frame, kinds, found.weights)
    if not names:
        return [page.paragraph("No column of numbers or categories matters for the predictions.")]
    single = [
        page.figure(
            svg(drawings.dependence(response, name, kinds[name]), f"dependence{k}"),
            f"Partial dependence on {name}",
            BARS if kinds[name] == "category" else CURVES,
        )
        for k, name in enumerate(names)
    ]
    return [
        page.paragraph(_about_dependence(response, len(names), kinds)),
        page.figures(*single),
    ]


def _about_dependence(response: Response, n: int, kinds: Mapping[str, str]) -> str:
    """Return what figures of partial dependence show, and of which columns there are none."""
    about = f"The figures show the {response.label}"
    if response.code is not None and len(response.model.classes_) > 2:
        about += ", the most frequent class,"
    text = f"{about} for the {n} most important columns of numbers "
    text += f"and categories, computed from {len(response.frame)} rows. {ABOUT_CURVES}"
    other = [name for name, kind in kinds.items() if kind in ("text", "date")]
    if other:
        text += " Columns of text and dates have no such figure: " + ", ".join(other[:5])
        text += ", ..." if len(other) > 5 else "."
    return text


def _network(table: Table, fitted: TableFit) -> list[str]:
    network = tables.network_of(fitted.model)
    complete = fitted.left_out is None
    places = np.flatnonzero(fitted.target.known) if complete else np.arange(len(table))
    step = max(len(places) // MAX_ROWS, 1)
    X = tables.seen_by_network(fitted.model, table.take(places[::step]))
    layers = layer_table(network)
    figures = [
        page.figure(
            svg(drawings.inspection(LayerSpectrumDisplay, network, X), "spectrum"),
            "Singular values of layer inputs",
            "Singular values relative to the largest; below the dotted line they count as zero.",
        )
    ]
    if complete and fitted.judged_by == "leave-one-out":
        y = fitted.target.y[::step]
        figures.append(
            page.figure(
                svg(drawings.inspection(LooPathDisplay, network, X, y), "ridge"),
                "Score and ridge",
                "The leave-one-out score for a range of ridges; dots are at the ridges of the "
                "networks. Leaving out a row does not change the hidden layers, so the scores of "
                "networks with an input metric are optimistic.",
            )
        )
    return [*([] if layers is None else [page.table(layers)]), page.figures(*figures)]


def _environment(times: Mapping[str, float], other: HeldOut | None, command: str) -> list[str]:
    if other is not None:
        times = {**times, f"Predicting {len(other.y)} rows": other.seconds}
    rows = tuple((name, f"{seconds:.2f} s") for name, seconds in times.items())
    return [
        page.table(TextTable("Time", ("step", "time"), rows, "")),
        page.bullets([*environment.about(LIBRARIES), environment.written()]),
        page.command(command),
    ]
