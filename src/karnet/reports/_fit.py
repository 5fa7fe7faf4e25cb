"""The sections of a report on a fit, and the page they make."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from .._estimator.notebook import layer_table
from .._pages import environment as machine
from .._pages import html as page
from .._pages.style import svg
from .._util.atomic_file import whole_file
from .._util.text_table import TextTable as Lines
from ..tables import (
    Score,
    Table,
    TableFit,
    importances_of,
    kinds_of,
    predict_table,
    scores,
    seen_by_network,
    wilson,
)
from . import _drawings as drawings
from ._columns import column_rows, target_rows
from ._held_out import Again, HeldOut, held_out

__all__ = ["write_fit_report"]

PACKAGES = ("karnet", "numpy", "scipy", "scikit-learn", "skrub", "pandas", "pyarrow", "matplotlib")
NAMES = {"accuracy": "accuracy", "log_loss": "log-loss", "r2": "R²", "rmse": "RMSE", "mae": "MAE"}
# Columns and rows that a figure shows at most.
SHOWN, SAMPLED = 20, 1000


def write_fit_report(
    path: Path,
    table: Table,
    fitted: TableFit,
    again: Again,
    times: Mapping[str, float],
    command: str,
) -> None:
    """Write a page on a model: its data, its scores with intervals, its errors and its networks.

    Parameters
    ----------
    path : Path
        Where the page goes, whole or not at all.
    table : Table
        What the model was fitted on, or a sample of it.
    fitted : TableFit
        The model.
    again : callable
        Fits the same kind of model on a part of the rows, to be judged by the others.
    times : mapping of str to float
        What took how many seconds; how long predictions take is added.
    command : str
        What the report was called for with.
    """
    other = held_out(table, fitted, again)
    about = fitted.model.table_
    title = f"How {about['target']} of {table.name} is predicted"
    chapters = {
        "scores": ("Scores", _scores(fitted, other)),
        "data": ("Data", _data(table, fitted)),
        "answers": ("Answers to rows it had not seen", _answers(other)),
        "columns": ("Which columns matter", _importances(fitted, other)),
        "network": ("Inside", _inside(table, fitted)),
        "machine": ("Time and machine", _machine({**times, **_time(other)}, command)),
    }
    body = [
        page.heading(title),
        page.paragraph(_headline(fitted)),
        page.contents({name: heading for name, (heading, _) in chapters.items()}),
        *(page.section(name, heading, *parts) for name, (heading, parts) in chapters.items()),
    ]
    with whole_file(path) as unfinished:
        unfinished.write_text(page.page(title, "\n".join(body)), encoding="utf-8")


def _headline(fitted: TableFit) -> str:
    about, network = fitted.model.table_, type(fitted.model[-1]).__name__
    kind = "number" if about["task"] == "regression" else "class"
    return (
        f"karnet {__version__} learned to predict {about['target']!r}, a {kind}, from "
        f"{len(about['columns'])} columns of {about['rows']} rows. The model is a {network}: its "
        "layers are solved in closed form."
    )


def _in_words(score: Score) -> tuple[str, str]:
    if score.name == "accuracy":
        return f"{100 * score.value:.1f} %", f"{100 * score.low:.1f} to {100 * score.high:.1f} %"
    interval = "-" if np.isnan(score.low) else f"{score.low:.4g} to {score.high:.4g}"
    return f"{score.value:.4g}", interval


def _scores(fitted: TableFit, other: HeldOut | None) -> list[str]:
    rows = []
    if fitted.left_out is None:
        score = _of_left_out(fitted)
        rows = [(NAMES[score.name], *_in_words(score), fitted.judged_by)]
    if other is not None:
        how = f"{len(other.y)} rows held out, learned from the others"
        rows += [(NAMES[each.name], *_in_words(each), how) for each in other.scores]
    header = ("score", "value", "95 % interval", "judged by")
    few = [] if other else [page.note("There are too few rows to hold some out.")]
    return [
        page.table(Lines("How good it is", header, tuple(rows), "")),
        *few,
        page.note(
            "Leave-one-out judges each row by networks learned without it. An interval holds the "
            "score of all rows of this kind with 95 %."
        ),
    ]


def _of_left_out(fitted: TableFit) -> Score:
    """Return the score that the fit itself gives, with an interval where rows are known."""
    y, network = fitted.target.y, fitted.model[-1]
    if fitted.target.task == "classification":
        return Score("accuracy", fitted.score, *wilson(fitted.score, len(y)))
    answers = getattr(network, "loo_decision_function_", np.full(len(y), np.nan))
    known = ~np.isnan(answers)
    if not known.any():
        return Score("r2", fitted.score, np.nan, np.nan)
    around = scores(y[known], answers[known], None)[0]
    return Score("r2", fitted.score, around.low, around.high)


def _data(table: Table, fitted: TableFit) -> list[str]:
    header = ("column", "taken as", "gaps", "values", "what it holds")
    columns = Lines("Columns", header, column_rows(table, kinds_of(fitted.model)), "")
    return [
        *([page.bullets([*table.notes, *fitted.target.notes])]),
        page.table(Lines("The target", *target_rows(fitted.target), "")),
        page.table(columns),
    ]


def _answers(other: HeldOut | None) -> list[str]:
    if other is None:
        return [page.paragraph("There are too few rows to hold some out.")]
    if other.classes is None:
        return _numbers(other)
    names = [str(name) for name in other.classes]
    said = [names[k] for k in other.answers.argmax(axis=1)]
    true = other.y.astype(str)
    known = np.isin(true, names)
    right = np.array(said) == true
    matrix = drawings.confusion(true[known].tolist(), np.array(said)[known].tolist(), names)
    curve = drawings.calibration(other.answers.max(axis=1), right)
    return [
        page.figures(
            page.figure(
                _svg(matrix, "confusion"),
                "Confusion matrix",
                "Rows that were held out: how many of each class were taken for which.",
            ),
            page.figure(
                _svg(curve, "calibration"),
                "Calibration",
                "Groups of held-out rows of similar confidence. On the dotted line, answers are "
                "right as often as they are said to be.",
            ),
        )
    ]


def _numbers(other: HeldOut) -> list[str]:
    rows = np.linspace(0, len(other.y) - 1, min(len(other.y), SAMPLED)).astype(int)
    intervals = _intervals(other, rows)
    y, answers = other.y[rows], other.answers[rows]
    text = "Held-out rows; on the dotted line the prediction is exact."
    if intervals is not None:
        inside = (intervals[:, 0] <= y) & (y <= intervals[:, 1])
        text += (
            f" Lines are intervals that should hold 90 % of the targets; they hold "
            f"{100 * inside.mean():.0f} %."
        )
    drawing = drawings.residuals(y, answers, intervals)
    return [page.figure(_svg(drawing, "residuals"), "Truth over prediction", text)]


def _intervals(other: HeldOut, rows: NDArray[np.intp]) -> Any:
    network = other.model[-1]
    if not hasattr(network, "predict_interval"):
        return None
    return network.predict_interval(seen_by_network(other.model, other.table.take(rows)), 0.9)


def _importances(fitted: TableFit, other: HeldOut | None) -> list[str]:
    weights, label = importances_of(fitted.model), "share of the input metric, %"
    caption = "How strongly answers change with each column, in squares of its own spread."
    if not weights and other is not None:
        weights, label = _permuted(other), "loss of score without it, points"
        caption = "What the score of held-out rows loses when a column is shuffled."
    if not weights:
        return [page.paragraph("This network has no input metric, and no rows were held out.")]
    first = sorted(weights, key=lambda name: -weights[name])[:SHOWN]
    figure = drawings.importances(first, [weights[name] for name in first], label)
    return [page.figure(_svg(figure, "importances"), "Importances", caption)]


def _permuted(other: HeldOut) -> dict[str, float]:
    """Return what the score of held-out rows loses when one column is shuffled."""
    rng = np.random.RandomState(0)
    names = list(other.model.table_["columns"])
    rows = rng.permutation(len(other.y))[:SAMPLED]
    table, y = other.table.take(rows), other.y[rows]

    def score(shown: Table) -> float:
        answers = predict_table(other.model, shown, proba=other.classes is not None)
        return scores(y, answers, other.classes)[0].value

    whole = score(table)
    return {
        name: whole - score(table.shuffled(name, rng.permutation(len(y)))) for name in names[:100]
    }


def _inside(table: Table, fitted: TableFit) -> list[str]:
    network = fitted.model[-1]
    whole = fitted.left_out is None
    places = np.flatnonzero(fitted.target.known) if whole else np.arange(len(table))
    step = max(len(places) // SAMPLED, 1)
    V = seen_by_network(fitted.model, table.take(places[::step]))
    layers = layer_table(network)
    drawn = [
        page.figure(
            _svg(drawings.spectrum(network, V), "spectrum"),
            "What the layers see",
            "Singular values over the largest; below the dotted line they count as zero.",
        )
    ]
    if whole and hasattr(network, "estimators_"):
        drawn.append(
            page.figure(
                _svg(drawings.ridge_path(network, V, fitted.target.y[::step]), "ridge"),
                "Score and ridge",
                "Leave-one-out at all ridges; dots are those of the networks. Hidden layers stay "
                "as they are, so those that the metric shaped look better than they are.",
            )
        )
    return [*([] if layers is None else [page.table(layers)]), page.figures(*drawn)]


def _machine(times: Mapping[str, float], command: str) -> list[str]:
    rows = tuple((name, f"{seconds:.2f} s") for name, seconds in times.items())
    return [
        page.table(Lines("Time", ("what", "took"), rows, "")),
        page.bullets([*machine.about(PACKAGES), machine.written()]),
        page.command(command),
    ]


def _time(other: HeldOut | None) -> dict[str, float]:
    return {} if other is None else {f"Predicting {len(other.y)} rows": other.seconds}


def _svg(figure: Any, name: str) -> str:
    text = svg(figure, name)
    return text[text.index("<svg") :]
