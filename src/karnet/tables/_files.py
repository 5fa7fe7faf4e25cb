"""Files of tables: reading, their kind recognised by the content, and writing."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import feather, parquet

from .._rows.arrow_files import Arrow, Parquet, read_batches, reading
from .._util.atomic_file import whole_file
from ._names import check_names
from ._sizes import SIZES
from ._table import Table
from ._text import read_text

# Endings of files that separate columns by tabs.
TABS = (".tsv", ".tab")
# First bytes of files that are not text.
BEGINNINGS = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "feather",
    b"\xff\xff\xff\xff": "arrow",
    b"\x1f\x8b": "gzip",
}
# The endings of the files that can be written.
SUFFIXES = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".csv.gz", ".tsv.gz")
# Bytes of text that are read at a time.
TEXT_PART = 2**24


def kind_of(path: Path) -> str:
    """Return the kind of a file, recognised by its first bytes, if the file can be read."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file with a table.")
    try:
        with path.open("rb") as file:
            beginning = file.read(8)
    except FileNotFoundError as error:
        raise ValueError(f"there is no file {path}: check the name and the folder.") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from error
    kinds = (kind for start, kind in BEGINNINGS.items() if beginning.startswith(start))
    return next(kinds, "text")


def memory() -> float:
    """Return the bytes of memory of this machine."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return 2.0**33


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a table: CSV, TSV (gzip too), Parquet, Arrow or Feather, recognised by its content.

    Cells of a text file stay text, so that the type of a column does not depend on the rows of one
    file; they become numbers, dates and categories when a model is fitted.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Table
        Its `notes` state the assumptions that were made.
    """
    path = Path(path)
    kind = kind_of(path)
    if kind in ("text", "gzip"):
        usual = "\t" if path.name.lower().removesuffix(".gz").endswith(TABS) else ","
        columns, notes = read_text(_bytes(path, kind == "gzip"), path.name, usual)
    else:
        columns, notes = _columnar(path, kind), []
    return Table(path.name, columns, tuple(notes)).without_row_numbers()


def table_blocks(path: str | os.PathLike[str], n_rows: int = 2**16) -> Iterator[Table]:
    """Yield a table in blocks of rows; memory holds one block of a Parquet file of any size."""
    path = Path(path)
    if kind_of(path) != "parquet":
        table = read_table(path)
        for start in range(0, len(table), n_rows):
            yield replace(table, columns=table.columns.slice(start, n_rows))
        return
    with reading(path.name, Parquet.name):
        names = Parquet().schema(path).names
    check_names(names, path.name)
    for batch in read_batches(Parquet(), path, n_rows):
        yield Table(path.name, pa.Table.from_batches([batch]))


def _bytes(path: Path, compressed: bool) -> bytes:
    most = int(SIZES.text_share * memory())
    parts, n_left = [], most + 1
    try:
        with gzip.open(path) if compressed else path.open("rb") as file:
            # In parts, so that no memory is reserved for more bytes than the file has.
            while n_left and (part := file.read(min(n_left, TEXT_PART))):
                parts.append(part)
                n_left -= len(part)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path.name} is damaged: its compressed data break off.") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not n_left:
        raise ValueError(
            f"{path.name} is too large to be read as text, which fits in memory up to "
            f"{most / 2**30:.1f} GiB: save it as Parquet, which is read in parts."
        )
    return b"".join(parts)


def _columnar(path: Path, kind: str) -> pa.Table:
    if kind == "feather":
        raise ValueError(f"{path.name} is Feather of version 1: save it as Feather 2 or Parquet.")
    reader = Parquet() if kind == "parquet" else Arrow()
    with reading(path.name, reader.name):
        columns = reader.table(path)
        names = columns.column_names  # an error if these are not UTF-8
    check_names(names, path.name)
    if columns.num_rows == 0:
        raise ValueError(f"{path.name} has columns, but no rows.")
    return columns


def check_format(path: Path) -> str:
    """Return the suffix of a file to be written; refuse unknown ones."""
    suffix = next((each for each in SUFFIXES if path.name.lower().endswith(each)), None)
    if suffix is None:
        raise ValueError(f"{path.name} must end in one of {', '.join(SUFFIXES)}.")
    return suffix


def write_table(columns: Mapping[str, NDArray[Any]] | pa.Table, path: Path) -> None:
    """Write columns to a file, completely or not at all.

    Parameters
    ----------
    columns : mapping of str to ndarray, or pyarrow.Table
        The columns, of equal length.
    path : Path
        The file. Its suffix selects the format: CSV, TSV (both optionally with .gz), Parquet,
        Arrow or Feather.
    """
    suffix = check_format(path)
    with whole_file(path) as unfinished:
        if suffix == ".parquet":
            parquet.write_table(_as_arrow(columns), unfinished)
        elif suffix in (".arrow", ".feather"):
            feather.write_feather(_as_arrow(columns), unfinished)
        else:
            data = as_text(columns, "\t" if suffix.startswith(".tsv") else ",").encode()
            unfinished.write_bytes(gzip.compress(data, mtime=0) if suffix.endswith(".gz") else data)


def _as_arrow(columns: Mapping[str, NDArray[Any]] | pa.Table) -> pa.Table:
    return columns if isinstance(columns, pa.Table) else pa.table(dict(columns))


def as_text(columns: Mapping[str, NDArray[Any]] | pa.Table, delimiter: str = ",") -> str:
    """Return columns as the text of a CSV file, or with another delimiter.

    Gaps of a table of Arrow are empty cells, and those of arrays "nan".
    """
    gap = "" if isinstance(columns, pa.Table) else "nan"
    frame = _as_arrow(columns).to_pandas() if not gap else pd.DataFrame(dict(columns))
    return str(frame.to_csv(index=False, sep=delimiter, lineterminator="\n", na_rep=gap))
