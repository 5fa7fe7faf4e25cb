"""The target column: its rows with a value, and whether it holds classes or numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, types

from .._util.messages import shown
from ._names import NUMBER, missing_column
from ._table import Table, as_numbers, is_gap, plain

# The tasks that a user can ask for.
TASKS = ("auto", "classification", "regression")
# Integers with at most this many distinct values are classes.
MAX_INTEGER_CLASSES = 20
# In tables of more rows than this, a target of mostly distinct text is refused.
MIN_ROWS_FOR_DISTINCT_TEXT = 20
# The share of distinct values from which text is mostly distinct.
DISTINCT_SHARE = 0.5
# If at least this share of cells are numbers, the remaining cells are taken for mistakes.
MOSTLY_NUMBERS = 0.8


@dataclass(frozen=True)
class Target:
    """The column that a model predicts."""

    name: str
    task: str  # "classification" or "regression"
    # The classes, as integers or text, or the numbers, of the rows that have a value.
    y: NDArray[Any]
    known: NDArray[np.bool_]  # which rows have a value
    notes: tuple[str, ...]  # sentences for the user


def find_target(table: Table, name: str, task: str = "auto", *, one_value: bool = False) -> Target:
    """Return the target column of a table, its task inferred or given.

    Text and integers with few distinct values mean classification, other numbers regression. With
    `one_value`, all rows may have the same target, as in a table to score but not to fit.
    """
    if task not in TASKS:
        raise ValueError(f"task={task!r} is not known: give one of {', '.join(TASKS)}.")
    if name not in table.names:
        raise ValueError(missing_column(name, table.names, table.name))
    column = plain(table.columns[name], name, table.name)
    if types.is_timestamp(column.type):
        raise ValueError(
            f"the target {shown(name)} holds dates: choose a column of classes or numbers."
        )
    known = ~np.asarray(is_gap(column).to_numpy(), dtype=bool)
    cells = column.filter(pa.array(known))
    values = compute.unique(cells)
    if not len(values):
        raise ValueError(f"the target {shown(name)} of {table.name} is empty in every row.")
    if len(values) == 1 and not one_value:
        raise ValueError(
            f"the target {shown(name)} of {table.name} has one value only, "
            f"{shown(str(values[0]))}: choose a column that varies."
        )
    numbers = as_numbers(cells)
    if task != "classification" and numbers is not None and not np.isfinite(numbers).all():
        raise ValueError(f"the target {shown(name)} holds infinite numbers: empty such cells.")
    if task == "auto":
        task = _inferred(cells, len(values), numbers, name)
    if task == "regression" and numbers is None:
        raise ValueError(f"{_not_numbers(cells, name)[1]}, which regression needs.")
    y = _labels(cells) if task == "classification" else np.asarray(numbers)
    return Target(name, task, y, known, tuple(_notes(name, task, y, known)))


def _inferred(
    cells: pa.ChunkedArray, n_values: int, numbers: NDArray[np.float64] | None, name: str
) -> str:
    if numbers is not None:
        whole = bool((numbers == np.floor(numbers)).all())
        repeats = n_values <= max(2, len(numbers) // 2)
        classes = whole and n_values <= MAX_INTEGER_CLASSES and repeats
        return "classification" if classes else "regression"
    n_others, message = _not_numbers(cells, name)
    if n_others <= (1.0 - MOSTLY_NUMBERS) * len(cells) and n_values > MAX_INTEGER_CLASSES:
        raise ValueError(
            f"{message}: empty those cells to leave their rows out, or give --task classification."
        )
    if len(cells) > MIN_ROWS_FOR_DISTINCT_TEXT and n_values > DISTINCT_SHARE * len(cells):
        raise ValueError(
            f"the target {shown(name)} is text with {n_values} different values in {len(cells)} "
            "rows, like a name or an id: choose another one, or give --task classification."
        )
    return "classification"


def _not_numbers(cells: pa.ChunkedArray, name: str) -> tuple[int, str]:
    """Return the number of text cells that do not look like numbers, and a message on them.

    If every cell looks like a number, all cells are counted.
    """
    texts = cells.to_pylist()
    others = [text for text in texts if not NUMBER.fullmatch(text.strip())] or texts
    return len(others), (
        f"{len(others)} of {len(cells)} cells of the target {shown(name)} are not numbers, such as "
        f"{shown(others[0])}"
    )


def _labels(cells: pa.ChunkedArray) -> NDArray[Any]:
    """Return classes as integers if all cells are written as integers, else as text."""
    if types.is_float64(cells.type):
        numbers = np.asarray(cells.to_numpy(), dtype=np.float64)
        whole = (numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**53)
        return numbers.astype(np.int64) if whole.all() else numbers.astype(str)
    text = np.array([cell.strip() for cell in cells.to_pylist()], dtype=str)
    try:
        numbers = text.astype(np.int64)
    except (OverflowError, ValueError):
        return text
    return numbers if (numbers.astype(str) == text).all() else text


def _notes(name: str, task: str, y: NDArray[Any], known: NDArray[np.bool_]) -> Iterator[str]:
    n_gaps = int(np.count_nonzero(~known))
    if n_gaps:
        have = "has" if n_gaps == 1 else "have"
        yield f"{n_gaps} of {len(known)} rows {have} no {shown(name)}: left out."
    if task == "regression":
        yield f"Regression: {shown(name)} is a number, from {y.min():.6g} to {y.max():.6g}."
    else:
        classes = np.unique(y).astype(str)
        first = ", ".join(classes[:5]) + (", ..." if len(classes) > 5 else "")
        yield f"Classification: {shown(name)} has {len(classes)} classes ({first})."
