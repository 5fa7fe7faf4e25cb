"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep
from uuid import uuid4

# Seconds between attempts to replace a file that another program holds open.
WAITS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder, and move the file to `path` at the end.

    Readers of `path` see the old file or the new one, never a part of it; if the block raises an
    error, the old file stays. A process that is killed leaves its unfinished file behind, under a
    name like ``.karnet-<32 digits>.part``.
    """
    path = Path(os.path.realpath(path))
    unfinished = path.with_name(f".karnet-{uuid4().hex}.part")
    try:
        if _is_special(path):
            raise OSError(errno.EINVAL, "Not an ordinary file")
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        _replace(unfinished, path)
    except OSError as error:
        if error.errno is None or error.filename not in (None, os.fspath(unfinished)):
            raise
        # The error names the requested file, not the temporary one.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


def _replace(new: Path, path: Path) -> None:
    """Move a file to a path, and on Windows wait until other programs have closed the old file.

    Windows refuses to replace an open file. Scanners for viruses and indexes of searches open every
    new file for a moment.
    """
    for seconds in WAITS if os.name == "nt" else ():
        try:
            os.replace(new, path)
            return
        except PermissionError:
            sleep(seconds)
    os.replace(new, path)


def check_writable(path: Path) -> Path:
    """Return the path if a file can be written there: checked before long work, not after."""
    folder = path.parent
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file to write.")
    if _is_special(path):
        raise ValueError(f"{path} is not an ordinary file: name one to write.")
    if not folder.is_dir():
        raise ValueError(f"the folder {folder} of {path.name} does not exist: make it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"the folder {folder} cannot be written to: choose another one.")
    return path


def _is_special(path: Path) -> bool:
    """Return whether this is a device or a pipe, which a file must not replace."""
    return path.exists() and not path.is_file() and not path.is_dir()
