"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    typer.Argument(metavar="MODEL", help="A model file of 'karnet fit'.", show_default=False),
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
