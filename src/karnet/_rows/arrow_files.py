"""Rows of Parquet, Arrow and CSV files, a few at a time, by way of pyarrow."""

from __future__ import annotations

import mmap
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, ipc, parquet

from .memory import SIZES
from .streamed import Raw

__all__ = ["Arrow", "Columns", "Csv", "FileRows", "Kind", "Parquet"]

Names = Sequence[str]

# Bytes that are read of a column of a Parquet file at a time; without, it is a whole row group.
BUFFER = 2**16


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are targets, inputs and weights.

    Attributes
    ----------
    target : str or tuple of str
        One column, or several for as many outputs.
    inputs : tuple of str or None
        None for all others, less the index of a data frame.
    weight : str or None
        The column with the weights of the rows.
    """

    target: str | tuple[str, ...]
    inputs: tuple[str, ...] | None = None
    weight: str | None = None

    @property
    def targets(self) -> tuple[str, ...]:
        """The target, or all of them."""
        return (self.target,) if isinstance(self.target, str) else self.target

    @property
    def weights(self) -> tuple[str, ...]:
        """The column of weights, if there is one."""
        return () if self.weight is None else (self.weight,)

    def inputs_of(self, schema: pa.Schema, path: Path) -> tuple[str, ...]:
        """Return the names of the inputs, if all columns are there and of the right type."""
        besides = (*self.weights, *self.targets)
        names, left_out = Counter(schema.names), {*besides, *_index(schema)}
        others = tuple(name for name in names if name not in left_out)
        inputs = others if self.inputs is None else self.inputs
        for name in (*inputs, *besides):
            if name not in names:
                first = [" ".join(each.split())[:50] for each in schema.names[:20]]
                listed = ", ".join([*first, *["..."] * (len(names) > 20)])
                raise ValueError(f"{path} has no column {name!r}: its columns are {listed}.")
            if names[name] > 1:
                raise ValueError(f"{path} has several columns {name!r}: give each its own name.")
        for name in (*inputs, *self.weights):
            if not _numeric(schema.field(name).type):
                raise ValueError(
                    f"{path} holds {schema.field(name).type} in column {name!r}, no numbers: "
                    "encode it first, or name in columns those that hold numbers."
                )
        if not inputs:
            raise ValueError(f"{path} has no columns besides {', '.join(besides)}.")
        return inputs

    def rows(self, batch: pa.RecordBatch, inputs: tuple[str, ...], path: Path) -> Raw:
        """Return inputs, targets and weights of some rows, unless values are missing."""
        for name in (*inputs, *self.weights, *self.targets):
            if batch.column(name).null_count:
                raise ValueError(
                    f"{path} has missing values in column {name!r}: fill them in or leave out "
                    "such rows first."
                )
        X = np.empty((batch.num_rows, len(inputs)), _dtype(batch.schema, inputs))
        for k, name in enumerate(inputs):
            X[:, k] = _values(batch.column(name))
        if isinstance(self.target, str):
            y = _values(batch.column(self.target))
        else:
            y = np.column_stack([_values(batch.column(name)) for name in self.target])
        return X, y, None if self.weight is None else _values(batch.column(self.weight))


def _index(schema: pa.Schema) -> list[Any]:
    """Return the columns that pandas would make the index of a data frame."""
    kept = schema.pandas_metadata or {}
    return [name for name in kept.get("index_columns", []) if isinstance(name, str)]


def _numeric(kind: pa.DataType) -> bool:
    # A column of nothing but missing values has no type of its own.
    types = pa.types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def _dtype(schema: pa.Schema, names: Iterable[str]) -> np.dtype[Any]:
    """Return float32 if that holds all columns, as for a data frame, else float64."""
    kinds = [schema.field(name).type for name in names]
    plain = [np.float64 if pa.types.is_decimal(kind) else kind.to_pandas_dtype() for kind in kinds]
    common = np.result_type(*plain)
    return common if common == np.float32 else np.dtype(np.float64)


def _values(column: pa.Array) -> NDArray[Any]:
    """Return a column as a NumPy array, words as words of fixed length."""
    types = pa.types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if any(
        test(column.type) for test in (types.is_string, types.is_large_string, types.is_string_view)
    ):
        words = column.cast(pa.string()).dictionary_encode()
        return np.asarray(np.array(words.dictionary.to_pylist())[words.indices.to_numpy()])
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _parts(batch: pa.RecordBatch, n_rows: int) -> Iterator[pa.RecordBatch]:
    return (batch.slice(start, n_rows) for start in range(0, batch.num_rows, n_rows))


class Kind(Protocol):
    """A kind of files that hold tables."""

    name: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]

    def schema(self, path: Path) -> pa.Schema:
        """Return names and types of the columns."""
        ...

    def batches(
        self, path: Path, numbers: Names, targets: Names, n_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of columns of numbers and of targets, at most `n_rows` at a time."""
        ...


@dataclass(frozen=True)
class FileRows:
    """The rows of some files of one kind, as blocks that can be read again and again."""

    kind: Kind
    paths: tuple[Path, ...]
    columns: Columns

    @classmethod
    def of(cls, kind: Kind, paths: Any, columns: Columns) -> FileRows:
        """Return the rows of a file, of several, or of all of the kind in a folder, by name."""
        found: list[Path] = []
        for path in map(Path, [paths] if isinstance(paths, str | PathLike) else paths):
            if not path.exists():
                raise FileNotFoundError(f"there is no file or folder {path}.")
            found += _in_folder(path, kind.endings) if path.is_dir() else [path]
        if not found:
            raise ValueError(f"{paths} has no {kind.name} files, {' or '.join(kind.endings)}.")
        return cls(kind, tuple(found), columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return self._names(self.paths[0])

    def _names(self, path: Path) -> tuple[str, ...]:
        with _one_sentence(path, self.kind):
            return self.columns.inputs_of(self.kind.schema(path), path)

    def __iter__(self) -> Iterator[Raw]:
        """Yield inputs, targets and weights, or None, of a few rows after the other."""
        names = self.names
        numbers, targets = (*names, *self.columns.weights), self.columns.targets
        n_rows = max(SIZES.batch // (len(numbers) + len(targets)), 1)
        for path in self.paths:
            if set(self._names(path)) != set(names):
                raise ValueError(
                    f"{path} has other columns than {self.paths[0]}: name those to use in columns."
                )
            with _one_sentence(path, self.kind):
                for batch in self.kind.batches(path, numbers, targets, n_rows):
                    if batch.num_rows:
                        yield self.columns.rows(batch, names, path)


def _in_folder(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    # Names that start so are for what others note about the files.
    return sorted(
        path
        for path in folder.rglob("*")
        if path.name.endswith(endings) and not path.name.startswith((".", "_"))
    )


@contextmanager
def _one_sentence(path: Path, kind: Kind) -> Iterator[None]:
    """Say what pyarrow says as one sentence, with the name of the file."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")[:200]
        raise ValueError(f"{path} cannot be read as {kind.name} ({said}).") from error


@dataclass(frozen=True)
class Parquet:
    """Parquet files."""

    name: ClassVar[str] = "Parquet"
    endings: ClassVar[tuple[str, ...]] = (".parquet", ".pq")

    def schema(self, path: Path) -> pa.Schema:
        """Return names and types of the columns."""
        return parquet.read_schema(path)

    def batches(
        self, path: Path, numbers: Names, targets: Names, n_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of some columns; a row group is never in memory as a whole."""
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER) as file:
            if file.metadata.num_rows:
                yield from file.iter_batches(
                    n_rows, columns=[*numbers, *targets], use_threads=False
                )


@dataclass(frozen=True)
class Arrow:
    """Arrow files and streams, also known as Feather (version 2) and IPC."""

    name: ClassVar[str] = "Arrow"
    endings: ClassVar[tuple[str, ...]] = (".arrow", ".arrows", ".feather", ".ipc")

    def schema(self, path: Path) -> pa.Schema:
        """Return names and types of the columns."""
        return _ArrowFile(path).reader().schema

    def batches(
        self, path: Path, numbers: Names, targets: Names, n_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of some columns; batches that are not compressed stay in the file."""
        # Arrow would copy the columns if told their names.
        file = _ArrowFile(path)
        for batch in file.batches():
            # Cells are used where they lie, and a damaged file may say that they lie elsewhere.
            batch.validate(full=True)
            for part in _parts(batch, n_rows):
                yield part
                file.forget()


class _ArrowFile:
    """An Arrow file as a part of memory that the system fills from it where it is read."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            if not path.stat().st_size:
                raise pa.ArrowInvalid("the file is empty")
            self.pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def reader(self) -> Any:
        """Return pyarrow's reader of a file or a stream."""
        opened = ipc.open_file if self.pages[:6] == b"ARROW1" else ipc.open_stream
        options = ipc.IpcReadOptions(use_threads=False)
        return opened(pa.py_buffer(self.pages), options=options)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches."""
        reader = self.reader()
        if hasattr(reader, "num_record_batches"):
            return (reader.get_batch(k) for k in range(reader.num_record_batches))
        return iter(reader)

    def forget(self) -> None:
        """Give back what was read; the system would, but only when others need the memory."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self.pages.madvise(mmap.MADV_DONTNEED)


@dataclass(frozen=True)
class Csv:
    """Text files with one line per row.

    Attributes
    ----------
    delimiter : str
        What stands between values.
    header : tuple of str or None
        The names of the columns if the file does not have them in its first line.
    types : mapping
        Types of columns by name, where the beginning of a file would tell wrong.
    """

    delimiter: str = ","
    header: tuple[str, ...] | None = None
    types: Mapping[str, Any] | None = None

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
        """Return names and types of the columns, told from the beginning of the file."""
        with self._open(path, self.types or {}, None) as reader:
            return reader.schema

    def batches(
        self, path: Path, numbers: Names, targets: Names, n_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of some columns; numbers are float64 where no type is given."""
        schema = self.schema(path)
        types = {
            name: pa.float64()
            for name in numbers
            if not pa.types.is_boolean(schema.field(name).type)
        } | dict(self.types or {})
        try:
            with self._open(path, types, [*numbers, *targets]) as reader:
                for batch in reader:
                    yield from _parts(batch, n_rows)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(_with_name(str(error), schema.names)) from error


def _with_name(said: str, names: Names) -> str:
    """Return what pyarrow says about a value with the name of its column."""
    told = r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (\w+): invalid value '(.*)'"
    found = re.match(told, said, re.S)
    if found is None:
        return said
    k, row, kind, value = found.groups()
    return (
        f"line {row} has {value!r} in column {names[int(k)]!r}, which is no {kind}: encode it "
        "first, or name its type in types"
    )
