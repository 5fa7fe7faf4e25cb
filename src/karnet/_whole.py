"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

__all__ = ["check_writable", "whole_file"]


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a path to write to, beside the one named, and put the file in its place at the end.

    Whoever looks at `path` sees the old file or the new one, never a part of it; if the block does
    not end well, the old one stays.
    """
    path = Path(os.path.realpath(path))
    unfinished = path.with_name(f".{path.name[:100]}.{uuid4().hex}.part")
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def check_writable(path: Path) -> Path:
    """Return the path, or refuse at once what could not be written after long work."""
    folder = path.parent
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file to write.")
    if not folder.is_dir():
        raise ValueError(f"the folder {folder} of {path.name} does not exist: make it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"the folder {folder} must not be written to: choose another one.")
    return path
