"""The factorisation, the cut-off and the leave-one-out formula that several rooms share."""

from __future__ import annotations

import numpy as np
import pytest

from karnet._lstsq.lapack import Cholesky, default_rcond, significant
from karnet._lstsq.ridge_factor import left_out_divisor
from karnet.loo import RidgePath


@pytest.mark.parametrize("ridge", [0.0, 0.5, np.arange(1.0, 7.0)], ids=["none", "one", "each"])
def test_a_ridge_is_added_to_the_diagonal_before_the_factorisation(ridge):
    rng = np.random.default_rng(0)
    A, M = rng.standard_normal((20, 6)), rng.standard_normal((6, 2))
    K = A.T @ A
    before, total = K.copy(), K + ridge * np.eye(6)
    factor = Cholesky.of(K, ridge)
    np.testing.assert_array_equal(K, before)
    np.testing.assert_allclose(factor.solve(M), np.linalg.solve(total, M))
    R = np.triu(factor.R)
    np.testing.assert_allclose(R.T @ R, total)
    # The norm of the upper triangle alone is at least half of that of the matrix.
    exact = 1.0 / np.linalg.cond(total, 1)
    assert 0.5 * exact < factor.reciprocal_condition < 10.0 * exact


def test_an_indefinite_matrix_has_no_factorisation():
    assert Cholesky.of(np.diag([1.0, -1.0])) is None
    assert Cholesky.of(np.diag([1.0, -1.0]), 2.0) is not None
    assert Cholesky.of(np.empty((0, 0))) is None


def test_trust_ends_where_the_cut_off_begins():
    K = np.diag([1.0, 1e-8])  # the singular values of A are 1 and 1e-4
    assert Cholesky.trusted(K, default_rcond(2)) is not None
    assert Cholesky.trusted(K, 1e-4) is None


def test_singular_values_above_the_cut_off_are_significant():
    s = np.array([2.0, 1.0, 1e-15])
    assert significant(s, default_rcond(10)).tolist() == [True, True, False]
    assert significant(s[::-1], 0.1, largest=2.0).tolist() == [False, True, True]
    assert significant(np.empty(0), 0.1).tolist() == []


def test_left_out_errors_are_those_of_a_refit_and_bounded_by_the_floor():
    rng = np.random.default_rng(1)
    A, B, weight = rng.standard_normal((9, 3)), rng.standard_normal((9, 2)), np.arange(1.0, 10.0)
    path = RidgePath.of(A, B, weight)
    residual = np.sqrt(weight)[:, None] * (B - path.fitted(0.1))
    errors = residual / left_out_divisor(1.0 - path.leverage(0.1), weight)[:, None]
    np.testing.assert_allclose(errors, B - path.loo(0.1))
    nothing = 1.0 / left_out_divisor(np.zeros(1), floor=1e-3)[:, None]
    np.testing.assert_allclose(nothing, [[1e3]])
