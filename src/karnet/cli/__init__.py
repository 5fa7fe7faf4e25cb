"""The command line: karnet fit, predict, score, inspect, play, export, reproduce and datasets."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from .._util.extras import require

__all__ = ["main"]

# The exit code of an interrupt, as in a shell.
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command given by the arguments; a command that fails exits with a code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        require("the command line", "table", "typer", "rich")
    except ImportError as error:
        print(f"karnet: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    try:
        from ._app import app

        app(given, prog_name="karnet", obj=shlex.join(["karnet", *given]))
    except KeyboardInterrupt as interrupt:
        _say_interrupted()
        raise SystemExit(INTERRUPTED) from interrupt
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer turns an interrupt of a command into this code
            _say_interrupted()
        if end.code:
            raise


def _say_interrupted() -> None:
    print("karnet: interrupted.", file=sys.stderr)
