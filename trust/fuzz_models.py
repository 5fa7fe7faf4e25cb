"""Modified model files: trees, arrays, archives and bytes are changed, then read and used."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    StandardScaler,
)

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV, load, save
from trust.fuzz_case import Case, TheirError, kept_in

FILE = "model.karnet"
RNG = np.random.default_rng(11)
X, Y = RNG.uniform(0.1, 0.9, (12, 3)).round(3), np.arange(12) % 3
WORDS = np.array(["red", "green", "blue"])
TABLE = pd.DataFrame(
    {
        "number": X[:, 0],
        "gaps": np.where(X[:, 1] < 0.3, np.nan, X[:, 1]),
        "kind": WORDS[Y],
        "day": pd.date_range("2020-01-01", periods=12).astype(str),
        "text": [f"some words {k} and {k % 5} more" for k in range(12)],
    }
)
SEEDS = ("classifier", "regressor", "infinite", "metric", "updated", "cv", "cv of classes")
TABLES = ("encoders", "vectoriser")


def _columns() -> Any:
    return ColumnTransformer(
        [
            ("one-hot", OneHotEncoder(handle_unknown="ignore"), ["kind"]),
            ("few", OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5), ["text"]),
            ("order", OrdinalEncoder(), ["day"]),
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["number", "gaps"]),
            ("ranks", QuantileTransformer(n_quantiles=4), ["number"]),
        ]
    )


def _vectoriser() -> Any:
    from skrub import TableVectorizer

    return TableVectorizer(cardinality_threshold=5)


@cache
def seed(name: str) -> Any:
    """Return a fitted model of a kind that files can contain."""
    small: dict[str, Any] = {"random_state": 0}
    match name:
        case "classifier":
            return KARClassifier((3,), **small).fit(X, WORDS[Y])
        case "regressor":
            return KARRegressor((4, 2), hidden="random", activation="tanh", **small).fit(X, X[:, 0])
        case "infinite":
            return KARClassifier((np.inf,), hidden="random", activation="relu", **small).fit(X, Y)
        case "metric":
            return KARRegressor((3,), hidden="metric", activation="gelu", **small).fit(X, X[:, :2])
        case "updated":
            net = KARClassifier((3,), hidden="random", alpha=0.1, **small)
            return net.partial_fit(X, Y > 0).partial_fit(X, Y > 1)
        case "cv":
            return KARRegressorCV(n_estimators=2, **small).fit(X, X[:, 0])
        case "cv of classes":
            return KARClassifierCV(n_estimators=2, **small).fit(X, Y)
        case "encoders":
            return make_pipeline(_columns(), KARClassifier((3,), **small)).fit(TABLE, Y)
    return make_pipeline(_vectoriser(), SimpleImputer(), KARRegressor((3,), **small)).fit(TABLE, Y)


@cache
def saved(name: str, folder: Path) -> bytes:
    """Return the file of a model."""
    path = folder / "seed.karnet"
    save(seed(name), path)
    data = path.read_bytes()
    path.unlink()
    return data


def parts(data: bytes) -> dict[str, bytes]:
    """Return the contents of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(contents: dict[str, bytes | str], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return an archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def used(model: Any, rows: Any) -> None:
    """Call all prediction methods of a loaded model."""
    methods = ("predict", "predict_proba", "decision_function", "predict_interval", "predict_set")
    for method in methods:
        if hasattr(model, method):
            getattr(model, method)(rows)


def warm(folder: Path, kinds: Sequence[str]) -> None:
    """Read and use each kind of unmodified file, so that all modules are imported."""
    path = folder / FILE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in kinds:
            path.write_bytes(saved(name, folder))
            used(load(path), TABLE if name in TABLES else X)


def _used(model: Any, rows: Any, name: str) -> None:
    """Use a model; errors of transformers made from a file count as `TheirError`."""
    try:
        used(model, rows)
    except Exception as error:
        if name in TABLES:
            raise TheirError(f"{type(error).__name__}: {error}") from error
        raise
    if hasattr(model, "forget"):
        # Statistics made from a file may lead to any error or result.
        with suppress(Exception):
            model.partial_fit(X, model.predict(X)).forget(X, model.predict(X))


# What is changed


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values of a tree."""
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield (*path, key)
            yield from places(value, (*path, key))


@cache
def _tree(name: str, folder: Path) -> tuple[str, list[tuple[Any, ...]], list[str]]:
    contents = parts(saved(name, folder))
    text = contents["schema.json"].decode()
    arrays = [each for each in contents if each.endswith(".npy")]
    return text, list(places(json.loads(text))), arrays


def _at(tree: Any, place: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the container of the value at a path, and its key."""
    for key in place[:-1]:
        tree = tree[key]
    return tree, place[-1]


def _json(content: str) -> dict[str, Any]:
    kind = {"__loader__": "JsonNode", "__module__": "builtins", "__class__": "str"}
    return {**kind, "content": content}


def _node(loader: str, name: str, **more: Any) -> dict[str, Any]:
    module, _, last = name.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": last, **more}


PLAIN = [None, 0, 1, -1, 2, 3, 10**6, 2**63, 10**30, -0.5, True, "", "x", "os", "null", "0.npy"]
NODES: list[Any] = [
    *(
        _json(text)
        for text in ("null", "0", "1", "-1", "3", "1e308", "NaN", "true", '"x"', '"tanh"')
    ),
    *(_json(text) for text in ("1000000", "123456789012", "Infinity", "[1]", "{}", '"relu"', "x")),
    _node("ListNode", "builtins.list", content=[]),
    _node("TupleNode", "builtins.tuple", content=[_json("1"), _json("2")]),
    _node("TypeNode", "numpy.float64"),
    _node("NdArrayNode", "numpy.ndarray", type="numpy", file="0.npy"),
    _node("NdArrayNode", "numpy.int64", type="numpy", file="0.npy"),
    _node("FunctionNode", "os.system"),
    _node("ObjectNode", "karnet.files.types.KARClassifier"),
    _node("ObjectNode", "karnet.files.types.Activation"),
    _node("SliceNode", "builtins.slice", content={"start": None, "stop": None, "step": 0}),
    *({"__id__": k} for k in (0, 1, 2, 5, 9)),
]
VALUES = st.one_of(st.sampled_from(NODES), st.sampled_from(PLAIN))
DTYPES = ("<f8", ">f8", "<f4", "<f2", "<i8", "|i1", "<u8", "|b1", "<U3", "|S2", "<M8[s]", "<f16")
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 4, 12, 100]), max_size=3)


@st.composite
def _array(draw: Any) -> bytes:
    """Draw the bytes of another array, whose header may be wrong."""
    shape, dtype = tuple(draw(SHAPES)), np.dtype(draw(st.sampled_from(DTYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["bytes", "small", "zeros"]))
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = rng.bytes(size) if kind == "bytes" else bytes(size)
    if kind == "small":
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            raw = rng.integers(-3, 9, shape).astype(dtype).tobytes()
    header = (
        f"{{'descr': {dtype.str!r}, 'fortran_order': {draw(st.booleans())}, 'shape': {shape}, }}"
    )
    header = draw(st.sampled_from([header] * 9 + [header.replace("1", "9")])).ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + raw


@st.composite
def _changed_tree(draw: Any, name: str, folder: Path) -> bytes:
    text, where, _ = _tree(name, folder)
    tree = json.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        place = where[draw(st.integers(0, len(where) - 1))]
        other = where[draw(st.integers(0, len(where) - 1))]
        how = draw(st.sampled_from(["value", "value", "other", "gone"]))
        try:
            holder, key = _at(tree, place)
            if how == "gone":
                del holder[key]
            else:
                holder[key] = draw(VALUES) if how == "value" else _at(tree, other)[0][other[-1]]
        except (KeyError, IndexError, TypeError):
            continue  # removed by another change
    return packed({**parts(saved(name, folder)), "schema.json": _text(tree)})


def _text(tree: Any) -> str:
    try:
        return json.dumps(tree)
    except (ValueError, RecursionError):
        return "{}"  # a node was put into itself


@st.composite
def _changed_array(draw: Any, name: str, folder: Path) -> bytes:
    _, _, arrays = _tree(name, folder)
    contents: dict[str, Any] = dict(parts(saved(name, folder)))
    for _ in range(draw(st.integers(1, 2))):
        contents[draw(st.sampled_from(arrays))] = draw(_array())
    return packed(contents)


@st.composite
def _changed_bytes(draw: Any, name: str, folder: Path) -> bytes:
    data = saved(name, folder)
    start = draw(st.integers(0, len(data) - 1))
    end = draw(st.integers(start, min(start + 40, len(data))))
    return data[:start] + draw(st.binary(max_size=20)) + data[end:]


NAMES = ["../x", "/tmp/x", "0.npy", "karnet.json", "a/0.npy", "99.npy", "schema.json"]


@st.composite
def _changed_archive(draw: Any, name: str, folder: Path) -> bytes:
    contents: dict[str, Any] = dict(parts(saved(name, folder)))
    how = draw(st.sampled_from(["add", "drop", "way", "header"]))
    if how == "drop":
        del contents[draw(st.sampled_from(sorted(contents)))]
    elif how == "header":
        formats = [b'{"format": 1}', b'{"format": 2}']
        contents["karnet.json"] = draw(st.one_of(st.binary(max_size=30), st.sampled_from(formats)))
    elif how == "add":
        contents[draw(st.sampled_from(NAMES))] = draw(
            st.one_of(st.binary(max_size=30), st.just(bytes(10**6)))
        )
    way = zipfile.ZIP_BZIP2 if how == "way" else zipfile.ZIP_DEFLATED
    return packed(contents, way)


CHANGES = {
    "tree": _changed_tree,
    "array": _changed_array,
    "bytes": _changed_bytes,
    "archive": _changed_archive,
}


@st.composite
def model_cases(
    draw: Any, folder: Path, kinds: tuple[str, ...] = (*SEEDS, *TABLES), use: bool = True
) -> Case:
    """Draw a modified model file, which is read and, if that succeeds, used."""
    name = draw(st.sampled_from(kinds))
    change = draw(st.sampled_from(["tree", "tree", "tree", "array", "array", "bytes", "archive"]))
    data = draw(CHANGES[change](name, folder))
    rows = TABLE if name in TABLES else X

    def run() -> None:
        with warnings.catch_warnings(), kept_in():
            warnings.simplefilter("ignore")
            model = load(folder / FILE)
            if use:
                _used(model, rows, name)

    # Written before the case is observed; after a crash the file remains for inspection.
    (folder / FILE).write_bytes(data)
    return Case(f"{name}, {change} changed, {len(data)} bytes", run)
