"""A case of bad input, which runs under observation: it must end in a result or be refused.

A case is refused by an error of a listed type with a message of one line, raised by a `raise`
statement in karnet or scikit-learn. All other outcomes are failures: errors of other types (such as
NumPy's errors, IndexError, KeyError, AttributeError, MemoryError, RecursionError), errors raised in
other libraries, warnings about arithmetic, predictions that are not finite, exceeded time limits,
files that the call had no reason to touch, and executed code.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import DataConversionWarning, NotFittedError

import karnet

SOURCES = tuple(str(Path(each.__file__).parent) + os.sep for each in (karnet, sklearn))
TYPES = (ValueError, TypeError, NotFittedError, FileNotFoundError, IsADirectoryError)
# Types that are allowed for one purpose only, and a pattern of the message.
ALLOWED_MESSAGES: dict[type[BaseException], str] = {
    AttributeError: "has no attribute '(partial_fit|merge|forget)'",
    ImportError: "pip install 'karnet",
    MemoryError: "more memory than there is",
}
# scikit-learn lists names of features in several lines.
LIST_OF_NAMES = "The feature names should match those that were passed during fit."
# Largest length of a message.
LONGEST = 1200
# Warnings that are meant for users; all others are failures.
EXPECTED = (LinAlgWarning, DataConversionWarning)
HINTS = re.compile(
    "feature names|unique classes is greater than|y_pred contains classes|R\\^2 score is not"
    "|least populated class|A single label was found|holds transformers of scikit-learn"
)
# Seconds after which a case counts as hanging.
SECONDS = 20.0


class BrokenError(Exception):
    """A failure that a case itself detects."""


class Hang(BaseException):
    """A case takes too long. Not an Exception, so that handlers of errors do not catch it."""


class TheirError(Exception):
    """An error of another library's transformer, made from the contents of a file."""


class OwnError(Exception):
    """An error raised by a function of the user, which is passed on unchanged."""


@dataclass(frozen=True)
class Case:
    """A call, and its description in messages about failures."""

    about: str
    run: Callable[[], object]


@dataclass(frozen=True)
class Verdict:
    """The outcome of a case ("result", "refused", "theirs" or a kind of failure) and its reason."""

    kind: str
    about: str = ""

    @property
    def broken(self) -> bool:
        """Whether the outcome is a failure."""
        return self.kind not in ("result", "refused", "theirs")


def judge(case: Case, folder: Path | None = None, seconds: float = SECONDS) -> Verdict:
    """Run a case, and return its outcome.

    Parameters
    ----------
    case : Case
        The case.
    folder : Path, optional
        Folder in which it may write; no file may remain there.
    seconds : float
        Time after which it counts as hanging.
    """
    before = _listed(folder)
    with (
        _watched(folder) as stray,
        warnings.catch_warnings(record=True) as warned,
        _limited(seconds),
    ):
        warnings.simplefilter("always")
        try:
            case.run()
            verdict = Verdict("result")
        except Hang:
            verdict = Verdict("hang", f"more than {seconds:g} s")
        except OwnError:
            verdict = Verdict("refused", "own")
        except TheirError as error:
            verdict = Verdict("theirs", str(error))
        except BrokenError as error:
            verdict = Verdict("broken", str(error))
        except RecursionError as error:
            verdict = Verdict("broken", f"RecursionError: {error}")
        except Exception as error:
            verdict = verdict_on(error)
    if stray:
        return Verdict("stray", "; ".join(stray))
    if _listed(folder) != before:
        return Verdict("stray", f"files left: {sorted(_listed(folder) - before)}")
    if not verdict.broken and (unexpected := _unexpected(warned)):
        return Verdict("broken", unexpected)
    return verdict


def _listed(folder: Path | None) -> set[str]:
    return set() if folder is None else set(os.listdir(folder))


def verdict_on(error: Exception) -> Verdict:
    """Return whether an error refuses a case properly."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    what = f"{type(error).__name__} at {place}: {str(error)[:300]}"
    wanted = ALLOWED_MESSAGES.get(type(error))
    listed = type(error) in TYPES or (wanted is not None and re.search(wanted, str(error)))
    # An error of compiled code has the frame of its caller, whose line is not a raise statement.
    raised_there = frame.filename.startswith(SOURCES) and str(frame.line).startswith("raise")
    if not listed or not raised_there or not is_sentence(str(error)):
        return Verdict("broken", f"{what} <- {_ours(error)}")
    return Verdict("refused", what)


def is_sentence(message: str) -> bool:
    """Return whether a message is one line of suitable length, or scikit-learn's list of names."""
    plain = "\n" not in message or message.startswith(LIST_OF_NAMES)
    return plain and 10 <= len(message.strip()) <= LONGEST


def _ours(error: BaseException) -> str:
    """Return the last line of karnet that led to an error, by which failures are told apart."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in frames
        if frame.filename.startswith(SOURCES[0])
    ]
    return places[-1] if places else "nowhere"


def _unexpected(warned: list[warnings.WarningMessage]) -> str:
    for each in warned:
        hint = issubclass(each.category, UserWarning) and HINTS.search(str(each.message))
        if not (issubclass(each.category, EXPECTED) or hint):
            place = f"{Path(each.filename).name}:{each.lineno}"
            return f"{each.category.__name__} at {place}: {str(each.message)[:200]}"
    return ""


def finite(predictions: Any) -> Any:
    """Return predictions, or raise an error if some are not finite."""
    if np.asarray(predictions).dtype.kind in "fc" and not np.isfinite(predictions).all():
        raise BrokenError("predictions that are not finite")
    return predictions


# Time


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hang

    old = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)


# Files, processes, code

CHANGES = frozenset(
    [
        "os.remove",
        "os.rename",
        "os.mkdir",
        "os.rmdir",
        "os.truncate",
        "os.chmod",
        "os.chown",
        "os.link",
        "os.symlink",
        "os.utime",
        "shutil.rmtree",
        "shutil.move",
        "shutil.copyfile",
    ]
)
NEVER = frozenset(
    [
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.spawn",
        "os.fork",
        "os.forkpty",
        "socket.connect",
        "socket.bind",
        "socket.getaddrinfo",
        "urllib.Request",
        "pickle.find_class",
        "webbrowser.open",
    ]
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class _Watch:
    """Audit hook that records forbidden events while a case runs."""

    armed = False
    folder = ""
    strict = False
    stray: list[str]

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.armed:
            return
        if event in NEVER or (event in CHANGES and not self._inside(args[0])):
            self.stray.append(f"{event} {args!r}"[:200])
        elif event == "open" and args[2] is not None and args[2] & WRITING:
            if not self._inside(args[0]):
                self.stray.append(f"wrote {args[0]!r}")
        elif event == "exec" and self.strict and not os.path.exists(args[0].co_filename):
            if not args[0].co_filename.startswith("<frozen"):
                self.stray.append(f"ran code of {args[0].co_filename}")
        elif event == "import" and self.strict and not _known(args[0]):
            self.stray.append(f"imported {args[0]}")

    def _inside(self, path: Any) -> bool:
        if isinstance(path, int):
            return True  # checked when it was opened
        # Writing to the null device has no effect.
        name = os.fsdecode(path)
        return name == os.devnull or bool(
            self.folder and os.path.realpath(name).startswith(self.folder)
        )


LISTED = frozenset(
    [
        "karnet",
        "numpy",
        "scipy",
        "sklearn",
        "skops",
        "skrub",
        "pandas",
        "pyarrow",
        "joblib",
        "threadpoolctl",
        "polars",
        "packaging",
        "dateutil",
        "pytz",
        "zoneinfo",
        "tzdata",
        "narwhals",
        "array_api_compat",
    ]
)


def _known(module: str) -> bool:
    root = module.partition(".")[0]
    return root in sys.stdlib_module_names or root in LISTED


_WATCH = _Watch()


@cache
def _hooked() -> None:
    sys.addaudithook(_WATCH)  # it cannot be removed again


@contextmanager
def _watched(folder: Path | None) -> Iterator[list[str]]:
    _hooked()
    _WATCH.stray = stray = []
    _WATCH.folder = "" if folder is None else os.path.realpath(folder) + os.sep
    _WATCH.armed = True
    try:
        yield stray
    finally:
        _WATCH.armed = False


@contextmanager
def kept_in() -> Iterator[None]:
    """Also record events that a model file must not cause: imports and code without a file."""
    _WATCH.strict = True
    try:
        yield
    finally:
        _WATCH.strict = False
