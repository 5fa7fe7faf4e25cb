"""One loader over all sources, and what they offer here."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from ._builtin import BUILT_IN
from ._catalogue import DATASETS, DataSet
from ._sources import Folder, cache_folder, data_folder, fetch, read
from ._tidy import Loaded, Source, tidy

LISTING_HEADER = ("number", "name", "rows", "features", "classes", "source here", "deviation")


def load(name: str, data: Folder = None, cache: Folder = None, download: bool = False) -> Loaded:
    """Return the features, labels and split of one of the paper's data sets.

    The first source that has the set serves it: the user's folder, what is built in, the cache of
    earlier downloads, OpenML. Whatever it is, the result is checked against `DATASETS`; a file
    that is damaged or another set is refused, and no other source is tried in its place.

    Parameters
    ----------
    name : str
        One of the names in `DATASETS`.
    data : path, optional
        A folder of CSV files called by the names of the data sets, each with a header row, the
        features first, `split` (train or test) where there is a fixed split, and `target` last; an
        empty cell is a missing value. Without it, the environment variable KARNET_DATA counts.
    cache : path, optional
        The folder for downloads. Without it, KARNET_CACHE or the platform's own folder counts.
    download : bool
        Whether OpenML may be asked.

    Returns
    -------
    loaded : Loaded
        With the attributes name, X, y, split and source.
    """
    spec = _spec(name)
    folder, kept = data_folder(data), cache_folder(cache)
    source = _source(spec, folder, kept)
    if source == "folder" and folder is not None:
        return read(spec, folder / f"{name}.csv", source)
    if source == "built-in":
        return tidy(spec, BUILT_IN[name](), source, "what is built in")
    if source == "cache":
        return read(spec, kept / f"{name}.csv", source)
    if source == "openml" and download:
        return fetch(spec, kept)
    also = ", or fetch it from OpenML with download=True" if source == "openml" else ""
    raise FileNotFoundError(
        f"the data set {name!r} is not available here: put {name}.csv into the folder that data "
        f"or KARNET_DATA names{also}."
    )


def available(data: Folder = None, cache: Folder = None) -> dict[str, Source | None]:
    """Return which source would serve each data set here, by name.

    "openml" means that a download would be needed, None that no source is known. Files are only
    looked for; they are checked when they are loaded.
    """
    folder, kept = data_folder(data), cache_folder(cache)
    return {name: _source(spec, folder, kept) for name, spec in DATASETS.items()}


def listing(data: Folder = None, cache: Folder = None) -> list[tuple[str, ...]]:
    """Return a row of text for each data set, with the columns of `LISTING_HEADER`."""
    rows: list[tuple[str, ...]] = []
    for name, source in available(data, cache).items():
        spec = DATASETS[name]
        n_rows = spec.built_in if source == "built-in" else spec.here.rows
        sizes = (str(n_rows), str(spec.here.features), str(spec.here.classes))
        rows.append((str(spec.number), name, *sizes, _in_words(source), spec.deviation))
    return rows


def _in_words(source: Source | None) -> str:
    if source is None:
        return "none"
    return "OpenML, by download" if source == "openml" else source.replace("-", " ")


def _spec(name: str) -> DataSet:
    if name in DATASETS:
        return DATASETS[name]
    near = get_close_matches(name, DATASETS, n=1) or ["iris"]
    raise ValueError(
        f"there is no data set {name!r}: give one of the names in DATASETS, such as {near[0]!r}."
    )


def _source(spec: DataSet, folder: Path | None, cache: Path) -> Source | None:
    if folder is not None and (folder / f"{spec.name}.csv").exists():
        return "folder"
    if spec.built_in is not None:
        return "built-in"
    if (cache / f"{spec.name}.csv").exists():
        return "cache"
    return None if spec.openml is None else "openml"
