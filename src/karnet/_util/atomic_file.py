"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

__all__ = ["check_writable", "whole_file"]


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a path to write to, beside the one named, and put the file in its place at the end.

    Whoever looks at `path` sees the old file or the new one, never a part of it; if the block does
    not end well, the old one stays. A process that is killed leaves its unfinished file behind,
    under a name like ``.karnet-<32 digits>.part``, which nothing ever reads.
    """
    path = Path(os.path.realpath(path))
    unfinished = path.with_name(f".karnet-{uuid4().hex}.part")
    try:
        if _is_special(path):
            raise OSError(errno.EINVAL, "Not an ordinary file")
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError as error:
        if error.errno is None or error.filename not in (None, os.fspath(unfinished)):
            raise
        # Under the name that was asked for, not one that nobody knows.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


def check_writable(path: Path) -> Path:
    """Return the path, or refuse at once what could not be written after long work."""
    folder = path.parent
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file to write.")
    if _is_special(path):
        raise ValueError(f"{path} is no ordinary file: name one to write.")
    if not folder.is_dir():
        raise ValueError(f"the folder {folder} of {path.name} does not exist: make it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"the folder {folder} must not be written to: choose another one.")
    return path


def _is_special(path: Path) -> bool:
    """Return whether this is a device or a pipe, which a new file must not take the place of."""
    return path.exists() and not path.is_file() and not path.is_dir()
