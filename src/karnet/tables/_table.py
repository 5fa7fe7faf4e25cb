"""A table that was read: columns by name, as Arrow keeps them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, types

from .._util.messages import shown
from ._names import listed

__all__ = ["GAPS", "Table", "as_numbers", "plain"]

# What stands for a value that is missing, beside nothing at all.
GAPS = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
# Names that pandas gives to the numbers of rows.
ROW_NUMBERS = re.compile(r"|__index_level_\d+__")


@dataclass(frozen=True)
class Table:
    """Columns of equal length, each with a name of its own.

    Attributes
    ----------
    name : str
        What the table is called in sentences.
    columns : pyarrow.Table
        The columns: strings where the file is text.
    notes : tuple of str
        What had to be assumed when it was read.
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
    def joined(cls, tables: Sequence[Table]) -> Table:
        """Return the rows of several tables of the same columns as one."""
        return replace(tables[0], columns=pa.concat_tables(table.columns for table in tables))

    def take(self, rows: NDArray[Any]) -> Table:
        """Return some rows, by number or by a mask."""
        places = np.flatnonzero(rows) if rows.dtype == bool else rows
        return replace(self, columns=self.columns.take(pa.array(places)))

    def shuffled(self, name: str, order: NDArray[np.intp]) -> Table:
        """Return the table with one column in another order."""
        place = self.names.index(name)
        column = self.columns.column(place).take(pa.array(order))
        return replace(self, columns=self.columns.set_column(place, name, column))

    def without_row_numbers(self) -> Table:
        """Return the table without a nameless column of row numbers, which says nothing."""
        nameless = [name for name in self.names if ROW_NUMBERS.fullmatch(name)]
        if not nameless:
            return self
        numbers = as_numbers(plain(self.columns[nameless[0]], nameless[0], self.name))
        if numbers is None or not np.isfinite(numbers).all():
            numbers = np.zeros(2)
        steps = np.diff(numbers)
        if not (steps == 1.0).all():
            raise ValueError(
                f"column {self.names.index(nameless[0]) + 1} of {self.name} has no name, and does "
                "not hold row numbers: give it a name."
            )
        if len(self.names) == 1:
            raise ValueError(f"{self.name} has no column beside row numbers.")
        note = f"The first column of {self.name} has no name and holds row numbers: left out."
        columns = self.columns.drop_columns(nameless[:1])
        return replace(self, columns=columns, notes=(*self.notes, note))

    def frame(self, names: Sequence[str], text: Collection[str] = ()) -> Any:
        """Return some columns as a pandas data frame of floats, strings and dates.

        Parameters
        ----------
        names : sequence of str
            The columns, in the order wanted; all others are left out.
        text : collection of str
            Those that are wanted as text even if they hold numbers here.

        Returns
        -------
        pandas.DataFrame
        """
        self._check_columns(names)
        selected = [plain(self.columns[name], name, self.name) for name in names]
        selected = [
            as_text(column) if name in text else column
            for name, column in zip(names, selected, strict=True)
        ]
        return pa.table(selected, names=list(names)).to_pandas()

    def numbers(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return some columns as numbers, gaps as NaN; any column that holds others is refused."""
        self._check_columns(names)
        columns = [plain(self.columns[name], name, self.name) for name in names]
        kinds = {column.type for column in columns}
        if len(kinds) == 1:
            # All at once: very many columns would take very many calls.
            chunks = [chunk for column in columns for chunk in column.chunks]
            found = as_numbers(pa.chunked_array(chunks, kinds.pop()))
            if found is not None:
                return np.ascontiguousarray(found.reshape(len(names), len(self)).T)
        return np.column_stack([self._number(*each) for each in zip(names, columns, strict=True)])

    def _number(self, name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
        found = as_numbers(column)
        if found is None:
            raise ValueError(
                f"column {shown(name)} of {self.name} holds something else than numbers, which is "
                f"all that a table of {len(self.names)} columns may hold: leave it out."
            )
        return found

    def _check_columns(self, names: Sequence[str]) -> None:
        there = set(self.names)
        missing = [name for name in names if name not in there]
        if missing:
            n = "column" if len(missing) == 1 else "columns"
            raise ValueError(
                f"{self.name} lacks the {n} {listed(missing)} that the model was fitted on."
            )


def plain(column: pa.ChunkedArray, name: str, where: str) -> pa.ChunkedArray:
    """Return a column as float64, string or timestamp; a column of anything else is refused.

    The same values come out of a file of text and of a typed one.
    """
    kind = column.type
    if types.is_dictionary(kind):
        return plain(column.cast(kind.value_type), name, where)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return column.cast(pa.string())
    if types.is_boolean(kind):
        return compute.if_else(column, "True", "False")
    if types.is_timestamp(kind) or types.is_date(kind):
        return column.cast(pa.timestamp("us"), safe=False)
    if types.is_duration(kind) or types.is_time(kind):
        fine = pa.duration("us") if types.is_duration(kind) else pa.time64("us")
        count = column.cast(fine, safe=False).cast(pa.int64())
        return compute.divide(count.cast(pa.float64(), safe=False), 1e6)
    if types.is_floating(kind) or types.is_integer(kind) or types.is_null(kind):
        return column.cast(pa.float64(), safe=False)
    if types.is_decimal(kind):
        return column.cast(pa.float64())
    raise ValueError(
        f"column {shown(name)} of {where} holds {kind}, not numbers, text or dates: leave it out."
    )


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a plain column as text, whole numbers as in a file of text."""
    if not types.is_float64(column.type):
        return column
    whole = column.cast(pa.int64(), safe=False)
    same = compute.equal(whole.cast(pa.float64(), safe=False), column)
    return compute.if_else(same, whole.cast(pa.string()), column.cast(pa.string()))


def as_numbers(column: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """Return a plain column as numbers, gaps as NaN; None if it holds anything else."""
    if types.is_string(column.type):
        text = compute.utf8_trim_whitespace(column)
        gaps = compute.is_in(text, pa.array(GAPS))
        try:
            column = compute.if_else(gaps, None, text).cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    if not types.is_float64(column.type):
        return None
    return np.asarray(column.to_numpy(), dtype=np.float64)
