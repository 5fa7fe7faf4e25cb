"""Infinitely wide layers: limits of finite ones, solved in the dual."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import cross_val_score

from karnet import KARClassifier, KARRegressor, lstsq
from karnet._network.kernel_map import KernelMap
from karnet._network.layers import outputs
from karnet._rows.memory import Rows
from karnet.activations import ACTIVATIONS
from karnet.kernels import KERNELS
from karnet.learner import Plan, learn_in_dual
from tests.paper.iris import IRIS_X, IRIS_Y
from tests.reference import with_ones

INF = float("inf")
WIDE = {"hidden_layer_sizes": (INF,), "hidden": "random", "activation": "relu"}
COSINE = {**WIDE, "activation": "cos"}
LAPLACE = {**COSINE, "init": "cauchy"}
KINDS = [WIDE, {**WIDE, "hidden_layer_sizes": (INF, INF, INF)}, COSINE, LAPLACE]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


def table(m=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2


# Limits of finite layers


def products(A):
    return 2.0 / A.shape[1] * A @ A.T


@pytest.mark.parametrize("depth", [1, 2])
def test_wide_rectified_layers_tend_to_the_kernel(depth):
    rng = np.random.default_rng(0)
    X, h = table(12)[0], 4000
    A = with_ones(X)
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    for _ in range(depth):
        W = rng.standard_normal((A.shape[1], h)) * np.sqrt(2.0 / h)
        A = np.maximum(A @ W, 0.0)
    np.testing.assert_allclose(A @ A.T, KernelMap("relu", depth=depth).at(X)(X), atol=0.1)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_equal_rows_are_equal(name):
    X = np.repeat(np.random.default_rng(0).standard_normal((20, 43)) ** 3, 2, axis=0)
    K = KERNELS[name](X, X, 0.1, 4)
    np.testing.assert_array_equal(K.diagonal(), 1.0)
    np.testing.assert_array_equal(K[::2], K[1::2])
    np.testing.assert_allclose(K, K.T, atol=1e-14)


@pytest.mark.parametrize("f", ["cos", "sin"])
def test_wide_cosine_layers_tend_to_the_gaussian_kernel(f):
    rng = np.random.default_rng(0)
    X, h = table(12)[0], 40_000
    V, phase = rng.standard_normal((3, h)), rng.uniform(-np.pi, np.pi, h)
    found = products(ACTIVATIONS[f](X @ V + phase))
    np.testing.assert_allclose(found, KernelMap("gaussian").at(X)(X), atol=0.03)


@pytest.mark.parametrize("f", ["cos", "sin"])
def test_wide_cosine_layers_of_cauchy_weights_tend_to_the_laplace_kernel(f):
    X, y = table(12)
    options = {**LAPLACE, "activation": f, "hidden_layer_sizes": (40_000,), "alpha": 1.0}
    net = KARRegressor(**options, random_state=0).fit(X, y)
    found = products(ACTIVATIONS[f](X @ net.coefs_[0] + net.intercepts_[0]))
    np.testing.assert_allclose(found, KernelMap("laplace_l1").at(X)(X), atol=0.03)


@pytest.mark.parametrize("direct_links", [False, True])
def test_a_wide_network_tends_to_the_infinite_one(direct_links):
    X, y = table(30)
    links = {"direct_links": direct_links}
    infinite = KARRegressor(**LAPLACE, **links, alpha=0.1).fit(X, y)
    plan = {**LAPLACE, **links, "hidden_layer_sizes": (20_000,), "random_state": 0}
    wide = KARRegressor(**plan).fit(X, y)
    A = np.sqrt(2.0 / 20_000) * np.cos(X @ wide.coefs_[0] + wide.intercepts_[0])
    A = np.hstack([A, X]) if direct_links else A
    fit = with_ones(A) @ lstsq(A, y, bias=True, alpha=0.1).coef
    np.testing.assert_allclose(infinite.predict(X), fit, atol=0.05)


# The dual solution


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_dual_solution_is_that_on_the_features(bias, alpha, weighted):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((25, 4)), rng.standard_normal((25, 2))
    weight = rng.integers(1, 4, 25) if weighted else np.ones(25, dtype=int)

    new = rng.standard_normal((7, 4))
    # Features whose products are the kernel of all rows, new ones included.
    kernel, rows = KernelMap("laplace", scale=2.0), np.vstack([X, new])
    eigenvalues, Q = np.linalg.eigh(kernel.at(rows)(rows))
    features = Q * np.sqrt(eigenvalues)
    identity = ACTIVATIONS["identity"]
    plan = Plan(
        (identity, identity), hidden="random", alpha=alpha, fit_intercept=bias, kernel=kernel
    )
    network, reports = learn_in_dual(Rows(X, Y, 1.0 * weight), plan)
    solution = lstsq(
        np.repeat(features[:25], weight, axis=0),
        np.repeat(Y, weight, axis=0),
        bias=bias,
        alpha=alpha,
    )
    A = with_ones(features[25:]) if bias else features[25:]
    np.testing.assert_allclose(outputs(network, new), A @ solution.coef, atol=1e-8)
    assert [report.rank for report in reports] == [None, 25]
    assert [report.solver for report in reports] == ["random", "eigh"]


@every_kind
def test_distinct_rows_are_met_exactly_without_ridge(kind):
    X, y = table()
    net = KARRegressor(**kind).fit(X, y)
    np.testing.assert_allclose(net.predict(X), y, atol=1e-6)
    assert net.layers_[-1].residual < 1e-6
    assert net.layers_[-1].rank == 40
    labels = np.arange(40) % 3
    assert KARClassifier(**kind).fit(X, labels).score(X, labels) == 1.0


@every_kind
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_a_weight_is_a_number_of_copies(kind, alpha):
    X, y = table()
    new = table(20, seed=1)[0]
    weight = np.random.default_rng(0).integers(0, 4, 40)
    net = KARRegressor(**kind, alpha=alpha)
    weighted = clone(net).fit(X, y, sample_weight=weight)
    copies = clone(net).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(new), copies.predict(new), rtol=1e-6, atol=1e-6)
    labels = (y > 1).astype(int) + (y > 0)
    net = KARClassifier(**kind, alpha=alpha)
    weighted = clone(net).fit(X, labels, sample_weight=weight)
    copies = clone(net).fit(np.repeat(X, weight, axis=0), np.repeat(labels, weight))
    np.testing.assert_allclose(
        weighted.decision_function(new), copies.decision_function(new), rtol=1e-6, atol=1e-6
    )


@every_kind
def test_a_large_ridge_leaves_the_mean(kind):
    X, y = table()
    net = KARRegressor(**kind, alpha=1e9).fit(X, y)
    np.testing.assert_allclose(net.predict(X), y.mean(), atol=1e-6)
    net = KARRegressor(**kind, alpha=1e9, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(net.predict(X), 0.0, atol=1e-6)
    np.testing.assert_array_equal(net.intercept_, 0.0)


# The estimators


def test_it_sees_what_the_pull_back_cannot():
    X, y = make_moons(300, noise=0.2, random_state=0)
    for kind in KINDS:
        assert cross_val_score(KARClassifier(**kind, alpha=0.1), X, y, cv=3).mean() > 0.93


@pytest.mark.parametrize("name", [n for n, f in ACTIVATIONS.items() if f.invertible])
def test_every_output_activation_works_as_for_finite_widths(name):
    for y in (IRIS_Y, IRIS_Y == 2):
        net = KARClassifier(**WIDE, output_activation=name, alpha=1e-2).fit(IRIS_X, y)
        assert net.score(IRIS_X, y) > 0.9
    y = table(150)[1] / 20 + 0.4
    net = KARRegressor(**WIDE, output_activation=name).fit(table(150)[0], y)
    np.testing.assert_allclose(net.predict(table(150)[0]), y, atol=1e-3)


def test_fitted_attributes_are_all_that_predict_needs():
    net = KARClassifier(**WIDE, alpha=0.1).fit(IRIS_X, IRIS_Y)
    K = KernelMap("relu").at(net.X_fit_)(IRIS_X)
    np.testing.assert_allclose(
        net.decision_function(IRIS_X), net.intercept_ + K @ net.dual_coef_, atol=1e-12
    )
    assert net.dual_coef_.shape == (150, 3)
    assert net.intercept_.shape == (3,)
    assert [f.name for f in net.activations_] == ["relu", "identity"]
    assert [(r.solver, r.outside) for r in net.layers_] == [("random", 0.0), ("eigh", 0.0)]
    assert net.n_features_in_ == 4


def test_no_attribute_outlives_a_fit_of_another_kind():
    net = KARClassifier(**WIDE).fit(IRIS_X, IRIS_Y)
    dual, primal = ("X_fit_", "dual_coef_", "intercept_"), ("coefs_", "intercepts_")
    assert all(hasattr(net, name) for name in dual)
    assert not any(hasattr(net, name) for name in primal)
    net.set_params(hidden_layer_sizes=(5,)).fit(IRIS_X, IRIS_Y)
    assert not any(hasattr(net, name) for name in dual)
    assert all(hasattr(net, name) for name in primal)
    net.set_params(hidden_layer_sizes=(INF,)).fit(IRIS_X, IRIS_Y)
    assert not any(hasattr(net, name) for name in primal)


def test_sparse_float32_pickle_clone_and_several_outputs():
    net = KARRegressor(**WIDE, alpha=0.1)
    Y = IRIS_X[:, :2] ** 2
    expected = net.fit(IRIS_X, Y).predict(IRIS_X)
    assert expected.shape == Y.shape
    kept = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(kept.predict(IRIS_X), expected)
    assert isinstance(kept._input_map, KernelMap)
    X = sparse.csr_array(IRIS_X)
    np.testing.assert_array_equal(clone(net).fit(X, Y).predict(X), expected)
    assert isinstance(clone(net).fit(X, Y).X_fit_, np.ndarray)
    single = IRIS_X.astype(np.float32)
    answer = clone(net).fit(single, Y).predict(single)
    assert answer.dtype == np.float32
    np.testing.assert_allclose(answer, expected, atol=1e-4)


def test_a_fit_is_not_touched_by_later_changes_of_its_table():
    X = IRIS_X.copy()
    net = KARClassifier(**WIDE).fit(X, IRIS_Y)
    before = net.decision_function(IRIS_X)
    X[:] = 0.0
    np.testing.assert_array_equal(net.decision_function(IRIS_X), before)


def test_width_may_be_asked_for():
    assert not hasattr(KARClassifier(**WIDE), "partial_fit")
    assert not hasattr(KARClassifier(INF), "partial_fit")
    assert hasattr(KARClassifier((5,)), "partial_fit")
    assert hasattr(KARClassifier(()), "partial_fit")
    scalar = KARRegressor(INF, hidden="random", activation="relu").fit(IRIS_X, IRIS_Y)
    np.testing.assert_allclose(scalar.predict(IRIS_X[:3]), IRIS_Y[:3], atol=1e-6)


def test_finite_cauchy_layers_have_phases_for_biases():
    net = KARRegressor((2000,), hidden="random", activation="cos", init="cauchy", random_state=0)
    net.fit(*table())
    assert np.abs(net.intercepts_[0]).max() <= np.pi
    assert np.abs(net.coefs_[0]).max() > 100.0
    pulled = KARClassifier((10,), init="cauchy", fit_intercept=False, random_state=0)
    assert pulled.fit(IRIS_X, IRIS_Y).score(IRIS_X, IRIS_Y) > 0.6


# What is refused


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hidden": "pullback"}, "hidden='pullback' needs finite .* use hidden='random'"),
        ({"hidden": "metric"}, "hidden='metric' needs finite .* use hidden='random'"),
        ({"activation": "tanh"}, "activation='tanh' has no known kernel .* use 'relu', or 'cos'"),
        ({"activation": "logit"}, "activation='logit' has no known kernel"),
        ({"hidden_layer_sizes": (INF, 5)}, r"\(inf, 5\) mixes finite and infinite widths"),
        ({"hidden_layer_sizes": (INF, INF), "activation": "cos"}, "single infinitely wide layer"),
        ({"hidden_layer_sizes": (-INF,)}, "must hold integers of at least 1"),
        ({"hidden_layer_sizes": (np.nan,)}, "must hold integers of at least 1"),
        ({"init": "cauchy"}, "init='cauchy' cannot make infinitely wide layers of 'relu'"),
        ({"init": "uniform"}, "init='uniform' cannot make .* use 'normal'"),
        ({"init": "uniform", "activation": "cos"}, "use 'normal' or 'cauchy'"),
        ({"init": [np.ones((5, 3))]}, "init=of given weights cannot make"),
        ({"output_activation": "relu"}, "output_activation='relu' has no inverse"),
        ({"n_sweeps": 2}, "n_sweeps=2 needs hidden='pullback'"),
        ({"random_state": "a"}, "random_state='a' must be an integer"),
    ],
    ids=str,
)
def test_what_cannot_be_infinitely_wide_is_refused_in_one_sentence(parameters, message):
    net = KARClassifier(**{**WIDE, **parameters})
    with pytest.raises(ValueError, match=message) as error:
        net.fit(IRIS_X, IRIS_Y)
    assert "\n" not in str(error.value)
    assert not hasattr(net, "dual_coef_")


@pytest.mark.parametrize("kind", [WIDE, COSINE, LAPLACE], ids=["relu", "cos", "cauchy"])
@pytest.mark.parametrize("direct_links", [False, True])
def test_the_largest_inputs_have_finite_answers(kind, direct_links):
    net = KARRegressor(**kind, direct_links=direct_links, alpha=0.1).fit(IRIS_X, IRIS_Y)
    far = np.array([[1, 1, 1, 1], [1, -1, 1, -1]]) * np.finfo(float).max
    assert np.isfinite(net.predict(far)).all()
    if not direct_links:
        assert np.isfinite(net.fit(IRIS_X * 1e300, IRIS_Y).predict(IRIS_X * 1e300)).all()
