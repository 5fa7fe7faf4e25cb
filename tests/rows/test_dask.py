"""Networks learned from Dask collections are those learned from the same rows in memory."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import threading
import time
import warnings
from functools import partial
from itertools import pairwise, repeat
from pathlib import Path

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV
from karnet._arrays.threads import ONE_THREAD
from karnet._estimator.targets import SCAN
from karnet._lstsq.statistics import Sum
from karnet._rows.dask import Cutter, DaskPasses, merged_runs, total
from karnet._rows.memory import in_order, merged

M, D = 3000, 6
# Windows ends a process at once for any signal, and has no SIGKILL.
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
HEIGHTS = (700, 1, 0, 13, 900, 5, 1300, 81)
NAMES = list("abcdef")
OPTIONS = {
    "pullback": {},
    "ridge": {"alpha": 1.0},
    "random": {"hidden": "random"},
    "links": {"hidden": "random", "direct_links": True, "fit_intercept": False},
    "metric": {"hidden": "metric", "activation": "tanh"},
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((M, D))
    clean = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    return X, clean + 0.1 * rng.standard_normal(M), np.digitize(clean, [-0.5, 0.5])


@pytest.fixture(scope="module")
def two_workers():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def cluster(two_workers):
    """For the tests that ask for it; others run in threads."""
    with two_workers.as_current():
        yield two_workers


@pytest.fixture
def many_passes(monkeypatch, solver_sizes, block_sizes):
    """So small blocks that rows are not gathered after the first pass, nor all in the sample."""
    block_sizes(block=2**13, sample=700 * D)
    solver_sizes(product=1e6, loo_in_memory=2**13)
    monkeypatch.setattr(SCAN, "rows", 2**9)


def cut(array, heights=HEIGHTS, width=-1):
    return da.from_array(array, chunks=(heights, width)[: array.ndim])


def uncounted(array):
    """Return the same rows in blocks of a height that Dask does not know."""
    rows = cut(array)
    return rows[da.ones(len(array), chunks=rows.chunks[:1]) > 0]


def framed(array, n_parts=5):
    kind = pd.Series if array.ndim == 1 else pd.DataFrame
    options = {"columns": NAMES[: array.shape[1]]} if array.ndim > 1 else {"name": "y"}
    return dd.from_pandas(kind(array, **options), npartitions=n_parts)


def assert_same_network(net, expected):
    assert net.layers_ == expected.layers_
    for a, b in zip(net.coefs_, expected.coefs_, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("many_passes")
@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        *(((), "pullback"), ((40,), "pullback"), ((60, 30), "pullback")),
        *(((80, 40, 20), "pullback"), ((), "ridge"), ((60, 30), "ridge")),
        *(((40,), "random"), ((80, 40, 20), "random"), ((60, 30), "links"), ((40,), "metric")),
    ],
    ids=str,
)
def test_chunks_give_the_network_of_all_rows_bit_for_bit(sizes, options, table):
    X, y, labels = table
    for Net, targets in ((KARRegressor, y), (KARClassifier, labels)):
        net = Net(sizes, random_state=0, **OPTIONS[options])
        expected = clone(net).fit(X, targets)
        assert_same_network(net.fit(cut(X), cut(targets)), expected)


@pytest.mark.usefixtures("many_passes")
def test_two_workers_give_the_network_of_all_rows_bit_for_bit(cluster, table):
    X, y, labels = table
    rows, numbers, classes = (cut(each, (900, 1300, 800)).persist() for each in (X, y, labels))
    for sizes in ((40,), (60, 30), (80, 40, 20)):
        net = KARRegressor(sizes, random_state=0)
        assert_same_network(clone(net).fit(rows, numbers), net.fit(X, y))
        net = KARClassifier(sizes, random_state=0)
        assert_same_network(clone(net).fit(rows, classes), net.fit(X, labels))
    assert net.score(rows, classes) == net.score(X, labels)
    np.testing.assert_array_equal(net.predict(rows).compute(), net.predict(X))


@pytest.mark.usefixtures("many_passes")
@pytest.mark.parametrize("class_weight", [None, "balanced", {"low": 0.0}, {"low": 3.0}], ids=str)
def test_weights_of_rows_and_classes_act_as_in_memory(class_weight, table):
    X, _, labels = table
    y = np.array(["high", "low", "middle"])[labels]
    weight = np.random.default_rng(1).integers(0, 3, M).astype(float)
    options = {"hidden": "random", "class_weight": class_weight, "random_state": 0}
    net = KARClassifier((20,), **options).fit(X, y, weight)
    same = KARClassifier((20,), **options).fit(cut(X), cut(y), cut(weight))
    assert same.classes_.tolist() == net.classes_.tolist()
    found, expected = same.decision_function(X), net.decision_function(X)
    assert np.linalg.norm(found - expected) < 1e-8 * np.linalg.norm(expected)
    rows = cut(X), cut(y), cut(weight)
    assert same.score(*rows) == pytest.approx(same.score(X, y, weight), rel=1e-12)


@pytest.mark.usefixtures("many_passes")
@pytest.mark.parametrize("of_X", [cut, uncounted, framed], ids=["known", "unknown", "frame"])
@pytest.mark.parametrize("of_y", [cut, uncounted, framed], ids=["known", "unknown", "frame"])
def test_arrays_and_frames_go_together_if_their_blocks_do(of_X, of_y, table):
    X, y, _ = table
    targets = np.c_[y, -y]
    if framed in (of_X, of_y) and of_X is not of_y:
        frame, other = (of_X, X) if of_X is framed else (of_y, targets)
        with pytest.raises(ValueError, match="same number of blocks of rows as X"):
            KARRegressor((5,)).fit(of_X(X), of_y(targets))
        known = frame(other).to_dask_array(lengths=True)
        rows = (known, of_y(targets)) if of_X is framed else (of_X(X), known)
        if uncounted in (of_X, of_y):
            rows = tuple(each.compute_chunk_sizes() for each in rows)
    else:
        rows = of_X(X), of_y(targets)
    net = KARRegressor((60, 30), random_state=0)
    assert_same_network(clone(net).fit(*rows), net.fit(X, targets))


def test_columns_are_brought_together_and_targets_cut_as_the_inputs(table):
    X, y, _ = table
    net = KARRegressor((5,), random_state=0).fit(X, np.c_[y, y])
    rows = cut(X, width=2), cut(np.c_[y, y], heights=500, width=1)
    same = KARRegressor((5,), random_state=0).fit(*rows)
    assert_same_network(same, net)
    # A block of one row is multiplied as a vector, which rounds otherwise.
    np.testing.assert_allclose(same.predict(rows[0]).compute(), net.predict(X), rtol=1e-9)
    assert same.score(*rows) == pytest.approx(net.score(X, np.c_[y, y]), rel=1e-12)


def test_names_are_those_of_the_columns_and_checked_before_anything_runs(table):
    X, _, labels = table
    y = np.array(["no", "yes", "maybe"], dtype=object)[labels]
    frame = framed(X)
    net = KARClassifier((5,), random_state=0).fit(frame, framed(y))
    assert net.feature_names_in_.tolist() == NAMES
    assert net.classes_.tolist() == ["maybe", "no", "yes"]

    def never(block):
        raise AssertionError("computed")

    later = frame.map_partitions(never, meta=frame._meta)
    with pytest.raises(ValueError, match="feature names"):
        net.predict(later.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="feature names"):
        net.score(later.rename(columns={"a": "z"}), framed(y))
    answers = net.predict_proba(later)
    assert isinstance(answers, da.Array)
    assert answers.chunks == ((np.nan,) * 5, (3,)) or np.isnan(answers.chunks[0]).all()
    assert net.predict(frame).compute().tolist() == net.predict(frame.compute()).tolist()
    assert net.score(frame, framed(y)) == net.score(frame.compute(), y)
    with pytest.warns(UserWarning, match="feature names"):
        answers = net.predict(cut(X))
    assert answers.compute().tolist() == net.predict(frame.compute()).tolist()


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64], ids=str)
@pytest.mark.parametrize("of_X", [cut, uncounted, framed], ids=["known", "unknown", "frame"])
def test_answers_are_lazy_and_know_what_they_will_be(kind, of_X, table):
    X, y, labels = table
    X = (8 * X).astype(kind)
    networks = [
        KARClassifier((4,), random_state=0).fit(X, labels),
        KARClassifier((4,), random_state=0).fit(X, labels > 1),
        KARRegressor((4,), random_state=0).fit(X, np.c_[y, y]),
    ]
    rows = of_X(X)
    heights = rows.to_dask_array().chunks[0] if of_X is framed else rows.chunks[0]
    for net in networks:
        # The names of the frame, which no network was taught, are another test's.
        for name in ("predict", "predict_proba", "decision_function"):
            if not hasattr(net, name):
                continue
            if of_X is framed:
                net.feature_names_in_ = np.array(NAMES, dtype=object)
            answers = getattr(net, name)(rows)
            expected = getattr(net, name)(rows.compute())
            assert answers.dtype == expected.dtype
            assert answers.ndim == expected.ndim
            np.testing.assert_array_equal(answers.chunks[0], heights)
            assert answers.shape[1:] == expected.shape[1:]
            found = answers.compute()
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_lazy_answers_are_those_of_the_network_that_was_asked(table):
    X, y, _ = table
    net = KARRegressor((4,), random_state=0).fit(X, y)
    expected, answers = net.predict(X), net.predict(cut(X))
    net.fit(X, -y)
    np.testing.assert_allclose(answers.compute(), expected)


@pytest.fixture
def few_rows(settings):
    """Leaves so small that a table is divided into many in little time."""
    settings(leaf=100, largest_leaf=100, smallest_leaf=50, tuned_rows=100, metric_rows=200)


def assert_same_average(net, expected, X):
    """Same trees, same metrics, same predictions."""
    for member, other in zip(net.estimators_, expected.estimators_, strict=True):
        np.testing.assert_array_equal(member.X_fit_, other.X_fit_)
        for part, same in zip(member.dual_coef_, other.dual_coef_, strict=True):
            np.testing.assert_array_equal(part, same)
    np.testing.assert_array_equal(net.loo_decision_function_, expected.loo_decision_function_)
    np.testing.assert_array_equal(net.predict(X), expected.predict(X))


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("of_rows", [cut, uncounted, framed], ids=["known", "unknown", "frame"])
def test_averages_are_those_of_the_rows_in_memory_bit_for_bit(of_rows, table, block_sizes):
    block_sizes(chunk=2**10, block=2**12)
    X, y, labels = table
    for net, targets in (
        (KARClassifierCV(width=200, random_state=0), labels),
        (KARRegressorCV(width=200, random_state=0), np.c_[y, -y]),
    ):
        found = clone(net).fit(of_rows(X), of_rows(targets))
        if of_rows is framed:
            assert found.__dict__.pop("feature_names_in_").tolist() == NAMES
        assert_same_average(found, net.fit(X, targets), X)


@pytest.mark.usefixtures("few_rows")
def test_averages_of_weighted_rows_leave_out_those_of_weight_0(table):
    X, _, labels = table
    weight = np.random.default_rng(1).integers(0, 3, M).astype(float)
    net = KARClassifierCV(width=200, class_weight={2: 0.0}, random_state=0)
    found = clone(net).fit(cut(X), cut(labels), cut(weight))
    assert found.classes_.tolist() == [0, 1]
    assert_same_average(found, net.fit(X, labels, weight), X)


def test_averages_of_few_rows_are_fitted_and_predict_lazily(table):
    X, y, labels = (each[:60] for each in table)
    rows = da.from_array(X, chunks=(25, -1))
    for net, targets in (
        (KARClassifierCV(random_state=0), labels),
        (KARRegressorCV(random_state=0), y),
    ):
        lazy = da.from_array(targets, chunks=25)
        found = clone(net).fit(rows, lazy)
        net.fit(X, targets)
        np.testing.assert_array_equal(found.predict(X), net.predict(X))
        np.testing.assert_allclose(net.predict(rows).compute(), net.predict(X))
        assert net.score(rows, lazy) == pytest.approx(net.score(X, targets), rel=1e-9)
    ends = net.predict_interval(rows, coverage=0.5)
    np.testing.assert_allclose(ends.compute(), net.predict_interval(X, coverage=0.5))


@pytest.mark.usefixtures("few_rows")
def test_averages_predict_lazily_from_the_leaves_of_trees(table):
    X, y, labels = table
    net = KARClassifierCV(width=200, random_state=0).fit(X, labels)
    for name in ("predict", "predict_proba", "decision_function", "predict_set"):
        found, expected = getattr(net, name)(cut(X)), getattr(net, name)(X)
        assert isinstance(found, da.Array)
        np.testing.assert_allclose(found.compute(), expected, atol=1e-6)
    assert net.score(cut(X), cut(labels)) == pytest.approx(net.score(X, labels), rel=1e-9)
    net = KARRegressorCV(width=200, random_state=0).fit(X, y)
    ends = net.predict_interval(cut(X)).compute()
    np.testing.assert_allclose(ends, net.predict_interval(X), atol=1e-6)


@pytest.mark.parametrize("constant", [True, False])
def test_scores_of_several_outputs_are_those_of_scikit_learn(constant, table):
    X, y, _ = table
    Y = np.c_[1e6 + y, np.ones(M) if constant else y]
    net = KARRegressor((4,), random_state=0).fit(X, Y)
    weight = np.arange(M) % 3
    found = net.score(cut(X), cut(Y), cut(weight))
    assert found == pytest.approx(net.score(X, Y, weight), rel=1e-9)


X2, Y2 = np.ones((4, 2)), np.arange(4.0)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((da.from_array(X2), Y2), "y is a ndarray, but"),
        ((X2, da.from_array(Y2)), "X is a ndarray, but"),
        ((da.from_array(X2), None), "y is a NoneType, but"),
        ((da.from_array(X2), da.from_array(Y2), [1.0] * 4), "sample_weight is a list, but"),
        ((da.from_array(X2), dask.delayed(Y2)), "y is a Delayed"),
        ((da.from_array(Y2), da.from_array(Y2)), "X must have 2 dimensions, but has 1"),
        ((da.from_array(X2), da.ones((4, 1, 1))), "y must have 1 or 2 dimensions"),
        ((da.from_array(X2)[:, da.ones(2) > 0], da.from_array(Y2)), "unknown number of columns"),
        ((da.from_array(X2), da.from_array(Y2[:3])), "same number of rows as X, 4, but has 3"),
        ((da.from_array(X2[:0]), da.from_array(Y2[:0])), "hold no rows"),
        (
            (framed(X2, 2), framed(Y2, 1)),
            "same number of partitions as X, 2, but has 1",
        ),
        (
            (da.from_array(X2, chunks=2), framed(Y2, 1)),
            "number of blocks of rows as X, 2, but has 1, of unknown sizes: call compute_chunk",
        ),
        ((framed(X2, 2), framed(np.arange(6.0), 2)), "same number of rows as X in every block, 2"),
        ((da.from_array(np.full((4, 2), np.nan)), da.from_array(Y2)), "infinity .* column 0"),
        ((framed(np.full((4, 2), np.inf)), framed(Y2)), "column 'a'"),
        ((framed(np.full((4, 2), "word")), framed(Y2)), "column 'a' does not"),
        ((da.from_array(X2), da.from_array(Y2), da.from_array(-Y2)), "not negative"),
    ],
)
@pytest.mark.parametrize("net", [KARRegressor((3,)), KARRegressorCV()], ids=["one", "average"])
def test_what_is_wrong_with_collections_is_said(net, rows, said):
    net = clone(net).fit(X2, Y2)
    before = dict(vars(net))
    with pytest.raises(ValueError, match=said) as error:
        net.fit(*rows)
    assert str(error.value).count("\n") == 0
    assert vars(net) == before


def test_exact_updates_take_a_block_at_a_time(table):
    X, y, _ = table
    rows, targets = cut(X), cut(y)
    net = KARRegressor((20,), hidden="random", random_state=0)
    with pytest.raises(ValueError, match="compute one block after the other"):
        net.partial_fit(rows, targets)
    for k in (0, 4, 6):
        net.partial_fit(rows.blocks[k].compute(), targets.blocks[k].compute())
    with pytest.raises(ValueError, match="compute one block after the other"):
        net.forget(rows, targets)


def fails(block):
    raise OSError("the disk is gone")


def test_a_block_that_cannot_be_computed_is_one_sentence(table):
    X, y, _ = table
    net = KARRegressor((3,), random_state=0).fit(X, y)
    before = dict(vars(net))
    for rows in (cut(X).map_blocks(fails, dtype=float, meta=X[:0]), uncounted(X)):
        if np.isnan(rows.shape[0]):
            rows = rows.map_blocks(fails, dtype=float, meta=X[:0])
        with pytest.raises(RuntimeError, match=r"\(OSError: the disk is gone\)"):
            net.fit(rows, cut(y))
    assert vars(net) == before


def test_blocks_of_other_heights_than_their_chunks_are_refused():
    def shorter(block):
        return block[1:]

    rows = da.from_array(X2, chunks=(2, 2)).map_blocks(shorter, dtype=float)
    targets = da.from_array(Y2, chunks=2).map_blocks(shorter, dtype=float)
    with pytest.raises(ValueError, match="a block of 2 rows holds 1 of them now"):
        KARRegressor((3,)).fit(rows, targets)


def test_sparse_blocks_are_learned_from(table):
    X, y, _ = table
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    rows = cut(X).map_blocks(sparse.csr_array, meta=sparse.csr_array(X[:0]))
    net = KARRegressor((20,), hidden="random", random_state=0)
    assert_same_network(clone(net).fit(rows, cut(y)), net.fit(X, y))


@pytest.mark.parametrize("heights", [[100], [3, 5], [7] * 3, [1] * 100, [64, 30]], ids=str)
@pytest.mark.parametrize("cuts", [[], [50], [1, 2, 3, 50, 97], range(101)], ids=len)
def test_however_rows_are_cut_they_are_added_up_in_one_order(heights, cuts):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100, 1)) * 10.0 ** rng.integers(-9, 9, (100, 1))

    def of_block(start, X, y, weight):
        np.testing.assert_array_equal(X, x[start : start + len(X)])
        return Sum(X.sum(axis=0))

    last = len(heights) and heights[-1]
    cutter = Cutter.into([*heights, *repeat(last, 100)], 100, of_block)
    expected = merged(of_block(i, x[i:j], 0, 0) for i, j in pairwise(cutter.edges))
    edges = [0, *cuts, 100]
    tables = [(x[i:j], x[i:j], None) for i, j in pairwise(edges)]
    places = [{"start": i, "size": j - i} for i, j in pairwise(edges)]
    ends = [cutter.ends(rows, **place) for rows, place in zip(tables, places, strict=True)]
    runs = []
    for blocks, span in cutter.steps([len(table[0]) for table in tables]):
        k = span.start
        if len(span) == 1:
            runs.append(cutter.whole(tables[k], **places[k], blocks=blocks))
        else:
            runs.append(cutter.seam(*(ends[k] for k in span), block=blocks.start))
    while len(runs) > 1:
        runs = [merged_runs(*runs[i : i + 3]) for i in range(0, len(runs), 3)]
    assert total(runs[0]).value == expected.value


def test_rows_that_wait_for_others_do_not_keep_their_table_in_memory():
    cutter = Cutter.into([60, 40], 100, lambda start, X, y, weight: Sum(X.sum(axis=0)))
    x = np.ones((80, 1))
    parts = cutter.ends((x, x[:, 0], None), start=10, size=80)
    assert [len(rows[0]) for _, rows in parts] == [50, 30]
    assert all(array.base is None for _, rows in parts for array in rows[:2])


def blas_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_blocks_share_the_cores_with_each_other_alone(scheduler, table):
    X, y, _ = table
    found = []

    def of_block(*block):
        with ONE_THREAD():
            inside = blas_threads()
        threads = set(in_order(lambda _: threading.get_ident(), [0, 1, 2]))
        found.append((inside, blas_threads(), threads == {threading.get_ident()}))
        return Sum(np.ones(1))

    passes = DaskPasses.over(np.asarray, cut(X), cut(y), None)
    with threadpool_limits(2), dask.config.set(scheduler=scheduler, num_workers=3):
        total = passes.reduce(of_block, repeat(100))
        assert blas_threads() == {2}
    assert total.value == len(found) == M / 100
    assert all(each == ({1}, {1}, True) for each in found)


@pytest.mark.usefixtures("many_passes")
@pytest.mark.parametrize("options", OPTIONS)
def test_what_is_sent_for_a_pass_is_the_network_and_not_the_rows(
    options, table, solver_sizes, block_sizes
):
    sent, taken = [], []

    def noted(expression, keys, **options):
        """Run a graph, and note the sizes of its function and of its result."""
        found = dask.get(expression, keys, **options)
        for key, node in dict(expression.__dask_graph__()).items():
            if str(key[0]).startswith("statistic-"):
                sent.append(len(cloudpickle.dumps(node)))
                taken.append(len(cloudpickle.dumps(found)))
        return found

    solver_sizes(loo_in_memory=0)
    block_sizes(block=2**16)
    rows = [da.concatenate([cut(each, 600)] * 6) for each in table]
    for Net, targets in ((KARRegressor, rows[1]), (KARClassifier, rows[2])):
        with dask.config.set(scheduler=noted):
            net = Net((30, 20), random_state=0, **OPTIONS[options]).fit(rows[0], targets)
        weights = sum(each.nbytes for each in net.coefs_)
        assert max(sent) < 4 * weights + 2**14
        # But for the sample of the first pass.
        assert max(taken[1:]) < 4 * 8 * 30 * 40
        assert taken[0] < 2 * 8 * 700 * D
        assert len(sent) >= 3
        sent.clear()
        taken.clear()


class Noted:
    """A function that leaves a note whenever it comes out of a message."""

    def __init__(self, folder):
        self.folder = folder
        self.ballast = os.urandom(12 * 2**20)

    def __setstate__(self, state):
        self.__dict__.update(state)
        (self.folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()

    def __call__(self, start, X, y, weight):
        return Sum(np.array([float(len(X))]))


def test_a_function_goes_to_each_worker_once_and_without_a_warning(cluster, table, tmp_path):
    X, y, _ = table
    passes = DaskPasses.over(
        np.asarray, da.from_array(X, chunks=(100, -1)), da.from_array(y, 100), None
    )
    assert passes.reduce(Noted(tmp_path), repeat(70)).value == M
    notes = [int(path.name.split("-")[0]) for path in tmp_path.iterdir()]
    assert [notes.count(pid) for pid in cluster.run(os.getpid).values()] == [1, 1]


@pytest.mark.usefixtures("cluster")
def test_leaves_are_sent_in_parts_and_without_a_warning(table):
    X, y, _ = table
    passes = DaskPasses.over(np.asarray, cut(X), cut(y), None)
    leaf = np.ones((2**19, 3))  # 12 MiB, and Dask warns of 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(passes.compute(np.sum, lambda k: (k * leaf,), [0, 1, 2])) == [
            k * leaf.size for k in range(3)
        ]
    few = list(range(1000))
    assert list(passes.compute(np.sum, lambda k: (np.full(3000, k),), few)) == [
        3000 * k for k in few
    ]


def slow_and_noted(block, folder=None):
    """Return the block, a little later, and leave a note that it was asked for."""
    time.sleep(0.02)
    (folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()
    return block


def fit_with_a_killed_worker(net, cluster, rows, targets, folder, n_passes):
    """Fit a network, and kill a worker after a number of passes over the noted blocks."""
    workers = cluster.run(os.getpid)
    done = threading.Event()

    def learn():
        with cluster.as_current():
            net.fit(rows, targets)
        done.set()

    thread = threading.Thread(target=learn)
    thread.start()
    n_blocks = rows.numblocks[0]
    while len(os.listdir(folder)) < n_passes * n_blocks:
        time.sleep(0.005)
    os.kill(next(iter(workers.values())), KILL)
    n_before = len(os.listdir(folder))
    assert not done.is_set()
    thread.join(timeout=60)
    assert done.is_set()
    assert len(os.listdir(folder)) > n_before + n_blocks // 2
    assert set(workers.values()) - set(cluster.run(os.getpid).values())


def test_a_worker_killed_while_a_network_is_learned_changes_nothing(cluster, table, tmp_path):
    X, y, _ = table
    rows = cut(X, 100).map_blocks(slow_and_noted, folder=tmp_path, meta=X[:0])
    net = KARRegressor((20,), hidden="random", random_state=0)
    fit_with_a_killed_worker(net, cluster, rows, cut(y, 100), tmp_path, 1.5)
    assert_same_network(net, clone(net).fit(X, y))


@pytest.mark.usefixtures("few_rows")
def test_a_worker_killed_while_an_average_is_learned_changes_nothing(cluster, table, tmp_path):
    X, y, _ = table
    rows = cut(X, 100).map_blocks(slow_and_noted, folder=tmp_path, meta=X[:0])
    net = KARRegressorCV(width=200, random_state=0)
    # The first pass checks the rows, the second takes a sample, the third is that of a member.
    fit_with_a_killed_worker(net, cluster, rows, cut(y, 100), tmp_path, 2.2)
    assert_same_average(net, clone(net).fit(X, y), X)


def test_a_worker_killed_while_leaves_are_solved_changes_nothing(cluster, table, tmp_path):
    X, y, _ = table
    passes = DaskPasses.over(np.asarray, cut(X), cut(y), None)
    solved = passes.compute(
        partial(slow_and_noted, folder=tmp_path), lambda k: (X[k : k + 10],), list(range(100))
    )
    killed = next(iter(cluster.run(os.getpid).values()))

    def kill():
        while len(os.listdir(tmp_path)) < 40:
            time.sleep(0.005)
        os.kill(killed, KILL)

    thread = threading.Thread(target=kill)
    thread.start()
    np.testing.assert_array_equal(list(solved), [X[k : k + 10] for k in range(100)])
    thread.join()
    assert killed not in cluster.run(os.getpid).values()


def test_the_guide_s_lines_run():
    guide = (Path(__file__).parents[2] / "docs" / "dask.md").read_text()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec("\n".join(re.findall(r"```python\n(.*?)```", guide, re.S)), {})
    assert float(printed.getvalue()) > 0.9
