"""The fitted model is a value: estimators forward to it, and nothing changes it."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import accuracy_score, r2_score

from karnet import KARClassifierCV, KARRegressorCV


@pytest.fixture(scope="module", params=["classes", "numbers"])
def fitted(request):
    """Return an estimator, its inputs and targets, and weights of which some are zero."""
    X, y = (load_iris if request.param == "classes" else load_diabetes)(return_X_y=True)
    X, y = X[::2], y[::2]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    weight[[3, 8]] = 0.0
    kind = KARClassifierCV if request.param == "classes" else KARRegressorCV
    return kind(random_state=0).fit(X, y, weight), X, y, weight


def test_a_model_is_frozen_and_predictions_change_nothing(fitted):
    net, X, *_ = fitted
    before = {each.name: getattr(net.model_, each.name) for each in fields(net.model_)}
    content = pickle.dumps(before)
    for method in ("predict", "novelty", "predict_set", "predict_interval"):
        if hasattr(net, method):
            getattr(net, method)(X)
    assert net.feature_importances_.shape == (X.shape[1],)
    assert all(getattr(net.model_, name) is value for name, value in before.items())
    assert pickle.dumps(before) == content
    with pytest.raises(FrozenInstanceError):
        net.model_.offset = 0.0


def test_the_score_is_that_of_left_out_predictions(fitted):
    net, _, y, weight = fitted
    known = net.loo_decision_function_
    if hasattr(net, "classes_"):
        expected = accuracy_score(y, net.classes_[known.argmax(axis=1)], sample_weight=weight)
    else:
        expected = r2_score(y, known, sample_weight=weight)
    assert net.best_score_ == net.model_.left_out_score() == pytest.approx(expected)


def test_rows_without_weight_are_predicted(fitted):
    net, X, _, weight = fitted
    gone = weight == 0.0
    assert_array_equal(net.model_.evidence.kept, np.flatnonzero(~gone))
    assert_allclose(net.loo_decision_function_[gone], net.model_.decision(X[gone]), atol=1e-12)


def test_importances_of_groups_are_those_of_columns_that_are_shuffled_together(fitted):
    model, n = fitted[0].model_, fitted[1].shape[1]
    assert_array_equal(model.importances(np.arange(n)), model.importances())
    assert_allclose(model.importances(np.zeros(n, dtype=int))[0], [1.0])


def test_columns_that_are_replaced_together_have_one_effect(fitted):
    net, X, *_ = fitted
    effects = net.model_.column_effects(X[:5], np.zeros(X.shape[1], dtype=int))
    assert effects.shape == (5, 1, len(net.model_.offset))
    differences = np.diff(effects[:, 0], axis=0)
    assert_allclose(differences, np.diff(net.model_.scores(X[:5]), axis=0), atol=1e-10)
