"""Files of tables: what kind one is, by its content, and what it holds."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, TypeVar

import pyarrow as pa
from pyarrow import ipc, parquet

from ._names import check_names
from ._table import Table
from ._text import read_text

__all__ = ["kind_of", "memory", "read_table", "table_blocks", "unbroken"]

TABS = (".tsv", ".tab")
# How files begin that are not text.
BEGINNINGS = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "feather",
    b"\xff\xff\xff\xff": "stream",
    b"\x1f\x8b": "gzip",
}
# Bytes that are read of a column of Parquet at a time; without, it is a whole row group.
BUFFER = 2**16
# Bytes of text that are read at a time.
PART = 2**24
# Of the memory of this machine, what the text of a table may take.
SHARE_OF_TEXT = 0.25
T = TypeVar("T")


def kind_of(path: Path) -> str:
    """Return what kind of file this is, by how it begins; or say that it cannot be read."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file with a table.")
    try:
        with path.open("rb") as file:
            beginning = file.read(8)
    except FileNotFoundError as error:
        raise ValueError(f"there is no file {path}: check the name and the folder.") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from error
    found = (kind for start, kind in BEGINNINGS.items() if beginning.startswith(start))
    return next(found, "text")


def memory() -> float:
    """Return the bytes of memory of this machine."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return 2.0**33


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a table: CSV, TSV (gzip too), Parquet, Arrow or Feather, told by the content.

    Text is left as text, so that a column means the same whatever a file holds of it; cells become
    numbers, dates and categories when a model is fitted.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Table
        Its `notes` say what had to be assumed.
    """
    path = Path(path)
    kind = kind_of(path)
    if kind in ("text", "gzip"):
        usual = "\t" if _suffix(path) in TABS else ","
        columns, notes = read_text(_bytes(path, kind == "gzip"), path.name, usual)
    else:
        columns, notes = _columnar(path, kind), []
    return Table(path.name, columns, tuple(notes)).without_row_numbers()


def table_blocks(path: str | os.PathLike[str], n_rows: int = 2**16) -> Iterator[Table]:
    """Yield a table block by block of rows; Parquet is read as it goes, whatever its size.

    Parameters
    ----------
    path : path
        The file.
    n_rows : int
        Most rows of a block.

    Yields
    ------
    Table
    """
    path = Path(path)
    if kind_of(path) != "parquet":
        table = read_table(path)
        for start in range(0, len(table), n_rows):
            yield replace(table, columns=table.columns.slice(start, n_rows))
        return
    file = unbroken(path, lambda: parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER))
    check_names(file.schema_arrow.names, path.name)
    batches = file.iter_batches(n_rows)
    while (batch := unbroken(path, lambda: next(batches, None))) is not None:
        yield Table(path.name, pa.Table.from_batches([batch]))


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def _bytes(path: Path, compressed: bool) -> bytes:
    most = int(SHARE_OF_TEXT * memory())
    try:
        with gzip.open(path) if compressed else path.open("rb") as file:
            data = _up_to(file, most + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path.name} is damaged: its compressed data break off.") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(data) > most:
        raise ValueError(
            f"{path.name} is too large to be read as text, which fits in memory up to "
            f"{most / 2**30:.1f} GiB: save it as Parquet, which is read in parts."
        )
    return data


def _up_to(file: BinaryIO | gzip.GzipFile, most: int) -> bytes:
    """Return at most so many bytes of a file; no room is made for more than there are."""
    parts = []
    while most > 0 and (part := file.read(min(most, PART))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _columnar(path: Path, kind: str) -> pa.Table:
    if kind == "feather":
        raise ValueError(f"{path.name} is Feather of version 1: save it as Feather 2 or Parquet.")
    readers: dict[str, Callable[[], pa.Table]] = {
        "parquet": lambda: parquet.ParquetFile(path).read(),
        "arrow": lambda: ipc.open_file(pa.memory_map(str(path))).read_all(),
        "stream": lambda: ipc.open_stream(pa.memory_map(str(path))).read_all(),
    }
    columns = unbroken(path, lambda: _sound(readers[kind]()))
    check_names(columns.column_names, path.name)
    if columns.num_rows == 0:
        raise ValueError(f"{path.name} has columns, but no rows.")
    return columns


def _sound(columns: pa.Table) -> pa.Table:
    """Return a table whose cells lie within it: Arrow's files are used as they are."""
    columns.validate(full=True)
    return columns


def unbroken(path: Path, read: Callable[[], T]) -> T:
    """Return what is read, or say that the file is damaged."""
    try:
        return read()
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(f"{path.name} is damaged or cannot be read: {said[0][:200]}") from error
