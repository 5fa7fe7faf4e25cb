"""Predictions without a row equal those of a refit, and what follows from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes, load_iris, make_friedman1
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from karnet import KARClassifier, KARClassifierCV, KARRegressorCV
from karnet._model.influence import (
    LeftOutRows,
    changes_without_rows,
    left_out_predictions,
    parts_of,
)
from karnet.inspection import RowInfluenceDisplay, column_effects, row_influence


def _refit(member, A, Y, weight, alpha, new):
    """Return the predictions of a kernel ridge solution with bias, from the bordered system."""
    n = len(A)
    K = member.kernel_map.at(A)(A) + np.diag(alpha / weight)
    system = np.block([[K, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return member.kernel_map.at(A)(new) @ solution[:-1] + solution[-1]


def _plain(net):
    """Keep the networks that no target shaped."""
    members = tuple(member for member in net.estimators_ if member.shape.rounds == 0)
    assert members
    weights = np.full(len(members), 1.0 / len(members))
    net.model_ = replace(net.model_, members=members, weights=weights)
    return net


@pytest.fixture(params=["numbers", "classes"])
def fitted(request):
    rng = np.random.RandomState(0)
    if request.param == "numbers":
        X, y = (each[:90] for each in load_diabetes(return_X_y=True))
        net = KARRegressorCV(random_state=0)
    else:
        X, y = load_iris(return_X_y=True)
        net = KARClassifierCV(random_state=0)
    weight = rng.uniform(0.5, 2.0, len(X))
    weight[[3, 8]] = 0.0
    return _plain(net.fit(X, y, weight)), X, y, weight


def test_a_change_is_the_prediction_of_a_refit_less_that_of_the_fit(fitted):
    net, X, _, weight = fitted
    new, kept = X[:7] + 0.1, np.flatnonzero(weight)
    found = row_influence(net, new)
    assert found.exact
    Y = net.model_.target_scores
    for row in (0, 5, 40):
        without = kept[kept != row]
        others = kept != row
        refits = [
            _refit(
                member,
                member.view(X[without]),
                Y[others],
                net.model_.evidence.weights[others],
                member.alpha_,
                member.view(new),
            )
            for member in net.estimators_
        ]
        before = [member.network.scores(new) for member in net.estimators_]
        expected = net.model_.output.difference(np.mean(refits, axis=0) - np.mean(before, axis=0))
        assert_allclose(found.changes[:, row], expected, atol=1e-8)


def test_rows_of_weight_zero_change_nothing(fitted):
    net, X, _, weight = fitted
    found = row_influence(net, X[:4])
    assert found.changes.shape[:2] == found.similarities.shape == (4, len(X))
    assert not found.changes[:, weight == 0.0].any()
    assert found.changes[:, weight > 0.0].any()


def test_the_change_of_a_training_row_without_itself_is_its_left_out_prediction():
    X, y = (each[:60] for each in load_diabetes(return_X_y=True))
    net = KARRegressorCV(random_state=0).fit(X, y)
    for member in _plain(net).estimators_:
        A, weight = member.view(X), np.ones(len(X))
        changes, alike = changes_without_rows(member, A, weight)
        left_out = member.network.scores(X)[:, 0] + np.diagonal(changes[:, :, 0])
        again = LeftOutRows.of(member, A, np.arange(len(X)), weight, None)(A)[:, 0]
        assert_allclose(left_out, again, atol=1e-9)
        assert_allclose(np.diagonal(alike), 1.0)


def test_a_row_is_most_like_itself():
    X, y = load_iris(return_X_y=True)
    net = KARClassifierCV(random_state=0).fit(X, y)
    found = row_influence(net, X[[7, 77]])
    assert_allclose(found.similarities[[0, 1], [7, 77]], 1.0)
    assert found.most_alike(1).shape == found.most_influential(1).shape == (2, 1)
    assert found.sizes[0].argmax() == found.most_influential()[0, 0]


def test_rows_of_other_leaves_change_nothing(local_sizes):
    local_sizes(first_rows=200, later_rows=400, leaf=80, tuned_rows=80, metric_rows=200)
    X, y = make_friedman1(1700, random_state=0)
    net = KARRegressorCV(width=200, n_estimators=1, random_state=0).fit(X, y)
    found = row_influence(net, X[:3])
    assert not found.exact
    partition = net.estimators_[0].network.partitions[0]
    assert 0 < np.count_nonzero(found.changes[0]) < len(X)
    assert np.all((found.changes != 0.0) <= (found.similarities > 0.0))
    assert len(partition.starts) > 2


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


@pytest.mark.parametrize("n_rows", [120, 1700])
def test_left_out_predictions_without_rows_are_those_of_a_fit_without_them(n_rows, local_sizes):
    local_sizes(first_rows=200, later_rows=400, leaf=80, tuned_rows=80, metric_rows=200)
    X, y = make_friedman1(n_rows, noise=1.0, random_state=0)
    net = KARRegressorCV(random_state=0, width=None if n_rows < 500 else 300).fit(X, y)
    member = net.estimators_[0]
    Y, weight = net.model_.target_scores, np.ones(n_rows)
    removed = np.zeros(n_rows, dtype=bool)
    removed[[2, 3, 50]] = True
    out = left_out_predictions(member, Y, weight, removed)
    assert np.isnan(out[removed]).all()
    assert np.isfinite(out[~removed]).mean() > 0.9
    # The leaf of the first row, fitted without the removed rows and without the row itself.
    part = next(part for part in parts_of(member, member.X_fit_[:1], 1))
    kept = part.centres[~removed[part.centres] & (part.centres != 0)]
    A = member.X_fit_.astype(np.float64)
    expected = _refit(member, A[kept], Y[kept], weight[kept], member.alpha_, A[:1])
    assert_allclose(out[0], expected[0], atol=1e-3 if n_rows > 1500 else 1e-8)
