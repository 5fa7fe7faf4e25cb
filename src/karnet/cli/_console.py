"""Shared options of commands, and their output: results, notes, progress and errors."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import Annotated, Any, Literal, ParamSpec

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID

from .._util.json_values import json_value
from .._util.progress import Step

# The end of every help text.
EXIT_CODES = (
    "Exit codes: 0 done; 1 an internal error of karnet; 2 an argument or a file cannot be used, "
    "and one sentence says what to do; 130 interrupted."
)
P = ParamSpec("P")

# Arguments and options that several commands share.
TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="A table with a line of column names: CSV or TSV (.gz too), Parquet, Arrow, Feather.",
        show_default=False,
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file of 'karnet fit'.", show_default=False)
]
TargetColumn = Annotated[
    str,
    typer.Option(
        "--target", "-t", metavar="COLUMN", help="The column to predict.", show_default=False
    ),
]
Task = Annotated[
    Literal["auto", "classification", "regression"],
    typer.Option(help="Whether the target is a class or a number."),
]
Device = Annotated[str, typer.Option(help="Where to fit: cpu or cuda.")]
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


def sentences(command: Callable[P, None]) -> Callable[P, None]:
    """Return the command with every error printed in one line, followed by an exit code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with warnings.catch_warnings():
                # Commands print what a user should know themselves.
                warnings.simplefilter("ignore")
                command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except (ValueError, OSError, ImportError) as error:
            _end(2, _message(error).strip() or type(error).__name__)
        except MemoryError:
            _end(2, "there is not enough memory for this: use fewer rows or columns.")
        except Exception as error:
            if os.environ.get("KARNET_TRACEBACK") or isinstance(error, (typer.Exit, typer.Abort)):
                raise
            name = type(error).__name__
            _end(1, f"an internal error, {name}: {error} (KARNET_TRACEBACK=1 shows where)")

    return run


def _message(error: Exception) -> str:
    """Return the message of an error; for an error of the system, its file and reason."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    where = "" if error.filename is None else f"{os.fspath(error.filename)}: "
    return f"{where}{error.strerror}."


def _end(code: int, text: str) -> None:
    print("karnet:", *text.split(), file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:
        # Python must not try again at its end to write what a full disk did not take.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(code)


@dataclass
class Clock:
    """The duration of a piece of work, and the bar that shows its progress."""

    bar: Progress
    task: TaskID
    seconds: float = math.nan

    def tell(self, what: str | Step) -> None:
        """Show what is being done now, or the step of a fit that has ended."""
        if isinstance(what, Step):
            self.bar.update(self.task, description=str(what), completed=what.share, total=1.0)
        else:
            self.bar.update(self.task, description=f"{what} ...")


@dataclass(frozen=True)
class Output:
    """The output of a command: results on standard output, notes on standard error."""

    quiet: bool  # whether to leave out notes and progress
    as_json: bool  # whether to print results as JSON instead of text
    patience: float = 2.0  # seconds of work before progress is shown

    def note(self, *notes: str) -> None:
        """Print sentences to standard error."""
        if notes and not self.quiet:
            print(*notes, sep="\n", file=sys.stderr)

    def result(self, values: dict[str, Any], text: str) -> None:
        """Print a result: the values as JSON, or the text."""
        print(json.dumps(json_value(values), allow_nan=False, indent=2) if self.as_json else text)

    @contextmanager
    def timed(self, what: str) -> Iterator[Clock]:
        """Measure the time of a block, and show what is being done if it takes long."""
        console = Console(stderr=True, quiet=self.quiet)
        # Without a total, the bar pulses.
        bar = Progress(BarColumn(20), "{task.description}", console=console, transient=True)
        clock, start = Clock(bar, bar.add_task(f"{what} ...", total=None)), perf_counter()
        # A terminal shows the bar, a log gets one line.
        begin = bar.start if console.is_interactive else lambda: self.note(f"{what} ...")
        timer = Timer(self.patience, begin)
        timer.daemon = True
        timer.start()
        try:
            yield clock
        finally:
            timer.cancel()
            timer.join()
            if console.is_interactive:
                bar.stop()
            clock.seconds = perf_counter() - start


def score_in_words(about: dict[str, Any]) -> str:
    """Return the score of a model as text: accuracy in per cent, or R²."""
    accuracy, r2 = f"accuracy {100 * about['score']:.1f} %", f"R² {about['score']:.3f}"
    return f"{accuracy if about['task'] == 'classification' else r2} by {about['judged_by']}"
