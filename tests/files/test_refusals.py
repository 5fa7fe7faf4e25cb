"""Files that `save` did not write are refused with one sentence, and run no code."""

from __future__ import annotations

import io
import json
import pickle
import sys
import zipfile
from functools import cache

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st

from karnet import KARClassifier, load, save
from tests.files import kept

CLASSIFIER = kept.content("classifier")


def parts(data=CLASSIFIER):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(contents, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def with_tree(change):
    """Return the classifier's file, its tree changed in place."""
    contents = parts()
    tree = json.loads(contents["schema.json"])
    change(tree)
    return packed({**contents, "schema.json": json.dumps(tree)})


def attribute(tree, name):
    return tree["content"]["content"][name]


def states(tree, kind):
    """Yield the states of all objects of one class in a tree."""
    if isinstance(tree, dict):
        if tree.get("__class__") == kind:
            yield tree["content"]
        tree = list(tree.values())
    for part in tree if isinstance(tree, list) else ():
        yield from states(part, kind)


def planted(**node):
    """Return a file whose `rcond` is another node."""
    return with_tree(lambda tree: attribute(tree, "rcond").update({"__id__": 99, **node}))


@pytest.fixture
def refused(tmp_path):
    def check(data, match=None):
        path = tmp_path / "net.karnet"
        path.write_bytes(data)
        with pytest.raises(ValueError, match=match or "cannot be loaded") as refusal:
            load(path)
        assert type(refusal.value) is ValueError
        assert str(refusal.value).startswith(f"{path} cannot be loaded: ")
        assert str(refusal.value).count("\n") == 0
        assert sorted(tmp_path.iterdir()) == [path]

    return check


def test_the_unchanged_file_is_read(tmp_path):
    (tmp_path / "net").write_bytes(packed(parts()))
    assert isinstance(load(tmp_path / "net"), KARClassifier)


# Code


class Sly:
    """An object that runs code if it is unpickled."""

    def __reduce__(self):
        return exec, ("import sys; sys.sly = True",)


@pytest.fixture(autouse=True)
def _nothing_was_run():
    yield
    assert not hasattr(sys, "sly")


def test_pickles_are_not_read(refused):
    refused(pickle.dumps(Sly()), "pickles are never read")
    refused(pickle.dumps(KARClassifier()), "pickles are never read")
    refused(pickle.dumps(Sly()) + CLASSIFIER)
    refused(packed({**parts(), "karnet.json": pickle.dumps(Sly())}))
    refused(packed({**parts(), "schema.json": pickle.dumps(Sly())}))


def test_pickles_in_arrays_are_not_read(refused):
    buffer = io.BytesIO()
    np.save(buffer, np.array([Sly()], dtype=object), allow_pickle=True)
    refused(packed({**parts(), "0.npy": buffer.getvalue()}), "object")
    refused(packed({**parts(), "0.npy": pickle.dumps(Sly())}))
    archive = io.BytesIO()
    np.savez(archive, np.array([Sly()], dtype=object))
    refused(packed({**parts(), "0.npy": archive.getvalue()}))


NAMES = [
    ("FunctionNode", "os", "system"),
    ("FunctionNode", "builtins", "exec"),
    ("FunctionNode", "numpy", "log"),
    ("FunctionNode", "scipy.special._ufuncs", "expit"),
    ("TypeNode", "subprocess", "Popen"),
    ("TypeNode", "builtins", "map"),
    ("TypeNode", "karnet.files.types", "KARClassifier"),
    ("ObjectNode", "sklearn.ensemble._forest", "RandomForestClassifier"),
    ("ObjectNode", "karnet.paper.baseline", "LevenbergMarquardt"),
    ("ObjectNode", "builtins", "dict"),
    ("DictNode", "collections", "OrderedDict"),
    ("ListNode", "karnet.files.types", "KARClassifier"),
    ("ConstructorFromReduceNode", "pathlib", "Path"),
    ("ConstructorFromReduceNode", "karnet.files.types", "Activation"),
    ("PartialNode", "functools", "partial"),
    ("OperatorFuncNode", "operator", "methodcaller"),
    ("MethodNode", "karnet.files.types", "KARClassifier"),
    ("RandomGeneratorNode", "numpy.random", "Generator"),
    ("SparseMatrixNode", "scipy.sparse._csr", "csr_matrix"),
    ("LossNode", "sklearn._loss._loss", "CyHuberLoss"),
    ("TreeNode", "sklearn.tree._tree", "Tree"),
    ("SetNode", "builtins", "set"),
    ("DefaultDictNode", "collections", "defaultdict"),
    ("BytesNode", "builtins", "bytes"),
    ("CachedNode", "builtins", "str"),
    ("Unheard", "builtins", "str"),
]


@pytest.mark.parametrize(("loader", "module", "kind"), NAMES)
def test_names_that_are_not_listed_are_refused(loader, module, kind, refused):
    data = planted(__loader__=loader, __module__=module, __class__=kind, content="[]")
    refused(data, rf"{module}\.{kind} \({loader}\), which is not on the list")


def test_a_name_that_is_not_listed_is_not_even_imported(refused, tmp_path_factory, monkeypatch):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "sly_module.py").write_text("import sys; sys.sly = True")
    monkeypatch.syspath_prepend(elsewhere)
    data = planted(__loader__="TypeNode", __module__="sly_module", __class__="Sly")
    refused(data, r"sly_module\.Sly")
    assert "sly_module" not in sys.modules


def test_names_with_dots_in_the_class_are_refused(refused):
    """A listed name, split at another dot, would be looked up in another module."""
    data = planted(__loader__="TypeNode", __module__="numpy", __class__="random.seed")
    refused(data)
    refused(
        planted(__loader__="ObjectNode", __module__="karnet", __class__="estimators.KARClassifier")
    )


def test_folders_of_pickles_are_refused(refused, tmp_path):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    save(make_pipeline(MinMaxScaler(), KARClassifier()), tmp_path / "net.karnet")
    contents = parts((tmp_path / "net.karnet").read_bytes())
    tree = json.loads(contents["schema.json"])
    attribute(tree, "memory").clear()
    attribute(tree, "memory").update(
        __loader__="JsonNode", __module__="builtins", __class__="str", content='"/tmp"'
    )
    refused(packed({**contents, "schema.json": json.dumps(tree)}), "folder of pickles")


# Archives


@pytest.mark.parametrize("name", ["../0.npy", "/etc/0.npy", "a/0.npy", "..\\0.npy", "0.npy\n", "x"])
def test_entries_with_other_names_are_refused(name, refused):
    refused(packed({**parts(), name: b"0"}), "not part of a model file")


def test_foreign_files_are_refused(refused):
    import skops.io

    refused(b"")
    refused(b"a,b\n1,2\n")
    refused(packed({}))
    refused(packed({"a": b"1"}), "not a model file of karnet")
    refused(skops.io.dumps(KARClassifier()), "not a model file of karnet")
    refused(packed({name: part for name, part in parts().items() if name != "schema.json"}))


def test_bombs_are_refused(refused):
    bomb = bytes(1 << 24)
    header = io.BytesIO()
    np.save(header, np.zeros(1 << 21))
    for name, content in (("0.npy", header.getvalue()), ("schema.json", bomb), ("9.npy", bomb)):
        refused(packed({**parts(), name: content}), "far more bytes than a model file holds")
    assert len(packed({**parts(), "9.npy": bomb})) < 1 << 16


def test_more_bytes_than_an_entry_claims_are_not_read(refused):
    data = packed({**parts(), "schema.json": b"[" + b" " * (1 << 24) + b"]"})
    claimed = data.replace((2 + (1 << 24)).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    assert claimed != data
    refused(claimed)


def test_two_entries_of_one_name_are_refused(refused):
    buffer = io.BytesIO(CLASSIFIER)
    with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("schema.json", b"{}")
    refused(buffer.getvalue(), "two files of the same name")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(compression, refused):
    refused(packed(parts(), compression), "compressed by another method")


# Arrays


def saved(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def claiming(shape, descr="<f8", version=b"\x01\x00"):
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header.encode()


@pytest.mark.parametrize(
    "array",
    [
        claiming("(1000000000000,)"),
        claiming("(4294967296, 4294967296, 4294967296)"),
        claiming("(-1,)"),
        claiming("(10,)") + bytes(79),
        claiming("(10,)") + bytes(81),
        claiming("(1000000000000,)", "<U0"),
        claiming("(0,)", "|O"),
        claiming("(0,)", [("a", "<f8")]),
        claiming("(" * 50 + ")" * 50),
        claiming("(0,)", version=b"\x03\x00"),
        saved(np.zeros(3))[:-1],
        b"\x93NUMPY",
        b"",
    ],
    ids=range(13),
)
def test_arrays_with_false_headers_are_refused(array, refused):
    refused(packed({**parts(), "0.npy": array}))


def test_arrays_that_the_tree_does_not_name_are_refused(refused):
    refused(
        packed({**parts(), "77.npy": saved(np.zeros(3))}),
        "not the arrays that its tree names",
    )
    refused(packed({name: part for name, part in parts().items() if name != "0.npy"}))


# Trees


def listed(content, **more):
    return {
        "__loader__": "ListNode",
        "__module__": "builtins",
        "__class__": "list",
        "content": content,
        **more,
    }


def test_references_that_multiply_are_refused(refused):
    """Forty lists that hold the next one twice are 2^40 for whoever follows references."""
    node = listed([], __id__=1000)
    for k in range(1001, 1040):
        node = listed([node, {"__id__": k - 1}], __id__=k)
    refused(planted(**{**node, "__id__": 2000}), "too often")

    flat = [listed([], __id__=1000)]
    for k in range(1001, 3000):
        flat.append(listed([{"__id__": k - 1}, {"__id__": k - 1}], __id__=k))
    refused(planted(**listed(flat)), "too often")


def test_types_of_keys_are_not_shared(refused):
    def numbered(tree):
        tree["content"]["key_types"]["__id__"] = 50

    refused(with_tree(numbered), "no list of their own")


def test_references_to_incomplete_nodes_are_refused(refused):
    refused(planted(**listed([{"__id__": 99}])), "refers to none before it")
    refused(planted(**listed([{"__id__": 12345}])), "refers to none before it")


def test_deep_trees_are_refused(refused):
    node = listed([])
    for _ in range(3000):
        node = listed([node])
    text = "[" * 100_000
    contents = parts()
    refused(packed({**contents, "schema.json": text, "karnet.json": contents["karnet.json"]}))
    sys.setrecursionlimit((limit := sys.getrecursionlimit()) + 20_000)
    try:
        data = with_tree(lambda tree: attribute(tree, "rcond").update({"__id__": 99, **node}))
    finally:
        sys.setrecursionlimit(limit)
    refused(data)


def test_missing_and_additional_fields_are_refused(refused):
    def other_activation(tree):
        state = next(states(tree, "Activation"))
        state["content"]["name"] = {**listed(""), "__loader__": "JsonNode", "__class__": "str"}
        state["content"]["name"]["content"] = '"unheard"'

    refused(with_tree(other_activation))

    def other_report(tree):
        next(states(tree, "Report"))["content"].pop("rank")

    refused(with_tree(other_report), r"Report lacks a field")

    def more(tree):
        next(states(tree, "Report"))["content"]["more"] = listed([])

    refused(with_tree(more), r"Report lacks a field")


@pytest.mark.parametrize(
    "root", [None, 1, [], "x", {}, {"protocol": 1}, {"protocol": 2, "__id__": 5}]
)
def test_other_roots_are_refused(root, refused):
    refused(packed({**parts(), "schema.json": json.dumps(root)}))


def test_a_tree_without_an_estimator_is_refused(refused):
    tree = {**listed([]), "protocol": 2}
    contents = {name: parts()[name] for name in ("karnet.json",)}
    refused(packed({**contents, "schema.json": json.dumps(tree)}), "no estimator")


# Versions


def with_header(**header):
    return packed({**parts(), "karnet.json": json.dumps(header)})


def test_newer_formats_are_refused(refused):
    refused(with_header(format=3, karnet="9.9"), r"format 3 .* karnet 9\.9, .* upgrade karnet")
    for number in (None, "1", 0, 1.0, True):
        refused(with_header(format=number), "does not name its format")
    refused(packed({**parts(), "karnet.json": b"[1]"}), "does not name its format")


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0", "9.9", None])
def test_the_format_decides_and_not_the_version_that_wrote_the_file(version, tmp_path):
    path = tmp_path / "net.karnet"
    path.write_bytes(with_header(format=1, karnet=version))
    np.testing.assert_array_equal(load(path).predict_proba(kept.ROWS), expected())


def test_vectorisers_of_another_skrub_are_refused(refused, tmp_path, monkeypatch):
    refused(with_header(format=1, karnet="0.1.0", skrub="0.99.1"), r"skrub 0\.99\.1")
    skrub = pytest.importorskip("skrub")
    save(skrub.TableVectorizer(), tmp_path / "table.karnet")
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.99.0")
    with pytest.raises(ImportError, match=r"pip install 'karnet\[table\]'"):
        load(tmp_path / "table.karnet")
    with pytest.raises(ImportError, match=r"pip install 'karnet\[table\]'"):
        save(skrub.TableVectorizer(), tmp_path / "other.karnet")


def test_transformers_of_another_scikit_learn_are_read_with_one_warning(tmp_path):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    path = tmp_path / "net.karnet"
    save(make_pipeline(MinMaxScaler(), KARClassifier()), path)
    contents = parts(path.read_bytes())
    tree = contents["schema.json"].replace(sklearn.__version__.encode(), b"1.2.3")
    header = contents["karnet.json"].replace(sklearn.__version__.encode(), b"1.2.3")
    path.write_bytes(packed({**contents, "schema.json": tree, "karnet.json": header}))
    with pytest.warns(UserWarning, match=r"scikit-learn 1\.2\.3") as said:
        load(path)
    assert len(said) == 1


def test_without_skops_the_error_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "net.karnet").write_bytes(CLASSIFIER)
    monkeypatch.setitem(sys.modules, "skops", None)
    with pytest.raises(ImportError, match=r"pip install 'karnet\[files\]'"):
        load(tmp_path / "net.karnet")


# Random changes


@cache
def expected():
    return kept.fitted("classifier").predict_proba(kept.ROWS)


def loaded(path, data):
    """Return what a file holds, or None if it is refused as it should be."""
    path.write_bytes(data)
    try:
        return load(path)
    except ValueError as refusal:
        if not str(refusal).startswith(f"{path} cannot be loaded: "):
            raise
        return None


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_changed_bytes_change_nothing_or_are_refused(tmp_path_factory, data):
    start = data.draw(st.integers(0, len(CLASSIFIER) - 1))
    other = data.draw(st.binary(min_size=1, max_size=8))
    path = tmp_path_factory.getbasetemp() / "changed.karnet"
    again = loaded(path, CLASSIFIER[:start] + other + CLASSIFIER[start + len(other) :])
    if again is not None:
        np.testing.assert_array_equal(again.predict_proba(kept.ROWS), expected())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(CLASSIFIER) - 1))
def test_a_part_of_a_file_is_refused(tmp_path_factory, length):
    assert loaded(tmp_path_factory.getbasetemp() / "short.karnet", CLASSIFIER[:length]) is None


TREE = json.loads(parts()["schema.json"])


def places(node, path=()):
    """Yield where the values of a tree are."""
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield (*path, key)
            yield from places(value, (*path, key))


PLACES = list(places(TREE))
WORDS = "x null os 0.npy 1.npy ListNode DictNode ObjectNode NdArrayNode TypeNode numpy json [] 1"
NUMBERS = [None, 0, -1, 1, 2, 3, 10**30, 0.5, True]
NODES = [[], {}, {"__id__": 1}, {"__id__": 2}, [{"__id__": 1}], listed([])]
VALUES = st.sampled_from(["", *WORDS.split(), *NUMBERS, *NODES])


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PLACES), VALUES)
def test_changed_trees_are_refused_or_read(tmp_path_factory, place, value):
    """A changed tree is read, or refused with one sentence."""
    contents = parts()
    tree = json.loads(contents["schema.json"])
    inner = tree
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    data = packed({**contents, "schema.json": json.dumps(tree)})
    loaded(tmp_path_factory.getbasetemp() / "tree.karnet", data)


# Attributes that do not fit together


@pytest.mark.parametrize("kind", ["classifier", "regressor", "cv"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (7, 5), (3, 3, 3)], ids=str)
def test_arrays_of_other_shapes_are_refused_or_unused(kind, shape, tmp_path):
    contents = parts(kept.content(kind))
    path, refusals = tmp_path / "net", 0
    for name in contents:
        if name.endswith(".npy"):
            again = loaded(path, packed({**contents, name: saved(np.zeros(shape))}))
            refusals += again is None
            if again is not None:
                assert len(again.predict(kept.ROWS)) == len(kept.ROWS)
    assert refusals >= 3


def test_numbers_that_claim_memory_are_refused(refused):
    def many(tree):
        attribute(tree, "n_features_in_").update(
            __loader__="JsonNode", __module__="builtins", __class__="str", content="1000000000000"
        )

    refused(with_tree(many), "do not fit together")


def test_classes_that_are_too_few_are_refused(refused):
    contents = parts()
    places = {name for name in contents if name.endswith(".npy")}
    labels = next(name for name in places if b"U6" in contents[name])
    refused(packed({**contents, labels: saved(np.array(["low", "top"]))}), "do not fit together")


def transformed(step, change, path):
    """Return the file of a pipeline whose first step was changed after it was fitted."""
    from sklearn.pipeline import make_pipeline

    rows = np.array([["a"], ["b"], ["c"]] * 4)
    rows = rows if type(step).__name__ == "OneHotEncoder" else rows[:, 0]
    net = make_pipeline(step, KARClassifier((2,))).fit(rows, [0, 1, 1] * 4)
    change(net[0])
    save(net, path)
    return path.read_bytes()


def test_categories_beyond_the_columns_of_an_encoder_are_refused(refused, tmp_path):
    """Compiled code would write outside the array."""
    from sklearn.preprocessing import OneHotEncoder

    def change(encoder):
        encoder._n_features_outs = [1]

    refused(
        transformed(OneHotEncoder(), change, tmp_path / "net.karnet"), "OneHotEncoder do not fit"
    )

    def remap(encoder):
        encoder._default_to_infrequent_mappings = [np.array([10**6, 0, 0])]

    step = OneHotEncoder(min_frequency=5)
    refused(transformed(step, remap, tmp_path / "net.karnet"), "OneHotEncoder do not fit")


def test_words_beyond_the_columns_of_a_vocabulary_are_refused(refused, tmp_path):
    from sklearn.feature_extraction.text import TfidfVectorizer

    def change(vectorizer):
        vectorizer.vocabulary_ = dict.fromkeys(vectorizer.vocabulary_, 10**6)

    step = TfidfVectorizer(analyzer="char")
    refused(transformed(step, change, tmp_path / "net.karnet"), "TfidfVectorizer do not fit")


def test_statistics_of_other_features_are_refused(refused, tmp_path):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    net = make_pipeline(StandardScaler(), KARClassifier((2,))).fit(kept.X, kept.LABELS)
    net[0].mean_ = np.zeros(7)
    save(net, tmp_path / "net.karnet")
    refused((tmp_path / "net.karnet").read_bytes(), "StandardScaler do not fit together")


def test_an_encoding_of_other_columns_is_refused(refused, tmp_path):
    from dataclasses import replace

    from sklearn.pipeline import make_pipeline

    from karnet._estimator.ensemble_base import ColumnEncoder

    net = make_pipeline(ColumnEncoder(), KARClassifier((2,))).fit(kept.X, kept.LABELS)
    net[0].encoder_ = replace(net[0].encoder_, columns=net[0].encoder_.columns[1:])
    save(net, tmp_path / "net.karnet")
    refused((tmp_path / "net.karnet").read_bytes(), "ColumnEncoder do not fit together")


def test_encoders_of_all_settings_fit_together(tmp_path):
    from itertools import product

    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rows = np.array([["a", "x"], ["b", "y"], ["c", "x"], ["a", "z"]] * 3)
    for drop, least, unknown in product(
        [None, "first", "if_binary"], [None, 4], ["error", "ignore"]
    ):
        step = OneHotEncoder(drop=drop, min_frequency=least, handle_unknown=unknown)
        net = make_pipeline(step, KARClassifier((2,), random_state=0)).fit(rows, [0, 1, 1, 0] * 3)
        save(net, tmp_path / "net")
        again = load(tmp_path / "net")
        np.testing.assert_array_equal(again.predict_proba(rows), net.predict_proba(rows))


def test_a_network_for_a_missing_device_is_read(tmp_path):
    net = KARClassifier((2,), random_state=0).fit(kept.X, kept.LABELS).set_params(device="cuda:77")
    save(net, tmp_path / "net")
    assert load(tmp_path / "net").device == "cuda:77"


@pytest.mark.parametrize("n_rows", [2, 3, 5])
def test_shapes_that_fit_some_number_of_rows_are_refused_or_unused(n_rows, tmp_path):
    """For example, the view's edges with one row for each predicted row."""
    contents = parts(kept.content("cv"))
    vectors = [name for name in contents if contents[name].startswith(saved(np.zeros(3))[:80])]
    refusals = 0
    for name in vectors:
        tiled = np.tile(np.frombuffer(contents[name][-24:]), (n_rows, 1))
        again = loaded(tmp_path / "net", packed({**contents, name: saved(tiled)}))
        refusals += again is None
        if again is not None:
            assert len(again.predict(kept.ROWS)) == len(kept.ROWS)
    assert refusals
