"""The lemmas and theorems of the paper, each as a test at random sizes."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.linalg import lstsq as lapack_lstsq
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import minmax_scale

from karnet import KARClassifier, KARRegressor, lstsq
from karnet._lstsq.problem import CONSTANT_SHARE, MEAN_ULPS
from karnet._network.layers import Layer, outputs, pull_back
from karnet._rows.memory import Rows
from karnet.activations import ACTIVATIONS
from karnet.learner import PULLED_BACK_RCOND, Plan, learn
from tests.reference import EPS, naive_network, ridge, with_ones

seeds = st.integers(0, 2**32 - 1)
law = settings(max_examples=100, deadline=None)


def random_problem(seed):
    rng = np.random.default_rng(seed)
    m, d, q = rng.integers(1, 15), rng.integers(1, 15), rng.integers(1, 4)
    rank = rng.integers(1, min(m, d) + 1)
    A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, d))
    return rng, A, rng.standard_normal((m, q))


@law
@given(seeds)
def test_lemma_1_least_squares_and_least_norm(seed):
    rng, A, B = random_problem(seed)
    b = B[:, 0]
    theta = lstsq(A, b).coef
    size = 1 + np.linalg.norm(A) ** 2 * (1 + np.linalg.norm(theta))
    np.testing.assert_allclose(A.T @ (A @ theta - b), 0, atol=1e-12 * size)
    kernel = np.eye(A.shape[1]) - np.linalg.pinv(A, rcond=1e-10) @ A
    other = theta + kernel @ rng.standard_normal(A.shape[1])
    np.testing.assert_allclose(A @ other, A @ theta, atol=1e-8 * size)
    assert np.linalg.norm(theta) <= np.linalg.norm(other) * (1 + 1e-9)


@law
@given(seeds)
def test_lemma_2_every_output_is_solved_on_its_own(seed):
    _, A, B = random_problem(seed)
    Theta = lstsq(A, B).coef
    for k in range(B.shape[1]):
        np.testing.assert_allclose(Theta[:, k], lstsq(A, B[:, k]).coef, rtol=1e-9, atol=1e-10)


@law
@given(seeds)
def test_lemma_2_primal_equals_dual_in_the_limit(seed):
    _, A, B = random_problem(seed)
    m, d = A.shape
    largest = np.linalg.norm(A, 2) ** 2
    solution = lstsq(A, B).coef
    # Positive eigenvalues of A'A are far above these ridges, and rounding errors far below.
    positive = np.linalg.svd(A, compute_uv=False) ** 2
    assume(positive[positive > 1e-12 * largest].min() > 1e-3 * largest)
    for share in (1e-4, 1e-6, 1e-8):
        alpha = share * largest
        primal = np.linalg.solve(alpha * np.eye(d) + A.T @ A, A.T @ B)
        dual = A.T @ np.linalg.solve(alpha * np.eye(m) + A @ A.T, B)
        # If B is nearly orthogonal to A, rounding errors are small relative to B, but not to the
        # solution.
        size = np.abs(solution).max() + np.linalg.norm(B) / np.sqrt(largest) + EPS
        np.testing.assert_allclose(primal, dual, atol=1e-5 * size)
        np.testing.assert_allclose(lstsq(A, B, alpha=alpha).coef, dual, atol=1e-5 * size)
        np.testing.assert_allclose(dual, solution, atol=(1e3 * share + 1e-5) * size * 10)


@law
@given(seeds, st.sampled_from(["logit", "arctan", "asinh", "identity"]))
def test_theorem_1_single_layer(seed, name):
    rng, X, Y = random_problem(seed)
    f = ACTIVATIONS[name]
    net = KARRegressor((), output_activation=name).fit(X, Y)
    W = lstsq(with_ones(X), f.phi(Y)).coef
    np.testing.assert_allclose(np.vstack([net.intercepts_[0], net.coefs_[0]]), W, atol=1e-8)
    new = rng.standard_normal(X.shape)
    np.testing.assert_allclose(net.predict(new), f(with_ones(new) @ W), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["relu", "sin", "cos", "gelu"])
def test_theorem_1_single_layer_without_inverse(name):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, 3)), rng.uniform(0, 1, (40, 2))
    net = KARRegressor((), output_activation=name).fit(X, Y)
    A = with_ones(np.exp(ACTIVATIONS[name](X)))
    W = np.linalg.pinv(A) @ np.exp(Y)
    np.testing.assert_allclose(np.vstack([net.intercepts_[0], net.coefs_[0]]), W, atol=1e-10)
    np.testing.assert_allclose(net.predict(X), np.log(A @ W), atol=1e-10)


def two_layer_formula(X, Y, W_2, f, phi):
    """Equations of Theorem 2, in the paper's order."""
    pinv = np.linalg.pinv
    w_2, V_2 = W_2[:1], W_2[1:]
    W_1 = pinv(X) @ phi((phi(Y) - w_2) @ pinv(V_2))
    return W_1, pinv(with_ones(f(X @ W_1))) @ phi(Y)


def three_layer_formula(X, Y, W_2, W_3, f, phi):
    """Equations of the section on three layers, in the paper's order."""
    pinv = np.linalg.pinv
    inner = phi((phi(Y) - W_3[:1]) @ pinv(W_3[1:]))
    W_1 = pinv(X) @ phi((inner - W_2[:1]) @ pinv(W_2[1:]))
    W_2 = pinv(with_ones(f(X @ W_1))) @ inner
    return W_1, W_2, pinv(with_ones(f(with_ones(f(X @ W_1)) @ W_2))) @ phi(Y)


NAMES = ["logit", "asinh", "leaky_relu", "arctan", "identity"]


def random_network(seed, n_layers):
    rng = np.random.default_rng(seed)
    q = int(rng.integers(2, 5))
    sizes = [int(rng.integers(1, q + 1)) for _ in range(n_layers - 1)]
    X = rng.uniform(0, 1, (int(rng.integers(20, 40)), int(rng.integers(2, 5))))
    Y = rng.uniform(-1, 1, (len(X), q))
    return X, Y, random_weights(rng, [*sizes, q])


def random_weights(rng, widths):
    return [rng.standard_normal((a + 1, b)) for a, b in pairwise(widths)]


def fitted(X, Y, drawn, f, **options):
    plan = Plan((f,) * (len(drawn) + 1), **options)
    network, reports = learn(Rows(X, Y), plan, [Layer(W[1:], W[0], f) for W in drawn])
    return network, reports, [np.vstack([layer.w, layer.V]) for layer in network.layers]


def matrices(network, X):
    """Return A_1 ... A_n."""
    A = [with_ones(X)]
    for layer in network.layers[:-1]:
        A.append(with_ones(layer.f(layer.linear(A[-1][:, 1:]))))
    return A


def well_conditioned(network, X, drawn):
    conditions = [np.linalg.cond(M) for M in (*matrices(network, X), *(W[1:] for W in drawn))]
    return max(conditions) <= 1e4


def single_layer_formula(X, Y, f, phi):
    return (np.linalg.pinv(X) @ phi(Y),)


def assert_fit_equals(formula, n_layers, enough):
    """Compare weights with the formula and with the naive network if they are well-conditioned."""
    n_compared = 0
    for seed in range(100):
        f = ACTIVATIONS[NAMES[seed % len(NAMES)]]
        X, Y, drawn = random_network(seed, n_layers)
        network, _, W = fitted(X, Y, drawn, f)
        if not well_conditioned(network, X, drawn):
            continue
        n_compared += 1
        naive, G = naive_network(X, Y, drawn, f, f.phi)
        for reference in (naive, formula(with_ones(X), Y, *drawn, f, f.phi)):
            for ours, theirs in zip(W, reference, strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-8 * max(1, np.abs(theirs).max()))
        np.testing.assert_allclose(outputs(network, X), G, rtol=1e-6, atol=1e-6)
    assert n_compared >= enough


def test_theorem_1_the_fit_equals_the_formula():
    assert_fit_equals(single_layer_formula, 1, enough=100)


def test_theorem_2_the_fit_equals_the_formula():
    assert_fit_equals(two_layer_formula, 2, enough=60)


def test_theorem_3_the_fit_equals_the_formula():
    assert_fit_equals(three_layer_formula, 3, enough=40)


@pytest.mark.parametrize("n_layers", [1, 2, 3, 5])
def test_theorem_3_holds_with_a_ridge_too(n_layers):
    n_compared = 0
    for seed in range(40):
        f = ACTIVATIONS[NAMES[seed % len(NAMES)]]
        X, Y, drawn = random_network(seed, n_layers)
        _, _, W = fitted(X, Y, drawn, f, alpha=0.1)
        naive, _ = naive_network(
            X, Y, drawn, f, f.phi, solve=lambda A, B: ridge(A[:, 1:], B, 0.1, bias=True)
        )
        if max(np.abs(each).max() for each in naive) > 1e3:
            continue  # sinh of sinh: targets of 1e5 that differ in the last digits
        n_compared += 1
        for ours, theirs in zip(W, naive, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-8 * max(1, np.abs(theirs).max()))
    assert n_compared >= 20


def scaled_columns(A, cut_off):
    """Return the centred columns of [1, A] at unit length, constant ones as zeros."""
    means = A[:, 1:].mean(axis=0)
    centred = A[:, 1:] - means
    centred -= centred.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    share = max(EPS * (A.shape[1] + MEAN_ULPS), CONSTANT_SHARE * cut_off)
    constant = norms <= share * np.abs(means) * np.sqrt(len(A))
    return np.where(constant, 0.0, centred) / np.where(constant, 1.0, norms)


def gelsd_residual(A, B, rank):
    """Return the residual of LAPACK's minimum-norm solution at this rank of A."""
    s = np.append(np.linalg.svd(A, compute_uv=False), 0.0)
    cut = np.sqrt(s[rank - 1] * max(s[rank], s[0] * EPS)) / s[0] if rank else 1.0
    x, _, gelsd_rank, _ = lapack_lstsq(A, B, cond=cut, lapack_driver="gelsd")
    assert gelsd_rank == rank or rank == 0
    return np.linalg.norm(A @ x - B)


def tables():
    rng = np.random.default_rng(0)
    yield rng.uniform(0, 1, (60, 4)), rng.integers(0, 3, 60)
    for load in (load_iris, load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        yield minmax_scale(X), y


@pytest.mark.parametrize("sizes", [(20,), (100,), (10, 5), (3, 3, 3, 3)])
@pytest.mark.parametrize("name", ["logit", "tanh", "softplus"])
def test_theorem_3_every_ill_conditioned_layer_fits_as_well_as_gelsd(sizes, name):
    f = ACTIVATIONS[name]
    for seed, (X, y) in product(range(3), tables()):
        q = len(np.unique(y))
        Y = np.eye(q)[y] * 0.8 + 0.1
        drawn = random_weights(np.random.default_rng(seed), [*sizes, q])
        network, reports, weights = fitted(X, Y, drawn, f)
        upper = [Layer(W[1:], W[0], f) for W in drawn]
        for k, (A, W, report) in enumerate(
            zip(matrices(network, X), weights, reports, strict=True)
        ):
            B = f.phi(pull_back(Y, upper[k:]))
            cut_off = PULLED_BACK_RCOND if k else EPS * A.shape[1]
            columns = scaled_columns(A, cut_off)
            assert report.rank is not None
            assert report.residual is not None
            best = gelsd_residual(columns, B - B.mean(axis=0), report.rank - 1)
            # Weights of 1e9 cause rounding errors of 1e-7 in the product A W.
            rounding = EPS * np.linalg.norm(np.abs(A) @ np.abs(W))
            assert report.residual * np.linalg.norm(B) <= (1 + 1e-9) * best + rounding


def distinct_rows(rng, m):
    """Return rows that are distinct by a margin, so that the matrix has full rank."""
    return np.column_stack([rng.permutation(m) for _ in range(rng.integers(2, 5))]) / m


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(3, 40), st.booleans())
def test_theorem_4_as_many_random_units_as_samples_fit_any_target(seed, m, bias):
    rng = np.random.default_rng(seed)
    X, y = distinct_rows(rng, m), rng.standard_normal(m)
    fits = [
        KARRegressor((h,), hidden="random", fit_intercept=bias, random_state=seed % 2**31)
        for h in (m - bias - 1, m - bias)
        if h > 0
    ]
    *narrow, wide = [np.sum((net.fit(X, y).predict(X) - y) ** 2) for net in fits]
    assert wide < 1e-12
    assert all(sse > 1e-12 for sse in narrow)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(3, 25), st.integers(2, 4), st.sampled_from([2, 3, 4]))
def test_theorem_5_the_same_with_several_layers_and_outputs(seed, m, q, n_hidden):
    rng = np.random.default_rng(seed)
    X, Y = distinct_rows(rng, m), rng.standard_normal((m, q))
    narrow, wide = (
        KARRegressor((h,) * n_hidden, hidden="random", random_state=seed % 2**31).fit(X, Y)
        for h in (m - 2, m - 1)
    )
    assert np.sum((wide.predict(X) - Y) ** 2) < 1e-12
    assert np.sum((narrow.predict(X) - Y) ** 2) > 1e-12


def test_theorem_5_counts_m_times_q_output_weights():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (20, 3)), rng.integers(0, 3, 20)
    net = KARClassifier((20,), hidden="random", fit_intercept=False, random_state=0).fit(X, y)
    assert net.coefs_[-1].size == 20 * 3
    np.testing.assert_allclose(net.decision_function(X), np.eye(3)[y], atol=1e-8)
