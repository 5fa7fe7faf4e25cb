"""karnet fit: from a table to a model, in one command."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from .._util.atomic_file import check_writable
from .._util.extras import require
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
    device: Annotated[str, typer.Option(help="Where to learn: cpu or cuda.")] = "cpu",
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a page on the fit, as HTML; takes longer."),
    ] = None,
    max_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Learn Parquet of more rows block by block; by default, what exceeds memory.",
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learn to predict one column of a table from all others."""
    require("karnet fit", "table", "pandas", "pyarrow", "skrub", "skops")
    from ..files import save
    from ..tables import fit_table, is_large

    out = Output(quiet, as_json)
    path = check_writable(model or Path(f"{_stem(table)}.karnet"))
    page = None if report is None else check_writable(report)
    learn = _in_blocks if is_large(table, max_rows) else _in_memory
    job = learn(table, target, task.value, paper, device, out)
    save(job.fitted.model, path)
    if page is not None:
        from ..reports import write_fit_report

        again = partial(fit_table, paper=paper, device=device)
        with out.timed("Learning again without some rows, for the report"):
            write_fit_report(page, job.table, job.fitted, again, job.times, line_of(context))
    values = {**job.fitted.model.table_, "model": path, "report": page, "seconds": job.times}
    out.result({**values, "columns": len(values["columns"])}, _summary(path, values, page))


class Job(NamedTuple):
    """A table or a sample of it, the model that was fitted on it, and what took how long."""

    table: Any
    fitted: Any
    times: dict[str, float]


def _in_memory(path: Path, target: str, task: str, paper: bool, device: str, out: Output) -> Job:
    from ..tables import find_target, fit_table, read_table

    with out.timed(f"Reading {path.name}") as reading:
        table = read_table(path)
    out.remark(*table.notes)
    found = find_target(table, target, task)
    out.remark(*found.notes)
    what = f"Learning from {len(found.y)} rows and {len(table.names) - 1} columns"
    with out.timed(what) as learning:
        fitted = fit_table(table, found, paper=paper, device=device)
    return Job(table, fitted, {"Reading": reading.seconds, "Learning": learning.seconds})


def _in_blocks(path: Path, target: str, task: str, paper: bool, device: str, out: Output) -> Job:
    from ..tables import fit_large

    if paper:
        raise ValueError("--paper needs all rows in memory: take fewer rows.")
    with out.timed(f"Learning from {path.name}, block by block") as learning:
        fitted = fit_large(path, target, task, device, learning.tell)
    out.remark(*fitted.target.notes)
    return Job(fitted.sample, fitted, {"Learning": learning.seconds})


def _stem(table: Path) -> str:
    """Return the name of a table without its suffixes."""
    name = table.name.removesuffix(".gz")
    return Path(name).stem


def _summary(path: Path, values: dict[str, Any], page: Path | None) -> str:
    return (
        f"{path} predicts {values['target']!r}: {score_in_words(values)} by {values['judged_by']}, "
        f"learned from {values['rows']} rows in {values['seconds']['Learning']:.1f} s."
        + ("" if page is None else f"\nThe report is in {page}.")
    )
