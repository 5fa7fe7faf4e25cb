"""Hidden layers redrawn with the input metric: what it finds, and its invariances."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from karnet import KARClassifier, KARRegressor
from karnet._network.infinite_width import kernel_network
from karnet._network.input_metric import input_metric, sensitivities
from karnet._network.kernel_map import KernelMap
from karnet._network.layers import Layer, Network, scores
from karnet._rows.memory import Rows
from karnet.activations import ACTIVATIONS, Activation
from karnet.kernels import KERNELS
from karnet.learner import MetricRound, Plan, learn_by_metric, metric_rounds
from tests.paper.iris import IRIS_X, IRIS_Y, assert_same_network

METRIC = {"hidden": "metric", "activation": "tanh", "output_activation": "identity"}
OPTIONS = {**METRIC, "direct_links": True, "alpha": 0.1, "random_state": 0}
# With as many features, "tanh" of weights as drawn would be saturated.
RECTIFIED = {**OPTIONS, "activation": "relu", "alpha": 10.0}
SMOOTH = [name for name in ACTIVATIONS if name not in ("logit", "logit_clipped")]


def two_of_twenty(m, seed=0):
    X = np.random.default_rng(seed).standard_normal((m, 20))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2


def network(rng, name, widths, direct_links):
    f = ACTIVATIONS[name]
    joined = widths[0] * direct_links
    shapes = list(pairwise(widths))
    shapes[-1] = (shapes[-1][0] + joined, shapes[-1][1])
    layers = [Layer(rng.standard_normal(s), rng.standard_normal(s[1]), f) for s in shapes]
    return Network(tuple(layers), direct_links)


# What it finds


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("widths", [(4, 6, 2), (3, 5, 4, 1)])
@pytest.mark.parametrize("direct_links", [False, True])
def test_sensitivities_are_the_slopes_of_the_scores(name, widths, direct_links):
    rng = np.random.default_rng(0)
    net, X = network(rng, name, widths, direct_links), rng.standard_normal((7, widths[0]))
    found = np.stack(list(sensitivities(net, X)), axis=2)
    step = 1e-6
    for j, unit in enumerate(step * np.eye(widths[0])):
        slope = (scores(net, X + unit) - scores(net, X - unit)) / (2.0 * step)
        np.testing.assert_allclose(found[:, j], slope, atol=1e-6)
    M = np.einsum("ijo,iko->jk", found, found)
    expected = M * widths[0] / np.trace(M)
    np.testing.assert_allclose(input_metric(net, Rows(X, np.zeros(7))), expected)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("direct_links", [False, True])
def test_sensitivities_of_kernel_networks_are_the_slopes_of_the_scores(kernel, direct_links):
    rng = np.random.default_rng(0)
    kernel_map = KernelMap(kernel, 1.5, 2, direct_links, Z=rng.standard_normal((9, 3)))
    net = kernel_network(rng.standard_normal((9, 2)), np.zeros(2), kernel_map)
    X, step = rng.standard_normal((7, 3)), 1e-6
    found = np.stack(list(sensitivities(net, X)), axis=2)
    for j, unit in enumerate(step * np.eye(3)):
        slope = (scores(net, X + unit) - scores(net, X - unit)) / (2.0 * step)
        np.testing.assert_allclose(found[:, j], slope, atol=1e-5)


def test_the_metric_finds_the_features_that_matter():
    X, y = two_of_twenty(400)
    net = KARRegressor((300,), **RECTIFIED).fit(X, y)
    assert net.metric_.shape == (20, 20)
    np.testing.assert_allclose(np.trace(net.metric_), 20.0)
    np.testing.assert_allclose(net.metric_, net.metric_.T)
    np.testing.assert_allclose(net.input_metric_, np.diag(net.metric_) / 20.0)
    assert net.input_metric_[:2].sum() > 0.8
    assert [report.solver for report in net.layers_[:-1]] == ["metric"]


def test_a_redrawn_network_generalises_better():
    X, y = two_of_twenty(400)
    X_test, y_test = two_of_twenty(400, seed=1)
    redrawn, drawn = (
        KARRegressor((300,), **{**RECTIFIED, "hidden": hidden}).fit(X, y).score(X_test, y_test)
        for hidden in ("metric", "random")
    )
    assert redrawn > 0.9
    assert drawn < 0.6


def test_it_learns_which_inputs_are_equal():
    # Of six inputs of three values, the class depends on whether the first two are equal, and on
    # the fifth: the rule of monks-1.
    X = np.stack(np.meshgrid(*[np.arange(3.0)] * 6), axis=-1).reshape(-1, 6)
    y = (X[:, 0] == X[:, 1]) | (X[:, 4] == 0)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    redrawn, drawn = (
        cross_val_score(
            make_pipeline(StandardScaler(), KARClassifier((150,), **{**OPTIONS, "hidden": hidden})),
            *(X, y),
            cv=folds,
        ).mean()
        for hidden in ("metric", "random")
    )
    assert redrawn > 0.995
    assert redrawn > drawn + 0.02


# What is kept


def test_weights_are_the_root_of_the_metric_times_those_drawn():
    X, y = two_of_twenty(400)
    net = KARRegressor((100, 60), **RECTIFIED).fit(X, y)
    drawn = KARRegressor((100, 60), **{**RECTIFIED, "hidden": "random"}).fit(X, y)
    eigenvalues, Q = np.linalg.eigh(net.metric_)
    root = Q * np.sqrt(np.maximum(eigenvalues, 0.0)) @ Q.T
    np.testing.assert_allclose(net.coefs_[0], root @ drawn.coefs_[0], atol=1e-6)
    np.testing.assert_array_equal(net.coefs_[1], drawn.coefs_[1])
    for k in range(2):
        np.testing.assert_array_equal(net.intercepts_[k], drawn.intercepts_[k])
    assert [report.solver for report in net.layers_[:-1]] == ["metric", "random"]
    # The output layer is solved for the layers as redrawn.
    init = [np.vstack([w, V]) for V, w in zip(net.coefs_[:-1], net.intercepts_[:-1], strict=True)]
    given = KARRegressor((100, 60), **{**RECTIFIED, "hidden": "random", "init": init}).fit(X, y)
    assert_same_network(net, given)


@pytest.mark.parametrize(
    ("first", "second", "kept"), [(3.0, 2.0, 2.0), (1.0, 2.0, 1.0), (1.0, 1.0 - 1e-12, 1.0)]
)
def test_a_round_is_kept_if_its_leave_one_out_error_is_clearly_smaller(first, second, kept):
    rounds = [MetricRound(Network(()), [], np.eye(3), error) for error in (first, second)]
    assert rounds[0].better_of(rounds[1]).error == kept


@pytest.mark.parametrize("n_rounds", [1, 3])
@pytest.mark.parametrize("alpha", [0.1, 1e3])
def test_the_round_of_least_leave_one_out_error_is_kept(n_rounds, alpha):
    rng = np.random.default_rng(0)
    X, f = rng.standard_normal((40, 3)), ACTIVATIONS["tanh"]
    rows = Rows(X, X[:, :1] * X[:, 1:2])
    plan = Plan((f, ACTIVATIONS["identity"]), hidden="metric", alpha=alpha, n_rounds=n_rounds)
    drawn = [Layer(rng.standard_normal((3, 8)), rng.standard_normal(8), f)]
    rounds = list(metric_rounds(rows, replace(plan, hidden="random"), drawn, None))
    assert len(rounds) == n_rounds + 1
    best = learn_by_metric(rows, plan, drawn, None)
    errors = [each.error for each in rounds]
    assert best.error == min(errors)
    first = errors[0] == best.error
    assert (best.reports[0].solver == "random") == first
    assert np.array_equal(best.metric, np.eye(3)) == first


def test_a_network_as_drawn_has_the_identity_for_metric():
    X = np.random.default_rng(0).standard_normal((50, 3))
    net = KARRegressor((10,), **OPTIONS).fit(X, np.zeros(50))
    np.testing.assert_array_equal(net.metric_, np.eye(3))
    np.testing.assert_allclose(net.input_metric_, 1.0 / 3.0)
    assert net.layers_[0].solver == "random"
    assert not hasattr(net.set_params(hidden="random").fit(X, X), "metric_")
    assert not hasattr(net, "input_metric_")


def test_one_row_is_no_reason_to_fail():
    net = KARRegressor((10,), **OPTIONS).fit(np.ones((1, 2)), [3.0])
    np.testing.assert_allclose(net.predict(np.ones((1, 2))), 3.0)


# Invariances


@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_a_weight_is_a_number_of_copies(alpha):
    weight = np.random.default_rng(0).integers(0, 4, len(IRIS_X))
    net = KARClassifier((12,), **{**OPTIONS, "alpha": alpha, "direct_links": False})
    weighted = clone(net).fit(IRIS_X, IRIS_Y, sample_weight=weight)
    copies = clone(net).fit(np.repeat(IRIS_X, weight, axis=0), np.repeat(IRIS_Y, weight))
    assert_same_network(weighted, copies, atol=1e-7)
    np.testing.assert_allclose(weighted.metric_, copies.metric_, atol=1e-7)


@pytest.mark.parametrize("memory", [2**22, 0])
def test_blocks_of_any_size_give_the_same_network(memory, solver_sizes, block_sizes):
    X, y = two_of_twenty(3000)
    net = KARRegressor((20,), **RECTIFIED)
    whole = clone(net).fit(X, y)
    solver_sizes(loo_in_memory=memory)
    for size in (2**13, 2**15):
        block_sizes(block=size, chunk=size // 4)
        cut = clone(net).fit(X, y)
        assert_same_network(cut, whole)
        np.testing.assert_allclose(cut.metric_, whole.metric_, atol=1e-9)
    assert not np.array_equal(whole.metric_, np.eye(20))


def test_memory_does_not_grow_with_the_rows(solver_sizes, block_sizes):
    block_sizes(block=2**16)
    solver_sizes(loo_in_memory=2**16)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (10_000, 3)), rng.integers(0, 3, 10_000)
    net = KARClassifier((100,), **OPTIONS)
    tracemalloc.start()
    net.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The activations as a whole are 10000 x 100.
    assert peak < 0.5 * 10_000 * 100 * 8


def test_sparse_inputs_float32_pickle_and_classes_of_any_number():
    for y in (IRIS_Y, IRIS_Y == 1):
        net = KARClassifier((10,), **OPTIONS).fit(IRIS_X, y)
        assert net.score(IRIS_X, y) > 0.9
        again = clone(net).fit(sparse.csr_array(IRIS_X), y)
        assert_same_network(again, net, atol=1e-12)
        copy = pickle.loads(pickle.dumps(net))
        np.testing.assert_array_equal(copy.predict(IRIS_X), net.predict(IRIS_X))
        single = clone(net).fit(IRIS_X.astype(np.float32), y)
        assert single.decision_function(IRIS_X.astype(np.float32)).dtype == np.float32


# What is refused


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"activation": (np.sinh, np.arcsinh)}, "activation='custom' has no derivative, which"),
        ({"hidden_layer_sizes": ()}, "hidden='metric' needs a hidden layer"),
        ({"n_rounds": 0}, "n_rounds=0 must be an integer of at least 1"),
        ({"n_sweeps": 2}, "n_sweeps=2 needs hidden='pullback'"),
        ({"hidden_layer_sizes": (np.inf,)}, "hidden='metric' needs finite hidden_layer_sizes"),
        (
            {"activation": Activation("steep", np.tanh, derivative=lambda x: 1e200 + 0.0 * x)},
            "derivative of activation 'steep' gives input sensitivities that are too large",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_shaped_is_refused_in_one_sentence(parameters, message):
    net = KARClassifier(**{"hidden_layer_sizes": (5,), **OPTIONS, **parameters})
    with pytest.raises(ValueError, match=message) as error:
        net.fit(IRIS_X, IRIS_Y)
    assert "\n" not in str(error.value)
