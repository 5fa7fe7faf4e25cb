"""Low-rank matrices and matrices singular in a sample: another cost, the same solution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack

from karnet import lstsq


def low_rank_problem(m=3000, n=150, rank=12):
    rng = np.random.default_rng(5)
    spectrum = np.logspace(0, -7, rank)
    A = rng.standard_normal((m, rank)) * spectrum @ rng.standard_normal((rank, n)) + 3.0
    return A * np.logspace(-3, 3, n), rng.standard_normal((m, 2))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("m", "n", "alpha"), [(3000, 150, 0.0), (3000, 150, 1e-3), (400, 150, 0.0), (300, 400, 0.0)]
)
def test_low_rank_changes_the_cost_and_nothing_else(m, n, alpha, bias, monkeypatch, solver_sizes):
    A, B = low_rank_problem(m, n)
    A[:, 7] = 2.0
    options = {"bias": bias, "alpha": alpha, "rcond": 1e-9, "solver": "svd" if alpha else "auto"}
    widths, dgeqrf = [], lapack.dgeqrf

    def noted(A, **options):
        if len(A) > 2 * A.shape[1]:  # rows of the data, and not a triangle above a ridge
            widths.append(A.shape[1])
        return dgeqrf(A, **options)

    monkeypatch.setattr(lapack, "dgeqrf", noted)
    short = lstsq(A, B, **options)
    assert max(widths) < A.shape[1]
    solver_sizes(sampled_columns=10**9)
    whole = lstsq(A, B, **options)
    assert m < n or max(widths) == A.shape[1]
    assert short.rank == whole.rank
    ones = np.ones((len(A), int(bias)))
    fits = [np.hstack([ones, A]) @ each.coef for each in (short, whole)]
    np.testing.assert_allclose(fits[0], fits[1], atol=1e-6)


def test_a_row_that_the_sample_misses_still_counts(solver_sizes):
    A, B = low_rank_problem()
    A[1] += np.random.default_rng(6).standard_normal(A.shape[1]) * np.abs(A[1])
    short = lstsq(A, B, bias=True, rcond=1e-9)
    solver_sizes(sampled_columns=10**9)
    whole = lstsq(A, B, bias=True, rcond=1e-9)
    assert short.rank == whole.rank == 14
    np.testing.assert_allclose(short.coef, whole.coef, rtol=1e-9)


def test_rows_too_different_for_a_small_space_are_all_decomposed():
    rng = np.random.default_rng(7)
    A, B = rng.standard_normal((2000, 130)), rng.standard_normal((2000, 1))
    found = lstsq(A, B, rcond=1e-9)
    assert (found.rank, found.solver) == (130, "qr")
    np.testing.assert_allclose(found.coef, np.linalg.lstsq(A, B)[0], atol=1e-12)
    huge = lstsq(A * 1e100, B * 1e100, rcond=1e-9)
    np.testing.assert_allclose(huge.coef, found.coef, rtol=1e-9)


@pytest.mark.parametrize("rank", [100, 150])
def test_a_sample_that_looks_singular_saves_the_gram_matrix_alone(rank, solver_sizes):
    rng = np.random.default_rng(8)
    A = rng.standard_normal((3000, rank)) @ rng.standard_normal((rank, 150))
    B = rng.standard_normal((3000, 2))
    with_sample = lstsq(A, B)
    solver_sizes(sampled_rows=10**9)
    without = lstsq(A, B)
    assert with_sample.rank == without.rank == rank
    assert with_sample.solver == without.solver
    np.testing.assert_allclose(with_sample.coef, without.coef, atol=1e-11)
