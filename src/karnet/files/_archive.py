"""Writing, checking and reading the archive of a model file.

A model file is a zip archive in the format of skops. `schema.json` is a tree of nodes, the arrays
are .npy files, and `karnet.json` names the versions that wrote the file. Only types and functions
listed in `karnet.files.types` are written and read. Nothing is ever unpickled.
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
from .._util.extras import require
from .._version import __version__
from ._check import RefusedError, check_array, check_tree
from ._fitted import check_fitted
from ._tree import Tree
from .types import SKRUB, TRUSTED

# The version of the format.
FORMAT = 1
# The entry of the archive with the versions.
HEADER = "karnet.json"
# The entry of the archive with the tree.
TREE = "schema.json"
# The names of the entries with arrays.
ARRAY = re.compile(r"\d{1,9}\.npy")
# The largest number of decompressed bytes for each byte of a file.
MAX_EXPANSION = 100
# Decompressed bytes that are allowed in addition, for small files.
EXTRA_BYTES = 1 << 20
# The largest number of bytes of a tree, which takes about twenty times as many in memory.
MAX_TREE_BYTES = 1 << 27


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator to a file, either completely or not at all.

    Parameters
    ----------
    estimator : estimator
        A karnet estimator, fitted or not, alone or in a pipeline with scikit-learn's usual
        transformers, or with skrub's TableVectorizer, ApplyToCols and StringEncoder.
    path : str or path
        The file. An existing file is replaced when the new one is complete.

    Raises
    ------
    ValueError
        If the estimator has a part that a file cannot hold: a custom activation, a function, or an
        object of a type that is not listed.

    See Also
    --------
    load : Read an estimator from a file.

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
    versions = {"karnet": __version__, "scikit-learn": metadata.version("scikit-learn")}
    header = {"format": FORMAT, **versions, **_checked_skrub(tree.names)}
    texts = {HEADER: json.dumps(header), TREE: json.dumps(tree.root, separators=(",", ":"))}
    if len(texts[TREE]) > MAX_TREE_BYTES:
        raise ValueError(f"{type(estimator).__name__} has too many parts for a model file.")
    with whole_file(Path(path)) as unfinished, unfinished.open("xb+") as file:
        for compression in (ZIP_DEFLATED, ZIP_STORED):
            file.seek(0)
            file.truncate()
            n_bytes = _write(file, texts, tree.arrays, compression)
            # `load` would refuse a file that shrinks more, so its arrays are not compressed.
            if n_bytes <= MAX_EXPANSION * file.tell():
                break


def _checked_skrub(names: set[str]) -> dict[str, str]:
    """Return the version of skrub if one of its types is named, or raise if it is another one."""
    if not any(name.startswith("skrub.") for name in names):
        return {}
    require("a model file with a transformer of skrub", "table", "skrub")
    installed = metadata.version("skrub")
    if not installed.startswith(f"{SKRUB}."):
        raise ImportError(
            f"a model file with a transformer of skrub needs skrub {SKRUB}, but {installed} is "
            "installed: pip install 'karnet[table]'."
        )
    return {"skrub": installed}


def _write(
    file: IO[bytes], texts: dict[str, str], arrays: list[NDArray[Any]], compression: int
) -> int:
    """Write the archive, the same bytes for the same model, and return its decompressed size."""
    with ZipFile(file, "w") as archive:
        for name, text in texts.items():
            archive.writestr(ZipInfo(name), text, compression)
        for k, array in enumerate(arrays):
            entry = ZipInfo(f"{k}.npy")
            entry.compress_type = compression
            with archive.open(entry, "w", force_zip64=array.nbytes > 1 << 30) as part:
                npy.write_array(part, array, allow_pickle=False)
        return sum(info.file_size for info in archive.infolist())


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator from a file written by `save`.

    Reading a file cannot run code: all types and functions in the file must be on a fixed list,
    arrays are read without pickle, and sizes are checked before memory is allocated.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The estimator that was saved.

    Raises
    ------
    ValueError
        If the file is damaged, was changed, was not written by `save`, or was written by a newer
        version.

    See Also
    --------
    save : Write an estimator to a file.
    """
    require("reading model files", "files", "skops")
    import skops.io

    data = Path(path).read_bytes()
    try:
        header, names = _checked(data)
        _checked_skrub(names)
        # skops searches this list for every node, so a short one saves time.
        trusted = [name for name in TRUSTED if name in names]
        with warnings.catch_warnings():
            # It is about pickles; karnet's own warning follows.
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            estimator = skops.io.loads(data, trusted=trusted)
        check_fitted(estimator)
    except (ImportError, MemoryError, Warning):
        raise
    except Exception as error:
        damaged = f"it is damaged or was changed ({type(error).__name__})"
        reason = error if isinstance(error, RefusedError) else damaged
        raise ValueError(f"{os.fspath(path)} cannot be loaded: {reason}.") from error
    saved, installed = str(header.get("scikit-learn")), metadata.version("scikit-learn")
    uses_sklearn = any(name.startswith("sklearn.") for name in names)
    if uses_sklearn and saved.split(".")[:2] != installed.split(".")[:2]:
        warnings.warn(
            f"{os.fspath(path)} holds transformers of scikit-learn {saved:.20}, but {installed} is "
            "installed: compare predictions, or save the model again.",
            stacklevel=2,
        )
    return estimator


def _checked(data: bytes) -> tuple[dict[str, Any], set[str]]:
    """Check a model file, and return its header and the names in it."""
    if not data.startswith(b"PK\x03\x04"):
        raise RefusedError("it is not a whole model file of karnet (pickles are never read)")
    with ZipFile(io.BytesIO(data)) as archive:
        files = archive.infolist()
        _check_entries(files, len(data))
        header = _checked_header(json.loads(archive.read(HEADER)))
        arrays = {info.filename for info in files} - {HEADER, TREE}
        names = check_tree(json.loads(archive.read(TREE)), arrays)
        for name in arrays:
            with archive.open(name) as part:
                check_array(part, archive.getinfo(name).file_size)
    return header, names


def _check_entries(files: list[ZipInfo], n_bytes: int) -> None:
    names = [info.filename for info in files]
    if HEADER not in names or TREE not in names:
        raise RefusedError("it is not a model file of karnet")
    for info in files:
        if info.filename not in (HEADER, TREE) and not ARRAY.fullmatch(info.filename):
            raise RefusedError(f"it holds {info.filename!r}, which is not part of a model file")
        if info.flag_bits & 1 or info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise RefusedError("it is encrypted, or compressed by another method than deflate")
    if len(set(names)) < len(names):
        raise RefusedError("it holds two files of the same name")
    # zipfile never decompresses more bytes than an entry claims to have.
    sizes = {info.filename: info.file_size for info in files}
    if sum(sizes.values()) > MAX_EXPANSION * n_bytes + EXTRA_BYTES or sizes[TREE] > MAX_TREE_BYTES:
        raise RefusedError("it would decompress to far more bytes than a model file holds")


def _checked_header(content: Any) -> dict[str, Any]:
    header: dict[str, Any] = content if isinstance(content, dict) else {}
    number = header.get("format")
    if type(number) is not int or number < 1:
        raise RefusedError("it does not name its format")
    if number > FORMAT:
        raise RefusedError(
            f"it has format {number} and was written by karnet {header.get('karnet')!s:.20}, but "
            f"karnet {__version__} reads formats up to {FORMAT}: upgrade karnet"
        )
    skrub = str(header.get("skrub", SKRUB))
    if skrub != SKRUB and not skrub.startswith(f"{SKRUB}."):
        raise RefusedError(
            f"its transformers are of skrub {skrub:.20}, but karnet {__version__} reads {SKRUB}"
        )
    return header
