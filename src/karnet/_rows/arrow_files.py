"""Rows of Parquet, Arrow and CSV files, a few at a time, read with pyarrow.

`pyarrow.dataset` is not used: its scanner holds whole row groups of Parquet in memory.
"""

from __future__ import annotations

import mmap
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, ipc, parquet, types

from .memory import SIZES
from .streamed import Raw

Names = Sequence[str]
Batches = Iterator[pa.RecordBatch]

# Bytes of a column of a Parquet file that are read at a time; the default is a whole row group.
COLUMN_BUFFER = 2**16
# Most characters of an error of pyarrow that a sentence quotes.
QUOTED = 200


def is_numeric(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds numbers, or only missing values (type null)."""
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds strings."""
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _values(column: pa.Array) -> NDArray[Any]:
    """Return a column as a NumPy array, strings with a fixed length."""
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if is_text(column.type):
        words = column.cast(pa.string()).dictionary_encode()
        return np.asarray(np.array(words.dictionary.to_pylist())[words.indices.to_numpy()])
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _parts(batch: pa.RecordBatch, n_rows: int) -> Batches:
    return (batch.slice(start, n_rows) for start in range(0, batch.num_rows, n_rows))


@contextmanager
def reading(path: Path | str, kind: str) -> Iterator[None]:
    """Turn an error of pyarrow into one sentence with the name of the file."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ValueError(f"{path} cannot be read as {kind} ({reason[:QUOTED]}).") from error


class Parquet:
    """Parquet files."""

    name = "Parquet"
    endings: tuple[str, ...] = (".parquet", ".pq")
    # The names and types of the columns of a file.
    schema = staticmethod(parquet.read_schema)

    def batches(self, path: Path, n_rows: int, names: Names | None, numbers: Names) -> Batches:
        """Yield all rows of some columns, at most `n_rows` at a time, not whole row groups."""
        columns = None if names is None else list(names)
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=COLUMN_BUFFER) as file:
            if file.metadata.num_rows:
                yield from file.iter_batches(n_rows, columns=columns, use_threads=False)

    def table(self, path: Path) -> pa.Table:
        """Return all rows."""
        table = parquet.ParquetFile(path).read()
        table.validate(full=True)  # text must be UTF-8
        return table


class Arrow:
    """Arrow files and streams, also known as Feather (version 2) and IPC."""

    name = "Arrow"
    endings: tuple[str, ...] = (".arrow", ".arrows", ".feather", ".ipc")

    def schema(self, path: Path) -> pa.Schema:
        """Return the names and types of the columns."""
        return _reader(_mapped(path)).schema

    def batches(self, path: Path, n_rows: int, names: Names | None, numbers: Names) -> Batches:
        """Yield all rows, with all columns: Arrow would copy selected ones.

        Batches that are not compressed stay in the file.
        """
        pages = _mapped(path)
        for batch in _record_batches(pages):
            for part in _parts(batch, n_rows):
                yield part
                # The system would drop pages too, but only when it runs short of memory.
                if hasattr(mmap, "MADV_DONTNEED"):
                    pages.madvise(mmap.MADV_DONTNEED)

    def table(self, path: Path) -> pa.Table:
        """Return all rows; columns that are not compressed stay in the file.

        On Windows they do not: no program could replace or delete the file as long as the table is
        in use.
        """
        pages = path.read_bytes() if os.name == "nt" else _mapped(path)
        return pa.Table.from_batches(_record_batches(pages), self.schema(path))


def _mapped(path: Path) -> mmap.mmap:
    """Return the memory to which the system maps a file."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            raise pa.ArrowInvalid("the file is empty")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _reader(pages: mmap.mmap | bytes) -> Any:
    opened = ipc.open_file if pages[:6] == b"ARROW1" else ipc.open_stream
    return opened(pa.py_buffer(pages), options=ipc.IpcReadOptions(use_threads=False))


def _record_batches(pages: mmap.mmap | bytes) -> Batches:
    reader = _reader(pages)
    is_file = hasattr(reader, "num_record_batches")
    for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
        # Cells are used in place, and a damaged file may point to places outside of it.
        batch.validate(full=True)
        yield batch


@dataclass(frozen=True)
class Csv:
    """Text files with one line per row; the fields are the parameters of `Blocks.from_csv`."""

    delimiter: str
    header: list[str] | None
    types: Mapping[str, Any] | None

    name: ClassVar[str] = "CSV"
    endings: ClassVar[tuple[str, ...]] = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")

    def _open(self, path: Path, types: Mapping[str, Any], names: Names | None) -> Any:
        return csv.open_csv(
            path,
            csv.ReadOptions(use_threads=False, block_size=SIZES.csv, column_names=self.header),
            csv.ParseOptions(delimiter=self.delimiter),
            csv.ConvertOptions(column_types=types, include_columns=names, strings_can_be_null=True),
        )

    def schema(self, path: Path) -> pa.Schema:
        """Return the names and types of the columns, inferred from the first lines of the file."""
        with self._open(path, self.types or {}, None) as reader:
            return reader.schema

    def batches(self, path: Path, n_rows: int, names: Names | None, numbers: Names) -> Batches:
        """Yield all rows of some columns; numbers are float64 where no type is given."""
        schema = self.schema(path)
        numbers = [name for name in numbers if not types.is_boolean(schema.field(name).type)]
        column_types = dict.fromkeys(numbers, pa.float64()) | dict(self.types or {})
        try:
            with self._open(path, column_types, names) as reader:
                for batch in reader:
                    yield from _parts(batch, n_rows)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(_with_name(str(error), schema.names)) from error


def _with_name(message: str, names: Names) -> str:
    """Return an error of pyarrow about a value with the name of its column."""
    form = r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (\w+): invalid value '(.*)'"
    match = re.match(form, message, re.S)
    if match is None:
        return message
    k, row, kind, value = match.groups()
    return (
        f"line {row} has {value!r} in column {names[int(k)]!r}, which is no {kind}: encode it "
        "first, or give its type in types"
    )


Kind = Parquet | Arrow | Csv


def read_batches(
    kind: Kind, path: Path, n_rows: int, names: Names | None = None, numbers: Names = ()
) -> Batches:
    """Yield the batches of a file, or raise an error of one sentence."""
    with reading(path, kind.name):
        yield from kind.batches(path, n_rows, names, numbers)


@dataclass(frozen=True)
class FileRows:
    """The rows of some files of one format, as blocks that can be read repeatedly."""

    kind: Kind
    paths: tuple[Path, ...]
    targets: tuple[str, ...]
    flat: bool  # whether targets are one column, and not a table of several outputs
    inputs: tuple[str, ...] | None  # None for all other columns, except the index of a data frame
    weights: tuple[str, ...]  # the column of sample weights, if there is one

    def names(self, path: Path) -> tuple[str, ...]:
        """Return the names of the inputs, if all columns of a file have the right type."""
        with reading(path, self.kind.name):
            schema = self.kind.schema(path)
            names = schema.names  # an error if these are not UTF-8
        others = (*self.weights, *self.targets)
        # Columns that pandas would make the index of a data frame.
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        counts = Counter(names)
        rest = tuple(name for name in counts if name not in others and name not in index)
        inputs = rest if self.inputs is None else self.inputs
        for name in (*inputs, *others):
            if name not in counts:
                first = [" ".join(each.split())[:50] for each in names[:20]]
                listed = ", ".join([*first, *["..."] * (len(counts) > 20)])
                raise ValueError(f"{path} has no column {name!r}: its columns are {listed}.")
            if counts[name] > 1:
                raise ValueError(f"{path} has several columns {name!r}: give each its own name.")
        for name in (*inputs, *self.weights):
            if not is_numeric(schema.field(name).type):
                raise ValueError(
                    f"{path} holds {schema.field(name).type} in column {name!r}, not numbers: "
                    "encode it first, or list the columns that hold numbers in columns."
                )
        if not inputs:
            raise ValueError(f"{path} has no columns except {', '.join(others)}.")
        return inputs

    def __iter__(self) -> Iterator[Raw]:
        """Yield inputs, targets and weights (or None), a few rows at a time."""
        names = self.names(self.paths[0])
        numbers = (*names, *self.weights)
        every = (*numbers, *self.targets)
        n_rows = max(SIZES.batch // len(every), 1)
        for path in self.paths:
            if set(self.names(path)) != set(names):
                raise ValueError(
                    f"{path} has other columns than {self.paths[0]}: list the columns to use in "
                    "columns."
                )
            for batch in read_batches(self.kind, path, n_rows, every, numbers):
                if not batch.num_rows:
                    continue
                for name in every:
                    if batch.column(name).null_count:
                        raise ValueError(
                            f"{path} has missing values in column {name!r}: fill them in, or leave "
                            "out rows with missing values first."
                        )
                with reading(path, self.kind.name):
                    rows = self._rows(batch, names)
                yield rows

    def _rows(self, batch: pa.RecordBatch, inputs: tuple[str, ...]) -> Raw:
        kinds = [batch.schema.field(name).type for name in inputs]
        plain = [np.float64 if types.is_decimal(kind) else kind.to_pandas_dtype() for kind in kinds]
        # In float32 if it holds the values of all columns, as for a data frame.
        single = np.result_type(*plain) == np.float32
        X = np.empty((batch.num_rows, len(inputs)), np.float32 if single else np.float64)
        for k, name in enumerate(inputs):
            X[:, k] = _values(batch.column(name))
        targets = [_values(batch.column(name)) for name in self.targets]
        y = targets[0] if self.flat else np.column_stack(targets)
        return X, y, _values(batch.column(self.weights[0])) if self.weights else None


def files_in(paths: Any, kind: Kind) -> tuple[Path, ...]:
    """Return one file, several files, or the files of a folder in the order of names."""
    files: list[Path] = []
    for path in map(Path, [paths] if isinstance(paths, str | PathLike) else paths):
        if not path.exists():
            raise FileNotFoundError(f"there is no file or folder {path}.")
        inside = [each for each in path.rglob("*") if each.name.endswith(kind.endings)]
        # By convention names that start with a dot or an underscore are metadata.
        inside = [each for each in inside if not each.name.startswith((".", "_"))]
        files += sorted(inside) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{paths} has no {kind.name} files, {' or '.join(kind.endings)}.")
    return tuple(files)
