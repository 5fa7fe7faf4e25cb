"""Low-rank matrices and matrices singular in a sample: another cost, the same solution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack

from karnet import lstsq
from karnet._lstsq.statistics import Gram


def low_rank_problem(m=3000, n=150, rank=12):
    rng = np.random.default_rng(5)
    spectrum = np.logspace(0, -7, rank)
    A = rng.standard_normal((m, rank)) * spectrum @ rng.standard_normal((rank, n)) + 3.0
    return A * np.logspace(-3, 3, n), rng.standard_normal((m, 2))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("m", "n"), [(400, 150), (300, 400)])
def test_low_rank_changes_the_cost_and_nothing_else(m, n, bias, monkeypatch, solver_sizes):
    A, B = low_rank_problem(m, n)
    A[:, 7] = 2.0
    options = {"bias": bias, "rcond": 1e-9}
    widths, dgeqrf = [], lapack.dgeqrf

    def noted(A, **options):
        widths.append(A.shape[1])
        return dgeqrf(A, **options)

    monkeypatch.setattr(lapack, "dgeqrf", noted)
    short = lstsq(A, B, **options)
    assert max(widths) < A.shape[1]
    solver_sizes(sampled_columns=10**9)
    whole = lstsq(A, B, **options)
    assert_same_fit(A, short, whole, bias)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_in_many_rows_a_sketch_finds_low_rank(alpha, bias):
    A, B = low_rank_problem()
    A[:, 7] = 2.0
    short, whole = (
        lstsq(A, B, bias=bias, alpha=alpha, rcond=1e-9, solver=solver)
        for solver in ("sketch", "svd")
    )
    assert short.solver == "sketch"
    assert_same_fit(A, short, whole, bias)


def assert_same_fit(A, found, expected, bias):
    assert found.rank == expected.rank
    ones = np.ones((len(A), int(bias)))
    fits = [np.hstack([ones, A]) @ each.coef for each in (found, expected)]
    np.testing.assert_allclose(fits[0], fits[1], atol=1e-6)


def test_a_row_that_a_sample_misses_still_counts():
    A, B = low_rank_problem()
    A[1] += np.random.default_rng(6).standard_normal(A.shape[1]) * np.abs(A[1])
    short, whole = (
        lstsq(A, B, bias=True, rcond=1e-9, solver=solver) for solver in ("sketch", "svd")
    )
    assert short.rank == whole.rank == 14
    np.testing.assert_allclose(short.coef, whole.coef, rtol=1e-6)


def test_at_full_rank_a_large_cut_off_changes_nothing():
    rng = np.random.default_rng(7)
    A, B = rng.standard_normal((2000, 130)), rng.standard_normal((2000, 1))
    found = lstsq(A, B, rcond=1e-9)
    assert (found.rank, found.solver) == (130, "sketch")
    np.testing.assert_allclose(found.coef, np.linalg.lstsq(A, B)[0], atol=1e-12)
    huge = lstsq(A * 1e100, B * 1e100, rcond=1e-9)
    np.testing.assert_allclose(huge.coef, found.coef, rtol=1e-9)


@pytest.mark.parametrize("rank", [100, 150])
def test_a_sample_saves_hopeless_gram_products(rank, monkeypatch):
    rng = np.random.default_rng(8)
    A = rng.standard_normal((3000, rank)) @ rng.standard_normal((rank, 150))
    B = rng.standard_normal((3000, 2))
    rows, of = [], Gram.of.__func__

    def noted(cls, A, *others, **options):
        rows.append(len(A))
        return of(cls, A, *others, **options)

    monkeypatch.setattr(Gram, "of", classmethod(noted))
    found = lstsq(A, B)
    assert found.rank == rank
    assert (sum(rows) < len(A)) == (rank < 150)
    np.testing.assert_allclose(found.coef, lstsq(A, B, solver="svd").coef, atol=1e-11)


@pytest.mark.parametrize("writable", [True, False], ids=["writable", "read-only"])
@pytest.mark.parametrize("drift", [0.0, 30.0], ids=["steady", "drifting"])
@pytest.mark.parametrize("mean", [0.0, 5.0], ids=["near", "far"])
def test_products_of_many_rows_are_those_about_the_means(mean, drift, writable):
    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((3000, 90)) + mean, rng.standard_normal((3000, 2))
    A[1500:] += drift  # the means of the first rows are then far from those of all rows
    X, Y = A - A.mean(axis=0), B - B.mean(axis=0)
    given = A.copy()
    given.flags.writeable = writable
    gram = Gram.of(given, B, None, bias=True)
    np.testing.assert_allclose(gram.centre.A, A.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(gram.AA, X.T @ X, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(gram.AB, X.T @ Y, rtol=1e-11, atol=1e-9)
    assert writable or np.array_equal(given, A)
