"""Averages fitted to blocks of rows are bit for bit those fitted to all rows at once."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from karnet import KARClassifierCV, KARRegressorCV
from karnet.blocks import Blocks

M, D = 1200, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((M, D))
Y = np.sin(3.0 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0.0)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.5, 0.5])]
WEIGHT = RNG.integers(0, 3, M).astype(float)


@pytest.fixture(autouse=True)
def _few_rows(settings, block_sizes):
    leaves = {"leaf": 80, "largest_leaf": 80, "smallest_leaf": 40}
    settings(**leaves, tuned_rows=80, metric_rows=200, shaping=600, judging=400)
    block_sizes(chunk=2**9, block=2**11)


def cut(*arrays, length=170):
    return [
        tuple(array[i : i + length] for array in arrays)
        for i in range(0, arrays[0].shape[0], length)
    ]


def assert_same(net, expected):
    for member, other in zip(net.estimators_, expected.estimators_, strict=True):
        assert member.shape == other.shape
        np.testing.assert_array_equal(member.X_fit_, other.X_fit_)
        for part, same in zip(member.dual_coef_, other.dual_coef_, strict=True):
            np.testing.assert_array_equal(part, same)
    for name in ("loo_decision_function_", "feature_importances_", "best_score_", "weights_"):
        np.testing.assert_array_equal(getattr(net, name), getattr(expected, name))
    np.testing.assert_array_equal(net.predict(X), expected.predict(X))


@pytest.mark.parametrize("length", [1, 170, 1199, 5000])
def test_the_length_of_blocks_changes_nothing(length):
    net = KARRegressorCV(width=120, random_state=0).fit(X, Y)
    blocks = Blocks(lambda: iter(cut(X, Y, length=length)))
    assert_same(clone(net).fit_blocks(blocks), net)


@pytest.mark.parametrize(
    ("net", "rows"),
    [
        (KARRegressorCV(), (np.c_[Y, -Y], WEIGHT)),
        (KARRegressorCV(cv=3), (Y,)),
        (KARClassifierCV(), (LABELS,)),
        (KARClassifierCV(class_weight="balanced"), (LABELS, WEIGHT)),
        (KARClassifierCV(class_weight={"low": 0.0}, cv=3), (LABELS, WEIGHT)),
    ],
    ids=["outputs", "folds", "classes", "balanced", "left out"],
)
def test_targets_weights_and_folds_act_as_in_fit(net, rows):
    net.set_params(width=120, random_state=0)
    assert_same(clone(net).fit_blocks(cut(X, *rows)), net.fit(X, *rows))


def test_few_rows_are_fitted_as_a_whole():
    few = slice(0, 80)
    net = KARRegressorCV(random_state=0).fit(X[few], Y[few], WEIGHT[few])
    same = clone(net).fit_blocks(cut(X[few], Y[few], WEIGHT[few], length=30))
    assert_same(same, net)
    np.testing.assert_array_equal(same.predict_interval(X), net.predict_interval(X))


def test_rows_that_end_with_many_of_weight_0_are_those_before():
    weight = np.r_[np.ones(500), np.zeros(M - 500)]
    net = KARRegressorCV(width=120, random_state=0).fit(X[:500], Y[:500])
    found = clone(net).fit_blocks(cut(X, Y, weight))
    np.testing.assert_array_equal(found.predict(X), net.predict(X))
    np.testing.assert_allclose(found.loo_decision_function_[500:], net.predict(X)[500:], atol=1e-5)


def test_a_short_budget_still_fits():
    net = KARClassifierCV(width=120, time_budget=0.05).fit_blocks(cut(X, LABELS))
    assert net.score(X, LABELS) > 0.5


def test_names_are_those_of_the_blocks():
    frame = pd.DataFrame(X, columns=list("abcd"))
    net = KARRegressorCV(width=120, random_state=0).fit_blocks(cut(frame, Y))
    assert net.feature_names_in_.tolist() == list("abcd")
    assert net.n_features_in_ == D
    net.fit_blocks(cut(X, Y))
    assert not hasattr(net, "feature_names_in_")


@pytest.mark.parametrize("n_more", [-1, 1])
def test_blocks_that_change_between_passes_are_refused_and_nothing_stays(n_more):
    n_read = []

    def changing():
        n_read.append(1)
        yield from cut(X, Y)[: None if len(n_read) < 3 or n_more > 0 else n_more]
        if len(n_read) > 3 and n_more > 0:
            yield X[:n_more], Y[:n_more]

    net = KARRegressorCV(width=120)
    with pytest.raises(ValueError, match="1200 rows in the first pass and 1"):
        net.fit_blocks(changing)
    assert not hasattr(net, "estimators_")
    assert not hasattr(net, "n_features_in_")


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class only: 'low'"):
        KARClassifierCV().fit_blocks(cut(X, np.full(M, "low")))


def test_sparse_rows_give_the_same_average():
    rows = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    net = KARRegressorCV(width=120, random_state=0).fit(rows.toarray(), Y)
    assert_same(clone(net).fit(rows, Y), net)
    assert_same(clone(net).fit_blocks(cut(rows, Y)), net)
    for name in ("predict", "predict_interval"):
        found, expected = (getattr(net, name)(each) for each in (rows, rows.toarray()))
        np.testing.assert_array_equal(found, expected)


def test_sparse_rows_are_made_dense_a_block_at_a_time(settings, block_sizes):
    settings(shaping=200, judging=100, n_rounds=1)
    block_sizes(chunk=2**16, block=2**18)
    n_columns, labels = 3000, np.tile(LABELS, 4)
    used = sparse.csr_array(np.tile(X, (4, 1)))
    wide = sparse.hstack([used, sparse.csr_array((4 * M, n_columns - D))], format="csr")
    net = KARClassifierCV(width=120, random_state=0)
    tracemalloc.start()
    net.fit(wide, labels).predict(wide)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * 8 * 4 * M * n_columns
