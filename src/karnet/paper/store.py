"""A store of fits in an SQLite file, so that a run that was killed can be resumed."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from math import nan
from pathlib import Path
from typing import Any, NamedTuple, Self

from .._util.atomic_file import whole_file


class Key(NamedTuple):
    """The names and numbers that identify a fit."""

    method: str  # a name in `METHODS`
    dataset: str
    trial: int  # the number of the repetition
    fold: int  # the number of the part that is held out


class Fit(NamedTuple):
    """One network, trained on one part of a data set and scored on the other part."""

    method: str  # this and the next three are the key
    dataset: str
    trial: int
    fold: int
    structure: str  # widths of the hidden layers, such as "20-10"
    accuracy: float  # on the held-out rows; NaN without a training, as are the next two
    cpu: float  # seconds of CPU time of the training, without the choice of the width
    wall: float  # seconds of the training, without the choice of the width
    cpu_in_all: float  # seconds of CPU time, including the choice of the width
    seed: int  # the seed of the network's weights
    versions: str  # of karnet, NumPy, SciPy and scikit-learn
    note: str = ""  # "out of memory" without a training, "time limit" if it ended early

    @property
    def key(self) -> Key:
        """The key that identifies this fit."""
        return Key(*self[:4])


class Store:
    """A file of fits, created if it does not exist; each fit is stored completely or not at all.

    `settings` are the settings that change a single fit. A file with other settings is refused,
    because its fits are not comparable with those of this run.
    """

    def __init__(self, path: Path, settings: str) -> None:
        self._path = path
        with self._named():
            self._connection = sqlite3.connect(path, timeout=60.0)
        try:
            self._prepare(settings)
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file in errors of SQLite."""
        try:
            yield
        except sqlite3.Error as error:
            raise OSError(f"{self._path} cannot be used: {error}.") from error

    def _prepare(self, settings: str) -> None:
        with self._named(), self._connection as db:
            columns = f"{', '.join(Fit._fields)}, PRIMARY KEY ({', '.join(Key._fields)})"
            db.execute("CREATE TABLE IF NOT EXISTS settings (settings TEXT PRIMARY KEY)")
            db.execute("CREATE TABLE IF NOT EXISTS commands (command TEXT PRIMARY KEY)")
            db.execute(f"CREATE TABLE IF NOT EXISTS fits ({columns})")
            db.execute("INSERT OR IGNORE INTO settings VALUES (?)", (settings,))
            stored = [row[0] for row in db.execute("SELECT settings FROM settings")]
            if stored != [settings]:
                raise ValueError(
                    f"{self._path.name} was made with other settings ({stored[0]}): "
                    "give another folder, or run with the same settings."
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, fits: list[Fit]) -> None:
        """Store fits; a fit that is already stored does not change."""
        insert = f"INSERT OR IGNORE INTO fits VALUES ({', '.join('?' * len(Fit._fields))})"
        with self._named(), self._connection as db:
            db.executemany(insert, fits)

    def add_command(self, command: str) -> None:
        """Store a command that makes fits; a repeated command is stored once."""
        with self._named(), self._connection as db:
            db.execute("INSERT OR IGNORE INTO commands VALUES (?)", (command,))

    def commands(self) -> list[str]:
        """Return the stored commands, in the order of their first use."""
        return [row[0] for row in self._read("SELECT command FROM commands ORDER BY rowid")]

    def keys(self) -> set[Key]:
        """Return the keys of all fits."""
        return {Key(*row) for row in self._read(f"SELECT {', '.join(Key._fields)} FROM fits")}

    def fits(self) -> list[Fit]:
        """Return all fits, in the order of their keys."""
        columns, order = ", ".join(Fit._fields), ", ".join(Key._fields)
        rows = self._read(f"SELECT {columns} FROM fits ORDER BY {order}")
        # SQLite stores NaN as NULL.
        return [Fit._make(nan if cell is None else cell for cell in row) for row in rows]

    def _read(self, query: str) -> list[Any]:
        with self._named():
            return self._connection.execute(query).fetchall()


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file, completely or not at all."""
    with whole_file(path) as new, new.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(chain([header], rows))
