"""The paper's baseline: its Jacobian, its rules, its limits."""

from __future__ import annotations

import tracemalloc
from time import perf_counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from karnet import KARClassifier
from karnet._network.layers import Layer, Network
from karnet._network.layers import outputs as network_outputs
from karnet._rows.memory import Rows
from karnet.activations import ACTIVATIONS, Activation
from karnet.paper import xor
from karnet.paper.baseline import (
    LevenbergMarquardtClassifier,
    LevenbergMarquardtRegressor,
    Rules,
    _draw,
    jacobian,
    train,
)

WHOLE = {"validation_fraction": 0.0, "test_fraction": 0.0}
NOTHING = Rows(np.empty((0, 3)), np.empty((0, 2)))


@parametrize_with_checks(
    [
        LevenbergMarquardtClassifier((5,), max_iter=10),
        LevenbergMarquardtRegressor((5,), max_iter=10),
        LevenbergMarquardtRegressor((3, 2), activation="tanh", max_iter=10),
    ]
)
def test_scikit_learn_s_checks(estimator, check):
    check(estimator)


def drawn(seed, sizes, name, m=7, d=3, q=2, span=0.5):
    """Return inputs and a network with all pre-activations inside the domain."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, (m, d))
    f = ACTIVATIONS[name]
    return X, _draw(rng, X, (*sizes, q), [f] * (len(sizes) + 1), span)


def outputs(layers, X):
    return network_outputs(Network(layers), X)


@pytest.mark.parametrize("sizes", [(), (4,), (4, 3), (4, 3, 5)])
@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_the_jacobian_is_that_of_finite_differences(name, sizes):
    X, layers = drawn(0, sizes, name)
    G, J = jacobian(layers, X)
    np.testing.assert_array_equal(G, outputs(layers, X))
    columns = []
    for k, layer in enumerate(layers):
        for i, j in np.ndindex(len(layer.V) + 1, len(layer.w)):
            sides = []
            for step in (1e-6, -1e-6):
                W = np.vstack([layer.w, layer.V])
                W[i, j] += step
                moved = (*layers[:k], Layer(W[1:], W[0], layer.f), *layers[k + 1 :])
                sides.append(outputs(moved, X))
            columns.append((sides[0] - sides[1]) / 2e-6)
    np.testing.assert_allclose(J, np.stack(columns, axis=-1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_training_starts_inside_the_domain_of_every_activation(name):
    X, layers = drawn(1, (20, 10), name, m=50, span=1.0)
    A = 1e3 * X + 5.0
    layers = _draw(np.random.RandomState(0), A, (20, 10, 2), [layer.f for layer in layers], 1.0)
    for layer in layers:
        Z = layer.linear(A)
        assert not layer.f.outside(Z).any()
        assert np.abs(Z).max() <= 2.0
        A = layer.f(Z)


def test_columns_that_are_constant_do_not_blow_the_weights_up():
    X = np.full((10, 3), 0.1)
    (layer,) = _draw(np.random.RandomState(0), X, (4,), [ACTIVATIONS["logit"]], 0.2)
    assert np.abs(layer.V).max() < 1e7
    assert np.abs(layer.linear(X) - 0.5).max() <= 0.1 + 1e-9


@pytest.mark.parametrize("q", [1, 3])
def test_a_linear_network_reaches_the_least_squares_solution(q):
    rng = np.random.default_rng(2)
    X, Y = rng.standard_normal((60, 4)), rng.standard_normal((60, q))
    net = LevenbergMarquardtRegressor((), activation="identity", random_state=0, **WHOLE).fit(X, Y)
    W = np.linalg.lstsq(np.column_stack([np.ones(60), X]), Y)[0]
    np.testing.assert_allclose(net.intercepts_[0], W[0], atol=1e-6)
    np.testing.assert_allclose(net.coefs_[0], W[1:], atol=1e-6)
    assert net.stop_reason_ == "gradient"
    assert net.n_iter_ < 10
    assert net.loss_ == pytest.approx(np.mean((net.predict(X) - Y) ** 2))


@pytest.mark.parametrize("activation", ["tanh", "logit"])
def test_iris_is_learned(activation):
    X, y = load_iris(return_X_y=True)
    X, y = minmax_scale(X), np.array(["setosa", "versicolor", "virginica"])[y]
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    nets = [
        LevenbergMarquardtClassifier((10,), activation=activation, random_state=seed).fit(X, y)
        for seed in range(5)
    ]
    assert np.median([net.score(X_test, y_test) for net in nets]) > 0.9
    assert [V.shape for V in nets[0].coefs_] == [(4, 10), (10, 3)]
    assert [w.shape for w in nets[0].intercepts_] == [(10,), (3,)]


def test_two_classes_need_one_output_and_moons_are_learned():
    X, y = make_moons(400, noise=0.1, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    net = LevenbergMarquardtClassifier((10,), activation="tanh", random_state=0).fit(X, y)
    assert net.score(X_test, y_test) > 0.97
    assert net.coefs_[-1].shape == (10, 1)
    assert net.decision_function(X).shape == y.shape


@pytest.mark.parametrize("sizes", [(2,), (3, 3, 3, 3)])
def test_xor_is_learned_from_some_starts_if_all_four_points_are_seen(sizes):
    nets = [
        LevenbergMarquardtRegressor(sizes, output_activation="logit", random_state=seed, **WHOLE)
        for seed in range(20)
    ]
    errors = [np.abs(net.fit(xor.X, xor.TARGETS).predict(xor.X) - xor.TARGETS) for net in nets]
    assert 2 <= sum(error.max() < 1e-3 for error in errors) <= 18


def test_the_default_division_leaves_two_of_xor_s_four_points_to_learn():
    net = LevenbergMarquardtRegressor()
    learned, held_out = net._divide(4, np.random.RandomState(0))
    assert (len(learned), len(held_out)) == (2, 1)
    learned, held_out = net._divide(150, np.random.RandomState(0))
    assert (len(learned), len(held_out)) == (104, 23)
    assert not set(learned) & set(held_out)


def started(seed=0, m=40, **changes):
    """Return what `train` takes for a problem with noise."""
    X, layers = drawn(seed, (6,), "tanh", m=m)
    Y = np.random.default_rng(seed).uniform(-0.5, 0.5, (m, 2))
    return layers, Rows(X[: m // 2], Y[: m // 2]), Rows(X[m // 2 :], Y[m // 2 :]), Rules(**changes)


@pytest.mark.parametrize(
    ("reason", "rules"),
    [
        ("epochs", Rules(max_iter=3)),
        ("goal", Rules(goal=0.1)),
        ("gradient", Rules(min_gradient=1e-2)),
        ("mu", Rules(mu_max=1e-4)),
        ("time", Rules(time_limit=0.0)),
    ],
)
def test_every_rule_stops_the_training(reason, rules):
    layers, rows, _, _ = started()
    training = train(layers, rows, NOTHING, rules)
    assert training.stop_reason == reason
    assert training.loss == pytest.approx(np.mean((outputs(training.layers, rows.X) - rows.y) ** 2))
    if reason == "epochs":
        assert training.n_iter == 3
    if reason == "goal":
        assert training.loss <= 0.1


def test_validation_stops_the_training_and_gives_the_best_weights():
    layers, rows, held_out, rules = started()
    training = train(layers, rows, held_out, rules)
    assert training.stop_reason == "validation"

    def error(network):
        return np.mean((outputs(network, held_out.X) - held_out.y) ** 2)

    # Without validation, as many epochs each: the path that was gone.
    path = [
        train(layers, rows, NOTHING, Rules(max_iter=n + 1)).layers for n in range(training.n_iter)
    ]
    errors = [error(layers), *map(error, path)]
    assert error(training.layers) == min(errors)
    assert np.argmin(errors) == training.n_iter - rules.max_fail


def test_the_loss_never_rises():
    layers, rows, _, _ = started(seed=3)
    losses = [train(layers, rows, NOTHING, Rules(max_iter=n)).loss for n in range(1, 20)]
    assert (np.diff(losses) <= 0.0).all()


def test_a_singular_matrix_only_means_more_damping():
    """Twice the same input, and no damping to speak of: J'J cannot be factorised."""
    X = np.ones((5, 3))
    layer = Layer(np.zeros((3, 2)), np.zeros(2), ACTIVATIONS["identity"])
    training = train((layer,), Rows(X, np.ones((5, 2))), NOTHING, Rules(mu=1e-20))
    assert training.loss < 1e-12


def test_what_does_not_fit_is_refused_before_it_is_allocated():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (2000, 10)), rng.integers(0, 5, 2000)
    # 1400 rows of 5 outputs, 11 * 500 + 501 * 5 weights.
    needed = 8 * (1400 * 5 * 8005 + 8005**2)
    net = LevenbergMarquardtClassifier((500,), memory_limit=needed - 1)
    tracemalloc.start()
    with pytest.raises(MemoryError, match=r"0\.895 GiB .* 7000 errors by 8005 weights"):
        net.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5e6
    assert not hasattr(net, "coefs_")


def test_what_is_allocated_is_what_was_counted():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (200, 10)), rng.integers(0, 3, 200)
    n, errors = 11 * 40 + 41 * 3, 140 * 3
    needed = 8 * (errors * n + n * n)
    net = LevenbergMarquardtClassifier((40,), memory_limit=needed, max_iter=3, random_state=0)
    tracemalloc.start()
    net.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.9 * needed < peak < 1.5 * needed


def test_the_time_limit_is_kept_and_said():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (500, 10)), rng.standard_normal(500)
    net = LevenbergMarquardtRegressor((60,), activation="tanh", time_limit=0.2, **WHOLE)
    start = perf_counter()
    net.fit(X, y)
    assert net.stop_reason_ == "time"
    assert 0.2 <= perf_counter() - start < 2.0
    assert net.n_iter_ < net.max_iter


def test_the_same_seed_gives_the_same_weights_and_another_does_not():
    X, y = load_iris(return_X_y=True)
    net = LevenbergMarquardtClassifier((5,), activation="tanh", random_state=1).fit(X, y)
    again = clone(net).fit(X, y)
    for ours, theirs in zip(net.coefs_, again.coefs_, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (clone(net).set_params(random_state=2).fit(X, y).coefs_[0] != net.coefs_[0]).any()


@pytest.mark.parametrize(
    ("activation", "output", "expected"),
    [("logit", None, "logit"), ("relu", None, "identity"), ("tanh", "identity", "identity")],
)
def test_activations_are_those_of_the_network_it_is_compared_with(activation, output, expected):
    X, y = load_iris(return_X_y=True)
    settings = {"activation": activation, "output_activation": output, "random_state": 0}
    net = LevenbergMarquardtClassifier((5,), max_iter=2, **settings).fit(X, y)
    assert [f.name for f in net.activations_] == [activation, expected]
    ours = KARClassifier((5,), hidden="random", **settings).fit(X, y)
    assert net.activations_ == ours.activations_
    assert [V.shape for V in net.coefs_] == [V.shape for V in ours.coefs_]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"activation": (np.tanh, np.arctanh)}, "'custom' has no derivative"),
        ({"output_activation": Activation("step", np.sign)}, "'step' has no derivative"),
        ({"max_iter": 0}, "max_iter=0 must be an integer of at least 1"),
        ({"time_limit": -1.0}, "time_limit=-1.0 must be finite and not negative"),
        ({"init_span": "wide"}, "init_span='wide' must be a number"),
        ({"validation_fraction": 0.9, "test_fraction": 0.1}, "leave none of n_samples=150"),
        ({"hidden_layer_sizes": (0,)}, "must hold integers of at least 1"),
    ],
)
def test_what_cannot_be_is_answered_with_one_sentence(parameters, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        LevenbergMarquardtClassifier(**parameters).fit(X, y)


def test_activations_given_as_such_are_learned_with():
    X, y = load_iris(return_X_y=True)
    softsign = Activation(
        "softsign", lambda x: x / (1 + np.abs(x)), derivative=lambda x: (1 + np.abs(x)) ** -2.0
    )
    net = LevenbergMarquardtClassifier((5,), activation=softsign, random_state=0).fit(X, y)
    assert net.score(X, y) > 0.9
