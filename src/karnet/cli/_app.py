"""The application that holds all commands."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from ._audit import audit
from ._console import EXIT_CODES, sentences
from ._fit import fit
from ._paper import ManySets, datasets, reproduce
from ._play import play
from ._use import export, inspect, predict, score

app = typer.Typer(
    name="karnet",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"karnet {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Neural networks trained in closed form: no gradients, no epochs, no learning rate.

    Fit a model that predicts a column of a table, then predict that column for new rows. No
    settings are needed; --help after a command shows its options.

    ```text
    karnet fit houses.csv --target price
    karnet predict houses.karnet new-houses.csv -o prices.csv
    ```
    """


for command in (fit, predict, score, inspect, audit, play, export, reproduce, datasets):
    parser = ManySets if command is reproduce else None
    app.command(epilog=EXIT_CODES, cls=parser)(sentences(command))
