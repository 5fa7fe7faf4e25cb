"""karnet fit: from a table to a model, in one command."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from .._extras import require
from .._whole import check_writable
from ._console import EXIT_CODES, Output, score_in_words, sentences
from ._options import Json, Quiet, TableFile, line_of

__all__ = ["add_to"]

EXAMPLES = """
Learn to predict one column of a table from all others, and keep the model in a file.

Columns are taken as they are: numbers, dates, categories, text, gaps. Whether the target is a class
or a number is inferred and said.

```text
karnet fit houses.csv --target price
karnet fit patients.parquet --target outcome --model outcome.karnet --report outcome.html
```
"""


class Task(StrEnum):
    """What the target calls for."""

    AUTO = "auto"
    CLASSIFICATION = "classification"
    REGRESSION = "regression"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fit", help=EXAMPLES, epilog=EXIT_CODES)(sentences(fit))


def fit(
    context: typer.Context,
    table: TableFile,
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", metavar="COLUMN", help="The column to predict.", show_default=False
        ),
    ],
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the model goes; the table's name with .karnet."),
    ] = None,
    task: Annotated[Task, typer.Option(help="Predict classes or numbers.")] = Task.AUTO,
    paper: Annotated[
        bool, typer.Option("--paper", help="Learn the paper's own network, on inputs in [0, 1].")
    ] = False,
    device: Annotated[str, typer.Option(help="Where to compute: cpu or cuda.")] = "cpu",
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a page on the fit, as HTML; takes longer."),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learn to predict one column of a table from all others."""
    require("karnet fit", "table", "pandas", "pyarrow", "skrub", "skops")
    from ..files import save
    from ..tables import find_target, fit_table, read_table

    out = Output(quiet, as_json)
    path = check_writable(model or Path(f"{_stem(table)}.karnet"))
    page = None if report is None else check_writable(report)
    with out.timed(f"Reading {table.name}") as reading:
        read = read_table(table)
    out.remark(*read.notes)
    found = find_target(read, target, task.value)
    out.remark(*found.notes)
    with out.timed(f"Learning from {len(found.y)} rows, {len(read.names) - 1} columns") as learning:
        fitted = fit_table(read, found, paper=paper, device=device)
    save(fitted.model, path)
    if page is not None:
        from ..reports import write_fit_report

        with out.timed("Learning again without a part, for the report"):
            times = {"Reading": reading.seconds, "Learning": learning.seconds}
            write_fit_report(page, read, fitted, times, line_of(context))
    values = {**fitted.model.table_, "model": path, "report": page, "seconds": learning.seconds}
    out.result({**values, "columns": len(read.names) - 1}, _summary(path, values, page))


def _stem(table: Path) -> str:
    """Return the name of a table without its suffixes."""
    name = table.name.removesuffix(".gz")
    return Path(name).stem


def _summary(path: Path, values: dict[str, Any], page: Path | None) -> str:
    return (
        f"{path} predicts {values['target']!r}: {score_in_words(values)} by {values['judged_by']}, "
        f"learned from {values['rows']} rows in {values['seconds']:.1f} s."
        + ("" if page is None else f"\nThe report is in {page}.")
    )
