"""The learner: pull-back, few distinct rows, sweeps, links, blocks, reports."""

from __future__ import annotations

import numpy as np
import pytest

from karnet import KARRegressor, KARRegressorCV, lstsq
from karnet._estimator.notebook import networks_of
from karnet._network.kernel_map import KernelMap
from karnet._network.layer_problem import LayerProblem, LayerTargets
from karnet._network.layers import Layer, Network, outputs, pull_back, scores
from karnet._rows.memory import Rows
from karnet.activations import ACTIVATIONS
from karnet.learner import Plan, indicator, learn

LOGIT, IDENTITY = ACTIVATIONS["logit"], ACTIVATIONS["identity"]


def drawn_layers(rng, widths, activations):
    return [
        Layer(rng.standard_normal((a, b)), rng.standard_normal(b), f)
        for a, b, f in zip(widths[:-1], widths[1:], activations, strict=True)
    ]


def classes(seed, m=60, d=4, q=3):
    rng = np.random.default_rng(seed)
    return rng, rng.uniform(0, 1, (m, d)), rng.integers(0, q, m)


@pytest.mark.parametrize("name", ["logit", "tanh", "asinh"])
def test_what_is_pulled_back_comes_out_at_the_other_end(name):
    """A layer that gives what the pull-back asks for makes the network give its target."""
    f = ACTIVATIONS[name]
    rng = np.random.default_rng(0)
    # As many units as outputs and more: the targets can be reached exactly.
    upper = drawn_layers(rng, [5, 4, 3], [f, f])
    Y = f(rng.uniform(0.3, 0.7, (20, 3)))
    H = pull_back(Y, upper)
    assert H.shape == (20, 5)
    forward = H
    for layer in upper:
        forward = layer.f(layer.linear(forward))
    inside = [not f.outside_codomain(pull_back(Y, upper[k:])).any() for k in (0, 1)]
    if all(inside):
        np.testing.assert_allclose(forward, Y, atol=1e-8)
    assert np.isfinite(H).all()


@pytest.mark.parametrize("name", ["leaky_relu", "arctan", "logit"])
@pytest.mark.parametrize("sizes", [(), (3,), (20,), (6, 4)])
@pytest.mark.parametrize("alpha", [0.0, 1e-2])
@pytest.mark.parametrize("weighted", [False, True])
def test_few_distinct_rows_give_the_same_weights_as_the_long_way(name, sizes, alpha, weighted):
    rng, X, codes = classes(1)
    X = np.column_stack([X, X @ np.ones(4)])  # a rank-deficient A_1
    f = ACTIVATIONS[name]
    Y = rng.uniform(0.1, 0.9, (3, 8))
    weight = rng.uniform(0.5, 2.0, len(X)) if weighted else None
    plan = Plan((f,) * (len(sizes) + 1), alpha=alpha)
    start = drawn_layers(rng, [*sizes, 8], [f] * len(sizes)) if sizes else []
    short, short_reports = learn(Rows(X, codes, weight), plan, start, Y)
    long, long_reports = learn(Rows(X, Y[codes], weight), plan, start)
    # The first layer is the same to the last digits; later ones see its rounding, amplified where
    # they are ill-conditioned, unless there is a ridge.
    resolved = alpha > 0 or name == "leaky_relu"
    for k, (ours, theirs) in enumerate(zip(short.layers, long.layers, strict=True)):
        if k == 0 or resolved:
            np.testing.assert_allclose(ours.V, theirs.V, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(ours.w, theirs.w, rtol=1e-7, atol=1e-9)
    residuals = [[r.residual for r in each] for each in (short_reports, long_reports)]
    np.testing.assert_allclose(*residuals, rtol=1e-6 if resolved else 1e-3, atol=1e-9)


def test_few_distinct_rows_need_q_right_hand_sides():
    rng, X, codes = classes(2)
    upper = drawn_layers(rng, [50, 3], [LOGIT])
    problem = LayerProblem(LOGIT, upper, LayerTargets.of(LOGIT, pull_back(np.eye(3), upper)))
    E = problem.right_hand_side(codes)
    assert E.shape == (len(X), 3)
    assert problem.layer(lstsq(X, E, bias=True).coef).V.shape == (4, 50)


def test_learned_weights_of_low_rank_are_cut_off_in_the_pull_back():
    layer = Layer(np.diag([1.0, 1e-12]), np.zeros(2), IDENTITY)
    np.testing.assert_allclose(pull_back(np.ones((1, 2)), [layer]), [[1.0, 0.0]])


def test_indicator_has_one_row_per_code():
    np.testing.assert_array_equal(indicator(np.array([2, 0]), 3), [[0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize("hidden", ["pullback", "random"])
@pytest.mark.parametrize("links", [False, True])
def test_blocks_of_rows_learn_the_same_network(block_sizes, hidden, links):
    rng = np.random.default_rng(3)
    X, Y = rng.uniform(0, 1, (1000, 4)), rng.uniform(0, 1, (1000, 5))
    weight = rng.uniform(0.5, 2.0, 1000)
    f = ACTIVATIONS["arctan"]
    plan = Plan((f, IDENTITY), hidden=hidden, alpha=1e-3, direct_links=links)
    widths = [3, 5] if hidden == "pullback" else [4, 3]
    start = drawn_layers(rng, widths, [IDENTITY if hidden == "pullback" else f])
    whole, reports = learn(Rows(X, Y, weight), plan, start)
    block_sizes(block=1)
    blocks, block_reports = learn(Rows(X, Y, weight), plan, start)
    for ours, theirs in zip(blocks.layers, whole.layers, strict=True):
        np.testing.assert_allclose(ours.V, theirs.V, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(scores(blocks, X), scores(whole, X), rtol=1e-9, atol=1e-10)
    for ours, theirs in zip(block_reports, reports, strict=True):
        assert (ours.rank, ours.solver) == (theirs.rank, theirs.solver)
        if theirs.residual is not None:
            assert ours.residual == pytest.approx(theirs.residual, rel=1e-8)
        assert ours.outside == pytest.approx(theirs.outside)


def test_more_sweeps_never_fit_worse():
    for seed in range(10):
        rng, X, codes = classes(seed)
        start = drawn_layers(rng, [10, 3], [LOGIT])
        residuals = [
            learn(Rows(X, codes), Plan((LOGIT, LOGIT), n_sweeps=n), start, np.eye(3))[1][
                -1
            ].residual
            for n in (1, 2, 5)
        ]
        assert residuals == sorted(residuals, reverse=True)


def test_a_sweep_starts_from_the_weights_just_found():
    rng, X, codes = classes(0)
    f = ACTIVATIONS["leaky_relu"]
    start = drawn_layers(rng, [2, 3], [f])
    plan = Plan((f, f), alpha=1e-3)
    first, first_reports = learn(Rows(X, codes), plan, start, np.eye(3))
    second, second_reports = learn(Rows(X, codes), plan, first.layers[1:], np.eye(3))
    both, reports = learn(Rows(X, codes), Plan((f, f), alpha=1e-3, n_sweeps=2), start, np.eye(3))
    better = min((first_reports, first), (second_reports, second), key=lambda r: r[0][-1].residual)
    assert reports == better[0]
    np.testing.assert_array_equal(both.layers[-1].V, better[1].layers[-1].V)


def test_direct_links_let_the_output_layer_see_the_input():
    rng, X, codes = classes(0)
    start = drawn_layers(rng, [5, 3], [LOGIT])
    plan = Plan((LOGIT, LOGIT), direct_links=True, n_sweeps=2)
    network, reports = learn(Rows(X, codes), plan, start, np.eye(3))
    assert [layer.V.shape for layer in network.layers] == [(4, 5), (9, 3)]
    _, alone_reports = learn(Rows(X, codes), Plan((LOGIT, LOGIT)), start, np.eye(3))
    assert reports[-1].residual is not None
    assert alone_reports[-1].residual is not None
    assert reports[-1].residual <= alone_reports[-1].residual * (1 + 1e-6)
    hidden = LOGIT(network.layers[0].linear(X))
    expected = network.layers[1].linear(np.hstack([hidden, X]))
    np.testing.assert_array_equal(scores(network, X), expected)


def test_reports_count_what_left_the_domain():
    rng, X, codes = classes(0)
    start = drawn_layers(rng, [4, 30], [LOGIT])
    network, reports = learn(Rows(X, codes), Plan((LOGIT, LOGIT), "random"), start, np.eye(3))
    Z = network.layers[0].linear(X)
    assert reports[0].outside == pytest.approx(np.mean((Z <= 0) | (Z >= 1)))
    assert (reports[0].rank, reports[0].solver, reports[0].residual) == (None, "random", None)
    tanh = ACTIVATIONS["tanh"]
    _, reports = learn(
        Rows(X, codes), Plan((tanh, tanh)), drawn_layers(rng, [2, 3], [tanh]), 0.99 * np.eye(3)
    )
    assert reports[0].clipped > 0
    assert reports[0].outside == 0


def test_the_output_s_centre_goes_to_its_bias():
    """A constant of any size in the target leaves all other weights as they are."""
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(0, 1, (50, 3)), rng.standard_normal((50, 1))
    start = drawn_layers(rng, [40, 1], [IDENTITY])
    shifted = [Layer(start[0].V, start[0].w + 1e6, IDENTITY)]
    plain, _ = learn(Rows(X, Y), Plan((LOGIT, IDENTITY), centre=np.zeros(1)), start)
    moved, _ = learn(Rows(X, Y + 1e6), Plan((LOGIT, IDENTITY), centre=np.full(1, 1e6)), shifted)
    np.testing.assert_allclose(scores(moved, X) - 1e6, scores(plain, X), atol=1e-4)


@pytest.mark.parametrize("shape", [(600, 250), (250, 600), (300, 320)])
@pytest.mark.parametrize("rank", [None, 40])
def test_a_wide_layer_is_pulled_back_through_its_pseudoinverse(shape, rank):
    rng = np.random.default_rng(3)
    V = rng.standard_normal(shape)
    if rank:
        V = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    layer = Layer(V, rng.standard_normal(shape[1]), ACTIVATIONS["identity"])
    Y = rng.standard_normal((5, shape[1]))
    expected = (Y - layer.w) @ np.linalg.pinv(V, rcond=1e-8)
    np.testing.assert_allclose(layer.back(Y), expected, atol=1e-10)


# Prediction


@pytest.mark.parametrize("device", [None, "cpu"])
def test_predictions_do_not_depend_on_blocks_or_the_device(device, block_sizes):
    if device is not None:
        pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X, f = rng.standard_normal((500, 2)), ACTIVATIONS["tanh"]
    layers = tuple(drawn_layers(rng, [3, 6, 2], [f, f]))
    kernel = KernelMap("gaussian", Z=rng.standard_normal((3, 2)))
    network = Network(layers, input_map=kernel)
    expected = layers[1].linear(f(layers[0].linear(kernel(X))))
    np.testing.assert_allclose(scores(network, X, device), expected, atol=1e-12)
    np.testing.assert_allclose(outputs(network, X, device), np.tanh(expected), atol=1e-12)
    block_sizes(block=300, chunk=200, copied=300, shortest=16)
    np.testing.assert_allclose(scores(network, X, device), expected, atol=1e-12)
    np.testing.assert_allclose(layers[-1].linear(network.features(X)), expected, atol=1e-12)


def test_an_estimator_predicts_the_sum_of_its_networks():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])
    plain = KARRegressor((10,), hidden="random", activation="tanh", random_state=0)
    wide = KARRegressor((np.inf,), hidden="random", activation="cos", alpha=0.1)
    for net in (plain.fit(X, Y), wide.fit(X, Y)):
        (network,) = networks_of(net)
        np.testing.assert_array_equal(outputs(network, X), net.predict(X))
    net = KARRegressorCV(random_state=0).fit(X, Y)
    parts = zip(net.weights_, networks_of(net), strict=True)
    total = net.model_.offset + sum(weight * each.scores(X) for weight, each in parts)
    np.testing.assert_allclose(total * Y.std(axis=0) + Y.mean(axis=0), net.predict(X))
