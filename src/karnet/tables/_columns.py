"""The columns of a table as a data frame, read for later rows as they were read in a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, types
from skrub import ToDatetime

from ._names import listed
from ._sizes import SIZES
from ._table import GAPS, Table, as_text, is_gap

# The kinds of columns, in words for users.
NUMBER, DATE, CATEGORY, TEXT = "number", "date", "category", "text"
EMPTY = "empty: not used"
# Columns with at least this many distinct words are text, and others categories, as in skrub.
MIN_DISTINCT_TEXTS = 40
# The format of dates in text if the fit had dates and no text.
ISO = "ISO8601"
# Cells of inputs that stand for a missing value, as in pandas and skrub.
FURTHER_GAPS = "none None ... #NA -nan -NaN 1.#QNAN -1.#QNAN 1.#IND -1.#IND"
INPUT_GAPS = pa.array([*GAPS.to_pylist(), *FURTHER_GAPS.split(), "#N/A N/A"])


@dataclass(frozen=True)
class Columns:
    """How the columns of a table are read."""

    kinds: dict[str, str]  # the kind of each column
    formats: dict[str, str]  # the format of each column of dates

    @classmethod
    def of(cls, table: Table, names: Sequence[str]) -> Columns:
        """Return how these columns are read, found from the rows of a table."""
        if len(names) > SIZES.max_encoded_columns:
            return cls(dict.fromkeys(names, NUMBER), {})
        found = dict(zip(names, map(_kind, table.plain(names)), strict=True))
        kinds = {name: kind for name, (kind, _) in found.items()}
        if all(kind == EMPTY for kind in kinds.values()):
            raise ValueError(f"all columns of {table.name} other than the target are empty.")
        return cls(kinds, {name: each for name, (kind, each) in found.items() if kind == DATE})

    def named(self, kind: str) -> list[str]:
        """Return the names of all columns of a kind."""
        return [name for name, each in self.kinds.items() if each == kind]

    def frame(self, table: Table) -> Any:
        """Return the columns as a data frame; refuse infinite numbers by column name.

        Cells that cannot be read are gaps. Columns that were empty in the fit are left out.
        """
        names = list(self.kinds)
        if len(names) > SIZES.max_encoded_columns:
            frame = pd.DataFrame(table.numbers(names), columns=names)
            infinite = frame.columns[np.isinf(frame.to_numpy()).any(axis=0)]
        else:
            columns = zip(names, table.plain(names), strict=True)
            read = {name: self._read(name, each) for name, each in columns}
            frame = pd.DataFrame({name: read[name] for name in names if self.kinds[name] != EMPTY})
            infinite = [name for name in self.named(NUMBER) if np.isinf(frame[name]).any()]
        if len(infinite):
            raise ValueError(
                f"{table.name} holds infinite or too large numbers in {listed(list(infinite))}: "
                "empty such cells, or give the column in another unit."
            )
        return frame

    def _read(self, name: str, column: pa.ChunkedArray) -> Any:
        """Return a plain column as a pandas series in the type of its kind."""
        kind = self.kinds[name]
        if kind == NUMBER:
            # The type says that there may be gaps: estimators fill those of later rows.
            return pd.Series(_numbers(column), dtype="Float64")
        if kind == DATE and types.is_timestamp(column.type):
            return column.to_pandas()
        text = _text(column)
        if kind == DATE:
            options: dict[str, Any] = {"format": self.formats.get(name, ISO), "utc": True}
            return pd.to_datetime(text.to_pandas(), errors="coerce", **options).dt.tz_localize(None)
        if kind == CATEGORY:
            return text.dictionary_encode().to_pandas()
        return text.to_pandas().astype("string")


def _kind(column: pa.ChunkedArray) -> tuple[str, str]:
    """Return the kind of a plain column and, of dates, their format."""
    known = column.filter(compute.invert(is_gap(column, INPUT_GAPS)))
    if not len(known):
        return EMPTY, ""
    if types.is_timestamp(column.type):
        return DATE, ISO
    if not np.isnan(_numbers(known)).any():
        return NUMBER, ""
    try:
        return DATE, str(ToDatetime().fit(known.to_pandas()).format_)
    except ValueError:  # not all cells are dates of one format
        return (TEXT if len(compute.unique(known)) >= MIN_DISTINCT_TEXTS else CATEGORY), ""


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a plain column as text, with nulls for gaps."""
    text = as_text(column)
    return compute.if_else(is_gap(text, INPUT_GAPS), None, text)


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a plain column as numbers, with NaN for gaps and for all other cells."""
    if not types.is_float64(column.type):
        column = pd.to_numeric(_text(column).to_pandas(), errors="coerce")
    return np.asarray(column.to_numpy(), dtype=np.float64)
