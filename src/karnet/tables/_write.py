"""Tables that are written: predictions, in the form that the name of the file asks for."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import feather, parquet

from .._util.atomic_file import whole_file

__all__ = ["as_text", "check_format", "write_table"]

SUFFIXES = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".csv.gz", ".tsv.gz")


def check_format(path: Path) -> str:
    """Return the suffix of a file to be written, or say which are known."""
    name = path.name.lower()
    found = [suffix for suffix in SUFFIXES if name.endswith(suffix)]
    if not found:
        raise ValueError(f"{path.name} must end in one of {', '.join(SUFFIXES)}.")
    return max(found, key=len)


def write_table(columns: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write columns to a file, whole or not at all.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The columns, of equal length.
    path : Path
        The file; its suffix says whether it is CSV, TSV (either may end in .gz), Parquet, Arrow or
        Feather.
    """
    suffix = check_format(path)
    with whole_file(path) as unfinished:
        if suffix == ".parquet":
            parquet.write_table(pa.table(dict(columns)), unfinished)
        elif suffix in (".arrow", ".feather"):
            feather.write_feather(pa.table(dict(columns)), unfinished)
        else:
            delimiter = "\t" if suffix.startswith(".tsv") else ","
            data = as_text(columns, delimiter).encode()
            unfinished.write_bytes(gzip.compress(data, mtime=0) if suffix.endswith(".gz") else data)


def as_text(columns: Mapping[str, NDArray[Any]], delimiter: str = ",") -> str:
    """Return columns as the text of a CSV file, or with another delimiter."""
    text = StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    return text.getvalue()
