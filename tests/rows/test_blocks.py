"""Blocks of rows from arrays and files: the same rows, few at a time, or a sentence."""

from __future__ import annotations

import pickle
import sys
import tracemalloc
from itertools import repeat
from threading import Event

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, feather, ipc, parquet

from karnet import KARClassifier, KARRegressor
from karnet._arrays.threads import ONE_THREAD
from karnet._estimator.targets import ClassTargets, scanned
from karnet._rows.memory import in_order
from karnet._rows.streamed import LocalPasses, regrouped
from karnet.blocks import Blocks
from karnet.tables import read_table

M, D = 1500, 5
NAMES = tuple(f"x{k}" for k in range(D))
SIZES = [(), (30,), (40, 20), (50, 30, 20)]
NETS = [(KARClassifier, "word"), (KARRegressor, "number")]


def make_table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((M, D))
    signal = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    words = np.array(["high", "low", "middle"])[np.digitize(signal, [-0.5, 0.5])]
    frame = pd.DataFrame(X, columns=NAMES)
    frame["word"], frame["number"] = words, signal + 0.1 * rng.standard_normal(M)
    frame["weight"] = rng.integers(0, 3, M).astype(float)
    return frame


FRAME = make_table()


@pytest.fixture(autouse=True)
def many_blocks(solver_sizes, block_sizes):
    """So small blocks that every table has many, and a sample is not all of it."""
    block_sizes(block=2**13, chunk=2**9, sample=400 * D, batch=2**10, csv=2**13)
    solver_sizes(product=1e6)


def arrays_of(target, dtype=np.float64):
    return FRAME[[*NAMES]].to_numpy(dtype), FRAME[target].to_numpy()


def in_npy(folder, target, order="C"):
    X, y = arrays_of(target)
    np.save(folder / "X.npy", np.asarray(X, order=order))
    np.save(folder / "y.npy", y.astype(str) if y.dtype == object else y)
    return Blocks.from_npy(folder / "X.npy", str(folder / "y.npy"))


def in_parquet(folder, target):
    parquet.write_table(arrow_of(FRAME), folder / "all.parquet")
    return Blocks.from_parquet(folder / "all.parquet", target, NAMES)


def in_parquet_folder(folder, target):
    for start in range(0, M, 400):
        part = FRAME[[*NAMES, target]][start : start + 400]
        part.to_parquet(folder / f"part-{start:05}.parquet", row_group_size=150)
    return Blocks.from_parquet(folder, target)


def in_arrow(folder, target, compression=None):
    table = arrow_of(FRAME[[*NAMES, target]])
    feather.write_feather(table, str(folder / "all.arrow"), compression or "uncompressed")
    return Blocks.from_arrow(folder / "all.arrow", target)


def in_arrow_stream(folder, target):
    table = arrow_of(FRAME)
    with ipc.new_stream(folder / "all.arrows", table.schema) as writer:
        writer.write_table(table, max_chunksize=300)
    return Blocks.from_arrow([folder / "all.arrows"], target, NAMES)


def in_csv(folder, target):
    FRAME.to_csv(folder / "all.csv", index=False)
    return Blocks.from_csv(folder / "all.csv", target, NAMES)


def in_frame(_, target):
    return Blocks.from_arrays(FRAME[[*NAMES]], FRAME[target])


def in_generator(_, target):
    X, y = arrays_of(target)
    return Blocks(lambda: ((X[i : i + 77], y[i : i + 77]) for i in range(0, M, 77)), NAMES)


def arrow_of(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


SOURCES = {
    "npy": in_npy,
    "npy-columns": lambda folder, target: in_npy(folder, target, "F"),
    "parquet": in_parquet,
    "parquet-folder": in_parquet_folder,
    "arrow": in_arrow,
    "arrow-compressed": lambda folder, target: in_arrow(folder, target, "lz4"),
    "arrow-stream": in_arrow_stream,
    "csv": in_csv,
    "frame": in_frame,
    "generator": in_generator,
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("Net", "target"), NETS, ids=["classifier", "regressor"])
def test_every_source_gives_the_network_of_all_rows_bit_for_bit(source, Net, target, tmp_path):
    blocks = SOURCES[source](tmp_path, target)
    for sizes in SIZES:
        for options in ({}, {"hidden": "random", "alpha": 1e-3}):
            net = Net(sizes, random_state=0, **options).fit(*arrays_of(target))
            same = Net(sizes, random_state=0, **options).fit_blocks(blocks)
            assert same.layers_ == net.layers_
            for a, b in zip(same.coefs_, net.coefs_, strict=True):
                np.testing.assert_array_equal(a, b)
    if "npy" not in source:
        assert same.feature_names_in_.tolist() == [*NAMES]


@pytest.mark.parametrize("source", SOURCES)
def test_blocks_are_small_and_can_be_read_again_and_sent_elsewhere(source, tmp_path):
    blocks = SOURCES[source](tmp_path, "word")
    if source != "generator":
        blocks = pickle.loads(pickle.dumps(blocks))
    X, y = arrays_of("word")
    for _ in range(2):
        parts = list(blocks)
        np.testing.assert_array_equal(np.concatenate([part[0] for part in parts]), X)
        assert np.concatenate([part[1] for part in parts]).tolist() == y.tolist()
        assert max(part[0].size for part in parts) <= 2**10


def test_numbers_are_as_wide_as_in_a_data_frame(tmp_path):
    frame = pd.DataFrame(
        {
            "single": np.linspace(0, 1, 9, dtype=np.float32),
            "flag": np.arange(9) % 2 == 0,
            "small": np.arange(9, dtype=np.int8),
            "large": np.arange(9),
            "double": np.linspace(0, 1, 9),
            "y": np.arange(9),
        }
    )
    frame.to_parquet(tmp_path / "mixed.parquet")
    for columns in (["single"], ["single", "flag", "small"], ["single", "large"], ["double"]):
        ((X, *_),) = Blocks.from_parquet(tmp_path / "mixed.parquet", "y", columns)
        table = frame[columns].to_numpy(np.result_type(*frame[columns].dtypes))
        np.testing.assert_array_equal(X, table)
        assert X.dtype == table.dtype
        assert X.flags.c_contiguous
    table = pa.table({"price": pa.array(frame["double"]).cast(pa.decimal128(10, 3)), "y": frame.y})
    parquet.write_table(table, tmp_path / "exact.parquet")
    ((X, *_),) = Blocks.from_parquet(tmp_path / "exact.parquet", "y")
    assert X[:, 0].tolist() == [0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0]


def test_single_precision_is_worked_on_as_fit_does(tmp_path):
    X, y = arrays_of("number", np.float32)
    parquet.write_table(pa.table([*X.T, y], [*NAMES, "y"]), tmp_path / "single.parquet")
    blocks = Blocks.from_parquet(tmp_path / "single.parquet", "y")
    assert {part[0].dtype for part in blocks} == {np.dtype(np.float32)}
    net = KARRegressor((30,), hidden="random", random_state=0)
    kept = net.fit(X, y).coefs_[-1]
    np.testing.assert_array_equal(net.fit_blocks(blocks).coefs_[-1], kept)


@pytest.mark.parametrize("source", ["parquet", "arrow", "csv"])
def test_weights_are_a_column(source, tmp_path):
    paths = {kind: tmp_path / f"all.{kind}" for kind in ("parquet", "arrow", "csv")}
    FRAME.to_parquet(paths["parquet"])
    FRAME.to_feather(paths["arrow"])
    FRAME.to_csv(paths["csv"], index=False)
    read = getattr(Blocks, f"from_{source}")
    blocks = read(paths[source], "word", NAMES, sample_weight="weight")
    net = KARClassifier((30,), hidden="random", random_state=0)
    X, y = FRAME[[*NAMES]], FRAME["word"]
    expected = net.fit(X, y, FRAME["weight"]).decision_function(X)
    found = net.fit_blocks(blocks).decision_function(X)
    assert np.linalg.norm(found - expected) <= 1e-8 * np.linalg.norm(expected)
    others = read(paths[source], ["number"], [*NAMES], "weight")
    assert {part[1].shape[1:] for part in others} == {(1,)}


def test_several_targets_are_several_outputs(tmp_path):
    FRAME.to_parquet(tmp_path / "all.parquet")
    blocks = Blocks.from_parquet(tmp_path / "all.parquet", ["number", "x0"], ["x1", "x2"])
    net = KARRegressor((20,), random_state=0)
    X, Y = FRAME[["x1", "x2"]], FRAME[["number", "x0"]]
    expected = net.fit(X, Y).predict(X)
    np.testing.assert_array_equal(net.fit_blocks(blocks).predict(X), expected)


@pytest.mark.parametrize(
    "labels",
    [
        pa.array(["b", "a", "ccc"]).dictionary_encode(),
        pa.array(["b", "a", "ccc"], pa.large_string()),
        pa.array([2, 1, 3], pa.int8()),
        pa.array([2, 1, 3]).dictionary_encode(),
        pa.array([True, False, True]),
    ],
    ids=lambda array: str(array.type).split(",")[0],
)
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_labels_may_be_of_any_type(labels, kind, tmp_path):
    table = pa.table({"x": [1.0, 2.0, 3.0], "label": labels})
    if kind == "parquet":
        parquet.write_table(table, tmp_path / "some")
    else:
        write_arrow(table, tmp_path / "some")
    ((_, y, _),) = getattr(Blocks, f"from_{kind}")(tmp_path / "some", "label")
    assert y.tolist() == labels.to_pylist()


def write_arrow(table, path):
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def test_words_as_polars_writes_them_are_labels(tmp_path):
    words = pa.array(["b", "a", "ccc"], pa.string_view())
    write_arrow(pa.table({"x": [1.0, 2.0, 3.0], "label": words}), tmp_path / "some.arrow")
    ((_, y, _),) = Blocks.from_arrow(tmp_path / "some.arrow", "label")
    assert y.tolist() == ["b", "a", "ccc"]


def test_an_index_is_no_input(tmp_path):
    frame = FRAME[[*NAMES, "number"]].set_index(pd.Index(np.arange(M) ** 2, name="id"))
    frame.to_parquet(tmp_path / "all.parquet")
    assert Blocks.from_parquet(tmp_path / "all.parquet", "number").names == NAMES
    chosen = Blocks.from_parquet(tmp_path / "all.parquet", "number", ["x1", "id"])
    assert next(iter(chosen))[0][1].tolist() == [FRAME["x1"][1], 1.0]


def test_names_are_known_without_reading_rows(tmp_path):
    blocks = in_parquet(tmp_path, "word")
    content = (tmp_path / "all.parquet").read_bytes()
    (tmp_path / "all.parquet").write_bytes(b"PAR1" + bytes(1000) + content[1004:])
    assert Blocks.from_parquet(tmp_path / "all.parquet", "word", NAMES).names == NAMES
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        list(blocks)


def test_csv_may_have_no_header_another_delimiter_and_types(tmp_path):
    (tmp_path / "all.csv").write_text("1;2.5;01\n" * 2 + "3;4;x\n")
    read = {"delimiter": ";", "header": ["a", "b", "y"], "types": {"a": "float32", "y": "string"}}
    ((X, y, _),) = Blocks.from_csv(tmp_path / "all.csv", "y", **read)
    assert y.tolist() == ["01", "01", "x"]
    assert X.tolist() == [[1.0, 2.5], [1.0, 2.5], [3.0, 4.0]]
    ((X, *_),) = Blocks.from_csv(tmp_path / "all.csv", "y", "a", **read)
    assert X.dtype == np.float32


def test_csv_takes_numbers_for_numbers_whatever_its_beginning_tells(tmp_path):
    lines = ["a,b,y", *["1,true,0"] * 5000, "1.5,false,0"]
    (tmp_path / "all.csv").write_text("\n".join(lines))
    *_, (X, *_) = Blocks.from_csv(tmp_path / "all.csv", "y")
    assert X[-1].tolist() == [1.5, 0.0]


# What memory holds at once.


def peak_of(blocks):
    """Return the bytes that pyarrow and NumPy hold at most while blocks are gone through."""
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        arrow = max(pa.total_allocated_bytes() - before for _ in blocks)
        return arrow + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def one_row_group(kind, path, X):
    table = pa.table([*X.T], list("abcdefgh"))
    if kind == "parquet":
        options = {"use_dictionary": False, "data_page_size": 2**14}
        parquet.write_table(table, path, row_group_size=len(X), **options)
        assert parquet.ParquetFile(path).num_row_groups == 1
    elif kind == "arrow":
        write_arrow(table, path)
        assert ipc.open_file(path).num_record_batches == 1
    else:
        csv.write_csv(table, path)
    return getattr(Blocks, f"from_{kind}")(path, "h")


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv"])
def test_memory_holds_few_rows_of_a_large_row_group(kind, tmp_path):
    X = np.random.default_rng(0).standard_normal((2**17, 8))
    few, many = (peak_of(one_row_group(kind, tmp_path / str(n), X[:n])) for n in (2**14, 2**17))
    assert many < 1.2 * few + 2**19
    assert many < X.nbytes / 3


def test_a_block_of_a_npy_file_is_mapped_on_its_own(tmp_path):
    first, second, *_ = in_npy(tmp_path, "number")
    assert first[0].base.base is not second[0].base.base
    assert not first[0].flags.writeable


def test_few_pieces_wait_to_be_worked_on():
    n_threads, read, done = ONE_THREAD.allowed(), [0], [0]
    waiting = []

    def blocks():
        for _ in range(50):
            read[0] += 1
            waiting.append(read[0] - done[0])
            yield np.zeros((100, 1)), np.zeros(100), None

    def work(piece):
        done[0] += 1
        return len(piece[0])

    assert sum(in_order(work, regrouped(blocks(), repeat(100)))) == 5000
    assert max(waiting) <= n_threads + 2


def test_reading_goes_on_while_blocks_are_worked_on(tmp_path):
    """Each piece is worked on until the next was read: in turns, that would take forever."""
    blocks = in_parquet(tmp_path, "word")
    n = len(list(blocks))
    came = [Event() for _ in range(n + 1)]

    def reading():
        for k, block in enumerate(blocks):
            came[k].set()
            yield k, block
        came[n].set()

    waited = in_order(lambda item: came[item[0] + 1].wait(timeout=60), reading())
    assert n > 5
    assert all(waited)


# What is wrong is said.


@pytest.fixture
def files(tmp_path):
    frame = FRAME[[*NAMES, "word"]].head(50)
    frame.to_parquet(tmp_path / "good.parquet")
    frame.assign(x1=frame["x1"].where(frame["x1"] > 0)).to_parquet(tmp_path / "gaps.parquet")
    frame.assign(word=frame["word"].where(frame["x1"] > 0)).to_parquet(tmp_path / "lost.parquet")
    frame.rename(columns={"x4": "x5"}).to_parquet(tmp_path / "other.parquet")
    frame.assign(x2=np.inf).to_parquet(tmp_path / "endless.parquet")
    frame.head(0).to_parquet(tmp_path / "empty.parquet")
    frame.to_csv(tmp_path / "good.csv", index=False)
    (tmp_path / "nothing").write_text("")
    (tmp_path / "text").write_text("Once upon a time, \n there, was\n")
    (tmp_path / "late.csv").write_text("a,b,y\n" + "1,2,3\n" * 9000 + "1,red,3\n")
    (tmp_path / "ints.csv").write_text("a,b,y\n" + "1,2,3\n" * 9000 + "1,2,3.5\n")
    (tmp_path / "twice.csv").write_text("a,a,y\n1,2,3\n")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "path", "options", "said"),
    [
        ("parquet", "absent", {}, "there is no file or folder .*absent"),
        ("parquet", "folder", {}, "folder has no Parquet files"),
        ("parquet", "nothing", {}, "nothing cannot be read as Parquet"),
        ("parquet", "text", {}, "text cannot be read as Parquet"),
        ("parquet", "good.csv", {}, "good.csv cannot be read as Parquet"),
        ("arrow", "nothing", {}, "nothing cannot be read as Arrow .the file is empty"),
        ("arrow", "text", {}, "text cannot be read as Arrow"),
        ("arrow", "good.parquet", {}, "good.parquet cannot be read as Arrow"),
        ("csv", "nothing", {}, "nothing cannot be read as CSV .Empty CSV file"),
        ("csv", "text", {}, "text cannot be read as CSV|no column 'word'"),
        ("parquet", "good.parquet", {"target": "Word"}, "no column 'Word': its columns are x0, x1"),
        ("parquet", "good.parquet", {"columns": ["x9"]}, "no column 'x9'"),
        ("parquet", "good.parquet", {"columns": []}, "no columns except word"),
        ("parquet", "good.parquet", {"target": "x0"}, "string in column 'word'.*encode it first"),
        ("parquet", "good.parquet", {"sample_weight": "w"}, "no column 'w'"),
        ("csv", "good.csv", {"target": "x0"}, "string in column 'word'.*encode it first"),
        ("csv", "twice.csv", {"target": "y"}, "several columns 'a'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_at_once(kind, path, options, said, files):
    with pytest.raises((ValueError, FileNotFoundError), match=said) as caught:
        getattr(Blocks, f"from_{kind}")(files / path, **{"target": "word", **options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "paths", "target", "said"),
    [
        ("parquet", ["empty"], "word", "the blocks hold no rows"),
        ("parquet", ["gaps"], "word", "missing values in column 'x1'"),
        ("parquet", ["good", "lost"], "word", "lost.parquet has missing values in column 'word'"),
        ("parquet", ["good", "other"], "word", "other.parquet has other columns than"),
        ("parquet", ["empty", "endless"], "word", "infinity .inf. in column 'x2'"),
        ("csv", ["late"], "y", "line 9002 has 'red' in column 'b', which is no double"),
        ("csv", ["ints"], "y", "line 9002 has '3.5' in column 'y', which is no int64: .* types"),
    ],
)
def test_what_is_wrong_with_rows_is_said_when_they_are_read(kind, paths, target, said, files):
    blocks = getattr(Blocks, f"from_{kind}")([files / f"{path}.{kind}" for path in paths], target)
    net = KARClassifier((3,))
    with pytest.raises(ValueError, match=said) as caught:
        net.fit_blocks(blocks)
    assert "\n" not in str(caught.value)
    assert not hasattr(net, "coefs_")


def test_what_is_wrong_with_arrays_is_said(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((4, 2)))
    np.save(tmp_path / "y.npy", np.ones(3))
    np.save(tmp_path / "objects.npy", np.array([None, {}]))
    np.savez(tmp_path / "two.npz", a=np.ones(4), b=np.ones(4))
    (tmp_path / "text.npy").write_text("4, 5")
    (tmp_path / "nothing.npy").write_text("")
    for name, said in [
        ("y.npy", "y.npy must have the same number of rows as .*X.npy, 4, but its shape is .3,."),
        ("absent.npy", "there is no file .*absent.npy"),
        ("objects.npy", "objects.npy cannot be read as .npy"),
        ("two.npz", "two.npz holds several arrays"),
        ("text.npy", "text.npy cannot be read as .npy"),
        ("nothing.npy", "nothing.npy cannot be read as .npy"),
    ]:
        with pytest.raises((ValueError, FileNotFoundError), match=said) as caught:
            Blocks.from_npy(tmp_path / "X.npy", tmp_path / name)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="X must have two dimensions"):
        Blocks.from_arrays([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="sample_weight must have the same number of rows"):
        Blocks.from_arrays([[1.0], [2.0]], [1.0, 2.0], 3.0)


def test_without_pyarrow_it_is_said_what_to_install(monkeypatch, files):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "karnet._rows.arrow_files")
    monkeypatch.delattr("karnet._rows.arrow_files")
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'karnet\[blocks\]'"):
        Blocks.from_parquet(files / "good.parquet", "word")


def test_a_pass_reads_what_is_needed_once(tmp_path):
    """The first pass goes through a file once."""
    blocks = in_parquet(tmp_path, "word")
    n_read = []
    counted = Blocks(lambda: n_read.append(1) or iter(blocks), blocks.names)
    scanned(LocalPasses(counted, counted.names), ClassTargets(None))
    assert n_read == [1]


@pytest.mark.parametrize("kind", ["bsr", "coo", "csc", "dia", "dok", "lil"])
def test_sparse_matrices_of_every_kind_are_read(kind):
    from scipy import sparse

    X = sparse.random_array((20, 3), density=0.5, rng=np.random.default_rng(0))
    y = np.arange(20.0)
    net = KARRegressor((3,), hidden="random", random_state=0)
    wanted = net.fit(X.tocsr(), y).predict(X.tocsr())
    odd = X.asformat(kind)
    for blocks in (Blocks.from_arrays(odd, y), [(odd, y)]):
        np.testing.assert_allclose(net.fit_blocks(blocks).predict(X.tocsr()), wanted, atol=1e-8)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (3.0, "X of block 0 must be an array with a row for each sample, but is a float"),
        ((row for row in [[1.0]]), "but is a generator"),
        ([[1.0], [1.0, 2.0]], "X of block 0 must have rows of equal length"),
    ],
    ids=["a number", "a generator", "ragged"],
)
def test_blocks_that_are_no_rows_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        KARRegressor((3,)).fit_blocks([(X, [1.0, 2.0])])
    if isinstance(X, list):
        with pytest.raises(ValueError, match="X must have rows of equal length"):
            Blocks.from_arrays(X, [1.0, 2.0])


def test_an_arrow_file_whose_words_lie_elsewhere_is_refused(tmp_path):
    table = pa.table({"a": [1.0, 2.0, 3.0], "b": ["one", "two", "three"]})
    path = tmp_path / "rows.arrow"
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    right, far = np.array([[0, 3, 6, 11], [0, 2**30, 2**30 + 3, 2**30 + 8]], np.int32)
    path.write_bytes(path.read_bytes().replace(right.tobytes(), far.tobytes()))
    with pytest.raises(ValueError, match="cannot be read as Arrow"):
        KARClassifier((2,)).fit_blocks(Blocks.from_arrow(path, "b"))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_words_that_are_not_utf_8_are_refused(kind, tmp_path):
    data = pa.array([b"one", b"\xa9\xff", b"three"])
    words = pa.StringArray.from_buffers(3, *data.buffers()[1:])
    table, path = pa.table({"a": [1.0, 2.0, 3.0], "b": words}), tmp_path / f"rows.{kind}"
    if kind == "parquet":
        parquet.write_table(table, path)
    else:
        write_arrow(table, path)
    for read in (read_table, lambda path: list(getattr(Blocks, f"from_{kind}")(path, "b"))):
        with pytest.raises(ValueError, match=f"cannot be read as {kind.title()}") as error:
            read(path)
        assert type(error.value) is ValueError


def test_names_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xa9,b\n1,2\n")
    with pytest.raises(ValueError, match="cannot be read as CSV") as error:
        Blocks.from_csv(path, "b")
    assert type(error.value) is ValueError


def test_what_has_a_shape_but_no_rows_is_taken_as_an_array():
    class Wrapped:
        shape = (4, 2)

        def __array__(self, dtype=None, copy=None):
            return np.arange(8.0).reshape(4, 2)

    net = KARRegressor((), output_activation="identity")
    net.fit_blocks(Blocks.from_arrays(Wrapped(), [0.0, 1.0, 2.0, 3.0]))
    np.testing.assert_allclose(net.predict(np.asarray(Wrapped())), range(4), atol=1e-9)
