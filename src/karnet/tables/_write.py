"""Writing of tables of predictions, in the format that the file name asks for."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import feather, parquet

from .._util.atomic_file import whole_file

# The endings of the files that can be written.
SUFFIXES = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".csv.gz", ".tsv.gz")


def check_format(path: Path) -> str:
    """Return the suffix of a file to be written; refuse unknown ones."""
    suffix = next((each for each in SUFFIXES if path.name.lower().endswith(each)), None)
    if suffix is None:
        raise ValueError(f"{path.name} must end in one of {', '.join(SUFFIXES)}.")
    return suffix


def write_table(columns: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write columns to a file, completely or not at all.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The columns, of equal length.
    path : Path
        The file. Its suffix selects the format: CSV, TSV (both optionally with .gz), Parquet,
        Arrow or Feather.
    """
    suffix = check_format(path)
    with whole_file(path) as unfinished:
        if suffix == ".parquet":
            parquet.write_table(pa.table(dict(columns)), unfinished)
        elif suffix in (".arrow", ".feather"):
            feather.write_feather(pa.table(dict(columns)), unfinished)
        else:
            data = as_text(columns, "\t" if suffix.startswith(".tsv") else ",").encode()
            unfinished.write_bytes(gzip.compress(data, mtime=0) if suffix.endswith(".gz") else data)


def as_text(columns: Mapping[str, NDArray[Any]], delimiter: str = ",") -> str:
    """Return columns as the text of a CSV file, or with another delimiter."""
    frame = pd.DataFrame(dict(columns))
    text: str = frame.to_csv(index=False, sep=delimiter, lineterminator="\n", na_rep="nan")
    return text
