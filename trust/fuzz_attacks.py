"""Known attacks: files made to run code, to fill memory, or to write outside of their folder."""

from __future__ import annotations

import gzip
import io
import json
import pickle
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from karnet import load, save
from karnet.files._fitted import _parts
from karnet.tables import find_target, read_table
from trust import fuzz_models as models
from trust.fuzz_case import Case, Verdict, judge, kept_in


class Sly:
    """Unpickling this object runs code, which the audit hook observes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("import os; os.mkdir('sly')",)


def _model(folder: Path, kind: str = "classifier", **changed: Any) -> bytes:
    contents: dict[str, Any] = dict(models.parts(models.saved(kind, folder)))
    return models.packed({**contents, **changed})


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def _with_tree(folder: Path, change: Callable[[Any], None], kind: str = "classifier") -> bytes:
    tree = json.loads(models.parts(models.saved(kind, folder))["schema.json"])
    change(tree)
    return _model(folder, kind, **{"schema.json": json.dumps(tree)})


def _planted(folder: Path, node: dict[str, Any]) -> bytes:
    return _with_tree(folder, lambda tree: tree["content"]["content"].update(rcond=node))


def _multiplied(folder: Path) -> bytes:
    node: dict[str, Any] = models._node("ListNode", "builtins.list", content=[], __id__=1000)
    for k in range(1001, 1040):
        inner = [node, {"__id__": k - 1}]
        node = models._node("ListNode", "builtins.list", content=inner, __id__=k)
    return _planted(folder, node)


def _changed(folder: Path, kind: str, change: Callable[[Any], None]) -> bytes:
    """Return the file of a model that was modified after the fit."""
    model = deepcopy(models.seed(kind))
    for part in _parts(model):
        change(part)
    path = folder / models.FILE
    save(model, path)
    return path.read_bytes()


def _far_categories(part: Any) -> None:
    """Give an encoder fewer columns than categories, so that it would write out of bounds."""
    if hasattr(part, "_n_features_outs"):
        part._n_features_outs = [1] * len(part._n_features_outs)


def _far_words(part: Any) -> None:
    """Map the words of a vocabulary far beyond its columns."""
    if hasattr(part, "vocabulary_"):
        part.vocabulary_ = dict.fromkeys(part.vocabulary_, 10**6)


CLAIM = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (10**12,), }"
CLAIM = CLAIM.replace(b"10**12", b"1000000000000").ljust(127) + b"\n"
Make = Callable[[Path], bytes]
ATTACKS: dict[str, Make] = {
    "a pickle as the file": lambda _: pickle.dumps(Sly()),
    "a pickle as the header": lambda f: _model(f, **{"karnet.json": pickle.dumps(Sly())}),
    "a pickle as the tree": lambda f: _model(f, **{"schema.json": pickle.dumps(Sly())}),
    "a pickle in an array": lambda f: _model(f, **{"0.npy": _npy(np.array([Sly()], object))}),
    "the function os.system": lambda f: _planted(f, models._node("FunctionNode", "os.system")),
    "the type subprocess.Popen": lambda f: _planted(
        f, models._node("TypeNode", "subprocess.Popen")
    ),
    "a partial of eval": lambda f: _planted(f, models._node("PartialNode", "functools.partial")),
    "a name assembled from parts": lambda f: _planted(
        f, {**models._node("TypeNode", "numpy.seed"), "__class__": "random.seed"}
    ),
    "a folder of pickles": lambda f: _with_tree(
        f, lambda tree: tree["content"]["content"].update(memory=models._json('"/tmp"')), "encoders"
    ),
    "path traversal": lambda f: _model(f, **{"../sly.npy": b"0"}),
    "an absolute path": lambda f: _model(f, **{"/tmp/sly.npy": b"0"}),
    "a zip bomb in the tree": lambda f: _model(f, **{"schema.json": bytes(1 << 27)}),
    "a zip bomb in an array": lambda f: _model(f, **{"0.npy": _npy(np.zeros(1 << 23))}),
    "an array of 10^12 numbers": lambda f: _model(f, **{"0.npy": CLAIM}),
    "references that multiply": _multiplied,
    "lists nested 10^5 deep": lambda f: _model(f, **{"schema.json": "[" * 100_000}),
    "categories beyond an encoder's columns": lambda f: _changed(f, "encoders", _far_categories),
    "words beyond a vocabulary's columns": lambda f: _changed(f, "vectoriser", _far_words),
}


def _far_cells() -> bytes:
    """Return an Arrow file with offsets far outside of the file."""
    sink = io.BytesIO()
    table = pa.table({"a": ["one", "two", "three"], "b": [1, 2, 3]})
    with ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    offsets = np.array([0, 3, 6, 11], np.int32)
    far = np.array([0, 2**30, 2**30 + 3, 2**30 + 8], np.int32)
    data = sink.getvalue()
    assert data.count(offsets.tobytes()) == 1
    return data.replace(offsets.tobytes(), far.tobytes())


TABLE_ATTACKS: dict[str, Callable[[], bytes]] = {
    "Arrow: offsets outside of the file": _far_cells,
    "gzip in gzip": lambda: gzip.compress(gzip.compress(b"a,b\n1,2\n")),
    "gzip of zeros": lambda: gzip.compress(bytes(1 << 24)),
}


def attacked(folder: Path) -> dict[str, Verdict]:
    """Return the outcome of each attack; all must be refused."""
    found = {}
    models.warm(folder, (*models.SEEDS, *models.TABLES))
    for name, make in ATTACKS.items():
        path = folder / models.FILE
        path.write_bytes(make(folder))

        def run(path: Path = path) -> None:
            with kept_in():
                load(path)

        found[f"model file: {name}"] = judge(Case(name, run), folder)
    for name, make_table in TABLE_ATTACKS.items():
        path = folder / "table"
        path.write_bytes(make_table())
        found[f"table: {name}"] = judge(
            Case(name, lambda path=path: find_target(read_table(path), "a")), folder
        )
    return found
