"""What an audit finds: suspects among the rows, and findings on columns and on the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._columns.frames import Column
from .._util.types import Indices, Mask


@dataclass(frozen=True)
class Suspect:
    """A row that looks wrong.

    Attributes
    ----------
    row : int
        The number of the row, from 0 on.
    reason : str
        The check that found it, such as "label" or "duplicate".
    detail : str
        The reason in words.
    suggestion : str
        The label that the row should have had, or the target that is predicted for it; empty for
        other reasons.
    """

    row: int
    reason: str
    detail: str
    suggestion: str = ""


@dataclass(frozen=True)
class Finding:
    """A column, or a property of the table, that looks wrong.

    Attributes
    ----------
    subject : str
        The name of the column or of the class, or "table".
    reason : str
        The check that found it, such as "gives the target away".
    detail : str
        The reason in words.
    """

    subject: str
    reason: str
    detail: str


def number(value: float) -> str:
    """Return a number in a sentence."""
    return f"{value:.6g}"


def names_of(X: Any) -> list[str]:
    """Return the names of the columns of a data frame, or x0, x1, and so on of an array."""
    known = getattr(X, "columns", None)
    return [f"x{k}" for k in range(X.shape[1])] if known is None else [str(each) for each in known]


def some_columns(X: Any, kept: Indices) -> Any:
    """Return some columns of a data frame or of an array."""
    return X.iloc[:, kept] if hasattr(X, "iloc") else X[:, kept]


def codes_of(column: Column) -> Indices:
    """Return a code for each different value of a column; gaps have one too."""
    if column.dtype.kind == "O":
        text = np.array(["\0" if each is None else each for each in column], dtype=str)
        return np.unique(text, return_inverse=True)[1]
    return np.unique(column, return_inverse=True)[1]


def gaps_of(column: Column) -> Mask:
    """Return which values of a column are missing."""
    if column.dtype.kind == "O":
        return np.array([each is None for each in column], dtype=bool)
    return np.asarray(column != column)


def groups_of_equal(codes: Indices) -> Iterator[Indices]:
    """Yield the numbers of the rows of each group of two or more rows with equal codes."""
    _, group, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, np.cumsum(counts)[:-1]):
        if len(rows) > 1:
            yield rows
