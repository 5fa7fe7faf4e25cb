"""Networks fitted to blocks of rows are bit for bit those fitted to all rows at once."""

from __future__ import annotations

from itertools import pairwise, repeat

import numpy as np
import pandas as pd
import pytest

from karnet import KARClassifier, KARRegressor, KARRegressorCV
from karnet._rows.streamed import Sample, regrouped
from karnet.blocks import Blocks

M, D = 3000, 6
SIZES = [(), (40,), (60, 30), (80, 40, 20)]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((M, D))
    signal = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    return X, signal + 0.1 * rng.standard_normal(M), np.digitize(signal, [-0.5, 0.5])


@pytest.fixture
def many_blocks(solver_sizes, block_sizes):
    """So small blocks that every table has many, and a sample is not all of it."""
    block_sizes(block=2**13, sample=700 * D)
    solver_sizes(product=1e6)


def cut(*arrays, heights=(700, 1, 0, 13, 900, 5, 1300)):
    """Return the rows of arrays in blocks of uneven height."""
    edges = np.cumsum([0, *heights, len(arrays[0]) - sum(heights)])
    return [tuple(a[i:j] for a in arrays) for i, j in pairwise(edges)]


@pytest.mark.usefixtures("many_blocks")
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 1.0},
        {"hidden": "random"},
        {"hidden": "random", "direct_links": True, "fit_intercept": False},
        {"hidden": "metric", "activation": "tanh"},
    ],
    ids=["pullback", "ridge", "random", "links", "metric"],
)
def test_blocks_give_the_network_of_all_rows_bit_for_bit(sizes, options, table):
    if not sizes and "hidden" in options:
        return
    X, y, labels = table
    for Net, targets in ((KARRegressor, y), (KARClassifier, labels)):
        net = Net(sizes, random_state=0, **options).fit(X, targets)
        same = Net(sizes, random_state=0, **options).fit_blocks(cut(X, targets))
        assert same.layers_ == net.layers_
        for a, b in zip(same.coefs_, net.coefs_, strict=True):
            np.testing.assert_array_equal(a, b)


def test_nothing_is_written_into_the_blocks(table):
    X, y, _ = table
    kept = X.copy(), y.copy()
    KARRegressor((10,)).fit_blocks([(X, y)])
    KARRegressor((10,)).fit(X, y)
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(y, kept[1])


def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.mark.usefixtures("many_blocks")
@pytest.mark.parametrize("class_weight", [None, "balanced", {"low": 0.0}, {"low": 3.0}], ids=str)
def test_weights_of_rows_and_classes_act_as_in_fit(class_weight, table):
    X, _, labels = table
    y = np.array(["high", "low", "middle"])[labels]
    weight = np.random.default_rng(1).integers(0, 3, M).astype(float)
    options = {"hidden": "random", "class_weight": class_weight, "random_state": 0}
    net = KARClassifier((20,), **options).fit(X, y, weight)
    same = KARClassifier((20,), **options).fit_blocks(cut(X, y, weight))
    assert same.classes_.tolist() == net.classes_.tolist()
    assert relative(same.decision_function(X), net.decision_function(X)) < 1e-8


def test_few_rows_are_taken_as_fit_takes_them(table):
    X, y, _ = (part[:40] for part in table)
    for net in (KARRegressor((60,), random_state=0), KARRegressor((np.inf,), activation="relu")):
        net.set_params(hidden="random")
        expected = net.fit(X, y).predict(X)
        found = net.fit_blocks([(X[:10], y[:10]), (X[10:], y[10:])]).predict(X)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_names_and_shapes_are_those_of_the_blocks(table):
    X, y, _ = table
    frame = pd.DataFrame(X, columns=list("abcdef"))
    net = KARRegressor((5,)).fit_blocks(cut(frame, np.c_[y, y]))
    assert net.feature_names_in_.tolist() == list("abcdef")
    assert net.predict(frame).shape == (M, 2)
    assert not hasattr(net.fit_blocks(cut(X, y)), "feature_names_in_")


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (iter([]), "only once"),
        (7, "is a int"),
        ([], "no rows"),
        ([(np.ones((2, 2)), np.ones(2), np.zeros(2))], "no rows"),
        ([(np.ones((2, 2)),)], "block 0 must be a tuple"),
        (
            [(np.ones((2, 2)), np.ones(2)), (np.ones((2, 3)), np.ones(2))],
            "block 1 has other columns of X",
        ),
        ([(np.ones((2, 2)), np.ones(2)), (np.ones((2, 2)), np.ones((2, 2)))], "other columns of y"),
        ([(np.ones((2, 2)), np.ones(3))], "same number of rows"),
        ([(np.full((2, 2), np.nan), np.ones(2))], "column 0"),
        ([(np.ones((2, 2)), np.ones(2), [1.0, -1.0])], "not negative"),
    ],
)
@pytest.mark.parametrize("net", [KARRegressor((3,)), KARRegressorCV()], ids=["one", "average"])
def test_errors_name_the_block_and_its_fault(net, blocks, message):
    before = dict(vars(net))
    with pytest.raises(ValueError, match=message):
        net.fit_blocks(blocks)
    assert vars(net) == before


@pytest.mark.usefixtures("many_blocks")
def test_blocks_that_change_between_passes_are_refused(table):
    X, y, labels = table
    n_read = []

    def shrinking():
        n_read.append(1)
        yield X[len(n_read) :], y[len(n_read) :]

    with pytest.raises(ValueError, match="rows in the first pass and 2997 now"):
        KARRegressor((10,), hidden="random").fit_blocks(shrinking)

    def renamed():
        n_read.append(1)
        yield X, labels if len(n_read) <= 2 else labels + 1

    n_read.clear()
    with pytest.raises(ValueError, match="the label 3"):
        KARClassifier((10,), hidden="random").fit_blocks(renamed)
    with pytest.raises(ValueError, match="other numbers in y"):
        KARClassifier((10,)).fit_blocks([(X, labels), (X, labels.astype(str))])


@pytest.mark.parametrize("height", [1, 7, 100, 5000])
def test_regrouped_blocks_hold_the_same_rows(height):
    X, y = np.arange(400.0).reshape(200, 2), np.arange(200)
    blocks = Blocks([(X[i:j], y[i:j]) for i, j in [(0, 90), (90, 90), (90, 91), (91, 200)]])
    pieces = list(regrouped(blocks, repeat(height)))
    assert {len(piece[0]) for piece in pieces[:-1]} <= {height}
    np.testing.assert_array_equal(np.concatenate([piece[0] for piece in pieces]), X)
    np.testing.assert_array_equal(np.concatenate([piece[1] for piece in pieces]), y)
    assert all(piece[2] is None for piece in pieces)


def test_a_sample_is_spread_over_all_blocks(block_sizes):
    block_sizes(sample=0, sample_rows=100)
    parts = [Sample.of(np.full((300, 1), k), np.full(300, k), None) for k in range(20)]
    total = parts[0]
    for part in parts[1:]:
        total = total.merge(part)
    assert 50 < len(total.rows) <= 100
    assert set(total.rows.y) == set(range(20))
    assert total.step * len(total.rows) == pytest.approx(6000, rel=0.2)
