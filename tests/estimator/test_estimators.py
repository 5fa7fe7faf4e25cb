"""The estimators: conventions, invariances, what they refuse."""

from __future__ import annotations

import pickle
import tracemalloc
from datetime import date

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_wine, make_classification, make_moons
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from karnet import KARClassifier, KARRegressor, lstsq
from karnet.activations import ACTIVATIONS, Activation
from tests.paper.iris import IRIS_X, IRIS_Y, assert_same_network

CLASSIFIERS = [
    KARClassifier((10,), random_state=0),
    KARClassifier((10,), hidden="random", random_state=0),
    KARClassifier((), random_state=0),
    KARClassifier((8, 6, 4), activation="tanh", alpha=1e-2, direct_links=True, random_state=0),
]
# Every matrix of condition at most 1e4, or a ridge: here weights themselves can be compared.
WELL_CONDITIONED = [
    KARClassifier(()),
    KARClassifier((10,), hidden="random", alpha=1e-2, random_state=0),
    KARClassifier((30, 20), alpha=1e-2, random_state=0),
    KARClassifier((10,), alpha=1e-2, activation="tanh", direct_links=True, random_state=0),
    KARClassifier((8,), hidden="random", activation="relu", random_state=0),
]
REGRESSORS = [
    KARRegressor((10,), random_state=0),
    KARRegressor((10,), hidden="random", random_state=0),
    KARRegressor((8, 6), alpha=1e-2, direct_links=True, random_state=0),
]
every_classifier = pytest.mark.parametrize("net", CLASSIFIERS, ids=str)
every_well_conditioned = pytest.mark.parametrize("net", WELL_CONDITIONED, ids=str)


# Fitted attributes


def test_it_learns_real_tables():
    for load, floor in ((load_iris, 0.94), (load_wine, 0.94)):
        X, y = load(return_X_y=True)
        net = make_pipeline(MinMaxScaler(), KARClassifier((10,), random_state=0))
        assert cross_val_score(net, X, y, cv=10).mean() > floor
    X, y = load_diabetes(return_X_y=True)
    assert cross_val_score(KARRegressor((10,), random_state=0), X, y, cv=5).mean() > 0.4


def test_random_units_see_what_the_pull_back_cannot():
    X, y = make_moons(600, noise=0.2, random_state=0)
    X = MinMaxScaler().fit_transform(X)
    pulled, linear, random = (
        cross_val_score(net, X, y, cv=10).mean()
        for net in (
            KARClassifier((100,), random_state=0),
            KARClassifier(()),
            KARClassifier((100,), hidden="random", activation="tanh", alpha=1e-3, random_state=0),
        )
    )
    assert abs(pulled - linear) < 0.02
    assert random > pulled + 0.05


def test_pulled_back_layers_have_a_pre_activation_of_rank_q():
    X, y = make_classification(300, 20, n_informative=10, n_classes=4, random_state=0)
    net = KARClassifier((50,), random_state=0).fit(MinMaxScaler().fit_transform(X), y)
    assert np.linalg.matrix_rank(net.coefs_[0], tol=1e-8) <= 4


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_units_and_offset_of_a_regression_target_do_not_matter(scale, offset):
    X, y = load_diabetes(return_X_y=True)
    X, y = MinMaxScaler().fit_transform(X), StandardScaler().fit_transform(y[:, None])[:, 0]
    net = KARRegressor((30,), random_state=0)
    plain = net.fit(X, y).predict(X)
    moved = net.fit(X, scale * (y + offset)).predict(X) / scale - offset
    np.testing.assert_allclose(moved, plain, atol=1e-5)


def test_several_outputs_and_one_column_keep_their_shape():
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, -2 * y, y**2])
    net = KARRegressor((20,), hidden="random", random_state=0)
    together = net.fit(X, Y).predict(X)
    assert together.shape == Y.shape
    for k in range(3):
        alone = net.fit(X, Y[:, k]).predict(X)
        np.testing.assert_allclose(together[:, k], alone, rtol=1e-6, atol=1e-6)
    assert net.fit(X, Y[:, :1]).predict(X).shape == (len(X), 1)
    assert KARRegressor((5,), random_state=0).fit(X, Y).predict(X).shape == Y.shape


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_every_activation_learns(name):
    f = ACTIVATIONS[name]
    hidden = "pullback" if f.invertible else "random"
    net = KARClassifier((20,), activation=name, hidden=hidden, alpha=1e-6, random_state=0)
    assert net.fit(IRIS_X, IRIS_Y).score(IRIS_X, IRIS_Y) > 0.75
    assert np.isfinite(net.decision_function(IRIS_X * 1e6 - 3e5)).all()
    single = KARClassifier((), activation=name).fit(IRIS_X, IRIS_Y)
    assert single.score(IRIS_X, IRIS_Y) > 0.75
    regressor = KARRegressor((20,), activation=name, hidden=hidden, random_state=0)
    assert np.isfinite(regressor.fit(IRIS_X, IRIS_Y).predict(IRIS_X * 100)).all()


@pytest.mark.parametrize("name", [n for n, f in ACTIVATIONS.items() if f.invertible])
def test_every_output_activation_learns_two_classes_and_more(name):
    for y in (IRIS_Y, IRIS_Y == 2):
        net = KARClassifier((10,), output_activation=name, random_state=0).fit(IRIS_X, y)
        assert net.score(IRIS_X, y) > 0.9
    regressor = KARRegressor((10,), output_activation=name, random_state=0)
    assert np.isfinite(regressor.fit(IRIS_X, IRIS_Y / 4 + 0.2).predict(IRIS_X)).all()


def test_one_s_own_activation():
    pair = (np.arcsinh, np.sinh)
    named = KARClassifier((10,), activation="asinh", random_state=0).fit(IRIS_X, IRIS_Y)
    for own in (pair, Activation("own", *pair)):
        net = clone(KARClassifier((10,), activation=own, random_state=0)).fit(IRIS_X, IRIS_Y)
        np.testing.assert_allclose(
            net.decision_function(IRIS_X), named.decision_function(IRIS_X), rtol=1e-6
        )
        assert pickle.loads(pickle.dumps(net)).score(IRIS_X, IRIS_Y) == net.score(IRIS_X, IRIS_Y)


# Conventions


@every_classifier
def test_fitted_attributes_are_all_that_predict_needs(net):
    net = clone(net).fit(IRIS_X, IRIS_Y)
    A = IRIS_X
    for k, (V, w, f) in enumerate(zip(net.coefs_, net.intercepts_, net.activations_, strict=True)):
        if net.direct_links and 0 < k == len(net.coefs_) - 1:
            A = np.hstack([A, IRIS_X])
        A = f(A @ V + w)
    np.testing.assert_array_equal(net.decision_function(IRIS_X), A)
    np.testing.assert_array_equal(net.predict(IRIS_X), net.classes_[A.argmax(axis=1)])
    assert len(net.layers_) == len(net.coefs_)


@every_classifier
def test_two_classes_are_told_apart_midway(net):
    y = np.where(IRIS_Y == 1, "yes", "no")
    net = clone(net).fit(IRIS_X, y)
    decision = net.decision_function(IRIS_X)
    assert decision.shape == (150,)
    np.testing.assert_array_equal(net.predict(IRIS_X), np.where(decision > 0, "yes", "no"))
    # The network itself: one output, taught phi(0) and phi(1).
    f = net.activations_[-1]
    low, high = f.phi(f.inside(np.array([0.0, 1.0]), 0.05))
    assert net.coefs_[-1].shape[1] == 1
    proba = net.predict_proba(IRIS_X)
    order = np.argsort(decision)
    assert (np.diff(proba[order, 1]) >= 0).all()
    exact = KARClassifier((150,), hidden="random", random_state=0, activation="sigmoid")
    X = np.random.default_rng(0).uniform(-3, 3, (20, 3))
    labels = np.arange(20) % 2
    np.testing.assert_allclose(exact.fit(X, labels).decision_function(X), 2 * labels - 1, atol=1e-6)
    assert low < high


@every_classifier
def test_probabilities_are_a_distribution_that_rises_with_the_decision(net):
    for y in (IRIS_Y, IRIS_Y > 0):
        fitted = clone(net).fit(IRIS_X, y)
        proba, decision = fitted.predict_proba(IRIS_X), fitted.decision_function(IRIS_X)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        assert (proba >= 0).all()
        np.testing.assert_array_equal(fitted.classes_[proba.argmax(axis=1)], fitted.predict(IRIS_X))
        if decision.ndim == 2:
            np.testing.assert_array_equal(np.argsort(proba), np.argsort(decision))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["b", "a", "c"]),
        np.array([3, -1, 7]),
        np.array([True, False, True]),
        np.array([2.0, 1.0, 5.0]),
        np.array([b"x", b"y", b"z"]),
        np.array([3, 1, 2], dtype=object),
        np.array([date(2020, 1, k) for k in (3, 1, 2)], dtype=object),
        np.array(["2020-01-03", "2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
    ],
    ids=str,
)
def test_labels_may_be_of_any_type(labels):
    y = labels[IRIS_Y]
    net = KARClassifier((10,), random_state=0).fit(IRIS_X, y)
    assert net.classes_.dtype == y.dtype
    assert net.predict(IRIS_X).dtype == y.dtype
    assert np.mean(net.predict(IRIS_X) == y) > 0.6
    categories = pd.Series(pd.Categorical(y))
    np.testing.assert_array_equal(net.fit(IRIS_X, categories).classes_, np.unique(y))


@pytest.mark.parametrize("estimator", [KARClassifier, KARRegressor])
@pytest.mark.parametrize("hidden", ["pullback", "random"])
def test_pandas_sparse_and_float32(estimator, hidden):
    net = estimator((10,), hidden=hidden, random_state=0)
    method = "decision_function" if estimator is KARClassifier else "predict"
    expected = getattr(net.fit(IRIS_X, IRIS_Y), method)(IRIS_X)
    assert expected.dtype == np.float64
    frame = pd.DataFrame(IRIS_X, columns=["a", "b", "c", "d"])
    np.testing.assert_array_equal(getattr(net.fit(frame, IRIS_Y), method)(frame), expected)
    assert list(net.feature_names_in_) == ["a", "b", "c", "d"]
    for kind in (sparse.csr_matrix, sparse.csr_array):
        X = kind(IRIS_X)
        np.testing.assert_array_equal(getattr(net.fit(X, IRIS_Y), method)(X), expected)
    single = IRIS_X.astype(np.float32)
    prediction = getattr(net.fit(single, IRIS_Y), method)(single)
    assert prediction.dtype == np.float32
    assert all(W.dtype == np.float64 for W in (*net.coefs_, *net.intercepts_))
    np.testing.assert_allclose(prediction, expected, atol=0.05)


@pytest.mark.parametrize("net", [*CLASSIFIERS, *REGRESSORS], ids=str)
def test_same_seed_same_weights_bit_for_bit(net):
    one, two = (clone(net).fit(IRIS_X, IRIS_Y) for _ in range(2))
    for a, b in zip(one.coefs_ + one.intercepts_, two.coefs_ + two.intercepts_, strict=True):
        np.testing.assert_array_equal(a, b)
    if net.hidden_layer_sizes:
        other = clone(net).set_params(random_state=1).fit(IRIS_X, IRIS_Y)
        assert not np.array_equal(one.coefs_[0], other.coefs_[0])


@pytest.mark.parametrize("net", [*CLASSIFIERS, *REGRESSORS], ids=str)
def test_pipeline_grid_search_clone_pickle_joblib(net, tmp_path):
    grid = GridSearchCV(
        Pipeline([("scale", MinMaxScaler()), ("net", clone(net))]),
        {"net__alpha": [1e-6, 1e-2], "net__init": ["normal", "uniform"]},
        cv=StratifiedKFold(3),
        n_jobs=2,
    ).fit(IRIS_X, IRIS_Y)
    assert grid.best_score_ > 0.6
    fitted = grid.best_estimator_
    joblib.dump(fitted, tmp_path / "net.joblib")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "net.joblib")):
        np.testing.assert_array_equal(copy.predict(IRIS_X), fitted.predict(IRIS_X))


def test_parameters_changed_after_fit_do_not_change_the_fit():
    net = KARClassifier((10,), random_state=0).fit(IRIS_X, IRIS_Y)
    before = net.predict_proba(IRIS_X)
    net.set_params(activation="tanh", direct_links=True, hidden_layer_sizes=(3, 3))
    np.testing.assert_array_equal(net.predict_proba(IRIS_X), before)


def test_given_weights_are_started_from():
    rng = np.random.default_rng(0)
    drawn = [rng.standard_normal((11, 5)), rng.standard_normal((6, 3))]
    net = KARClassifier((10, 5), init=drawn, alpha=1e-3).fit(IRIS_X, IRIS_Y)
    again = clone(net).fit(IRIS_X, IRIS_Y)
    np.testing.assert_array_equal(net.coefs_[-1], again.coefs_[-1])
    frozen = KARClassifier((10,), hidden="random", init=[rng.standard_normal((5, 10))])
    frozen.fit(IRIS_X, IRIS_Y)
    np.testing.assert_array_equal(frozen.coefs_[0], frozen.init[0][1:])
    np.testing.assert_array_equal(frozen.intercepts_[0], frozen.init[0][0])
    free = KARClassifier((10,), init=[rng.standard_normal((10, 3))], fit_intercept=False)
    np.testing.assert_array_equal(free.fit(IRIS_X, IRIS_Y).intercepts_[-1], 0.0)


def test_one_hidden_layer_may_be_given_as_a_number():
    one, two = (KARClassifier(h, random_state=0).fit(IRIS_X, IRIS_Y) for h in (10, (10,)))
    assert_same_network(one, two, atol=0)


def test_a_linear_regressor_is_least_squares():
    X, y = load_diabetes(return_X_y=True)
    net = KARRegressor(()).fit(X, y)
    np.testing.assert_allclose(net.coefs_[0][:, 0], lstsq(X, y, bias=True).coef[1:], rtol=1e-10)
    assert KARRegressor((), fit_intercept=False).fit(X, y).intercepts_[0] == 0.0


def test_a_wide_pulled_back_regressor_tends_to_the_linear_fit():
    X, y = load_diabetes(return_X_y=True)
    linear, wide = (KARRegressor(h, random_state=0).fit(X, y).predict(X) for h in ((), (300,)))
    assert np.corrcoef(linear, wide)[0, 1] > 0.98


# Invariances


@every_well_conditioned
def test_a_weight_is_a_number_of_copies(net):
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(IRIS_X))
    weighted = clone(net).fit(IRIS_X, IRIS_Y, sample_weight=weight)
    copies = clone(net).fit(np.repeat(IRIS_X, weight, axis=0), np.repeat(IRIS_Y, weight))
    assert_same_network(weighted, copies)
    regressor = KARRegressor((10,), alpha=1e-2, random_state=0)
    y = IRIS_X @ [1.0, 2.0, 3.0, -1.0] + rng.standard_normal(len(IRIS_X))
    weighted = clone(regressor).fit(IRIS_X, y, sample_weight=weight)
    copies = regressor.fit(np.repeat(IRIS_X, weight, axis=0), np.repeat(y, weight))
    assert_same_network(weighted, copies)


@every_well_conditioned
def test_the_order_of_rows_does_not_matter(net):
    order = np.random.default_rng(0).permutation(len(IRIS_X))
    plain = clone(net).fit(IRIS_X, IRIS_Y)
    permuted = clone(net).fit(IRIS_X[order], IRIS_Y[order])
    assert_same_network(permuted, plain, atol=1e-10)
    np.testing.assert_allclose(
        permuted.decision_function(IRIS_X), plain.decision_function(IRIS_X), atol=1e-10
    )
    y = IRIS_X @ [1.0, 2.0, 3.0, -1.0] + np.sin(9 * IRIS_X[:, 0])
    parameters = net.get_params()
    del parameters["class_weight"]
    regressor = KARRegressor(**parameters)
    plain = clone(regressor).fit(IRIS_X, y)
    permuted = clone(regressor).fit(IRIS_X[order], y[order])
    assert_same_network(permuted, plain, atol=1e-10)


@every_well_conditioned
def test_the_networks_compared_are_well_conditioned(net):
    net = clone(net).fit(IRIS_X, IRIS_Y)
    A = IRIS_X
    for V, w, f in zip(net.coefs_, net.intercepts_, net.activations_, strict=True):
        assert net.alpha > 0 or np.linalg.cond(np.column_stack([np.ones(len(A)), A])) <= 1e4
        if V is not net.coefs_[-1]:
            A = f(A @ V + w)


def test_weights_act_as_long_as_the_network_does_not_interpolate():
    X, y = make_classification(200, 5, flip_y=0.3, random_state=0)
    heavy = {0: 20.0, 1: 1.0}
    plain, weighted = (KARClassifier((5,), class_weight=w, random_state=0) for w in (None, heavy))
    assert np.mean(weighted.fit(X, y).predict(X) == 0) > np.mean(plain.fit(X, y).predict(X) == 0)
    options = {"hidden_layer_sizes": (300,), "hidden": "random", "random_state": 0}
    exact, still_exact = (KARClassifier(**options, class_weight=w) for w in (None, heavy))
    np.testing.assert_allclose(
        exact.fit(X, y).decision_function(X), still_exact.fit(X, y).decision_function(X), atol=1e-6
    )


def test_balanced_class_weights_count_weights_as_copies():
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(IRIS_X))
    net = KARClassifier((10,), class_weight="balanced", alpha=1e-2, random_state=0)
    weighted = clone(net).fit(IRIS_X, IRIS_Y, sample_weight=weight)
    copies = net.fit(np.repeat(IRIS_X, weight, axis=0), np.repeat(IRIS_Y, weight))
    assert_same_network(weighted, copies)


def test_one_weight_for_all_rows_may_be_a_number():
    net = KARClassifier((10,), hidden="random", random_state=0)
    one, two = (clone(net).fit(IRIS_X, IRIS_Y, sample_weight=w) for w in (2.0, np.full(150, 2.0)))
    assert_same_network(one, two, atol=0)


def test_the_docstrings_say_when_weights_act():
    for estimator in (KARClassifier, KARRegressor):
        text = " ".join((estimator.__doc__ or "").split())
        assert "weights have an effect only if the network cannot fit every row exactly" in text


def test_memory_does_not_grow_with_the_rows(block_sizes):
    block_sizes(block=2**16)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (20_000, 3)), rng.integers(0, 40, 20_000)
    for options in ({}, {"hidden": "random"}):
        net = KARClassifier((100,), alpha=1e-3, random_state=0, **options)
        tracemalloc.start()
        net.fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        net.predict(X)
        _, peak_of_predict = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        # The activations as a whole are 20000 x 100, and the outputs 20000 x 40.
        assert peak < 0.5 * 20_000 * 100 * 8
        assert peak_of_predict < 2.5 * 20_000 * 40 * 8


def test_a_pulled_back_regressor_sees_hardly_more_than_one_score_per_output():
    X, y = load_diabetes(return_X_y=True)
    net = KARRegressor((50,), random_state=0).fit(MinMaxScaler().fit_transform(X), y)
    largest, second, *_ = np.linalg.svd(net.coefs_[0], compute_uv=False)
    assert 0 < second < 1e-2 * largest


# Numbers as large and as small as there are

LARGEST = np.finfo(np.float64).max


@pytest.mark.parametrize("sizes", [(), (4,), (4, 3)])
@pytest.mark.parametrize("activation", ["logit", "identity", "softplus", "leaky_relu", "asinh"])
@pytest.mark.parametrize("estimator", [KARClassifier, KARRegressor])
def test_predictions_for_the_largest_inputs_are_finite(estimator, activation, sizes):
    net = estimator(sizes, activation=activation, hidden="random", random_state=0)
    net.fit(IRIS_X, IRIS_Y)
    far = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 0, 0, 1e-300]]) * LARGEST
    methods = ["predict"] + ["decision_function", "predict_proba"] * (estimator is KARClassifier)
    for method in methods:
        assert np.isfinite(getattr(net, method)(far)).all()
        narrow = np.clip(far, -3e38, 3e38).astype(np.float32)
        assert np.isfinite(getattr(net, method)(narrow)).all()


def test_products_that_overflow_on_the_way_are_right_in_the_end():
    """Of a linear network, what overflows and comes back is the difference of both parts."""
    net = KARRegressor((), output_activation="identity").fit(np.eye(2), [3.0, -3.0])
    far = np.array([[1e308, 1e308], [1.2e308, 1.1e308]])
    np.testing.assert_allclose(net.predict(far), [0.0, 0.3e308], rtol=1e-9, atol=1e295)
    assert net.predict([[LARGEST, -LARGEST]])[0] == LARGEST


def test_predictions_beyond_single_precision_are_its_largest_number():
    X = np.linspace(0.0, 1.0, 10, dtype=np.float32)[:, None]
    net = KARRegressor((), output_activation="identity").fit(X, 1e100 * X[:, 0].astype(float))
    assert net.predict(X[-1:])[0] == np.finfo(np.float32).max


@pytest.mark.parametrize("hidden", ["pullback", "random", "metric"])
@pytest.mark.parametrize("estimator", [KARClassifier, KARRegressor])
def test_inputs_of_all_magnitudes_are_fitted(estimator, hidden):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3)) * 10.0 ** rng.uniform(-300, 300, (12, 3))
    net = estimator((4,), hidden=hidden, activation="tanh", alpha=1e-3, random_state=0)
    assert np.isfinite(net.fit(X, np.arange(12) % 3).predict(X)).all()
