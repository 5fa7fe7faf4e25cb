"""Costs of a fit that do not depend on the clock: passes over rows, memory, right-hand sides."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.linalg import lapack

from karnet import KARClassifier, KARRegressor
from karnet.activations import ACTIVATIONS, Activation

M, D, H, Q = 6000, 8, 150, 4


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((M, D))
    return X, np.argmax(X[:, :Q] + 0.5 * rng.standard_normal((M, Q)), axis=1)


@pytest.fixture
def many_blocks(solver_sizes, block_sizes):
    """Blocks of 600 rows, so that no layer is ever there as a whole."""
    block_sizes(block=600 * H)
    solver_sizes(product=1e6)


def counting(name, counts):
    """Return an activation that records the number of values of each call."""
    f = ACTIVATIONS[name]

    def forward(x):
        counts.append(x.size)
        return f.forward(x)

    return Activation("counting", forward, f.inverse, f.derivative, f.domain, f.codomain, f.margin)


@pytest.mark.usefixtures("many_blocks")
@pytest.mark.parametrize("name", ["logit", "tanh", "relu"])
def test_a_random_network_is_fitted_in_one_pass_and_a_sample(name, data):
    counts = []
    net = KARClassifier(
        (H,),
        hidden="random",
        activation=counting(name, counts),
        output_activation="identity",
        random_state=0,
    ).fit(*data)
    assert net.layers_[-1].solver == "cholesky"
    assert M * H < sum(counts) <= (M + 5 * H) * H
    assert max(counts) <= 5 * H * H


@pytest.mark.usefixtures("many_blocks")
def test_a_pulled_back_network_of_low_rank_computes_all_units_twice_and_for_a_sample(data):
    counts = []
    net = KARClassifier((H,), activation=counting("logit", counts), random_state=0).fit(*data)
    assert net.layers_[-1].solver == "sketch"
    assert net.layers_[-1].rank < H // 2
    # Once for the sketch, and once to count outputs outside the domain of the activation.
    assert 2 * M * H < sum(counts) <= (2 * M + 5 * H) * H + 3 * M * H // 2


def test_prediction_is_one_pass(data):
    counts = []
    f = counting("logit", counts)
    net = KARClassifier((H,), activation=f, output_activation="identity", random_state=0)
    net.fit(*data)
    counts.clear()
    net.predict(data[0])
    assert sum(counts) == M * H


@pytest.mark.usefixtures("many_blocks")
@pytest.mark.parametrize("hidden", ["random", "pullback"])
def test_memory_depends_on_blocks_and_not_on_rows(hidden, data):
    X, y = (np.concatenate([part] * 5) for part in data)
    net = KARClassifier((H,), hidden=hidden, random_state=0).fit(*data)
    tracemalloc.start()
    net.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    block, square, labels = 8 * 600 * H, 8 * H * H, 8 * len(y)
    assert peak < 8 * block + 8 * square + 8 * labels < 8 * len(X) * H


@pytest.mark.usefixtures("many_blocks")
@pytest.mark.parametrize("solver", ["cholesky", "qr"])
@pytest.mark.parametrize("hidden", ["random", "pullback"])
def test_q_classes_need_q_right_hand_sides(solver, hidden, data, monkeypatch):
    widths = []

    def counting_columns(function, position):
        def counted(*arguments, **options):
            widths.append(arguments[position].shape[1])
            return function(*arguments, **options)

        return counted

    # LAPACK's routines that solve with a Cholesky factor and multiply by Q'.
    for name, position in (("dpotrs", 1), ("dormqr", 4)):
        monkeypatch.setattr(lapack, name, counting_columns(getattr(lapack, name), position))
    KARClassifier((H,), hidden=hidden, alpha=1e-3, solver=solver, random_state=0).fit(*data)
    assert set(widths) == {Q}


def test_a_regressor_is_refined_like_a_classifier():
    X = np.random.default_rng(0).standard_normal((2000, 5))
    net = KARRegressor((200,), alpha=1e-6, random_state=0).fit(X, X[:, 0] * X[:, 1])
    assert net.layers_[-1].solver == "cholesky"
    assert 0.0 < net.layers_[-1].residual < 2.0
