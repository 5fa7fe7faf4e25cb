"""The command karnet fit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from .._util.atomic_file import check_writable
from .._util.extras import require
from ._console import (
    Device,
    Json,
    Output,
    Quiet,
    TableFile,
    TargetColumn,
    Task,
    score_in_words,
)


def fit(
    context: typer.Context,
    table: TableFile,
    target: TargetColumn,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The model file; by default named after the table."),
    ] = None,
    task: Task = "auto",
    paper: Annotated[
        bool, typer.Option("--paper", help="Fit the paper's network, on inputs scaled to [0, 1].")
    ] = False,
    device: Device = "cpu",
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write an HTML report on the fit; takes longer."),
    ] = None,
    max_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Fit Parquet files of more rows block by block; by default, files that do not fit "
            "in memory.",
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fit a model that predicts one column of a table from all others, and save it in a file.

    Columns of numbers, dates, categories and text are used as they are, and may have gaps. The
    command infers whether the target is a class or a number, and says so.

    ```text
    karnet fit houses.csv --target price
    karnet fit patients.parquet --target outcome --model outcome.karnet --report outcome.html
    ```
    """
    require("karnet fit", "table", "skops")
    from ..files import save
    from ..tables import fit_table

    out = Output(quiet, as_json)
    path = check_writable(model or Path(f"{Path(table.name.removesuffix('.gz')).stem}.karnet"))
    page = None if report is None else check_writable(report)
    rows, fitted, times = _fitted(table, target, task, paper, device, max_rows, out)
    save(fitted.model, path)
    if page is not None:
        from ..reports import write_fit_report

        with out.timed("Fitting again without some rows, for the report") as clock:
            again = partial(fit_table, paper=paper, device=device, tell=clock.tell)
            write_fit_report(page, rows, fitted, again, times, context.obj)
    about = fitted.model.table_
    values = {**about, "columns": len(about["columns"])}
    text = (
        f"{path} predicts {about['target']!r}: {score_in_words(about)}, fitted on {about['rows']} "
        f"rows in {times['Learning']:.1f} s."
    )
    text += "" if page is None else f"\nThe report is in {page}."
    out.result({**values, "model": path, "report": page, "seconds": times}, text)


def _fitted(
    path: Path, target: str, task: str, paper: bool, device: str, max_rows: int | None, out: Output
) -> tuple[Any, Any, dict[str, float]]:
    """Return a table or a sample of it, the model fitted on it, and the seconds of each step."""
    from ..tables import find_target, fit_large, fit_table, is_large, read_table

    if is_large(path, max_rows):
        if paper:
            raise ValueError("--paper needs all rows in memory: use fewer rows.")
        with out.timed(f"Fitting {path.name}, block by block") as fitting:
            fitted = fit_large(path, target, task, device, fitting.tell)
        out.note(*fitted.target.notes)
        return fitted.sample, fitted, {"Learning": fitting.seconds}
    with out.timed(f"Reading {path.name}") as reading:
        table = read_table(path)
    out.note(*table.notes)
    column = find_target(table, target, task)
    out.note(*column.notes)
    with out.timed(f"Fitting {len(column.y)} rows and {len(table.names) - 1} columns") as fitting:
        fitted = fit_table(table, column, paper=paper, device=device, tell=fitting.tell)
    return table, fitted, {"Reading": reading.seconds, "Learning": fitting.seconds}
