"""One case of bad input: it runs under watch, and ends in a result, in a sentence, or is broken.

A sentence is an error of a listed type whose message is one line, raised by a line of karnet's or
of scikit-learn's that says `raise`. Anything else is broken: errors of other types (those of NumPy,
an index, a key, an attribute, memory, recursion), those that come from elsewhere, warnings about
arithmetic, answers that are not finite, time beyond a limit, files touched that were not named,
code run.
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

__all__ = ["BrokenError", "Case", "OwnError", "TheirError", "Verdict", "judge", "kept_in"]

SPEAKERS = tuple(str(Path(each.__file__).parent) + os.sep for each in (karnet, sklearn))
TYPES = (ValueError, TypeError, NotFittedError, FileNotFoundError, IsADirectoryError)
# Types that are right for one thing only, and what is said then.
SAID: dict[type[BaseException], str] = {
    AttributeError: "has no attribute '(partial_fit|merge|forget)'",
    ImportError: "pip install 'karnet",
    MemoryError: "more memory than there is",
}
# scikit-learn lists names of features one below the other.
LIST_OF_NAMES = "The feature names should match those that were passed during fit."
LONGEST = 1200
# Warnings that say something to the user; all others would be surprises.
EXPECTED = (LinAlgWarning, DataConversionWarning)
HINTS = re.compile(
    "feature names|unique classes is greater than|y_pred contains classes|R\\^2 score is not"
    "|least populated class|A single label was found|holds transformers of scikit-learn"
)
SECONDS = 20.0


class BrokenError(Exception):
    """What must not be."""


class Hang(BaseException):
    """A case takes too long; no handler of ordinary errors may catch it."""


class TheirError(Exception):
    """Raised by a library's transformer, made of what a file says: an error, but not our words."""


class OwnError(Exception):
    """Raised by functions that a user gave: it is passed on as it is."""


@dataclass(frozen=True)
class Case:
    """What is done, and how it is shown if it goes wrong."""

    about: str
    run: Callable[[], object]


@dataclass(frozen=True)
class Verdict:
    """How a case ended: "result", "refused", "theirs", or what was broken; and by what."""

    kind: str
    about: str = ""

    @property
    def broken(self) -> bool:
        """Whether it must not be."""
        return self.kind not in ("result", "refused", "theirs")


def judge(case: Case, folder: Path | None = None, seconds: float = SECONDS) -> Verdict:
    """Run a case, and say how it ended.

    Parameters
    ----------
    case : Case
        The case.
    folder : Path, optional
        Where it may write, though it should leave there what was there.
    seconds : float
        After so many it is a hang.
    """
    before = _listed(folder)
    with _watched(folder) as stray, warnings.catch_warnings(record=True) as said, _limited(seconds):
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
            verdict = _of_error(error)
    if stray:
        return Verdict("stray", "; ".join(stray))
    if _listed(folder) != before:
        return Verdict("stray", f"left behind: {sorted(_listed(folder) - before)}")
    if not verdict.broken and (surprise := _surprise(said)):
        return Verdict("broken", surprise)
    return verdict


def _listed(folder: Path | None) -> set[str]:
    return set() if folder is None else set(os.listdir(folder))


def _of_error(error: Exception) -> Verdict:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    what = f"{type(error).__name__} at {place}: {str(error)[:300]}"
    wanted = SAID.get(type(error))
    listed = type(error) in TYPES or (wanted is not None and re.search(wanted, str(error)))
    # What compiled code raises has the frame that called it, at a line that raises nothing.
    said_there = frame.filename.startswith(SPEAKERS) and str(frame.line).startswith("raise")
    if not listed or not said_there or not is_sentence(str(error)):
        return Verdict("broken", f"{what} <- {_ours(error)}")
    return Verdict("refused", what)


def is_sentence(said: str) -> bool:
    """Return whether a message is one line of some length, or scikit-learn's list of names."""
    plain = "\n" not in said or said.startswith(LIST_OF_NAMES)
    return plain and 10 <= len(said.strip()) <= LONGEST


def _ours(error: BaseException) -> str:
    """Return the last line of karnet's that led to an error, which tells one fault from another."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in frames
        if frame.filename.startswith(SPEAKERS[0])
    ]
    return places[-1] if places else "nowhere"


def _surprise(said: list[warnings.WarningMessage]) -> str:
    for each in said:
        hint = issubclass(each.category, UserWarning) and HINTS.search(str(each.message))
        if not (issubclass(each.category, EXPECTED) or hint):
            place = f"{Path(each.filename).name}:{each.lineno}"
            return f"{each.category.__name__} at {place}: {str(each.message)[:200]}"
    return ""


def finite(answers: Any) -> Any:
    """Return answers, or say that some are not finite."""
    if np.asarray(answers).dtype.kind in "fc" and not np.isfinite(answers).all():
        raise BrokenError("answers that are not finite")
    return answers


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
    """What happened while a case ran that it had no leave for."""

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
            return True  # opened before, which was looked at then
        # One that nobody can read is a bit bucket.
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
    sys.addaudithook(_WATCH)  # there is no way to take it off again


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
    """Count as stray what a model file must not do: import others, or run code of no file."""
    _WATCH.strict = True
    try:
        yield
    finally:
        _WATCH.strict = False
