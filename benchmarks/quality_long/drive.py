"""The fits of a run, each in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import gmtime, strftime
from typing import Any

from ..quality.drive import PYTHONS, EndedError, Worker, standings
from ..quality.store import Store
from .peers import CONTENDERS
from .results import Key, Result
from .tables import Loader

WORKER = "benchmarks.quality_long.worker"


@dataclass(frozen=True)
class Plan:
    """The limit of a fit, and a folder for temporary files.

    Parameters
    ----------
    limit : int
        Seconds of CPU time after which a fit, with its predictions, is stopped.
    folder : Path
        Where each table is written for the processes that read it.
    """

    limit: int
    folder: Path


def installed_versions(contenders: Sequence[str], store: Store[Result]) -> dict[str, str]:
    """Return the versions of the contenders that are installed, and store why others are not."""
    found = {}
    for name, standing in standings([CONTENDERS[name] for name in contenders], WORKER).items():
        store.note_absent(name, standing["reason"])
        if standing["reason"]:
            print(f"{name}: {standing['reason']}")
        else:
            found[name] = standing["version"]
    return found


def run(
    tables: Mapping[str, Loader], versions: Mapping[str, str], store: Store[Result], plan: Plan
) -> Iterator[Result]:
    """Yield the results that are not stored yet, all contenders on one table after the other.

    Parameters
    ----------
    tables : mapping of str to callable
        The functions that load the tables, by name; why a table cannot be loaded is stored.
    versions : mapping of str to str
        The version of each contender, by name.
    store : Store
        The results so far; new ones are added before they are returned.
    plan : Plan
        The limit of a fit, and a folder for temporary files.
    """
    known = store.keys()
    for name, load in tables.items():
        todo = [key for key in keys([name], versions) if key not in known]
        if not todo:
            continue
        with TemporaryDirectory(dir=plan.folder) as folder:
            path = Path(folder) / "table.npz"
            described = _prepare(name, load, path, store)
            for key in todo if described else ():
                result = _fit(key, path, described, plan.limit)
                store.add(result)
                yield result


def keys(tables: Sequence[str], versions: Mapping[str, str]) -> list[Key]:
    """Return the keys of all contenders on all tables."""
    return [Key(name, table, version) for table in tables for name, version in versions.items()]


def _prepare(name: str, load: Loader, path: Path, store: Store[Result]) -> dict[str, Any]:
    """Write a table to a file, and return its description, or nothing if it is not available."""
    try:
        table = load()
    except (ImportError, KeyError, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        store.note_absent(name, reason)
        print(f"{name}: {reason}")
        return {}
    store.note_absent(name, "")
    table.save(path)
    return table.description


def _fit(key: Key, path: Path, described: dict[str, Any], limit: int) -> Result:
    worker = Worker(PYTHONS[CONTENDERS[key.contender].environment], WORKER)
    try:
        return Result(**worker.request({"key": key, "table": str(path.resolve()), "limit": limit}))
    except EndedError as error:
        measured = strftime("%Y-%m-%d %H:%M:%S", gmtime())
        return Result(*key, **described, measured=measured, error=error.reason(limit))
    finally:
        worker.end()
