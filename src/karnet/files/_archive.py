"""The archive of a model file: how it is written, checked and read.

A model file is a zip archive in the format of skops. `schema.json` is a tree of nodes, its arrays
are .npy files, and `karnet.json` names the versions that wrote it. Only types and functions listed
in `karnet.files.types` are resolved, both when writing and when reading. Nothing is ever unpickled.
"""

from __future__ import annotations

import io
import json
import os
import re
import warnings
from importlib import metadata
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from numpy.lib import format as npy
from numpy.typing import NDArray
from sklearn.exceptions import InconsistentVersionWarning

from .._util.atomic_file import whole_file
from .._version import __version__
from ._check import RefusedError, check_array, check_tree
from ._fitted import check_fitted
from ._tree import Tree
from .types import SKRUB, TRUSTED, by_tag

__all__ = ["load", "save"]

# The version of the format above. Format 1 named classes by the modules they were in.
FORMAT = 2
HEADER, TREE, ARRAY = "karnet.json", "schema.json", re.compile(r"\d{1,9}\.npy")
# How many bytes may come out of each byte of a file, and of a small one in any case.
RATIO, SLACK = 100, 1 << 20
# Most bytes of a tree, which takes some twenty times that in memory.
LARGEST_TREE = 1 << 27
# Numbers hardly shrink, at any level.
LEVEL = 1


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator to a file, whole or not at all.

    Parameters
    ----------
    estimator : estimator
        A karnet estimator, fitted or not, alone or in a pipeline with scikit-learn's usual
        transformers and skrub's TableVectorizer.
    path : str or path
        The file. If there is one, it is replaced when the new one is complete.

    Raises
    ------
    ValueError
        If it holds what a file cannot: custom activations, functions, types that are not listed.

    See Also
    --------
    load : Read it again.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from karnet import KARClassifier, load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> net = KARClassifier((10,), random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     save(net, f"{folder}/iris.karnet")
    ...     again = load(f"{folder}/iris.karnet")
    >>> bool((again.predict(X) == net.predict(X)).all())
    True
    """
    tree = Tree(estimator)
    header = json.dumps({"format": FORMAT, **_versions(tree.names)})
    schema = json.dumps(tree.root, separators=(",", ":"))
    if len(schema) > LARGEST_TREE:
        raise ValueError(f"{type(estimator).__name__} has too many parts for a model file.")
    texts = {HEADER: header, TREE: schema}
    with whole_file(Path(path)) as unfinished, unfinished.open("xb+") as file:
        for compression in (ZIP_DEFLATED, ZIP_STORED):
            file.seek(0)
            file.truncate()
            n_bytes = _write(file, texts, tree.arrays, compression)
            # What shrinks more than `load` lets pass is left as it is.
            if n_bytes <= RATIO * file.tell():
                break


def _versions(names: set[str]) -> dict[str, str]:
    """Return the versions of all libraries whose types are saved."""
    found = {"karnet": __version__, "scikit-learn": metadata.version("scikit-learn")}
    if _uses_skrub(names):
        found["skrub"] = _checked_skrub()
    return found


def _uses_skrub(names: set[str]) -> bool:
    return any(name.startswith("skrub.") for name in names)


def _checked_skrub() -> str:
    """Return the version of skrub, if it is one whose types are listed."""
    wanted = f"needs skrub {SKRUB}: pip install 'karnet[table]'."
    try:
        found = metadata.version("skrub")
    except metadata.PackageNotFoundError as error:
        raise ImportError(f"a model file with a TableVectorizer {wanted}") from error
    if not found.startswith(f"{SKRUB}."):
        raise ImportError(f"a model file with a TableVectorizer {wanted} Installed is {found}.")
    return found


def _write(
    file: IO[bytes], texts: dict[str, str], arrays: list[NDArray[Any]], compression: int
) -> int:
    """Write the archive and return how many bytes come out of it; the same gives the same."""

    def entry(name: str) -> ZipInfo:
        info = ZipInfo(name)
        info.compress_type = compression
        return info

    with ZipFile(file, "w", compresslevel=LEVEL) as archive:
        for name, text in texts.items():
            archive.writestr(entry(name), text)
        for k, array in enumerate(arrays):
            with archive.open(entry(f"{k}.npy"), "w", force_zip64=array.nbytes > 1 << 30) as part:
                npy.write_array(part, array, allow_pickle=False)
        return sum(info.file_size for info in archive.infolist())


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator from a file that `save` wrote.

    Nothing in the file can make this run code: types and functions in it must be on a fixed list,
    arrays are read without pickle, and sizes are checked before anything is allocated.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        As it was saved.

    Raises
    ------
    ValueError
        If the file is damaged, was changed, comes from elsewhere or from a newer version.

    See Also
    --------
    save : Write it.
    """
    try:
        import skops.io
    except ModuleNotFoundError as error:
        raise ImportError(
            "reading model files needs skops: pip install 'karnet[files]'."
        ) from error

    data = Path(path).read_bytes()
    try:
        data, header, names = _checked(data)
        if _uses_skrub(names):
            _checked_skrub()
        # A shorter list is searched sooner, and skops searches it for every node.
        trusted = [name for name in TRUSTED if name in names]
        with warnings.catch_warnings():
            # One warning is enough, and it is not about pickles.
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            estimator = skops.io.loads(data, trusted=trusted)
        check_fitted(estimator)
    except (ImportError, MemoryError, Warning):
        raise
    except RefusedError as error:
        raise ValueError(f"{os.fspath(path)} cannot be loaded: {error}.") from error
    except Exception as error:
        raise ValueError(
            f"{os.fspath(path)} cannot be loaded: it is damaged or was changed "
            f"({type(error).__name__})."
        ) from error
    _warn_of_versions(path, header, names)
    return estimator


def _warn_of_versions(
    path: str | os.PathLike[str], header: dict[str, Any], names: set[str]
) -> None:
    saved, here = str(header.get("scikit-learn")), metadata.version("scikit-learn")
    theirs = any(name.startswith("sklearn.") for name in names)
    if theirs and saved.split(".")[:2] != here.split(".")[:2]:
        warnings.warn(
            f"{os.fspath(path)} holds transformers of scikit-learn {saved:.20}, and {here} is "
            "installed: compare predictions, or save it again.",
            stacklevel=3,
        )


def _checked(data: bytes) -> tuple[bytes, dict[str, Any], set[str]]:
    """Return a model file in today's format, its header and the names in it, if it is valid."""
    if not data.startswith(b"PK\x03\x04"):
        raise RefusedError(
            "it is no model file of karnet, or only a part of one (pickles are never read)"
        )
    with ZipFile(io.BytesIO(data)) as archive:
        files = archive.infolist()
        _check_entries(files, len(data))
        header = _checked_header(json.loads(archive.read(HEADER)))
        if header["format"] == 1:
            return _checked(_upgraded(archive, header))
        arrays = {info.filename for info in files} - {HEADER, TREE}
        names = check_tree(json.loads(archive.read(TREE)), arrays)
        for name in arrays:
            with archive.open(name) as part:
                check_array(part, archive.getinfo(name).file_size)
    return data, header, names


def _upgraded(archive: ZipFile, header: dict[str, Any]) -> bytes:
    """Return an archive of format 1 in today's format: classes named by their tags."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as upgraded:
        upgraded.writestr(HEADER, json.dumps({**header, "format": FORMAT}))
        upgraded.writestr(TREE, by_tag(archive.read(TREE).decode()))
        for info in archive.infolist():
            if info.filename not in (HEADER, TREE):
                upgraded.writestr(info.filename, archive.read(info))
    return buffer.getvalue()


def _check_entries(files: list[ZipInfo], n_bytes: int) -> None:
    names = [info.filename for info in files]
    if HEADER not in names or TREE not in names:
        raise RefusedError("it is no model file of karnet")
    for info in files:
        if info.filename not in (HEADER, TREE) and not ARRAY.fullmatch(info.filename):
            raise RefusedError(f"it holds {info.filename!r}, which has no place in a model file")
        if info.flag_bits & 1 or info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise RefusedError("it is encrypted, or compressed in a way that is not ours")
    if len(set(names)) < len(names):
        raise RefusedError("it holds two files of one name")
    # No more than a file claims is ever decompressed.
    sizes = {info.filename: info.file_size for info in files}
    if sum(sizes.values()) > RATIO * n_bytes + SLACK or sizes[TREE] > LARGEST_TREE:
        raise RefusedError("far more would come out of it than a model file holds")


def _checked_header(said: Any) -> dict[str, Any]:
    header: dict[str, Any] = said if isinstance(said, dict) else {}
    number = header.get("format")
    if type(number) is not int or number < 1:
        raise RefusedError("it does not say which format it has")
    if number > FORMAT:
        raise RefusedError(
            f"it has format {number} and was written by karnet {header.get('karnet')!s:.20}, but "
            f"this is karnet {__version__}, which reads formats up to {FORMAT}: upgrade karnet"
        )
    skrub = str(header.get("skrub", SKRUB))
    if skrub != SKRUB and not skrub.startswith(f"{SKRUB}."):
        raise RefusedError(
            f"its TableVectorizer is of skrub {skrub:.20}, and this karnet reads those of {SKRUB}"
        )
    return header
