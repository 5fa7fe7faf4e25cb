"""A table: named columns, as Arrow stores them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, types

from .._rows.arrow_files import is_text
from .._util.messages import shown
from ._names import listed

# Cells that stand for a missing value.
GAPS = pa.array(["", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null"])
# Names of columns of row numbers that pandas writes; the first alternative is no name.
ROW_NUMBERS = re.compile(r"|__index_level_\d+__")


@dataclass(frozen=True)
class Table:
    """Columns of equal length with distinct names.

    Attributes
    ----------
    name : str
        The name of the table in sentences.
    columns : pyarrow.Table
        The columns; strings if the file is text.
    notes : tuple of str
        The assumptions that were made in reading it.
    """

    name: str
    columns: pa.Table
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns.column_names)

    @classmethod
    def of_text(cls, name: str, cells: Mapping[str, Sequence[str]]) -> Table:
        """Return columns of text as a table, as if they had been read from a text file."""
        return cls(
            name, pa.table({key: pa.array(each, pa.string()) for key, each in cells.items()})
        )

    @classmethod
    def joined(cls, tables: Sequence[Table]) -> Table:
        """Return the rows of several tables with the same columns as one table."""
        return replace(tables[0], columns=pa.concat_tables(table.columns for table in tables))

    def take(self, rows: NDArray[Any]) -> Table:
        """Return some rows, by number or by a mask."""
        places = np.flatnonzero(rows) if rows.dtype == bool else rows
        return replace(self, columns=self.columns.take(pa.array(places)))

    def text(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Return some columns as text, with empty cells for gaps."""
        columns = zip(names, self.plain(names), strict=True)
        return {name: [each or "" for each in as_text(c).to_pylist()] for name, c in columns}

    def shuffled(self, name: str, order: NDArray[np.intp]) -> Table:
        """Return the table with one column in another order."""
        place = self.names.index(name)
        column = self.columns.column(place).take(pa.array(order))
        return replace(self, columns=self.columns.set_column(place, name, column))

    def without_row_numbers(self) -> Table:
        """Return the table without a column of row numbers that has no name."""
        nameless = [name for name in self.names if ROW_NUMBERS.fullmatch(name)]
        if not nameless:
            return self
        numbers = as_numbers(plain(self.columns[nameless[0]], nameless[0], self.name))
        if numbers is None or not (np.isfinite(numbers).all() and (np.diff(numbers) == 1.0).all()):
            raise ValueError(
                f"column {self.names.index(nameless[0]) + 1} of {self.name} has no name, and does "
                "not hold row numbers: give it a name."
            )
        if len(self.names) == 1:
            raise ValueError(f"{self.name} has no column except row numbers.")
        note = f"The first column of {self.name} has no name and holds row numbers: left out."
        columns = self.columns.drop_columns(nameless[:1])
        return replace(self, columns=columns, notes=(*self.notes, note))

    def frame(self, names: Sequence[str], text: Collection[str] = ()) -> Any:
        """Return some columns as a pandas data frame of floats, strings and dates.

        Parameters
        ----------
        names : sequence of str
            The columns in their order; all others are left out.
        text : collection of str
            The columns to convert to text even if they hold numbers here.

        Returns
        -------
        pandas.DataFrame
        """
        columns = dict(zip(names, self.plain(names), strict=True))
        columns |= {name: as_text(columns[name]) for name in names if name in text}
        return pa.table(columns).to_pandas()

    def numbers(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return some columns as numbers, gaps as NaN; columns of other values are refused."""
        columns = self.plain(names)
        kinds = {column.type for column in columns}
        if len(kinds) == 1:
            # At once: with very many columns one call for each would take long.
            chunks = [chunk for column in columns for chunk in column.chunks]
            numbers = as_numbers(pa.chunked_array(chunks, kinds.pop()))
            if numbers is not None:
                return np.ascontiguousarray(numbers.reshape(len(names), len(self)).T)
        converted = []
        for name, column in zip(names, columns, strict=True):
            numbers = as_numbers(column)
            if numbers is None:
                raise ValueError(
                    f"column {shown(name)} of {self.name} holds values other than numbers, but a "
                    f"table of {len(self.names)} columns may hold numbers only: leave it out."
                )
            converted.append(numbers)
        return np.column_stack(converted)

    def plain(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return some columns as float64, string or timestamp; missing columns are refused."""
        own = set(self.names)
        missing = [name for name in names if name not in own]
        if missing:
            n = "column" if len(missing) == 1 else "columns"
            raise ValueError(
                f"{self.name} lacks the {n} {listed(missing)} that the model was fitted on."
            )
        return [plain(self.columns[name], name, self.name) for name in names]


def plain(column: pa.ChunkedArray, name: str, where: str) -> pa.ChunkedArray:
    """Return a column as float64, string or timestamp; columns of other types are refused.

    A text file and a typed file give the same values.
    """
    kind = column.type
    if types.is_dictionary(kind):
        return plain(column.cast(kind.value_type), name, where)
    if is_text(kind):
        return column.cast(pa.string())
    if types.is_boolean(kind):
        return compute.if_else(column, "True", "False")
    if types.is_timestamp(kind) or types.is_date(kind):
        return column.cast(pa.timestamp("us"), safe=False)
    if types.is_duration(kind) or types.is_time(kind):
        fine = pa.duration("us") if types.is_duration(kind) else pa.time64("us")
        count = column.cast(fine, safe=False).cast(pa.int64())
        return compute.divide(count.cast(pa.float64(), safe=False), 1e6)
    numeric = (types.is_floating, types.is_integer, types.is_decimal, types.is_null)
    if any(test(kind) for test in numeric):
        return column.cast(pa.float64(), safe=False)
    raise ValueError(
        f"column {shown(name)} of {where} holds {kind}, not numbers, text or dates: leave it out."
    )


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a plain column as text, whole numbers without a decimal point."""
    if not types.is_float64(column.type):
        return column.cast(pa.string())
    whole = column.cast(pa.int64(), safe=False)
    same = compute.equal(whole.cast(pa.float64(), safe=False), column)
    return compute.if_else(same, whole.cast(pa.string()), column.cast(pa.string()))


def is_gap(column: pa.ChunkedArray, words: pa.Array = GAPS) -> pa.ChunkedArray:
    """Return which cells of a plain column are missing, or hold a word that says so."""
    gaps = compute.is_null(column, nan_is_null=True)
    if not types.is_string(column.type):
        return gaps
    return compute.or_(gaps, compute.is_in(compute.utf8_trim_whitespace(column), words))


def as_numbers(column: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """Return a plain column as numbers, gaps as NaN; None if it holds other values."""
    if types.is_string(column.type):
        text = compute.utf8_trim_whitespace(column)
        try:
            column = compute.if_else(compute.is_in(text, GAPS), None, text).cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    if not types.is_float64(column.type):
        return None
    return np.asarray(column.to_numpy(), dtype=np.float64)
