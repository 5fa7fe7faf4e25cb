"""The command karnet fit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from .._util.atomic_file import check_writable
from .._util.extras import require
from ._console import Output, score_in_words
from ._options import Json, Quiet, TableFile


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
        typer.Option(metavar="FILE", help="The model file; by default named after the table."),
    ] = None,
    task: Annotated[
        Literal["auto", "classification", "regression"],
        typer.Option(help="Predict classes or numbers."),
    ] = "auto",
    paper: Annotated[
        bool, typer.Option("--paper", help="Fit the paper's network, on inputs scaled to [0, 1].")
    ] = False,
    device: Annotated[str, typer.Option(help="Where to fit: cpu or cuda.")] = "cpu",
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
    from ..tables import fit_table, is_large

    out = Output(quiet, as_json)
    path = check_writable(model or Path(f"{Path(table.name.removesuffix('.gz')).stem}.karnet"))
    page = None if report is None else check_writable(report)
    fit_file = _in_blocks if is_large(table, max_rows) else _in_memory
    job = fit_file(table, target, task, paper, device, out)
    save(job.fitted.model, path)
    if page is not None:
        from ..reports import write_fit_report

        again = partial(fit_table, paper=paper, device=device)
        with out.timed("Fitting again without some rows, for the report"):
            write_fit_report(page, job.table, job.fitted, again, job.times, context.obj)
    values = {**job.fitted.model.table_, "model": path, "report": page, "seconds": job.times}
    out.result({**values, "columns": len(values["columns"])}, _summary(path, values, page))


class Job(NamedTuple):
    """A table or a sample of it, the model fitted on it, and the seconds of each step."""

    table: Any
    fitted: Any
    times: dict[str, float]


def _in_memory(path: Path, target: str, task: str, paper: bool, device: str, out: Output) -> Job:
    from ..tables import find_target, fit_table, read_table

    with out.timed(f"Reading {path.name}") as reading:
        table = read_table(path)
    out.note(*table.notes)
    column = find_target(table, target, task)
    out.note(*column.notes)
    with out.timed(f"Fitting {len(column.y)} rows and {len(table.names) - 1} columns") as fitting:
        fitted = fit_table(table, column, paper=paper, device=device)
    return Job(table, fitted, {"Reading": reading.seconds, "Learning": fitting.seconds})


def _in_blocks(path: Path, target: str, task: str, paper: bool, device: str, out: Output) -> Job:
    from ..tables import fit_large

    if paper:
        raise ValueError("--paper needs all rows in memory: use fewer rows.")
    with out.timed(f"Fitting {path.name}, block by block") as fitting:
        fitted = fit_large(path, target, task, device, fitting.tell)
    out.note(*fitted.target.notes)
    return Job(fitted.sample, fitted, {"Learning": fitting.seconds})


def _summary(path: Path, values: dict[str, Any], page: Path | None) -> str:
    return (
        f"{path} predicts {values['target']!r}: {score_in_words(values)} by {values['judged_by']}, "
        f"fitted on {values['rows']} rows in {values['seconds']['Learning']:.1f} s."
        + ("" if page is None else f"\nThe report is in {page}.")
    )
