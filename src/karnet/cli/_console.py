"""What a command prints: results, remarks, progress, and errors as one sentence each."""

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
from threading import Timer
from time import perf_counter
from typing import Any, ParamSpec

import numpy as np
import typer
from rich.console import Console
from rich.status import Status

__all__ = ["EXIT_CODES", "Clock", "Output", "score_in_words", "sentences"]

EXIT_CODES = (
    "Exit codes: 0 done; 1 an error of karnet itself; 2 something given cannot be used, and a "
    "sentence says what to do; 130 interrupted."
)
# Seconds of work without a word.
PATIENCE = 2.0
P = ParamSpec("P")


def sentences(command: Callable[P, None]) -> Callable[P, None]:
    """Return the command with whatever goes wrong said in one line, and an exit code."""

    @wraps(command)
    def spoken(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with warnings.catch_warnings():
                # What a user should know is said by the command itself.
                warnings.simplefilter("ignore")
                command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except (ValueError, OSError, ImportError) as error:
            _end(2, _one_line(_said(error)) or type(error).__name__)
        except MemoryError:
            _end(2, "there is not enough memory for this: use fewer rows or columns.")
        except KeyboardInterrupt:
            _end(130, "interrupted.")
        except Exception as error:
            if os.environ.get("KARNET_TRACEBACK") or isinstance(error, (typer.Exit, typer.Abort)):
                raise
            said = _one_line(f"{type(error).__name__}: {error}")
            _end(1, f"an error of karnet itself, {said} (KARNET_TRACEBACK=1 shows where)")

    return spoken


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _said(error: Exception) -> str:
    """Return what an error says; of one of the system what is wrong with which file."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    where = "" if error.filename is None else f"{os.fspath(error.filename)}: "
    return f"{where}{error.strerror}."


def _end(code: int, text: str) -> None:
    print(f"karnet: {text}", file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:
        # What a full disk did not take must not be tried again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(code)


@dataclass
class Clock:
    """When work began, how long it took once it is done, and what it is at."""

    start: float
    status: Status
    seconds: float = math.nan

    def tell(self, what: str) -> None:
        """Show what is being done now."""
        self.status.update(f"{what} ...")


class Output:
    """Where a command's words go: results to standard output, remarks to standard error.

    Parameters
    ----------
    quiet : bool
        Whether remarks and progress are left out.
    as_json : bool
        Whether results are JSON, for programs, and not text.
    """

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self.quiet = quiet
        self.as_json = as_json

    def remark(self, *notes: str) -> None:
        """Print sentences to standard error."""
        if not self.quiet:
            for note in notes:
                print(note, file=sys.stderr)

    def result(self, values: dict[str, Any], text: str) -> None:
        """Print a result: the values as JSON, or the text."""
        print(json.dumps(_plain(values), allow_nan=False, indent=2) if self.as_json else text)

    @contextmanager
    def timed(self, what: str) -> Iterator[Clock]:
        """Give a clock of the block, and say what is being done as soon as it takes long."""
        console = Console(stderr=True, quiet=self.quiet)
        clock = Clock(perf_counter(), Status(f"{what} ...", console=console))
        # A terminal shows that something moves, a log gets one line.
        begin = clock.status.start if console.is_terminal else lambda: self.remark(f"{what} ...")
        timer = Timer(PATIENCE, begin)
        timer.daemon = True
        timer.start()
        try:
            yield clock
        finally:
            timer.cancel()
            timer.join()
            clock.status.stop()
            clock.seconds = perf_counter() - clock.start


def score_in_words(about: dict[str, Any]) -> str:
    """Return the score of a model as text: a share of rows, or of variance."""
    score = float(about["score"])
    classes = about["task"] == "classification"
    return f"accuracy {100 * score:.1f} %" if classes else f"R² {score:.3f}"


def _plain(value: Any) -> Any:
    """Return a value as JSON knows it: no arrays, and no numbers that are none."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
