"""Importances are rises of the left-out error; novelty is a distance to the training rows."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, make_classification, make_friedman1
from sklearn.inspection import permutation_importance
from sklearn.metrics import roc_auc_score

from karnet import KARClassifierCV, KARRegressorCV
from karnet._estimator.ensemble_base import computed_importances
from karnet._model.importances import (
    CLEAR_LEADS,
    _shuffles,
    class_errors,
    most_faithful,
    squared_errors,
)


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(300, n_features=8, noise=1.0, random_state=0)
    return KARRegressorCV(random_state=0).fit(X, y)


def test_importances_are_those_of_held_out_rows(friedman):
    X, y = make_friedman1(2000, n_features=8, noise=1.0, random_state=1)
    expected = permutation_importance(friedman, X, y, n_repeats=2, random_state=0).importances_mean
    expected = np.maximum(expected, 0.0) / np.maximum(expected, 0.0).sum()
    error = friedman.feature_importances_se_
    assert np.all(np.abs(friedman.feature_importances_ - expected) < 4.0 * error + 0.03)
    assert friedman.feature_importances_.sum() == pytest.approx(1.0)
    assert friedman.feature_importances_[5:].max() < 0.02


@pytest.mark.parametrize("n_classes", [2, 3])
def test_importances_of_classes_are_those_of_the_accuracy_of_held_out_rows(n_classes):
    X, y = make_classification(
        2400, 8, n_informative=4, n_redundant=0, n_classes=n_classes, shuffle=False, random_state=1
    )
    train = np.random.RandomState(0).permutation(len(X)) < 400
    net = KARClassifierCV(random_state=0).fit(X[train], y[train])
    found = permutation_importance(net, X[~train], y[~train], n_repeats=3, random_state=0)
    expected = np.maximum(found.importances_mean, 0.0)
    difference = np.abs(net.feature_importances_ - expected / expected.sum())
    assert np.all(difference < 4.0 * net.feature_importances_se_ + 0.03)
    assert net.feature_importances_.sum() == pytest.approx(1.0)


def test_errors_of_classes_are_the_error_rate_if_leads_are_clear():
    rng = np.random.RandomState(0)
    codes, predicted = rng.randint(3, size=(2, 50))
    Y, F = np.eye(3)[codes], np.eye(3)[predicted]
    for errors in class_errors(Y, F):
        assert_allclose(errors, codes != predicted)
    # The order of the classes does not matter, nor does a constant that is added to all scores.
    F = F + rng.normal(size=F.shape)
    assert_allclose(class_errors(Y, F), class_errors(Y[:, ::-1], F[:, ::-1] + 3.0))
    # A higher score of the true class never has a higher error.
    assert np.all(class_errors(Y, F + 0.1 * Y) <= class_errors(Y, F))
    # The last is the error rate even if leads are not clear.
    assert_allclose(class_errors(Y, F)[-1], F.argmax(axis=1) != codes)


def test_errors_of_classes_are_one_half_where_two_classes_tie():
    assert_allclose(
        class_errors(np.eye(2), np.full((2, 2), 0.5)), np.full((len(CLEAR_LEADS), 2), 0.5)
    )


def test_squared_errors_are_sums_over_outputs():
    assert_allclose(squared_errors(np.zeros((2, 2)), np.array([[1.0, 2.0], [0.0, 3.0]])), [[5, 9]])


def rises_of_counts(chances, n=1000):
    """Return a measure in which a row of each column is wrong or not, and one without the noise."""
    expected = np.repeat(np.asarray(chances)[:, None], n, axis=1)
    return np.random.RandomState(0).binomial(1, expected).astype(float), expected


def test_the_smooth_measure_is_used_if_it_says_the_same():
    counts, expected = rises_of_counts([0.002, 0.003, 0.004, 0.006, 0.2])
    share = np.full(1000, 1e-3)
    assert most_faithful(np.stack([expected, counts], axis=1), share) == 0
    assert most_faithful(np.stack([counts, counts], axis=1), share) == 0
    # A factor of a measure does not change its shares.
    assert most_faithful(np.stack([2.0 * expected, counts], axis=1), share) == 0


@pytest.mark.parametrize("bias", [[0.0, 0.2], [0.2, 0.0], [0.1, 0.1]])
def test_a_smooth_measure_that_counts_other_changes_is_not_used(bias):
    counts, expected = rises_of_counts([0.02, 0.1])
    smooth = expected + np.asarray(bias)[:, None]
    assert most_faithful(np.stack([smooth, counts], axis=1), np.full(1000, 1e-3)) == 1


def test_the_weights_of_rows_choose_the_measure():
    counts, expected = rises_of_counts([0.02, 0.1])
    other = np.arange(1000) % 2 == 0
    smooth = np.where(other, expected[::-1], expected)
    for rows, chosen in ((other, 1), (~other, 0)):
        share = np.where(rows, 1.0, 1e-6)
        assert most_faithful(np.stack([smooth, counts], axis=1), share) == chosen


def test_a_column_has_no_importance_if_others_keep_all_classes_right_without_it():
    rng = np.random.RandomState(0)
    often, rare = rng.randint(2, size=500), rng.rand(500) < 0.1
    X = np.column_stack([often, often, often, rare]).astype(float)
    net = KARClassifierCV(random_state=0).fit(X, np.where(rare, 1 - often, often))
    # Without one of three equal columns, scores change in all rows, and no class does.
    assert_allclose(net.feature_importances_, [0.0, 0.0, 0.0, 1.0])


def test_importances_are_0_or_above_two_standard_errors(friedman):
    share, error = friedman.feature_importances_, friedman.feature_importances_se_
    assert np.all((share == 0.0) | (share > 2.0 * error))
    assert np.all(error[5:] > 0.0)


def test_importances_of_noise_are_mostly_0():
    n_columns, n_above = 0, 0
    for seed in range(4):
        rng = np.random.RandomState(seed)
        X, y = rng.normal(size=(200, 4)), rng.randint(2, size=200)
        importances = KARClassifierCV(random_state=0).fit(X, y).feature_importances_
        assert np.isfinite(importances).all()
        n_columns, n_above = n_columns + len(importances), n_above + np.count_nonzero(importances)
    assert n_above <= n_columns // 4


def test_importances_follow_the_weights_of_rows():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(400, 2))
    first = np.arange(400) < 200
    y = np.where(first, X[:, 0], X[:, 1]) > 0.0
    X = np.column_stack([X, first])
    weighted = [
        KARClassifierCV(random_state=0).fit(X, y, sample_weight=np.where(rows, 20.0, 1.0))
        for rows in (first, ~first)
    ]
    assert weighted[0].feature_importances_[0] > 2.0 * weighted[0].feature_importances_[1]
    assert weighted[1].feature_importances_[1] > 2.0 * weighted[1].feature_importances_[0]


def test_importances_are_computed_once_and_anew_after_a_fit(friedman):
    first = friedman.feature_importances_
    assert np.shares_memory(first, friedman.feature_importances_)
    again = pickle.loads(pickle.dumps(friedman))
    assert_allclose(again.feature_importances_, first)
    X, y = make_friedman1(80, n_features=3 + 5, random_state=3)
    again.fit(X[:, ::-1], y)
    assert again.feature_importances_[:3].max() < again.feature_importances_[3:].min() + 0.1


def test_a_constant_column_and_a_copied_column():
    X, y = make_friedman1(150, n_features=5, random_state=0)
    X = np.column_stack([X, np.ones(len(X))])
    net = KARRegressorCV(random_state=0).fit(X, y)
    assert net.feature_importances_[-1] == net.feature_importances_se_[-1] == 0.0
    copied = KARRegressorCV(random_state=0).fit(np.column_stack([X, X[:, 3]]), y)
    assert copied.feature_importances_[3] < net.feature_importances_[3]


def test_indicators_of_a_column_are_shuffled_together():
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"colour": rng.choice(list("abc"), 200), "noise": rng.normal(size=200)})
    y = frame["colour"].map({"a": 0.0, "b": 1.0, "c": 3.0}) + 0.1 * rng.normal(size=200)
    net = KARRegressorCV(random_state=0).fit(frame, y)
    assert net.feature_importances_.shape == (2,)
    assert net.feature_importances_[0] > 0.97
    # All of the variance is due to the colour: without it, the error doubles or more.
    assert net.feature_importances_se_[0] < 0.2


def test_importances_in_the_leaves_of_trees(settings):
    settings(leaf=80, smallest_leaf=40, largest_leaf=80, most_rows_of_leaf=80, tuned_rows=80)
    X, y = make_friedman1(600, n_features=7, random_state=0)
    net = KARRegressorCV(random_state=0).fit(X, y)
    assert net.feature_importances_[5:].max() < 0.02
    assert set(np.argsort(-net.feature_importances_)[:3]) == {0, 1, 3}


def test_no_row_keeps_its_place_in_a_shuffle():
    for m in (2, 3, 10):
        for order in _shuffles(m, 5):
            assert sorted(order) == list(range(m))
            assert np.all(order != np.arange(m))


def test_importances_before_the_fit_and_in_html():
    assert not hasattr(KARClassifierCV(), "feature_importances_")
    assert "KARClassifierCV" in KARClassifierCV()._repr_mimebundle_()["text/html"]
    X, y = load_iris(return_X_y=True)
    net = KARClassifierCV(random_state=0).fit(X, y)
    net._repr_mimebundle_()
    assert computed_importances(net) is None


def test_novelty_of_training_rows_and_of_foreign_rows():
    X, y = load_iris(return_X_y=True)
    train = np.arange(len(X)) % 2 == 0
    known = train & (y != 2)
    net = KARClassifierCV(random_state=0).fit(X[known], y[known])
    assert_allclose(net.novelty(X[known]), 0.0, atol=1e-6)
    new = np.flatnonzero(~train)
    assert roc_auc_score(y[new] == 2, net.novelty(X[new])) > 0.8
    assert np.median(net.novelty(X[new][y[new] != 2])) < 1.0
    assert net.novelty(X[:1] + 100.0) > 1.0
