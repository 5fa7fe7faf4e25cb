"""The commands, and what they have in common."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from . import _fit, _paper, _use
from ._console import EXIT_CODES

__all__ = ["app"]

HELP = """
Neural networks trained in closed form: no gradients, no epochs, no learning rate.

Learn to predict a column of a table, then predict it for new rows. No settings are needed, and
every command tells more with --help.

```text
karnet fit houses.csv --target price
karnet predict houses.karnet new-houses.csv -o prices.csv
```
"""

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


@app.callback(help=HELP)
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None: ...


_fit.add_to(app)
_use.add_to(app)
_paper.add_to(app)
