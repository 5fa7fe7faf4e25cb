"""The command line: karnet fit, predict, score, inspect, play, export, reproduce and datasets."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any

from .._util.extras import require
from .._version import __version__

__all__ = ["main"]

# The exit code of an interrupt, as in a shell.
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command given by the arguments; a command that fails exits with a code."""
    if os.name == "nt":
        for stream in (sys.stdout, sys.stderr):
            write_utf8(stream)
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:  # needs no extra
        print(f"karnet {__version__}")
        return
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


def write_utf8(stream: Any) -> None:
    """Let a stream that goes to a file or a pipe write UTF-8, and the line ends of other systems.

    Windows would write an encoding of the country, in which many names cannot be written.
    """
    if isinstance(stream, TextIOWrapper) and not stream.isatty():
        stream.reconfigure(encoding="utf-8", newline="\n")


def _say_interrupted() -> None:
    print("karnet: interrupted.", file=sys.stderr)
