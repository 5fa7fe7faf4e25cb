"""Minimum-norm least squares: the laws it obeys at every shape and rank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning
from scipy.sparse import csr_array

from karnet import lstsq
from karnet._lstsq.solve import SOLVERS, choose_solver
from tests.reference import EPS, ridge, with_ones, with_spectrum

handing_over = pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
every_solver = pytest.mark.parametrize("solver", ["auto", *SOLVERS])
# m, n, rank
SHAPES = [
    (30, 8, 8),
    (30, 8, 5),
    (8, 30, 8),
    (8, 30, 5),
    (12, 12, 12),
    (12, 12, 4),
    (13, 12, 12),
    (1, 6, 1),
    (6, 1, 1),
    (1, 1, 1),
    (6, 4, 0),
    (4, 6, 0),
]
every_shape = pytest.mark.parametrize(("m", "n", "rank"), SHAPES)


def problem(m, n, rank, seed=0, q=3):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    return A, rng.standard_normal((m, q))


@handing_over
@every_solver
@every_shape
def test_equals_the_pseudoinverse(m, n, rank, solver):
    A, B = problem(m, n, rank)
    solution = lstsq(A, B, solver=solver)
    np.testing.assert_allclose(solution.coef, np.linalg.pinv(A, rcond=1e-12) @ B, atol=1e-12)
    assert solution.rank == rank


@handing_over
@every_solver
@every_shape
def test_bias_equals_a_column_of_ones(m, n, rank, solver):
    A, B = problem(m, n, rank)
    solution = lstsq(A, B, bias=True, solver=solver)
    ones = with_ones(A)
    np.testing.assert_allclose(solution.coef, np.linalg.pinv(ones, rcond=1e-12) @ B, atol=1e-11)
    assert solution.rank == np.linalg.matrix_rank(ones)


@handing_over
@every_solver
@every_shape
@pytest.mark.parametrize("bias", [False, True])
def test_ridge_equals_the_textbook(m, n, rank, solver, bias):
    A, B = problem(m, n, rank)
    solution = lstsq(A, B, bias=bias, alpha=0.3, solver=solver)
    np.testing.assert_allclose(solution.coef, ridge(A, B, 0.3, bias), atol=1e-12)
    assert solution.rank == n + bias


@handing_over
@pytest.mark.parametrize("solver", SOLVERS)
@every_shape
def test_vanishing_ridge_without_bias_tends_to_the_minimum_norm(m, n, rank, solver):
    A, B = problem(m, n, rank)
    limit = lstsq(A, B, alpha=1e-36, solver=solver)
    np.testing.assert_allclose(limit.coef, lstsq(A, B).coef, atol=1e-11)


@st.composite
def matrices(draw):
    m, n = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    rank = draw(st.integers(0, min(m, n)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = with_spectrum(rng, m, n, 10.0 ** -rng.uniform(0, draw(st.sampled_from([0, 2, 4])), rank))
    columns = draw(st.sampled_from([0, 3, 8]))
    return A * 10.0 ** rng.uniform(-columns, columns, n)


@handing_over
@settings(max_examples=400, deadline=None)
@given(matrices(), st.sampled_from(["auto", *SOLVERS]))
def test_penrose_conditions(A, solver):
    m, n = A.shape
    solution = lstsq(A, np.eye(m), solver=solver)
    X = solution.coef
    size_A, size_X = np.linalg.norm(A), np.linalg.norm(X)
    # The conditions hold up to rounding in the products that they are made of.
    rounding = 100 * max(m, n) * EPS * max(size_A * size_X, 1.0)
    assert np.linalg.norm(A @ X @ A - A) <= rounding * size_A
    assert np.linalg.norm(X @ A @ X - X) <= rounding * size_X
    assert np.linalg.norm(A @ X - (A @ X).T) <= rounding
    assert np.linalg.norm(X @ A - (X @ A).T) <= rounding
    assert solution.rank <= min(m, n)


@handing_over
@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(SOLVERS), st.booleans())
def test_units_of_columns_do_not_matter_at_full_rank(seed, solver, bias):
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((20, 6)), rng.standard_normal((20, 2))
    units = 10.0 ** rng.uniform(-8, 8, 6)
    plain, scaled = (lstsq(M, B, solver=solver, bias=bias) for M in (A, A * units))
    assert scaled.rank == plain.rank == 6 + bias
    np.testing.assert_allclose(
        scaled.coef[int(bias) :] * units[:, None], plain.coef[int(bias) :], rtol=1e-9, atol=1e-12
    )


@handing_over
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_stacking_rows_twice_changes_nothing_but_the_ridge(solver, alpha):
    A, B = problem(15, 6, 4)
    once = lstsq(A, B, bias=True, alpha=alpha, solver=solver)
    twice = lstsq(np.vstack([A, A]), np.vstack([B, B]), bias=True, alpha=2 * alpha, solver=solver)
    np.testing.assert_allclose(twice.coef, once.coef, atol=1e-12)
    assert twice.rank == once.rank


@pytest.mark.parametrize("constant", [0.1, 1 / 3, 1e6 + 0.1])
@pytest.mark.parametrize("m", [3, 100, 20_000])
def test_a_constant_column_is_the_bias(m, constant):
    b = np.random.default_rng(0).standard_normal(m)
    solution = lstsq(np.full((m, 1), constant), b, bias=True)
    assert solution.rank == 1
    # The two share the mean as the minimum norm would have it.
    expected = b.mean() * np.array([1.0, constant]) / (1.0 + constant**2)
    np.testing.assert_allclose(solution.coef, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_a_large_offset_costs_only_the_digits_it_takes(offset):
    rng = np.random.default_rng(1)
    A, w = rng.standard_normal((500, 4)), np.arange(1.0, 5.0)
    solution = lstsq(A + offset, A @ w, bias=True)
    np.testing.assert_allclose(solution.coef[1:], w, rtol=1e3 * EPS * offset)
    assert solution.rank == 5


@handing_over
@every_solver
@pytest.mark.parametrize("m", [300, 5000, 100_000])
def test_rounding_over_many_rows_is_not_taken_for_rank(block_sizes, m, solver):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        b = rng.standard_normal(m)
        classes = np.eye(7)[rng.integers(0, 7, m)]
        factors = rng.standard_normal((m, 3)) @ rng.standard_normal((3, 6))
        solutions = [lstsq(M, b, bias=True, solver=solver) for M in (classes, factors)]
        assert [solution.rank for solution in solutions] == [7, 4]
        assert all(np.abs(solution.coef).max() < 10 for solution in solutions)
    block_sizes(block=1)
    two = rng.standard_normal((m, 2))
    dependent = np.column_stack([two, two.sum(axis=1)])
    assert lstsq(dependent, b, solver=solver).rank == 2


@handing_over
@every_solver
@pytest.mark.parametrize("alpha", [1e20, 1e100])
@pytest.mark.parametrize("shape", [(20, 5), (5, 20)])
def test_a_huge_ridge_costs_no_digits(solver, alpha, shape):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal(shape), rng.standard_normal(shape[0])
    np.testing.assert_allclose(
        lstsq(A, b, alpha=alpha, solver=solver).coef, A.T @ b / alpha, rtol=1e-12
    )


@handing_over
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("bias", [False, True])
def test_a_column_of_zeros_changes_nothing(solver, bias):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((30, 4)) * 2.0 ** rng.integers(-26, 27, 4)
        b = rng.standard_normal(30)
        without = lstsq(A, b, bias=bias, solver=solver).coef
        beside = lstsq(np.column_stack([A, np.zeros(30)]), b, bias=bias, solver=solver).coef
        np.testing.assert_allclose(beside[:-1], without, rtol=1e-9)
        assert beside[-1] == 0.0


@handing_over
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [1.0, 1e8, 1e16, 1e40])
def test_units_do_not_matter_to_bias_and_fit_below_full_rank(solver, scale):
    A = np.array([[1.0, 2, 3], [2, 4, 1], [3, 6, 2], [5, 10, 7]])
    b = np.array([1.0, 0, 0, 0])
    full, deficient = (lstsq(M * scale, b, bias=True, solver=solver) for M in (A[:, 1:], A))
    assert (full.rank, deficient.rank) == (3, 3)
    fits = [with_ones(M * scale) @ each.coef for M, each in ((A[:, 1:], full), (A, deficient))]
    np.testing.assert_allclose(fits[0], fits[1], atol=1e-10)
    if scale == 1.0:
        np.testing.assert_allclose(deficient.coef, np.linalg.pinv(with_ones(A)) @ b, atol=1e-13)


@handing_over
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("m", [1000, 100_000])
def test_an_outlier_in_the_first_row_costs_no_digits_of_the_bias(solver, m):
    A = np.random.default_rng(0).standard_normal((m, 1))
    A[0] += 1e3
    solution = lstsq(A, 3 * A[:, 0] + 1, bias=True, solver=solver)
    np.testing.assert_allclose(solution.coef, [1.0, 3.0], rtol=1e-13)


@handing_over
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_blocks_keep_their_digits_with_an_offset(block_sizes, solver, offset):
    A, w = np.random.default_rng(0).standard_normal((5000, 4)), np.arange(1.0, 5.0)
    A = (A + offset) - offset  # as many digits as the offset leaves
    b = A @ w
    whole = lstsq(A + offset, b, bias=True, solver=solver).coef[1:]
    block_sizes(block=1)
    blocks = lstsq(A + offset, b, bias=True, solver=solver).coef[1:]
    np.testing.assert_allclose(whole, w, rtol=1e-13)
    np.testing.assert_allclose(blocks, w, rtol=1e-12)


@handing_over
@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
@pytest.mark.parametrize("shape", [(3000, 120), (120, 3000)])
@pytest.mark.parametrize(("size_A", "size_b"), [(1e100, 1e-120), (1e-100, 1e120), (1e-161, 1.0)])
def test_extreme_magnitudes_neither_under_nor_overflow(solver, shape, size_A, size_b):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal(shape), rng.standard_normal(shape[0])
    plain = lstsq(A, b, solver=solver).coef
    extreme = lstsq(A * size_A, b * size_b, solver=solver).coef
    np.testing.assert_allclose(extreme, plain * (size_b / size_A), rtol=1e-10)


@handing_over
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(4000, 30), (30, 400)])
@pytest.mark.parametrize("bias", [False, True])
def test_blocks_of_rows_give_the_same_solution(block_sizes, solver, shape, bias):
    rng = np.random.default_rng(2)
    A, B = rng.standard_normal(shape) + 3.0, rng.standard_normal((shape[0], 2))
    whole = lstsq(A, B, bias=bias, solver=solver)
    block_sizes(block=1)
    blocks = lstsq(A, B, bias=bias, solver=solver)
    np.testing.assert_allclose(blocks.coef, whole.coef, rtol=1e-10, atol=1e-14)
    assert (blocks.rank, blocks.solver) == (whole.rank, whole.solver)


def test_the_solver_follows_size_and_condition():
    assert choose_solver(150, 90) == "qr"
    assert choose_solver(20_000, 500) == choose_solver(2000, 5000) == "cholesky"
    assert choose_solver(20_000, 500, singular=True) == "sketch"
    rng = np.random.default_rng(0)
    A = with_spectrum(rng, 3000, 120, np.logspace(0, -3, 120))
    bad = with_spectrum(rng, 3000, 120, np.logspace(0, -9, 120))
    short = with_spectrum(rng, 3000, 120, np.ones(60))
    b = rng.standard_normal(3000)
    assert [lstsq(M, b).solver for M in (A, bad, short)] == ["cholesky", "sketch", "sketch"]
    assert [lstsq(M, b).rank for M in (A, bad, short)] == [120, 120, 60]


def test_a_solver_asked_for_by_name_says_when_another_was_needed():
    with pytest.warns(LinAlgWarning, match="'cholesky' cannot be trusted.*'svd' was used"):
        assert lstsq(np.ones((4, 2)), np.ones(4), solver="cholesky").solver == "svd"


@handing_over
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(40, 10), (10, 40)])
def test_rcond_cuts_scaled_singular_values(solver, bias, shape):
    rng = np.random.default_rng(3)
    values = np.array([1.0] * 6 + [1e-5] * 4)
    A = with_spectrum(rng, *shape, values)
    A -= A.mean(axis=0)  # so that the bias does not mix in
    B = rng.standard_normal((shape[0], 2))
    full = np.linalg.matrix_rank(A) + bias
    assert lstsq(A, B, bias=bias, solver=solver).rank == full
    assert lstsq(A, B, bias=bias, solver=solver, rcond=1e-3).rank == 6 + bias


def test_one_right_hand_side_may_be_a_vector():
    A, B = problem(10, 4, 4)
    np.testing.assert_array_equal(lstsq(A, B[:, 0]).coef, lstsq(A, B[:, :1]).coef[:, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.int16, bool, object, ">f8"])
def test_any_real_numbers_are_solved_in_double_precision(dtype):
    A = (np.random.default_rng(0).standard_normal((10, 3)) * 3).astype(dtype)
    solution = lstsq(A, A @ np.ones(3))
    assert solution.coef.dtype == np.float64
    np.testing.assert_allclose(solution.coef, 1.0, rtol=1e-6)


@pytest.mark.parametrize("bias", [False, True])
def test_no_rows_no_columns_no_right_hand_sides(bias):
    for options in ({}, {"alpha": 1.0}, {"solver": "svd"}, {"solver": "cholesky"}):
        empty = lstsq(np.empty((0, 3)), np.empty((0, 2)), bias=bias, **options)
        np.testing.assert_array_equal(empty.coef, np.zeros((3 + bias, 2)))
        assert empty.rank == 0
    no_columns = lstsq(np.empty((4, 0)), np.arange(4.0), bias=bias)
    np.testing.assert_allclose(no_columns.coef, [1.5] * bias)
    assert lstsq(np.ones((4, 2)), np.empty((4, 0)), bias=bias).coef.shape == (2 + bias, 0)


@pytest.mark.parametrize(
    ("A", "B", "options", "message"),
    [
        (np.ones(3), np.ones(3), {}, "A must be 2-dimensional, but its shape is"),
        (np.ones((3, 1)), np.ones((3, 1, 1)), {}, "B must be 1-dimensional or 2-dimensional"),
        (np.ones((3, 1)), np.ones(4), {}, "same number of rows, but have 3 and 4"),
        ([[1.0, np.nan]], [1.0], {}, "A must be finite"),
        ([[1.0, 2.0]], [np.inf], {}, "B must be finite"),
        ([[1j]], [1.0], {}, "A must hold real numbers"),
        ([["a"]], [1.0], {}, "A must hold real numbers"),
        ([[1.0]], [1.0], {"alpha": -1.0}, "alpha=-1.0 must be finite and not negative"),
        ([[1.0]], [1.0], {"alpha": "a"}, "alpha='a' must be a number"),
        ([[1.0]], [1.0], {"rcond": np.nan}, "rcond=nan must be finite and not negative"),
        ([[1.0]], [1.0], {"solver": "lu"}, "solver='lu' is not known: give one of auto"),
        ([[1.0]], [1.0], {"solver": np.array(["svd"])}, "solver=array.* is not known"),
        ([[1.0]], [1.0], {"alpha": 10**400}, "must be finite and not negative"),
        ([[1.0]], [1.0], {"alpha": np.complex128(1)}, "must be a number"),
        ([[1.0]], [1.0], {"rcond": 2.0}, "rcond=2.0 must be below 1"),
        ([[1.0]], [1.0], {"bias": 2}, "bias=2 must be True or False"),
        (np.ma.masked_values([[1.0, 2.0]], 2.0), [1.0], {}, "masked values"),
        (np.array([[1]], dtype="timedelta64[s]"), [1.0], {}, "A must hold real numbers"),
        ([[1.0], [1.0, 2.0]], [1.0, 2.0], {}, "A must hold real numbers, in rows of equal length"),
        (csr_array([[1.0]]), [1.0], {}, "A must be a dense array, but is a sparse matrix"),
        ([[1e-200]] * 3, [1e300] * 3, {}, "the least-squares solution overflows"),
        ([[1e308, 1.0]] * 9, [1e308] * 9, {}, "the least-squares solution overflows"),
        ([[1e307, -1e307]] * 3, [1e307] * 3, {"solver": "svd"}, None),
    ],
)
def test_bad_input_gets_one_sentence(A, B, options, message):
    if message is None:
        np.testing.assert_allclose(lstsq(A, B, **options).coef, [0.5, -0.5])
        return
    with pytest.raises(ValueError, match=message) as error:
        lstsq(A, B, **options)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


def test_the_input_is_left_alone():
    A, B = problem(10, 4, 4)
    before = A.copy(), B.copy()
    for solver in ("cholesky", "qr", "svd"):
        lstsq(A, B, bias=True, solver=solver)
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(B, before[1])
