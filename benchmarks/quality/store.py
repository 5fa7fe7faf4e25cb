"""Results of single fits in an SQLite file, to which several runs may write at the same time."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from math import nan
from pathlib import Path
from typing import Any, Generic, NamedTuple, Self, TypeVar

R = TypeVar("R", bound=Any)


class Key(NamedTuple):
    """The key of a fit: contender, data set, repeat and held-out fold."""

    contender: str
    dataset: str
    repeat: int
    fold: int


@dataclass(frozen=True)
class Result:
    """The result of a contender that was fitted to all folds but one and scored on the other.

    Attributes
    ----------
    contender, dataset : str
        The method and the data set.
    repeat, fold : int
        The repeat and the held-out fold.
    kind : {"classification", "regression"}
        Kind of the target.
    n_train, n_test : int
        Numbers of training rows and of held-out rows.
    accuracy, log_loss, brier : float
        Scores of a classifier on the held-out rows; the last two are NaN without probabilities.
        The Brier score is the squared distance from the class indicator.
    rmse, r2 : float
        Scores of a regressor on the held-out rows.
    fit_wall, fit_cpu, predict_wall, predict_cpu : float
        Seconds on one thread; the selection of parameters is part of a fit.
    best_score : float
        The estimator's own `best_score_`; NaN if it has none.
    versions : str
        Versions of Python and of all relevant packages.
    error : str
        The reason why there are no numbers; empty if there are.
    """

    contender: str
    dataset: str
    repeat: int
    fold: int
    kind: str
    n_train: int = 0
    n_test: int = 0
    accuracy: float = nan
    log_loss: float = nan
    brier: float = nan
    rmse: float = nan
    r2: float = nan
    fit_wall: float = nan
    fit_cpu: float = nan
    predict_wall: float = nan
    predict_cpu: float = nan
    best_score: float = nan
    versions: str = ""
    error: str = ""

    @property
    def key(self) -> Key:
        """Return the key of this fit."""
        return Key(self.contender, self.dataset, self.repeat, self.fold)


class Store(Generic[R]):
    """A file of results, each of which is stored completely and once, or not at all.

    Parameters
    ----------
    path : Path
        The file; it is created, with its folder, if it does not exist.
    result : type
        Data class of the results.
    key : type
        Named tuple of those fields of a result that together occur once.
    """

    def __init__(self, path: Path, result: type[R], key: type[Any]) -> None:
        self._result, self._key = result, key
        self._columns = [field.name for field in fields(result)]
        self._keys = ", ".join(key._fields)
        columns = ", ".join(self._columns)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, timeout=60.0)
        self._connection.execute("PRAGMA journal_mode = WAL")
        with self._connection as db:
            db.execute(
                f"CREATE TABLE IF NOT EXISTS results ({columns}, PRIMARY KEY ({self._keys}))"
            )
            db.execute("CREATE TABLE IF NOT EXISTS absent (name TEXT PRIMARY KEY, reason TEXT)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, result: R) -> None:
        """Store a result; an existing result is not replaced."""
        marks = ", ".join("?" * len(self._columns))
        with self._connection as db:
            db.execute(f"INSERT OR IGNORE INTO results VALUES ({marks})", astuple(result))

    def forget(self, keys: Sequence[Any], errors_only: bool) -> None:
        """Remove the results with these keys, or only their errors."""
        where = " AND ".join(f"{name} = ?" for name in self._key._fields)
        also = " AND error != ''" if errors_only else ""
        with self._connection as db:
            db.executemany(f"DELETE FROM results WHERE {where}{also}", keys)

    def keys(self) -> set[Any]:
        """Return the keys of all stored results."""
        rows = self._connection.execute(f"SELECT {self._keys} FROM results")
        return {self._key(*row) for row in rows}

    def results(self) -> list[R]:
        """Return all results, in the order of their keys."""
        columns = ", ".join(self._columns)
        rows = self._connection.execute(f"SELECT {columns} FROM results ORDER BY {self._keys}")
        return [self._result(*map(_value, row)) for row in rows]

    def note_absent(self, name: str, reason: str) -> None:
        """Store why a contender or a data set is not available; the reason is empty if it is."""
        with self._connection as db:
            db.execute("DELETE FROM absent WHERE name = ?", (name,))
            if reason:
                db.execute("INSERT INTO absent VALUES (?, ?)", (name, reason))

    def absent(self) -> dict[str, str]:
        """Return why contenders and data sets are not available, by name."""
        return dict(self._connection.execute("SELECT name, reason FROM absent ORDER BY name"))


def _value(cell: Any) -> Any:
    """Return a stored value; SQLite stores NaN as NULL."""
    return nan if cell is None else cell
