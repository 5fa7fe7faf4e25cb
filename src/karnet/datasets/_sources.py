"""Where files of data sets lie, how they are read, and how OpenML is asked for one."""

from __future__ import annotations

import csv
import os
import sys
import warnings
from collections.abc import Callable
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any
from urllib.error import URLError

import numpy as np
from sklearn.datasets import fetch_openml

from .._util.atomic_file import whole_file
from ._catalogue import DataSet
from ._tidy import Cells, Loaded, Source, pandas, refusal, tidy

Folder = str | os.PathLike[str] | None


def data_folder(named: Folder) -> Path | None:
    """Return the folder of the user's own files: as named, or KARNET_DATA; None without both."""
    given = named if named is not None else os.environ.get("KARNET_DATA") or None
    if given is None:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise NotADirectoryError(
            f"the data folder {folder} does not exist: let data or KARNET_DATA name a folder "
            "of CSV files."
        )
    return folder


def cache_folder(named: Folder) -> Path:
    """Return the folder for downloads: as named, or KARNET_CACHE, or the platform's own."""
    given = named if named is not None else os.environ.get("KARNET_CACHE") or None
    return _user_cache() / "karnet" if given is None else Path(given).expanduser()


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def read(data: DataSet, path: Path, source: Source) -> Loaded:
    """Return the data set in a CSV file.

    The file has a header row; features come first, then `split` (train or test) where there is a
    fixed split, and `target` last; an empty cell is a missing value.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = [line for line in csv.reader(file, strict=True) if line]
    except (OSError, ValueError, csv.Error) as error:
        raise refusal(data, str(path), f"it cannot be read as CSV ({error})") from error
    names, rows = (lines[0], lines[1:]) if lines else ([], [])
    for k, row in enumerate(rows, start=1):
        if len(row) != len(names):
            why = f"row {k} has {len(row)} cells and should have {len(names)}"
            raise refusal(data, str(path), why)
    values = np.array(rows, dtype=object).reshape(len(rows), len(names))
    return tidy(data, Cells(names, values), source, str(path))


def fetch(data: DataSet, cache: Path) -> Loaded:
    """Return the data set that OpenML has under the pinned id, and keep it as CSV in the cache.

    Only what has passed every check is kept.
    """
    pandas()
    where = f"OpenML's data set {data.openml}"
    try:
        cells = _ask(data)
    except (URLError, TimeoutError, ConnectionError) as error:
        raise ConnectionError(
            f"the data set {data.name!r} cannot be fetched from OpenML ({error}): try again later, "
            f"or put {data.name}.csv into the folder that data or KARNET_DATA names."
        ) from error
    # A damaged answer makes scikit-learn fail in any way.
    except Exception as error:
        said = str(error).partition(". ")[0].rstrip(".")
        raise refusal(data, where, f"it cannot be read ({said})") from error
    loaded = tidy(data, cells, "openml", where)
    _keep(cells, cache / f"{data.name}.csv")
    return loaded


def _ask(data: DataSet) -> Cells:
    with TemporaryDirectory() as home, warnings.catch_warnings():
        # What these say before a second try, an error says if that fails too.
        for start in ("A network error", "Invalid cache", "Downloaded file"):
            warnings.filterwarnings("ignore", start)
        # The other parser fails on nominal values that are numbers, with some versions of pandas.
        answer = fetch_openml(
            data_id=data.openml, data_home=home, as_frame=True, parser="liac-arff"
        )
    table = answer.data.assign(target=answer.target).astype(object)
    values = table.where(table.notna(), "").to_numpy(dtype=object)
    regroup = REGROUP.get(data.name, _unchanged)
    for row in values:
        row[:] = [BOOLEANS.get(cell, cell) for cell in row]
        row[-1] = regroup(row[-1])
    return Cells([str(name) for name in table.columns], values)


# How OpenML writes features that are 0 or 1 at UCI.
BOOLEANS: MappingProxyType[Any, int] = MappingProxyType({"true": 1, "false": 0})


def _unchanged(label: Any) -> Any:
    return label


def _rings(label: Any) -> str:
    rings = float(label)
    return "1-8" if rings <= 8 else "9-10" if rings <= 10 else "11+"


def _price(label: Any) -> int:
    price = log(1000 * float(label))
    return 1 if price <= 9.84 else 2 if price <= 10.075 else 3


# OpenML keeps these targets as counts and prices.
REGROUP: MappingProxyType[str, Callable[[Any], Any]] = MappingProxyType(
    {"abalone": _rings, "boston-housing": _price}
)


def _keep(cells: Cells, path: Path) -> None:
    """Write the cells as CSV, so that a file with this name is always a whole one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as new, new.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(cells.names)
        writer.writerows(cells.values.tolist())
