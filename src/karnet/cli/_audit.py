"""The command karnet audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .._util.atomic_file import check_writable
from .._util.extras import require
from .._util.text_table import TextTable
from ._console import Device, Json, Output, Quiet, TableFile, TargetColumn, Task

# The most suspects and findings that are printed.
MAX_PRINTED = 12


def audit(
    context: typer.Context,
    table: TableFile,
    target: TargetColumn,
    task: Task = "auto",
    suspects: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all suspects with their reasons, as CSV."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML page with pictures.")
    ] = None,
    drop: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the table without the suspects."),
    ] = None,
    device: Device = "cpu",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check a table before a model of it is trusted: rows, labels and columns that look wrong.

    Each row is compared with the prediction of networks that were fitted without it. Row 1 is the
    first row below the column names. Nothing is written unless a file is named.

    ```text
    karnet audit houses.csv --target price
    karnet audit patients.parquet --target outcome --report audit.html --suspects suspects.csv
    ```
    """
    require("karnet audit", "table", "matplotlib")
    from ..reports import write_audit_report
    from ..tables import check_format, write_table

    out = Output(quiet, as_json)
    for path in filter(None, (suspects, report, drop)):
        check_writable(path)
    for path in filter(None, (suspects, drop)):
        check_format(path)
    rows, column, numbers, found = _audited(table, target, task, device, out)
    if suspects is not None:
        write_table(_columns_of(found, numbers), suspects)
    if report is not None:
        about = table.name, column.name, column.y, found, numbers
        write_audit_report(report, *about, context.obj)
    if drop is not None:
        kept = np.ones(len(rows), dtype=bool)
        kept[numbers[found.rows] - 1] = False
        write_table(rows.take(kept).columns, drop)
    _tell(out, found, numbers, {"suspects": suspects, "report": report, "drop": drop})


def _audited(
    path: Path, target: str, task: str, device: str, out: Output
) -> tuple[Any, Any, Any, Any]:
    """Return a table, its target, the numbers of the rows with a target, and the audit of them."""
    from ..audit import audit as audit_rows
    from ..tables import Columns, find_target, read_table

    rows = read_table(path)
    out.note(*rows.notes)
    column = find_target(rows, target, task)
    out.note(*column.notes)
    numbers = np.flatnonzero(column.known) + 1
    known = rows if column.known.all() else rows.take(column.known)
    names = [name for name in rows.names if name != column.name]
    if not names:
        raise ValueError(f"{path.name} has no column other than the target {target!r}.")
    frame = Columns.of(known, names).frame(known)
    with out.timed(f"Checking {len(numbers)} rows and {len(names)} columns") as clock:
        where = None if device == "cpu" else device
        options: dict[str, Any] = {"task": column.task, "device": where, "row_names": numbers}
        found = audit_rows(frame, column.y, **options, report=clock.tell)
    return rows, column, numbers, found


def _columns_of(found: Any, numbers: Any) -> dict[str, Any]:
    """Return the suspects as columns."""
    from ..reports import table_of_suspects

    content = table_of_suspects(found, numbers)
    cells = np.array(content.rows, dtype=object).reshape(-1, len(content.header))
    columns = dict(zip(content.header, cells.T, strict=True))
    return columns | {"row": columns["row"].astype(np.int64)}


def _tell(out: Output, found: Any, numbers: Any, files: dict[str, Path | None]) -> None:
    """Print the result of an audit."""
    from ..reports import first_rows, summary, table_of_findings, table_of_suspects

    suspects, findings = table_of_suspects(found, numbers), table_of_findings(found)
    written = {name: path for name, path in files.items() if path is not None}
    parts = [" ".join(summary(found, len(numbers)))]
    for content in (suspects, findings):
        if content.rows:
            parts.append(str(first_rows(content, MAX_PRINTED)).rstrip())
    parts += [f"{path} is written." for path in written.values()]
    values = {
        "rows": len(numbers),
        "suspects": [_named(suspects, row) | {"row": int(row[0])} for row in suspects.rows],
        "findings": [_named(findings, row) for row in findings.rows],
        "score": found.score,
        "score_without_suspects": found.score_without_suspects,
        "files": written,
    }
    out.result(values, "\n\n".join(parts))


def _named(content: TextTable, row: tuple[str, ...]) -> dict[str, Any]:
    return dict(zip(content.header, row, strict=True))
