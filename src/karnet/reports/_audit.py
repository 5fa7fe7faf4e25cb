"""The page on an audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .. import __version__
from .._pages import environment
from .._pages import html as page
from .._pages.style import COLOURS, INK, STYLED, WIDTH, rules, svg
from .._util.text_table import TextTable
from ..audit import Audit
from ..selection import KARClassifierCV
from ._drawings import bars
from ._fit import LIBRARIES


def write_audit_report(
    path: Path,
    name: str,
    target: str,
    y: NDArray[Any],
    found: Audit,
    row_names: NDArray[Any],
    command: str,
) -> None:
    """Write a page on an audit: the suspects, the findings, and what a fit without suspects gains.

    Parameters
    ----------
    path : Path
        The file, which is written completely or not at all.
    name, target : str
        The names of the table and of its target.
    y : ndarray of shape (n_rows,)
        The targets.
    found : Audit
        The result of the audit.
    row_names : ndarray of shape (n_rows,)
        The numbers of the rows in the table.
    command : str
        The command that asked for the report.
    """
    chapters = {
        "summary": ("Summary", [page.bullets(summary(found, len(y)))]),
        "rows": ("Rows that look wrong", _suspects(found, row_names, y)),
        "table": ("Columns and table", _findings(found)),
        "environment": (
            "Environment",
            [
                page.bullets([*environment.about(LIBRARIES), environment.written()]),
                page.command(command),
            ],
        ),
    }
    introduction = (
        f"karnet {__version__} compared each of {len(y)} rows with the prediction of networks that "
        f"were fitted without it. The target is {target!r}. A suspect need not be wrong: look at "
        "it before it is changed."
    )
    page.write(path, f"Audit of {name}", introduction, chapters)


def summary(found: Audit, n_rows: int) -> list[str]:
    """Return sentences on the result of an audit of some rows."""
    counts = ", ".join(f"{reason}: {n}" for reason, n in found.counts.items())
    rows = len(found.rows)
    sentences = [
        f"{rows} of {n_rows} rows look wrong" + (f" ({counts})." if counts else "."),
        f"{len(found.findings)} findings on columns and on the table.",
    ]
    if rows and np.isfinite(found.score_without_suspects):
        name = "accuracy" if isinstance(found.estimator, KARClassifierCV) else "R²"
        sentences.append(
            f"Without these rows, the left-out {name} of the other rows would change from "
            f"{found.score:.4f} to {found.score_without_suspects:.4f}."
        )
    return sentences


def table_of_suspects(found: Audit, row_names: NDArray[Any]) -> TextTable:
    """Return a table of all suspects, with the numbers of the rows in the table."""
    rows = tuple(
        (str(row_names[each.row]), each.reason, each.detail, each.suggestion)
        for each in found.suspects
    )
    return TextTable("Rows", ("row", "reason", "detail", "suggestion"), rows, "")


def table_of_findings(found: Audit) -> TextTable:
    """Return a table of all findings on columns and on the table."""
    rows = tuple((each.subject, each.reason, each.detail) for each in found.findings)
    return TextTable("Columns and table", ("subject", "finding", "detail"), rows, "")


def first_rows(table: TextTable, n: int) -> TextTable:
    """Return the first rows of a table, with a note on the number of others."""
    more = len(table.rows) - n
    note = f"{more} more." if more > 0 else table.note
    return TextTable(table.title, table.header, table.rows[:n], note)


def _suspects(found: Audit, row_names: NDArray[Any], y: NDArray[Any]) -> list[str]:
    if not found.suspects:
        return [page.paragraph("No row looks wrong.")]
    figures = page.figures(
        page.figure(
            svg(bars(list(found.counts), list(found.counts.values()), "rows"), "reasons"),
            "Suspects by reason",
            "A row may have several reasons.",
        ),
        page.figure(
            svg(_histogram(found, y), "errors"),
            "How well the other rows predict each row",
            "Rows whose label or target looks wrong are orange.",
        ),
    )
    return [figures, page.table(first_rows(table_of_suspects(found, row_names), 500))]


def _findings(found: Audit) -> list[str]:
    if not found.findings:
        return [page.paragraph("Nothing was found.")]
    return [
        page.table(table_of_findings(found)),
        page.note(
            "Columns that give the target away, number the rows or name them were left out of the "
            "model."
        ),
    ]


@STYLED
def _histogram(found: Audit, y: NDArray[Any]) -> Figure:
    """Return a histogram of margins of classes, or of errors of numbers."""
    figure = Figure((WIDTH, 3.4), layout="constrained")
    ax = figure.subplots()
    values, label = _margins(found, y)
    suspect = np.zeros(len(y), dtype=bool)
    suspect[[each.row for each in found.suspects if each.reason in ("label", "target")]] = True
    known = ~np.isnan(values)
    edges = np.histogram_bin_edges(values[known], bins=40).tolist()
    for rows, colour in ((known & ~suspect, COLOURS[0]), (known & suspect, COLOURS[1])):
        ax.hist(values[rows], edges, color=colour)
    ax.set_yscale("symlog", linthresh=1.0)
    ax.axvline(0.0, color=INK, linewidth=0.8, linestyle=":")
    ax.set_ylabel("rows")
    rules(ax, label)
    return figure


def _margins(found: Audit, y: NDArray[Any]) -> tuple[NDArray[np.float64], str]:
    """Return how far the left-out prediction of each row is on the side of its target."""
    if not isinstance(found.estimator, KARClassifierCV):
        return y - found.left_out, "target less left-out prediction"
    scores, rows = found.left_out.copy(), np.arange(len(y))
    codes = np.searchsorted(found.estimator.classes_, y)
    own = scores[rows, codes]
    scores[rows, codes] = -np.inf
    return own - scores.max(axis=1), "left-out score of the class, less the best other score"
