"""The command karnet play."""

from __future__ import annotations

import gc
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from .._util.extras import require
from ._console import Output, Quiet


def play(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[TABLE or MODEL]",
            help="A table, or a model file of 'karnet fit'; without it, points in a plane.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="The column of the table to predict.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 is one that is free.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option(" /--no-browser", help="Print the address only.", show_default=False)
    ] = True,
    quiet: Quiet = False,
) -> None:
    """Open a page in the browser on which networks are fitted while you draw.

    Without a table, you draw points in a plane and see the fit at every move. With a table or a
    model, you change the values of a row and see its prediction. The page is served by this
    machine to itself only. Ctrl-C ends it.

    ```text
    karnet play
    karnet play houses.csv --target price
    karnet play houses.karnet
    ```
    """
    require("karnet play", "play", "starlette", "uvicorn", "websockets")
    with _no_collections():
        from ..play import Server

    out = Output(quiet, as_json=False)
    page, session = _session(source, target, out)
    server = Server(page, session, port)
    with suppress(KeyboardInterrupt):  # the way to end the command
        # Flushed, because programs wait for the address.
        print(server.address, flush=True)
        out.note("Ctrl-C ends the server.")
        if browser:
            webbrowser.open(server.address)
        server.run()


@contextmanager
def _no_collections() -> Iterator[None]:
    """Pause the collection of garbage, which takes a tenth of the time of imports."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _session(source: Path | None, target: str | None, out: Output) -> tuple[str, Any]:
    """Return the page for a source, and the function that makes the state of a tab."""
    if source is None:
        if target is not None:
            raise ValueError("--target needs a table: name its file first.")
        from ..play import Plane

        return "plane", Plane
    if not source.exists():
        raise ValueError(f"there is no file {source}: name a table or a model file.")
    require("karnet play", "table", "skops")
    if source.suffix == ".karnet":
        if target is not None:
            raise ValueError("--target is for tables: a model knows its target.")
        return "what-if", _constant(_of_model(source))
    if target is None:
        raise ValueError("a table needs --target, the column to predict.")
    return "what-if", _constant(_of_table(source, target, out))


def _constant(state: Any) -> Callable[[], Any]:
    """Return the function that gives the same state to every tab: a model does not change."""
    return lambda: state


def _of_model(path: Path) -> Any:
    from ..files import load
    from ..play._what_if import WhatIf

    return WhatIf(load(path), path.name)


def _of_table(path: Path, target: str, out: Output) -> Any:
    """Fit a model of a table."""
    from ..play._what_if import WhatIf
    from ..tables import find_target, fit_table, read_table

    table = read_table(path)
    column = find_target(table, target)
    out.note(*table.notes, *column.notes)
    with out.timed(f"Fitting {path.name}") as clock:
        fitted = fit_table(table, column, tell=clock.tell)
    rows = table if column.known.all() else table.take(column.known)
    return WhatIf(fitted.model, path.name, rows, column)
