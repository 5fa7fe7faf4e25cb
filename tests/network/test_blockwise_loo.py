"""Leave-one-out over blocks of rows: equal to that of all rows at once."""

from __future__ import annotations

import numpy as np
import pytest

from karnet._network.blockwise_loo import loo_squared_error
from karnet._rows.memory import Rows
from karnet.loo import RidgePath, squared_error
from tests.reference import with_ones

SHAPES = {
    "tall": lambda rng: rng.standard_normal((60, 7)),
    "square with the bias": lambda rng: rng.standard_normal((12, 11)),
    "wide": lambda rng: rng.standard_normal((20, 30)),
    "rank-deficient": lambda rng: rng.standard_normal((50, 3)) @ rng.standard_normal((3, 8)),
    "rows repeated": lambda rng: np.repeat(rng.standard_normal((10, 20)), 3, axis=0),
    "columns for single rows": lambda rng: np.hstack([rng.random((30, 3)), np.eye(30)[:, :2]]),
    "a large offset": lambda rng: rng.standard_normal((40, 4)) + 1e3,
}
WEIGHTS = {
    "none": lambda rng, m: None,
    "integer": lambda rng, m: 1.0 * rng.integers(1, 4, m),
    "real": lambda rng, m: rng.uniform(0.2, 3.0, m),
}


def error(A, B, weight, bias, alpha):
    rows = Rows(A, B, weight)
    identity = {"right_hand_side": lambda y: y, "to_targets": lambda M: M}
    return loo_squared_error(rows, A.shape[1], **identity, bias=bias, alpha=alpha)


def cut_into_blocks(solver_sizes, block_sizes):
    solver_sizes(loo_in_memory=0)
    block_sizes(block=1, chunk=32, shortest=13)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.3])
def test_blocks_give_the_error_of_all_rows(shape, weights, bias, alpha, solver_sizes, block_sizes):
    rng = np.random.default_rng(0)
    A = SHAPES[shape](rng)
    B, weight = rng.standard_normal((len(A), 2)), WEIGHTS[weights](rng, len(A))
    expected = error(A, B, weight, bias, alpha)
    features = with_ones(A) if bias and not alpha else A
    path = RidgePath.of(features, B, weight, bias and alpha > 0)
    assert expected == squared_error(B, path.loo(alpha), weight)
    cut_into_blocks(solver_sizes, block_sizes)
    np.testing.assert_allclose(error(A, B, weight, bias, alpha), expected, rtol=1e-6)


def test_the_error_is_that_of_refitting_with_the_bias_in_the_norm():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((6, 9)), rng.standard_normal((6, 1)) + 5.0
    missed = []
    for i in range(6):
        others = np.arange(6) != i
        W = np.linalg.lstsq(with_ones(A[others]), B[others], rcond=None)[0]
        missed.append(with_ones(A)[i] @ W - B[i])
    np.testing.assert_allclose(error(A, B, None, True, 0.0), np.mean(np.square(missed)))


def test_one_row_leaves_none_to_fit():
    row = np.ones((1, 3)), np.ones((1, 1))
    assert error(*row, None, True, 0.0) == np.inf
    assert np.isfinite(error(*row, np.array([2.0]), True, 1.0))


def test_the_error_is_measured_in_the_targets(solver_sizes, block_sizes):
    rng = np.random.default_rng(0)
    A, codes, goals = rng.standard_normal((40, 5)), rng.integers(0, 3, 40), rng.random((3, 2))
    solve = {"bias": True, "alpha": 0.1}
    direct = error(A, goals[codes], None, **solve)
    through = (Rows(A, codes), 5, lambda y: np.eye(3)[y], lambda M: M @ goals)
    np.testing.assert_allclose(loo_squared_error(*through, **solve), direct)
    cut_into_blocks(solver_sizes, block_sizes)
    np.testing.assert_allclose(loo_squared_error(*through, **solve), direct)
