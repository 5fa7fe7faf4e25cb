"""Results of single fits in one SQLite file, so that a run can be killed and taken up again."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from math import nan
from pathlib import Path
from typing import Any, Self

from .._util.atomic_file import whole_file

__all__ = ["Fit", "Key", "Store", "write_csv"]

# What tells one fit from another.
Key = tuple[str, str, int, int]


@dataclass(frozen=True)
class Fit:
    """One network trained on one part of one data set and scored on the other.

    Attributes
    ----------
    method, dataset : str
        Which network (and variant of the protocol), on which data set.
    trial, fold : int
        Which repetition, and which part is held out.
    structure : str
        Widths of the hidden layers, such as "20-10".
    accuracy : float
        Share of the held-out rows that were put into the right class; NaN without a training.
    cpu, wall : float
        Seconds that the training took, without the choice of the width; NaN without a training.
    cpu_in_all : float
        Seconds that the processor was at it, the choice of the width included.
    seed : int
        What the network's weights were drawn with.
    versions : str
        Of karnet, NumPy, SciPy and scikit-learn.
    note : {"", "out of memory", "time limit"}
        Why there was no training, or why it ended early.
    """

    method: str
    dataset: str
    trial: int
    fold: int
    structure: str
    accuracy: float
    cpu: float
    wall: float
    cpu_in_all: float
    seed: int
    versions: str
    note: str = ""

    @property
    def key(self) -> Key:
        """Return what tells this fit from every other."""
        return self.method, self.dataset, self.trial, self.fold


COLUMNS = tuple(field.name for field in fields(Fit))


class Store:
    """A file of fits; each is either there, whole and once, or not at all.

    Parameters
    ----------
    path : Path
        The file; made if it does not exist.
    settings : str
        What a single fit depends on beside its key. A file made with other settings is refused:
        its fits could not be told from those of this run.
    """

    def __init__(self, path: Path, settings: str) -> None:
        self._path = path
        with self._named():
            self._connection = sqlite3.connect(path, timeout=60.0)
        try:
            self._prepare(path.name, settings)
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Say of which file it is that SQLite fails."""
        try:
            yield
        except sqlite3.Error as error:
            raise OSError(f"{self._path} cannot be used: {error}.") from error

    @contextmanager
    def _changes(self) -> Iterator[sqlite3.Connection]:
        """Give the connection for changes that are made together or not at all."""
        with self._named(), self._connection as db:
            yield db

    def _prepare(self, name: str, settings: str) -> None:
        with self._changes() as db:
            db.execute("CREATE TABLE IF NOT EXISTS settings (settings TEXT PRIMARY KEY)")
            db.execute("CREATE TABLE IF NOT EXISTS commands (command TEXT PRIMARY KEY)")
            db.execute(
                f"CREATE TABLE IF NOT EXISTS fits ({', '.join(COLUMNS)}, "
                "PRIMARY KEY (method, dataset, trial, fold))"
            )
            db.execute("INSERT OR IGNORE INTO settings VALUES (?)", (settings,))
            known = [row[0] for row in db.execute("SELECT settings FROM settings")]
            if known != [settings]:
                raise ValueError(
                    f"{name} was made with other settings ({known[0]}): "
                    "name another folder, or run with the same settings."
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, fits: list[Fit]) -> None:
        """Keep fits; one that is there already stays as it is."""
        marks = ", ".join("?" * len(COLUMNS))
        with self._changes() as db:
            db.executemany(
                f"INSERT OR IGNORE INTO fits VALUES ({marks})", [astuple(fit) for fit in fits]
            )

    def add_command(self, command: str) -> None:
        """Keep the command that fits are made with, once."""
        with self._changes() as db:
            db.execute("INSERT OR IGNORE INTO commands VALUES (?)", (command,))

    def commands(self) -> list[str]:
        """Return the commands that fits were made with, in the order of their first use."""
        return [row[0] for row in self._read("SELECT command FROM commands ORDER BY rowid")]

    def keys(self) -> set[Key]:
        """Return the keys of all fits that are there."""
        return set(self._read("SELECT method, dataset, trial, fold FROM fits"))

    def fits(self) -> list[Fit]:
        """Return all fits, in the order of their keys."""
        order = "ORDER BY method, dataset, trial, fold"
        rows = self._read(f"SELECT {', '.join(COLUMNS)} FROM fits {order}")
        return [Fit(*map(_value, row)) for row in rows]

    def _read(self, query: str) -> list[Any]:
        with self._named():
            return self._connection.execute(query).fetchall()

    def write_csv(self, path: Path) -> None:
        """Write all fits, one a row."""
        write_csv(path, COLUMNS, map(astuple, self.fits()))


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table into a file that is there whole or not at all."""
    with whole_file(path) as new, new.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def _value(cell: Any) -> Any:
    """Return what was stored; SQLite keeps NaN as NULL."""
    return nan if cell is None else cell
