"""Predictions without a row equal those of a refit, and what follows from them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes, load_iris, make_friedman1
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from karnet import KARClassifier, KARClassifierCV, KARRegressorCV
from karnet._model.influence import LeftOutRows, changes_without_rows, left_out_predictions
from karnet.inspection import RowInfluenceDisplay, column_effects, row_influence

# Settings that divide a few hundred rows.
SEVERAL_LEAVES = {
    "leaf": 80,
    "smallest_leaf": 40,
    "largest_leaf": 80,
    "most_rows_of_leaf": 80,
    "tuned_rows": 80,
}


def _refit(leaf, without, Y, weight, alpha, A):
    """Return predictions of rows by a leaf without some of its rows, from the bordered system."""
    kept = ~np.isin(leaf.centres, without)
    Z, rows = leaf.kernel.Z[kept].astype(float), leaf.centres[kept]
    K = leaf.kernel.at(Z)(Z) + np.diag(alpha / weight[rows])
    system = np.block([[K, np.ones((len(K), 1))], [np.ones((1, len(K))), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.vstack([Y[rows], np.zeros((1, Y.shape[1]))]))
    return leaf.kernel.at(Z)(A) @ solution[:-1] + solution[-1]


def _network_without(member, without, Y, weight, X):
    """Return the predictions of a member of the same structure without some rows of the fit."""
    A, total = member.view(X), np.zeros((len(X), Y.shape[1]))
    for leaf in member.network.reached(A):
        found = _refit(leaf, without, Y, weight, member.alpha_, A[leaf.rows])
        total[leaf.rows] += leaf.share * found
    return total


@pytest.fixture(params=["numbers", "classes", "leaves"])
def fitted(request, settings):
    rng = np.random.RandomState(0)
    if request.param == "classes":
        X, y = load_iris(return_X_y=True)
        net = KARClassifierCV(random_state=0)
    else:
        X, y = (each[:160] for each in load_diabetes(return_X_y=True))
        net = KARRegressorCV(random_state=0)
        if request.param == "leaves":
            settings(**SEVERAL_LEAVES)
    weight = rng.uniform(0.5, 2.0, len(X))
    weight[[3, 8]] = 0.0
    return net.fit(X, y, weight), X, y, weight


def test_a_change_is_the_prediction_of_a_refit_less_that_of_the_fit(fitted):
    net, X, _, weight = fitted
    model, new, kept = net.model_, X[:7] + 0.1, np.flatnonzero(weight)
    found = row_influence(net, new)
    rows = model.target_scores, model.evidence.weights
    for row in (0, 5, 40):
        without = np.searchsorted(kept, [row])
        changes = sum(
            share * (_network_without(member, without, *rows, new) - member.network.scores(new))
            for share, member in zip(net.weights_, net.estimators_, strict=True)
        )
        expected = model.output.difference(changes)
        # Systems are solved in single precision.
        assert_allclose(found.changes[:, row], expected, atol=1e-3 * np.abs(found.changes).max())


def test_rows_of_weight_zero_change_nothing(fitted):
    net, X, _, weight = fitted
    found = row_influence(net, X[:4])
    assert found.changes.shape[:2] == found.similarities.shape == (4, len(X))
    assert not found.changes[:, weight == 0.0].any()
    assert found.changes[:, weight > 0.0].any()


def test_the_change_of_a_training_row_without_itself_is_its_left_out_prediction():
    X, y = (each[:60] for each in load_diabetes(return_X_y=True))
    net = KARRegressorCV(random_state=0).fit(X, y)
    for member in net.estimators_:
        A, weight = member.view(X), np.ones(len(X))
        changes, alike = changes_without_rows(member, A, weight)
        left_out = member.network.scores(X)[:, 0] + np.diagonal(changes[:, :, 0])
        again = LeftOutRows.of(member, A, np.arange(len(X)), weight, None)(A)[:, 0]
        assert_allclose(left_out, again, atol=1e-4)
        assert_allclose(np.diagonal(alike), 1.0, atol=1e-5)


def test_a_row_is_most_like_itself():
    X, y = load_iris(return_X_y=True)
    net = KARClassifierCV(random_state=0).fit(X, y)
    found = row_influence(net, X[[7, 77]])
    assert_allclose(found.similarities[[0, 1], [7, 77]], 1.0, atol=1e-5)
    assert found.most_alike(1).shape == found.most_influential(1).shape == (2, 1)
    assert found.sizes[0].argmax() == found.most_influential()[0, 0]


def test_rows_of_other_leaves_change_nothing(settings):
    settings(**SEVERAL_LEAVES)
    X, y = make_friedman1(400, random_state=0)
    net = KARRegressorCV(random_state=0).fit(X, y)
    member, weight = net.estimators_[0], np.ones(len(X))
    changes, alike = changes_without_rows(member, member.view(X[:3]), weight)
    assert 0 < np.count_nonzero(changes[0]) < len(X)
    assert np.all((changes[:, :, 0] != 0.0) <= (alike > 0.0))
    assert len(list(member.network.leaves())) > 1


def test_effects_of_columns_without_influence_are_zero():
    X, y = make_friedman1(100, n_features=6, random_state=0)
    X[:, 5] = 2.0
    net = make_pipeline(StandardScaler(), KARRegressorCV(random_state=0)).fit(X, y)
    effects = column_effects(net, X[:5])
    assert effects.shape == (5, 6)
    assert_allclose(effects[:, 5], 0.0, atol=1e-9)
    assert np.abs(effects[:, 3]).mean() > 0.5


def test_effects_have_an_axis_for_several_classes():
    X, y = load_iris(return_X_y=True)
    net = KARClassifierCV(random_state=0).fit(X, y)
    assert column_effects(net, X[:2]).shape == (2, 4, 3)
    assert row_influence(net, X[:2]).changes.shape == (2, 150, 3)
    display = RowInfluenceDisplay.from_estimator(net, X[:1], n_rows=4)
    assert len(display.changes) == len(display.ax_.patches) == 4
    with pytest.raises(ValueError, match="must hold one row, but holds 2"):
        RowInfluenceDisplay.from_estimator(net, X[:2])


def test_networks_without_training_rows_are_refused_in_a_sentence():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="KARClassifier keeps no training rows"):
        row_influence(KARClassifier((5,), random_state=0).fit(X, y), X)


@pytest.mark.parametrize("leaves", [{}, SEVERAL_LEAVES], ids=["one", "several"])
def test_left_out_predictions_without_rows_are_those_of_a_fit_without_them(leaves, settings):
    settings(**leaves)
    X, y = make_friedman1(400, noise=1.0, random_state=0)
    net = KARRegressorCV(random_state=0).fit(X, y)
    Y, weight = net.model_.target_scores, np.ones(len(X))
    removed = np.zeros(len(X), dtype=bool)
    removed[[2, 3, 50]] = True
    without = np.append(np.flatnonzero(removed), 0)
    for member in net.estimators_:
        out = left_out_predictions(member, Y, weight, removed)
        assert np.isnan(out[removed]).all()
        assert np.isfinite(out[~removed]).all()
        expected = _network_without(member, without, Y, weight, X[:1])
        assert_allclose(out[0], expected[0], atol=2e-3)


def test_the_left_out_scores_of_a_model_are_the_sum_of_those_of_its_members(settings):
    settings(**SEVERAL_LEAVES)
    X, y = make_friedman1(300, noise=1.0, random_state=0)
    model = KARRegressorCV(random_state=0).fit(X, y).model_
    removed, wanted = np.arange(300) % 50 == 7, np.arange(300) == 11
    left_out, some = model.left_out(removed), model.left_out(removed, wanted)
    rows = model.target_scores, model.evidence.weights
    without = np.append(np.flatnonzero(removed), 11)
    parts = zip(model.weights, model.members, strict=True)
    expected = model.offset + sum(
        weight * _network_without(member, without, *rows, X[11:12]) for weight, member in parts
    )
    assert_allclose(left_out[11], expected[0], atol=2e-3)
    assert_allclose(some[11], left_out[11])
    assert np.isnan(some).sum() >= np.isnan(left_out).sum() == removed.sum()
