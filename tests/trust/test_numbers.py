"""Accuracy, backward errors and ranks of least squares: the short form of `make trust`."""

from __future__ import annotations

from decimal import Decimal

import mpmath
import numpy as np
import pytest
from scipy.linalg import lstsq as lapack_lstsq
from scipy.linalg import qr

from karnet import Solution, lstsq
from trust.exact import DIGITS, exact_solution, low_rank_solution
from trust.families import FAMILIES, kahan
from trust.matrices import EPS, with_ones, with_spectrum
from trust.measure import OURS, forward_error, measure
from trust.nist import DATASETS
from trust.numbers import BEHIND, MULTIPLE, digits_bar, digits_of, family_bars, page_parts

pytestmark = pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")

N_SEEDS = 30
# Families of each kind, at sizes that take little time.
SHORT = [
    *(f"{shape}, condition 1e+{k:02}" for shape in ("tall", "wide") for k in range(0, 15, 2)),
    *(f"{shape}, condition 1e+{k:02}" for shape in ("tall", "wide") for k in (5, 15, 16)),
    *(f"tall, columns scaled, 1e+{k:02}" for k in (0, 2, 4, 5, 6, 8)),
    *("tall, rows scaled, 1e+00", "square, rows scaled, 1e+02", "tall, float32, 1e+03"),
    *("tall, rank 4", "square, rank 6, graded", "tall, rank 6, columns scaled"),
    *(f"Hilbert {n}" for n in (3, 5, 8, 10, 11)),
    *(f"Vandermonde 25 x {n}" for n in (4, 8, 12)),
    *(f"Laeuchli 1e-{k:02}" for k in (3, 5, 7, 9)),
    *("tall, bias, offset 1e+03", "tall, bias, offset 1e+06", "Longley, disturbed"),
    *("Golub-Klema-Stewart 10", "Norris, disturbed"),
]


@pytest.mark.parametrize("name", SHORT)
def test_every_family_meets_the_requirements(name):
    bars = family_bars({name: measure(FAMILIES[name], range(N_SEEDS))})
    assert all(bar.met for bar in bars), [bar.figure for bar in bars]


def plain_normal_equations(A, b, *, solver="auto", **options):
    """Return the solution of `lstsq`, but with "cholesky" that of unrefined normal equations."""
    if solver != "cholesky":
        return lstsq(A, b, solver=solver, **options)
    return Solution(np.linalg.solve(A.T @ A, A.T @ b), A.shape[1], "cholesky")


def test_a_solver_trusted_too_far_is_noticed():
    family = FAMILIES["tall, condition 1e+06"]
    bars = family_bars({"": measure(family, range(4), plain_normal_equations)})
    assert [bar.met for bar in bars] == [True, True, False, True, False]


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.name)
def test_certified_values_are_the_exact_solution_in_all_their_digits(dataset):
    """This shows that neither the data nor the values were mistyped."""
    with mpmath.workdps(DIGITS):
        for exact, certified in zip(dataset.solution(), dataset.certified, strict=True):
            rounded = Decimal(mpmath.nstr(exact, 15, strip_zeros=False))
            assert rounded == Decimal(certified)


def test_accuracy_on_certified_values_is_on_the_page():
    digits = {dataset.name: digits_of(dataset) for dataset in DATASETS}
    bar = digits_bar(digits)
    assert bar.met, bar.figure
    ours = [*(f"lstsq {solver}" for solver in OURS), "KARRegressor"]
    assert all(digits["Longley"][our] >= 10.0 for our in ours)
    # numpy.linalg.lstsq considers this matrix singular.
    assert all(digits["Filip"][our] >= 6.0 for our in ours)
    page = "\n".join(page_parts([bar], digits, {}))
    assert all(f"| {name} |" in page for name in digits)
    assert f"| {bar.figure} | met |" in page


def test_exact_solutions_equal_known_solutions():
    rng = np.random.default_rng(0)
    tall = rng.integers(-9, 10, (12, 5)) * 2.0 ** rng.integers(-30, 31, 5)
    w = rng.integers(1, 10, 5).astype(np.float64)
    np.testing.assert_array_equal(exact_solution(tall, tall @ w), w)
    wide = rng.integers(-9, 10, (5, 12)).astype(np.float64)
    shortest = wide.T @ w  # in the span of the rows
    np.testing.assert_array_equal(exact_solution(wide, wide @ shortest), shortest)
    np.testing.assert_array_equal(low_rank_solution(tall, wide, tall @ (wide @ shortest)), shortest)


@pytest.mark.parametrize("solver", OURS[1:])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(40, 12), (12, 40), (20, 20)])
def test_rank_is_correct_wherever_there_is_a_gap(shape, bias, solver):
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        rank = int(rng.integers(1, 12))
        # Singular values within a factor of 1e8 of the largest, then rounding errors at 1e-16.
        A = with_spectrum(rng, *shape, 10.0 ** -rng.uniform(0, 8, rank))
        A *= 10.0 ** rng.uniform(-6, 6, shape[1])
        assert lstsq(A, np.ones(shape[0]), bias=bias, solver=solver).rank == rank + bias


def test_rank_is_correct_where_a_pivoted_qr_does_not_show_it():
    # All columns have a length between 1 and 2: scaling by powers of 2 would reorder the pivots.
    A, b = 1.5 * kahan(90, 1.2), np.random.default_rng(0).standard_normal(90)
    solution = lstsq(A, b)
    x, _, rank, _ = lapack_lstsq(A, b, cond=90 * EPS, lapack_driver="gelsd")
    assert np.abs(qr(A, mode="r", pivoting=True)[0][-1, -1]) > 1e-6
    assert solution.rank == rank == 89
    np.testing.assert_allclose(solution.coef, x, rtol=1e-8, atol=1e-8 * np.abs(x).max())


@pytest.mark.parametrize("rcond", [None, 1e-9])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e-8, 1e-16, 1e-200])
def test_a_column_of_tiny_numbers_is_not_traded_for_others_that_cancel(size, bias, rcond):
    rng = np.random.default_rng(0)
    a, z = rng.standard_normal((2, 20))
    solution = lstsq(np.column_stack([a, a, z * size]), z, bias=bias, rcond=rcond)
    assert solution.rank == 2 + bias
    np.testing.assert_allclose(solution.coef[-1], 1.0 / size, rtol=1e-13)
    np.testing.assert_allclose(solution.coef[:-1], 0.0, atol=1e-14)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("condition", [1e2, 1e5, 1e6, 1e9])
def test_large_problems_in_blocks_stay_accurate(block_sizes, condition, bias):
    block_sizes(block=2**14)
    ours, gelsd = [], []
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        A = with_spectrum(rng, 1200, 40, np.logspace(0, -np.log10(condition), 40))
        w = rng.standard_normal(40)
        # With entries that are multiples of 2^-40 and integer weights, A w is exact.
        A, w = np.round(A * 2.0**40) / 2.0**40, np.round(w * 8)
        b = A @ w + bias
        exact = np.concatenate([[1.0], w]) if bias else w
        solution = lstsq(A, b, bias=bias, solver="cholesky")
        ours.append(forward_error(solution.coef, exact))
        M = with_ones(A) if bias else A
        assert np.linalg.norm(b - M @ solution.coef) <= MULTIPLE * 40 * EPS * np.linalg.norm(
            M
        ) * np.linalg.norm(solution.coef)
        gelsd.append(forward_error(lapack_lstsq(M, b, lapack_driver="gelsd")[0], exact))
    assert np.median(ours) <= np.median(gelsd) + BEHIND


@pytest.mark.parametrize(("m", "n"), [(3000, 2), (20_000, 6)])
@pytest.mark.parametrize("bias", [False, True])
def test_normal_equations_are_rejected_before_they_lose_accuracy(m, n, bias):
    """For nearly parallel columns the condition estimate alone would accept the Gram matrix."""
    ours, gelsd = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        common = 1.0 + 0.1 * rng.standard_normal((m, 1))
        # With multiples of 2^-40 and integer weights, the right-hand side is exact.
        A = np.round((common + rng.standard_normal((m, n)) / 6e5) * 2.0**40) / 2.0**40
        w = np.arange(1.0, n + 1)
        b = A @ w + bias
        exact = np.concatenate([[1.0], w]) if bias else w
        ours.append(forward_error(lstsq(A, b, bias=bias, solver="cholesky").coef, exact))
        M = with_ones(A) if bias else A
        gelsd.append(forward_error(lapack_lstsq(M, b, lapack_driver="gelsd")[0], exact))
    assert np.median(ours) <= np.median(gelsd) + BEHIND
