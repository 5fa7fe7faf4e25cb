"""Options that several commands share."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["DataFolder", "Json", "Model", "Quiet", "TableFile", "line_of"]

TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="A table with a line of column names: CSV or TSV (.gz too), Parquet, Arrow, Feather.",
        show_default=False,
    ),
]
Model = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A model that 'karnet fit' wrote.", show_default=False),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print results and errors only.", show_default=False)
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, for programs.", show_default=False)
]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Folder of data sets as CSV (or KARNET_DATA)."),
]


def line_of(context: typer.Context) -> str:
    """Return the command as it was typed in."""
    return context.obj if isinstance(context.obj, str) else shlex.join(["karnet", *sys.argv[1:]])
