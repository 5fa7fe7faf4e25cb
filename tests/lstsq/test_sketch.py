"""Sketch and apply: laws of the sketch, and of the solutions that it leads to."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning

from karnet import lstsq
from karnet._lstsq.problem import Problem
from karnet._lstsq.sketch import Sketch, SketchedTriangle, hashed_places
from karnet._lstsq.solve import solve
from karnet._rows.memory import Rows
from karnet._rows.streamed import LocalPasses, Sample, Streamed
from tests.reference import with_spectrum

M, N = 2400, 60


def problem(rows, bias=True, rcond=2e-14, alpha=0.0):
    def sample(step):
        return rows.every(step).reduce

    return Problem(rows.reduce, len(rows), rows.n_features, bias, alpha, rcond, sample)


def digits(found, exact):
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    return -np.log10(max(error, 1e-16))


def consistent(rng, A):
    """Return A and b in twice as many rows, with errors orthogonal to all columns, and w.

    Entries of A are multiples of a power of 2, and w holds integers, so ``b = A w`` is exact.
    """
    w = np.round(8.0 * rng.standard_normal(A.shape[1]))
    d = np.round(2.0**10 * rng.standard_normal(len(A))) / 2.0**10
    order = rng.permutation(2 * len(A))
    return np.vstack([A, A])[order], np.concatenate([A @ w + d, A @ w - d])[order], w


def rounded(A, bits):
    return np.round(A * 2.0**bits) / 2.0**bits


def graded_rows(rng):
    scale = 2.0 ** np.round(rng.uniform(-26, 26, (M, 1)))
    return rounded(rng.standard_normal((M, N)), 20) * scale


def spikes(rng):
    A = rounded(rng.standard_normal((M, N)), 20) * 2.0**-20
    A[rng.choice(M, N, replace=False), np.arange(N)] += 2.0 ** np.round(rng.uniform(0, 20, N))
    return A


def periodic(rng):
    return np.tile(rounded(with_spectrum(rng, 2 * N, N, np.logspace(0, -7, N)), 40), (20, 1))


def identity_over_zeros(rng):
    A = np.zeros((M, N))
    A[:N] = np.eye(N)
    return A


def ill_conditioned(rng):
    return rounded(with_spectrum(rng, M, N, np.logspace(0, -9, N)), 44)


FAMILIES = [graded_rows, spikes, periodic, identity_over_zeros, ill_conditioned]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
@pytest.mark.parametrize("seed", range(3))
def test_digits_are_at_most_a_third_of_one_behind_qr(family, seed):
    A, b, w = consistent(np.random.default_rng(seed), family(np.random.default_rng(seed)))
    found, qr = (lstsq(A, b, solver=solver) for solver in ("sketch", "qr"))
    assert (found.solver, found.rank) == ("sketch", N)
    assert digits(found.coef, w) >= digits(qr.coef, w) - 0.3


@pytest.mark.parametrize("n", [60, 120])
@pytest.mark.parametrize("seed", range(4))
def test_laeuchli_keeps_twelve_digits_or_is_left_to_qr(n, seed):
    rng, e = np.random.default_rng(seed), 2.0**-30
    A = np.vstack([np.ones(n), e * np.eye(n), np.zeros((10 * n, n))])
    b = rng.standard_normal(len(A))
    exact = b[1 : n + 1] / e + (b[0] - b[1 : n + 1].sum() / e) / (e * e + n)
    order = rng.permutation(len(A))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        found = lstsq(A[order], b[order], solver="sketch")
    assert found.solver == "qr" or digits(found.coef, exact) >= 12.0


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rank", [7, 40])
def test_rank_and_minimum_norm_are_those_of_the_pseudoinverse(rank, bias):
    rng = np.random.default_rng(rank)
    A = rng.standard_normal((M, rank)) @ rng.standard_normal((rank, N)) + 3.0 * bias
    B = rng.standard_normal((M, 3))
    found = lstsq(A, B, bias=bias, solver="sketch")
    whole = np.hstack([np.ones((M, int(bias))), A])
    assert (found.solver, found.rank) == ("sketch", rank + bias)
    np.testing.assert_allclose(found.coef, np.linalg.pinv(whole, rcond=1e-12) @ B, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("alpha", [1e-9, 1e-3])
def test_a_ridge_adds_rows(alpha, bias):
    rng = np.random.default_rng(0)
    A = with_spectrum(rng, M, N, np.logspace(0, -8, N)) + 2.0 * bias
    B = A @ rng.standard_normal((N, 2)) + rng.standard_normal((M, 2))
    found = lstsq(A, B, bias=bias, alpha=alpha, solver="sketch")
    below = np.hstack([np.zeros((N, int(bias))), np.sqrt(alpha) * np.eye(N)])
    whole = np.vstack([np.hstack([np.ones((M, int(bias))), A]), below])
    expected = np.linalg.lstsq(whole, np.vstack([B, np.zeros((N, 2))]))[0]
    assert (found.solver, found.rank) == ("sketch", N + bias)
    np.testing.assert_allclose(found.coef, expected, rtol=1e-5, atol=1e-7)


def test_weights_are_repeats():
    rng = np.random.default_rng(0)
    A = with_spectrum(rng, M, N, np.logspace(0, -8, N)) + 1.0
    B, weight = rng.standard_normal((M, 2)), rng.integers(1, 4, M)
    rows = Rows(A, B, weight.astype(float))
    again = Rows(np.repeat(A, weight, axis=0), np.repeat(B, weight, axis=0))
    found, expected = (
        solve(
            each.reduce,
            len(each),
            N,
            bias=True,
            solver="sketch",
            sample=lambda step, each=each: each.every(step).reduce,
        )
        for each in (rows, again)
    )
    assert found.solver == expected.solver == "sketch"
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-6, atol=1e-6)


def test_a_common_weight_changes_nothing():
    rng = np.random.default_rng(0)
    A = with_spectrum(rng, M, N, np.logspace(0, -8, N)) + 1e3
    B = rng.standard_normal((M, 2))
    found = [
        SketchedTriangle.of(problem(Rows(A, B, weight))).triangle
        for weight in (np.ones(M), np.full(M, 2.0**40))
    ]
    np.testing.assert_array_equal(2.0**20 * found[0].R, found[1].R)


def test_a_sketch_keeps_all_lengths_to_a_factor_of_2():
    rng = np.random.default_rng(1)
    for draw in FAMILIES:
        A = np.linalg.qr(draw(rng))[0]
        of_block = partial(Sketch.of, bias=False, shift=None)
        sketch = Rows(A, A[:, :1]).reduce(of_block, numbered=True)
        s = np.linalg.svd(sketch.SA / 2.0, compute_uv=False)
        assert s[0] < 2.0
        assert s[-1] > 0.4


def test_places_and_signs_belong_to_row_numbers():
    x = np.empty(0)
    places, signs = hashed_places(0, 5000, 400, x)
    later, signs_later = hashed_places(1234, 3000, 400, x)
    np.testing.assert_array_equal(places[1234:4234], later)
    np.testing.assert_array_equal(signs[1234:4234], signs_later)
    assert set(signs.ravel()) == {-1.0, 1.0}
    # One place in each quarter, all of them about equally often.
    np.testing.assert_array_equal(places // 100, np.tile(np.arange(4), (5000, 1)))
    assert np.bincount(places.ravel(), minlength=400).max() < 100
    assert abs(signs.mean()) < 0.05


@pytest.mark.parametrize("cuts", [[], [1], [500, 501, 1999], list(range(0, M, 97))], ids=len)
def test_a_sketch_is_the_same_bit_for_bit_however_rows_are_cut(cuts, block_sizes):
    block_sizes(block=300 * N, chunk=64 * N)
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((M, N)) + 20.0, rng.standard_normal((M, 2))
    whole = Rows(A, B)
    edges = [0, *cuts, M]
    parts = [(A[i:j], B[i:j], None) for i, j in pairwise(edges)]
    streamed = Streamed(LocalPasses(parts), lambda *raw: raw, M, N, 2, float(M), Sample(whole))
    found, expected = (SketchedTriangle.of(problem(rows)) for rows in (streamed, whole))
    for name in ("R", "RS", "scale"):
        np.testing.assert_array_equal(getattr(found.basis, name), getattr(expected.basis, name))
    np.testing.assert_array_equal(found.triangle.R, expected.triangle.R)
    np.testing.assert_array_equal(found.triangle.Z, expected.triangle.Z)


def test_few_rows_and_extreme_magnitudes_are_left_to_qr():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 60))
    with pytest.warns(LinAlgWarning, match="'sketch' cannot be trusted"):
        assert lstsq(A, A[:, 0], solver="sketch").solver == "qr"
    A = rng.standard_normal((1000, 60)) * 1e120
    with pytest.warns(LinAlgWarning, match="'sketch' cannot be trusted"):
        assert lstsq(A, A[:, 0], solver="sketch").solver == "qr"
