"""Ridge path and leave-one-out from one factorisation: equal to refitting, at every shape."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karnet import lstsq
from karnet.loo import RidgePath, accuracy, alphas, choose_alpha, log_loss, squared_error
from tests.reference import with_ones, with_spectrum

# Shares of the largest eigenvalue.
SHARES = [0.0, 1e-14, 1e-8, 1e-3, 1e3]
DIGITS = 60


def of_rank(rng, m, n, rank):
    """Return a matrix that has its rank exactly, without rounding."""
    return 1.0 * rng.integers(-3, 4, (m, rank)) @ rng.integers(-3, 4, (rank, n))


def features(name):
    rng = np.random.default_rng(0)
    return {
        "tall": lambda: rng.standard_normal((9, 3)),
        "as many rows as columns": lambda: rng.standard_normal((6, 6)),
        "square beside the bias": lambda: rng.standard_normal((6, 5)),
        "wide": lambda: rng.standard_normal((5, 8)),
        "tall, rank-deficient": lambda: of_rank(rng, 9, 5, 2),
        "wide, rank-deficient": lambda: of_rank(rng, 6, 7, 3),
        "rows repeated": lambda: np.repeat(of_rank(rng, 4, 7, 4), [1, 2, 1, 3], axis=0),
        "a constant column": lambda: np.column_stack([rng.random((7, 2)), np.full(7, 1 / 3)]),
        "nothing but a constant": lambda: np.full((5, 1), 0.1),
        "columns for single rows": lambda: np.hstack([rng.random((8, 2)), np.eye(8)[:, :2]]),
        "a large offset": lambda: rng.standard_normal((7, 2)) + 1e6,
        "tall, condition 1e4": lambda: with_spectrum(rng, 9, 3, np.logspace(0, -4, 3)),
        "wide, condition 1e4": lambda: with_spectrum(rng, 6, 8, np.logspace(0, -4, 6)),
        "two rows": lambda: rng.standard_normal((2, 3)),
    }[name]()


PROBLEMS = [
    "tall",
    "as many rows as columns",
    "square beside the bias",
    "wide",
    "tall, rank-deficient",
    "wide, rank-deficient",
    "rows repeated",
    "a constant column",
    "nothing but a constant",
    "columns for single rows",
    "a large offset",
    "tall, condition 1e4",
    "wide, condition 1e4",
    "two rows",
]
WEIGHTS = {
    "none": lambda rng, m: np.ones(m),
    "integer": lambda rng, m: 1.0 * rng.integers(1, 4, m),
    "real": lambda rng, m: rng.uniform(0.2, 3.0, m),
}
every_problem = pytest.mark.parametrize("name", PROBLEMS)
with_or_without_bias = pytest.mark.parametrize("bias", [True, False])
every_weight = pytest.mark.parametrize("weights", WEIGHTS)


def problem(name, weights="none", q=2):
    rng = np.random.default_rng(1)
    A = features(name)
    return A, rng.standard_normal((len(A), q)), WEIGHTS[weights](rng, len(A))


def refit(A, B, weight, alpha, bias, rows):
    """Return predictions for some rows by the textbook's normal equations, to many digits."""
    X = with_ones(A) if bias else A
    with mpmath.workdps(DIGITS):
        ridge = mpmath.mpf(alpha) or mpmath.mpf(10) ** (-DIGITS // 2)
        M = mpmath.matrix(X[weight > 0].tolist())
        weighted = M.T * mpmath.diag(weight[weight > 0].tolist())
        penalty = mpmath.diag([0] * bias + [ridge] * A.shape[1])
        coef = (weighted * M + penalty) ** -1 * (weighted * mpmath.matrix(B[weight > 0].tolist()))
        predictions = mpmath.matrix(X[rows].tolist()) * coef
        return np.array(predictions.tolist(), dtype=float)


def refits_less_one(A, B, weight, alpha, bias):
    def row(i):
        less = weight.copy()
        less[i] -= min(1.0, less[i])
        return refit(A, B, less, alpha, bias, [i])[0]

    return np.array([row(i) for i in range(len(A))])


def refit_without(A, B, weight, alpha, bias, rows):
    less = weight.copy()
    less[rows] = 0.0
    return refit(A, B, less, alpha, bias, rows)


def ridges(path):
    return np.array(SHARES) * (path.eigenvalues.max() if len(path.eigenvalues) else 1.0)


def assert_equal(found, expected, B, tolerance=1e-8):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(B).max())


@every_problem
@with_or_without_bias
@every_weight
def test_leaving_out_one_copy_of_a_row_equals_refitting(name, bias, weights):
    A, B, weight = problem(name, weights)
    path = RidgePath.of(A, B, weight, bias)
    for alpha in ridges(path):
        assert_equal(path.loo(alpha), refits_less_one(A, B, weight, alpha, bias), B)


@every_problem
@with_or_without_bias
@pytest.mark.parametrize("weights", ["none", "real"])
def test_leaving_out_blocks_equals_refitting(name, bias, weights):
    A, B, weight = problem(name, weights)
    m = len(A)
    path = RidgePath.of(A, B, weight, bias)
    halves = [np.arange(0, m, 2), np.arange(1, m, 2)[::-1]]
    splits = [*halves, np.arange(m - 1)] if weights == "none" else halves
    for alpha in ridges(path):
        for rows, found in zip(splits, path.kfold(alpha, splits), strict=True):
            assert_equal(found, refit_without(A, B, weight, alpha, bias, rows), B)


@pytest.mark.parametrize("name", ["tall", "wide", "tall, rank-deficient", "rows repeated"])
@with_or_without_bias
@pytest.mark.parametrize("weights", ["real"])
def test_a_kernel_equals_refitting_its_features(name, bias, weights):
    A, B, weight = problem(name, weights)
    path = RidgePath.of_kernel(A @ A.T, B, weight, bias)
    rows = np.arange(0, len(A), 2)
    for alpha in ridges(path):
        assert_equal(path.loo(alpha), refits_less_one(A, B, weight, alpha, bias), B)
        expected = refit_without(A, B, weight, alpha, bias, rows)
        assert_equal(path.kfold(alpha, [rows])[0], expected, B)


@every_problem
@with_or_without_bias
@every_weight
def test_features_and_kernel_agree(name, bias, weights):
    A, B, weight = problem(name, weights)
    if name == "a large offset":
        A = A - 1e6  # whose square leaves a kernel no digits
    primal, dual = RidgePath.of(A, B, weight, bias), RidgePath.of_kernel(A @ A.T, B, weight, bias)
    new = np.random.default_rng(2).standard_normal((4, A.shape[1]))
    for alpha in ridges(primal)[3:]:
        assert_equal(dual.fitted(alpha), primal.fitted(alpha), B, 1e-11)
        assert_equal(dual.loo(alpha), primal.loo(alpha), B, 1e-10)
        np.testing.assert_allclose(dual.leverage(alpha), primal.leverage(alpha), atol=1e-11)
        b, D = dual.dual_coef(alpha)
        coef = primal.coef(alpha)
        expected = (with_ones(new) if bias else new) @ coef
        np.testing.assert_allclose(b + new @ A.T @ D, expected, atol=1e-9)
        if bias:
            np.testing.assert_allclose(D.sum(axis=0), 0.0, atol=1e-12 * np.abs(D).max())


@every_problem
@with_or_without_bias
def test_blocks_of_one_row_are_leave_one_out(name, bias):
    A, B, _ = problem(name)
    weight = np.random.default_rng(3).uniform(0.2, 1.0, len(A))
    path = RidgePath.of(A, B, weight, bias)
    for alpha in ridges(path):
        found = np.vstack(path.kfold(alpha, np.arange(len(A))[:, None]))
        assert_equal(found, path.loo(alpha), B, 1e-9)


@every_problem
@with_or_without_bias
def test_weights_are_repeats(name, bias):
    A, B, weight = problem(name, "integer")
    copies = np.repeat(np.arange(len(A)), weight.astype(int))
    once, repeated = RidgePath.of(A, B, weight, bias), RidgePath.of(A[copies], B[copies], bias=bias)
    for alpha in ridges(once):
        assert_equal(repeated.loo(alpha), once.loo(alpha)[copies], B, 1e-9)
        assert_equal(repeated.fitted(alpha), once.fitted(alpha)[copies], B, 1e-9)
        leverage = np.bincount(copies, repeated.leverage(alpha))
        np.testing.assert_allclose(leverage, once.leverage(alpha), atol=1e-10)
    scores = [squared_error(p.B, p.loo(0.1), p.weight) for p in (once, repeated)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-9)


@every_problem
@with_or_without_bias
def test_coefficients_equal_those_of_lstsq(name, bias):
    A, B, weight = problem(name, "integer")
    copies = np.repeat(np.arange(len(A)), weight.astype(int))
    path = RidgePath.of(A, B, weight, bias)
    for alpha in ridges(path)[2:]:
        coef = path.coef(alpha)
        expected = lstsq(A[copies], B[copies], bias=bias, alpha=alpha).coef
        np.testing.assert_allclose(coef, expected, atol=1e-9 * np.abs(expected).max())
        fit = (with_ones(A) if bias else A) @ coef
        assert_equal(path.fitted(alpha), fit, B, 1e-9)


@every_problem
@with_or_without_bias
@every_weight
def test_leverages_are_the_diagonal_of_the_hat_and_sum_to_the_degrees_of_freedom(
    name, bias, weights
):
    A, _, weight = problem(name, weights)
    path = RidgePath.of(A, np.eye(len(A)), weight, bias)
    for alpha in ridges(path)[1:]:
        leverage = path.leverage(alpha)
        np.testing.assert_allclose(leverage, np.diag(path.fitted(alpha)), atol=1e-10)
        lam = path.eigenvalues
        assert leverage.sum() == pytest.approx(bias + np.sum(lam / (lam + alpha)), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 9),
    st.integers(1, 9),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from([0.0, 1e-12, 1e-6, 1.0]),
)
def test_order_of_rows_and_units_of_features_do_not_matter(m, n, seed, bias, alpha):
    rng = np.random.default_rng(seed)
    rank = min(m - bias, n)
    A = with_spectrum(rng, m, n, 10.0 ** -rng.uniform(0, 2, rank))
    B, weight = rng.standard_normal((m, 2)), rng.uniform(0.5, 3.0, m)
    path = RidgePath.of(A, B, weight, bias)
    size = np.abs(path.loo(alpha)).max() + np.abs(B).max()
    order, c = rng.permutation(m), 10.0 ** rng.uniform(-6, 6)
    permuted = RidgePath.of(A[order], B[order], weight[order], bias)
    scaled = RidgePath.of(c * A, B, weight, bias)
    assert_equal(permuted.loo(alpha), path.loo(alpha)[order], size, 1e-9)
    assert_equal(scaled.loo(c**2 * alpha), path.loo(alpha), size, 1e-9)
    rows = order[: m // 2]
    (block,) = path.kfold(alpha, [rows])
    size += np.abs(block).max(initial=0.0)
    inverse = np.argsort(order)
    assert_equal(permuted.kfold(alpha, [inverse[rows]])[0], block, size, 1e-9)
    assert_equal(scaled.kfold(c**2 * alpha, [rows])[0], block, size, 1e-9)


def test_it_holds_where_the_usual_quotient_has_no_digits_left():
    A, B, weight = problem("wide")
    path = RidgePath.of(A, B)
    alpha = 1e-14 * path.eigenvalues.max()
    expected = refits_less_one(A, B, weight, alpha, True)
    usual = B - (B - path.fitted(alpha)) / (1.0 - path.leverage(alpha))[:, None]
    assert np.abs(usual - expected).max() > 1e-3
    assert_equal(path.loo(alpha), expected, B, 1e-12)


def test_paths_hold_what_is_asked_for_one_ridge_at_a_time():
    A, B, weight = problem("tall", "real")
    path = RidgePath.of(A, B, weight)
    grid, splits = [0.0, 0.1, 3.0], [[0, 3], [1, 2, 4]]
    for alpha, found in zip(grid, path.loo_path(grid), strict=True):
        np.testing.assert_allclose(found, path.loo(alpha), rtol=1e-13)
    blocks = list(path.kfold_path(grid, splits))
    assert [block.shape for block in blocks] == [(3, 2, 2), (3, 3, 2)]
    for k, alpha in enumerate(grid):
        for block, found in zip(blocks, path.kfold(alpha, splits), strict=True):
            np.testing.assert_allclose(block[k], found, rtol=1e-13)


@pytest.mark.parametrize("shape", [(1200, 160), (160, 1200)])
@with_or_without_bias
def test_large_and_well_conditioned_matrices_are_factorised_through_their_gram(
    solver_sizes, shape, bias
):
    rng = np.random.default_rng(4)
    A, far = (with_spectrum(rng, *shape, np.logspace(0, -c, 160)) for c in (2, 4))
    B = rng.standard_normal((shape[0], 2))
    bad = RidgePath.of(far, B, bias=bias)
    gram = RidgePath.of(A, B, bias=bias)
    solver_sizes(product=np.inf)
    plain = RidgePath.of(A, B, bias=bias)
    assert [p.factorisation for p in (bad, gram, plain)] == ["svd", "eigh", "svd"]
    splits = [np.arange(0, shape[0], 3), np.arange(5)]
    for alpha in (0.0, 1e-6, 0.1):
        assert_equal(gram.loo(alpha), plain.loo(alpha), 1.0 + plain.loo(alpha))
        np.testing.assert_allclose(gram.coef(alpha), plain.coef(alpha), atol=1e-8)
        for found, expected in zip(*(p.kfold(alpha, splits) for p in (gram, plain)), strict=True):
            assert_equal(found, expected, 1.0 + expected)


def test_of_a_single_row_some_copies_may_stay():
    path = RidgePath.of([[2.0]], [[3.0]], [3.0])
    np.testing.assert_allclose(path.loo(0.1), [[3.0]])
    np.testing.assert_allclose(RidgePath.of_kernel([[4.0]], [[3.0]], [3.0]).loo(0.1), [[3.0]])
    np.testing.assert_allclose(path.kfold(0.1, [np.empty(0, int)])[0], np.empty((0, 1)))


def test_no_features_predict_the_mean_of_the_others():
    B = np.arange(4.0)[:, None]
    path = RidgePath.of(np.empty((4, 0)), B)
    np.testing.assert_allclose(path.loo(0.0), (6.0 - B) / 3.0)
    np.testing.assert_allclose(path.coef(1.0), [[1.5]])


def test_scores_count_every_copy():
    predictions, codes, weight = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([0, 0]), [3, 1]
    B = np.eye(2)[codes]
    assert squared_error(B, predictions) == 1.5
    assert squared_error(B, predictions, weight) == 1.25
    assert accuracy(codes, predictions) == 0.5
    assert accuracy(codes, predictions, weight) == 0.75
    losses = np.log1p(np.exp([-4.0, 2.0]))
    assert log_loss(codes, predictions, 0.5) == pytest.approx(losses.mean())
    assert log_loss(codes, predictions, 0.5, weight) == pytest.approx(losses @ [0.75, 0.25])


def test_the_ridge_chosen_predicts_best_what_was_left_out():
    rng = np.random.default_rng(5)
    A, weight = rng.standard_normal((30, 20)), 1.0 * rng.integers(1, 3, 30)
    B = A[:, :2] + 2.0 * rng.standard_normal((30, 2))
    path = RidgePath.of(A, B, weight)
    grid = alphas(path, 13)
    np.testing.assert_allclose(grid[[0, -1]], path.eigenvalues.mean() * np.array([1e-10, 1e2]))
    errors = [squared_error(B, path.loo(alpha), weight) for alpha in grid]
    assert choose_alpha(path, grid) == grid[np.argmin(errors)]
    assert grid[0] < choose_alpha(path) < grid[-1]
    nothing = RidgePath.of(np.zeros((3, 2)), np.ones((3, 1)))
    assert choose_alpha(nothing) == 100.0


def test_the_input_is_left_alone():
    A, B, weight = problem("tall", "real")
    given_arrays = A.copy(), B.copy(), weight.copy(), A @ A.T
    RidgePath.of(*given_arrays[:3]).loo(0.1)
    RidgePath.of_kernel(given_arrays[3], *given_arrays[1:3]).loo(0.1)
    for given_array, before in zip(given_arrays, (A, B, weight, A @ A.T), strict=True):
        np.testing.assert_array_equal(given_array, before)


ROWS, TARGETS = np.arange(6.0).reshape(3, 2), np.ones((3, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RidgePath.of(np.ones(3), TARGETS), "A must be 2-dimensional"),
        (lambda: RidgePath.of(ROWS, np.ones(3)), "B must be 2-dimensional"),
        (
            lambda: RidgePath.of(ROWS, TARGETS[:2]),
            "same number of rows, at least one, .* 3 and 2",
        ),
        (lambda: RidgePath.of(ROWS[:0], TARGETS[:0]), "at least one, but have 0 and 0"),
        (lambda: RidgePath.of(ROWS, TARGETS, [1, 2]), "weight must hold a positive number"),
        (lambda: RidgePath.of(ROWS, TARGETS, [1, 2, 0]), "drop rows of weight zero"),
        (lambda: RidgePath.of(ROWS * np.nan, TARGETS), "A must be finite"),
        (lambda: RidgePath.of_kernel(ROWS, TARGETS), "K must be square and symmetric"),
        (lambda: RidgePath.of_kernel(np.triu(ROWS @ ROWS.T), TARGETS), "square and symmetric"),
        (lambda: RidgePath.of_kernel(-np.eye(3), TARGETS), "K must be positive semidefinite"),
        (lambda: RidgePath.of(ROWS, TARGETS).loo(-1.0), "alpha=-1.0 must be finite and not"),
        (lambda: RidgePath.of(ROWS, TARGETS).dual_coef(1.0), "use coef"),
        (lambda: RidgePath.of_kernel(np.eye(3), TARGETS).coef(1.0), "use dual_coef"),
        (lambda: RidgePath.of(ROWS[:1], TARGETS[:1]).loo(1.0), "one row leaves none"),
        (lambda: RidgePath.of(ROWS, TARGETS).kfold(1.0, [[0, 0]]), "distinct row numbers"),
        (lambda: RidgePath.of(ROWS, TARGETS).kfold(1.0, [[0.5]]), "distinct row numbers"),
        (lambda: RidgePath.of(ROWS, TARGETS).kfold(1.0, [[-1]]), "row numbers from 0 to 2"),
        (lambda: RidgePath.of(ROWS, TARGETS).kfold(1.0, [[0, 1, 2]]), "all 3 rows leaves none"),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


def test_doubt_bounds_the_price_of_a_mistake():
    from karnet.loo import log_loss

    certain, codes = np.array([[1.0, 0.0]]), np.array([1])
    assert log_loss(codes, certain, 1e-3) == pytest.approx(1000.0)
    assert log_loss(codes, certain, 1e-3, doubt=0.01) == pytest.approx(-np.log(0.005))
    assert log_loss(codes, certain, doubt=0.0) == log_loss(codes, certain)


@pytest.mark.parametrize("place", ["A", "B", "weight"])
def test_values_too_large_to_be_squared_are_refused(place):
    parts = {"A": np.ones((3, 2)), "B": np.ones((3, 1)), "weight": np.ones(3)}
    parts[place] = parts[place] * 1e200
    with pytest.raises(ValueError, match=f"{place} holds values too large to be squared"):
        RidgePath.of(**parts)


def test_values_whose_squares_vanish_count_as_zeros():
    path = RidgePath.of(np.eye(3) * 1e-200, np.ones((3, 1)))
    assert np.isfinite(path.coef(0.0)).all()
    assert np.isfinite(path.loo(0.0)).all()


@pytest.mark.parametrize("weight", [[1.0, 1e-20, 1.0], [1e-300, 1e-300, 1e-300]], ids=str)
def test_weights_that_leave_too_little_are_refused(weight):
    path = RidgePath.of(np.eye(3), np.ones((3, 1)), weight)
    with pytest.raises(ValueError, match=r"needs weights within 1e\+15 of each other"):
        path.loo(1.0)
    with pytest.raises(ValueError, match=r"needs weights within 1e\+15 of each other"):
        path.kfold(1.0, [[0]])


def test_the_least_weights_there_are_leave_rows_out_whole():
    A, B = np.random.default_rng(0).standard_normal((2, 6, 2))
    least = RidgePath.of(A, B, np.full(6, 1e-280)).loo(0.0)
    np.testing.assert_allclose(least, RidgePath.of(A, B).loo(0.0), rtol=1e-6)
