"""Loading of the paper's data sets: built in, from CSV files, or from OpenML."""

from __future__ import annotations

import csv
import os
import sys
import warnings
from bisect import bisect_left
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import URLError

import numpy as np
from sklearn.datasets import fetch_openml

from .._util.atomic_file import whole_file
from ._builtin import BUILT_IN
from ._catalogue import DATASETS, DataSet
from ._tidy import Cells, Loaded, RefusalError, SourceName, pandas, tidy

Folder = str | os.PathLike[str] | None
# The columns of `listing`.
LISTING_HEADER = ("number", "name", "rows", "features", "classes", "source here", "deviation")


def load(name: str, data: Folder = None, cache: Folder = None, download: bool = False) -> Loaded:
    """Return the features, labels and split of one of the paper's data sets.

    The data set is taken from the first source that has it: the user's folder, the built-in data
    sets, the cache of earlier downloads, OpenML. Data from all sources are checked against
    `DATASETS`; a file that is damaged or holds another data set is refused, and no other source is
    tried in its place.

    Parameters
    ----------
    name : str
        One of the names in `DATASETS`.
    data : path, optional
        A folder of CSV files named after the data sets, each with a header row, the features
        first, `split` (train or test) for data sets with a fixed split, and `target` last; an
        empty cell is a missing value. The default is the environment variable KARNET_DATA.
    cache : path, optional
        The folder for downloads. The default is KARNET_CACHE, or the platform's cache folder.
    download : bool
        Whether the data set may be downloaded from OpenML.

    Returns
    -------
    loaded : Loaded
        With the attributes name, X, y, split and source.
    """
    if name not in DATASETS:
        near, *_ = *get_close_matches(name, DATASETS, n=1), "iris"
        raise ValueError(
            f"there is no data set {name!r}: give one of the names in DATASETS, such as {near!r}."
        )
    spec, kept = DATASETS[name], cache_folder(cache)
    source, path = _source(spec, data_folder(data), kept)
    if source is None or (source == "openml" and not download):
        also = ", or fetch it from OpenML with download=True" if source else ""
        raise FileNotFoundError(
            f"the data set {name!r} is not available here: put {name}.csv into the folder that "
            f"data or KARNET_DATA names{also}."
        )
    try:
        cells = _read(path) if path else BUILT_IN[name]() if spec.built_in else _fetch(spec)
        loaded = tidy(spec, cells, source)
    except RefusalError as reason:
        where = "the built-in data set" if spec.built_in else f"OpenML's data set {spec.openml}"
        message = f"{path or where} is refused as the data set {name!r}: {reason}."
        raise ValueError(message) from reason
    if source == "openml":
        kept.mkdir(parents=True, exist_ok=True)
        path = kept / f"{name}.csv"
        with whole_file(path) as new, new.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([cells.names, *cells.values.tolist()])
    return loaded


def available(data: Folder = None, cache: Folder = None) -> dict[str, SourceName | None]:
    """Return the source that each data set would be loaded from, by name.

    "openml" means that a download is needed, None that there is no source. Files are not checked
    before they are loaded.
    """
    folder, kept = data_folder(data), cache_folder(cache)
    return {name: _source(spec, folder, kept)[0] for name, spec in DATASETS.items()}


def listing(data: Folder = None, cache: Folder = None) -> list[tuple[str, ...]]:
    """Return a row of text for each data set, with the columns of `LISTING_HEADER`."""
    rows = []
    words = {None: "none", "built-in": "built in", "openml": "OpenML, by download"}
    for name, source in available(data, cache).items():
        spec = DATASETS[name]
        n_rows = spec.built_in if source == "built-in" else spec.here.rows
        cells = (n_rows, *spec.here[1:], words.get(source, source), spec.deviation)
        rows.append((str(spec.number), name, *map(str, cells)))
    return rows


def _source(
    spec: DataSet, folder: Path | None, cache: Path
) -> tuple[SourceName | None, Path | None]:
    """Return the first source that has a data set, and its file if it has one."""
    name = f"{spec.name}.csv"
    if folder is not None and (folder / name).exists():
        return "folder", folder / name
    if spec.built_in is not None:
        return "built-in", None
    if (cache / name).exists():
        return "cache", cache / name
    return None if spec.openml is None else "openml", None


def data_folder(named: Folder) -> Path | None:
    """Return the folder of the user's files: the one given, or KARNET_DATA, or None."""
    given = named if named is not None else os.environ.get("KARNET_DATA") or None
    folder = None if given is None else Path(given).expanduser()
    if folder is not None and not folder.is_dir():
        raise NotADirectoryError(
            f"the data folder {folder} does not exist: set data or KARNET_DATA to a folder of CSV "
            "files."
        )
    return folder


def cache_folder(named: Folder) -> Path:
    """Return the folder for downloads: the one given, or KARNET_CACHE, or the platform's."""
    given = named if named is not None else os.environ.get("KARNET_CACHE") or None
    if given is not None:
        return Path(given).expanduser()
    if sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        caches = Path.home() / "Library" / "Caches"
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "karnet"


def _read(path: Path) -> Cells:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = [line for line in csv.reader(file, strict=True) if line]
    except (OSError, ValueError, csv.Error) as error:
        raise RefusalError(f"it cannot be read as CSV ({error})") from error
    names, rows = (lines[0], lines[1:]) if lines else ([], [])
    for k, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise RefusalError(f"row {k} has {len(row)} cells and should have {len(names)}")
    return Cells(names, np.array(rows, dtype=object).reshape(len(rows), len(names)))


def _fetch(spec: DataSet) -> Cells:
    """Return the data set with the pinned id of OpenML."""
    pandas()
    try:
        return _download(spec)
    except (URLError, TimeoutError, ConnectionError) as error:
        raise ConnectionError(
            f"the data set {spec.name!r} cannot be fetched from OpenML ({error}): try again later, "
            f"or put {spec.name}.csv into the folder that data or KARNET_DATA names."
        ) from error
    # scikit-learn raises errors of any type for a damaged answer.
    except Exception as error:
        reason = str(error).partition(". ")[0].rstrip(".")
        raise RefusalError(f"it cannot be read ({reason})") from error


def _download(spec: DataSet) -> Cells:
    # The cache of `fetch_openml` is not used: it also keeps answers that fail the checks, and does
    # not tell without a connection whether it holds a data set.
    with TemporaryDirectory(ignore_cleanup_errors=True) as home, warnings.catch_warnings():
        # These warnings come before a second try, whose failure is an error.
        for start in ("A network error", "Invalid cache", "Downloaded file"):
            warnings.filterwarnings("ignore", start)
        # The other parser fails on nominal values that are numbers, with some versions of pandas.
        bunch = fetch_openml(data_id=spec.openml, data_home=home, as_frame=True, parser="liac-arff")
    table = bunch.data.assign(target=bunch.target).astype(object)
    values = table.where(table.notna(), "").to_numpy(dtype=object)
    for row in values:
        row[:] = [BOOLEANS.get(cell, cell) for cell in row]
        if spec.name in REGROUP:
            row[-1] = REGROUP[spec.name](row[-1])
    return Cells([str(name) for name in table.columns], values)


# OpenML's words for features that are 0 or 1 at UCI.
BOOLEANS: Mapping[Any, int] = {"true": 1, "false": 0}
# The paper's classes of targets that are counts of rings and prices at OpenML.
REGROUP: Mapping[str, Callable[[Any], Any]] = {
    "abalone": lambda rings: ("1-8", "9-10", "11+")[bisect_left((8, 10), float(rings))],
    "boston-housing": lambda price: 1 + bisect_left((9.84, 10.075), log(1000 * float(price))),
}
