"""Leaves: their solutions, left-out predictions, precision, scales and ridges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from karnet._network.infinite_width import DualSolution, KernelMap, RidgeTargets, downhill
from karnet._search.leaves import (
    SINGLE_RIDGE,
    LeafTable,
    Tuning,
    mean_distance,
    solve_leaf,
    telling,
    tuned,
)
from karnet._search.trial import FIRST_TUNING
from karnet.kernels import KERNELS, lower_geometry, lower_profile

RNG = np.random.default_rng(0)
A = RNG.standard_normal((300, 3)).astype(np.float32)
Y = np.column_stack([np.sin(2.0 * A[:, 0]), A[:, 1] ** 2])
RIDGES = np.logspace(-7, 1, 17)
M = 40
WEIGHTS = {"plain": np.ones(M), "weighted": RNG.uniform(0.5, 3.0, M)}
every_weight = pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
every_kernel = pytest.mark.parametrize("kernel", FIRST_TUNING)


def leaf(noise=0.2, rows=slice(None)):
    targets = Y[rows] + noise * np.random.default_rng(1).standard_normal(Y[rows].shape)
    return LeafTable(A[rows], RidgeTargets(targets, np.ones(len(targets)), RIDGES), unit=2.0)


def small(weight, splits=None):
    rows = A[:M].astype(float)
    return LeafTable(rows, RidgeTargets(Y[:M], weight, RIDGES, splits))


def refitted(kernel, table, new, alpha, weight=None):
    """Return the predictions for new rows of the ridge problem of the rows with a weight."""
    weight = table.targets.weight if weight is None else weight
    kept = weight > 0.0
    rows, ones = table.A[kept], np.ones((kept.sum(), 1))
    K = kernel.at(rows)(rows) + np.diag(alpha / weight[kept])
    system = np.block([[K, ones], [ones.T, np.zeros((1, 1))]])
    found = np.linalg.solve(system, np.vstack([table.targets.Y[kept], np.zeros((1, 2))]))
    return kernel.at(rows)(table.A[new]) @ found[:-1] + found[-1]


@every_kernel
@every_weight
def test_a_leaf_is_the_ridge_problem_of_its_rows(kernel, weight):
    table, shape = small(weight), KernelMap(kernel, 1.5)
    found, nothing = solve_leaf(shape, table, Tuning(1.0, 0.1))
    new = np.arange(M)
    predicted = shape.at(table.A)(table.A) @ found.D + found.b
    np.testing.assert_allclose(predicted, refitted(shape, table, new, 0.1), atol=1e-8)
    assert not len(nothing)


@every_kernel
@every_weight
def test_left_out_predictions_are_those_without_the_row_or_one_copy_of_it(kernel, weight):
    table, shape = small(weight), KernelMap(kernel, 1.5)
    _, left_out = solve_leaf(shape, table, Tuning(1.0, 0.1), last=15)
    for i in (25, 30, 39):
        one_less = weight - (np.arange(M) == i)
        expected = refitted(shape, table, [i], 0.1, one_less)[0]
        np.testing.assert_allclose(left_out[i - 25], expected, atol=1e-8)


@every_kernel
@every_weight
def test_rows_of_a_split_are_predicted_without_all_of_them(kernel, weight):
    splits = [np.array([0, 30, 7, 12]), np.arange(13, 28), np.array([39])]
    table, shape = small(weight, splits), KernelMap(kernel, 1.5)
    _, left_out = solve_leaf(shape, table, Tuning(1.0, 0.1), last=M)
    for split in splits:
        others = np.where(np.isin(np.arange(M), split), 0.0, weight)
        expected = refitted(shape, table, split, 0.1, others)
        np.testing.assert_allclose(left_out[split], expected, atol=1e-8)
    in_none = np.setdiff1d(np.arange(M), np.concatenate(splits))
    assert np.isnan(left_out[in_none]).all()
    _, last = solve_leaf(shape, table, Tuning(1.0, 0.1), last=12)
    np.testing.assert_array_equal(last, left_out[-12:])


def test_predictions_of_a_row_in_several_splits_are_averaged():
    one, other = np.arange(10), np.arange(5, 20)
    K = KernelMap("gaussian", 1.5).at(A[:M])(A[:M].astype(float))

    def left_out(*splits):
        targets = small(np.ones(M), list(splits)).targets
        return DualSolution.of(np.array(K), targets, 0.1).left_out(targets)

    both, single = left_out(one, other), [left_out(each) for each in (one, other)]
    np.testing.assert_allclose(both[:5], single[0][:5])
    np.testing.assert_allclose(both[5:10], 0.5 * (single[0] + single[1])[5:10])
    np.testing.assert_allclose(both[10:20], single[1][10:20])


def test_splits_of_one_row_each_are_leave_one_out():
    light = WEIGHTS["weighted"] / 3.0  # of heavier rows, leave-one-out leaves out one copy
    alone, together = small(light), small(light, [[k] for k in range(M)])
    found = [
        solve_leaf(KernelMap("laplace", 2.0), each, Tuning(1.0, 0.01), last=M)[1]
        for each in (alone, together)
    ]
    np.testing.assert_allclose(*found, atol=1e-8)


def test_a_leaf_with_a_single_row_or_split_has_no_left_out_prediction():
    one = small(np.ones(M)).of(np.array([3]))
    assert np.isnan(solve_leaf(KernelMap("gaussian"), one, Tuning(1.0, 0.1), last=1)[1]).all()
    all_rows = small(np.ones(M), [np.arange(M)])
    assert np.isnan(solve_leaf(KernelMap("gaussian"), all_rows, Tuning(1.0, 0.1), last=M)[1]).all()


def test_rows_that_are_left_out_together_stay_together_in_a_leaf():
    table = small(np.ones(M), [np.array([0, 30, 7]), np.array([1, 2])])
    few = table.of(np.array([7, 5, 0, 9]))
    assert [list(split) for split in few.targets.splits] == [[2, 0], []]
    np.testing.assert_array_equal(few.targets.Y[[2, 0]], table.targets.Y[[0, 7]])


# Precision


@every_kernel
def test_the_smallest_ridges_of_single_precision_keep_the_predictions(kernel):
    table, K = leaf(), KernelMap(kernel, float(KERNELS[kernel].geometry(A, A).mean()))
    chosen = tuned(kernel, [table], FIRST_TUNING[kernel])
    single, double = (
        chosen._replace(alpha=1.2 * SINGLE_RIDGE[kernel], dtype=dtype)
        for dtype in (np.float32, np.float64)
    )
    found, expected = (solve_leaf(K, table, each, last=300)[1] for each in (single, double))
    errors = np.sqrt(np.mean((expected - table.targets.Y) ** 2))
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.02 * errors


@every_kernel
@pytest.mark.parametrize("d", [3, 20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_lower_triangle_is_that_of_the_kernel_matrix(kernel, d, dtype):
    rows = np.random.default_rng(d).standard_normal((500, d)).astype(dtype)
    rows[:, -1] = rows[:, -1] > 0.0
    rows[7] = rows[400]
    K = lower_profile(KERNELS[kernel], lower_geometry(KERNELS[kernel], rows), 1.5)
    expected = np.tril(KERNELS[kernel](rows, rows, 1.5))
    assert K.dtype == dtype
    assert K[400, 7] == 1.0
    np.testing.assert_allclose(np.tril(K), expected, atol=40.0 * np.finfo(dtype).eps)


def test_tables_almost_without_errors_are_solved_in_double_precision():
    smooth = LeafTable(A, RidgeTargets(A[:, :1].astype(float), np.ones(300), RIDGES), 2.0)
    assert tuned("gaussian", [smooth], Tuning(4.0, 0.1)).dtype is np.float64
    assert tuned("gaussian", [leaf(noise=1.0)], Tuning(0.5, 0.1)).dtype is np.float32


# Scale and ridge


@pytest.mark.parametrize("start", [(0, 0), (3, 16), (6, 2)])
def test_the_way_downhill_ends_in_the_valley_after_few_steps(start):
    tried = []

    def error(i, k):
        tried.append((i, k))
        return 1.0 + (i - 4) ** 2 + (k - 11) ** 2

    assert downhill(error, start, (7, 17)) == ((4, 11), 1.0)
    assert len(tried) == len(set(tried)) < 25


@pytest.mark.parametrize("start", [0.25, 1.0])
def test_the_scale_is_that_of_the_function(start):
    found = []
    for targets in (np.sin(3.0 * A[:, :1]), A[:, :1] + 0.1 * A[:, 1:2] ** 2):
        noisy = targets + 0.05 * RNG.standard_normal(targets.shape)
        table = LeafTable(A[:, :2], RidgeTargets(noisy, np.ones(300), RIDGES), 2.0)
        found.append(tuned("gaussian", [table], Tuning(start, 0.1)).scale)
    assert 2.0 * found[0] < found[1]
    assert found[0] < 0.8


def test_the_ridge_grows_with_the_noise():
    ridges = [tuned("gaussian", [leaf(noise)], Tuning(0.5, 0.01)).alpha for noise in (0.01, 0.3, 3)]
    assert ridges == sorted(ridges)
    assert ridges[0] < ridges[-1]


def test_the_error_of_a_tuning_is_that_of_left_out_rows():
    table = leaf()
    found = tuned("laplace", [table], FIRST_TUNING["laplace"])
    kernel = KernelMap("laplace", found.scale * table.unit)
    _, left_out = solve_leaf(kernel, table, found, last=150)
    squares = np.sum((table.targets.Y[-150:] - left_out) ** 2, axis=1)
    assert found.error == pytest.approx(squares.mean(), rel=0.02)


def test_scale_and_ridge_are_not_refined_once_the_error_is_small_enough():
    plain = leaf()
    start = Tuning(1.0, float(plain.targets.ridges[plain.targets.ridges == 0.1][0]))
    refined = tuned("gaussian", [plain], start)
    enough = replace(plain, targets=replace(plain.targets, enough=1e3))
    found = tuned("gaussian", [enough], start)
    assert found[:2] == start[:2] != refined[:2]


def test_scales_are_selected_where_the_targets_vary():
    constant = LeafTable(A[:50], RidgeTargets(np.zeros((50, 1)), np.ones(50), RIDGES))
    varied = leaf(rows=slice(0, 50))
    leaves = [constant, constant, constant, varied]
    for seed in range(5):
        assert telling(leaves, 1, np.random.RandomState(seed))[0] is varied
        some = telling(leaves, 3, np.random.RandomState(seed))
        assert [each is varied for each in some] == [True, False, False]


def test_the_unit_of_scales_grows_with_the_rows():
    for kernel in FIRST_TUNING:
        units = [
            mean_distance(kernel, factor * A, np.ones(300), np.random.RandomState(0))
            for factor in (1.0, 8.0)
        ]
        assert units[1] == pytest.approx(8.0 * units[0], rel=1e-5)
    assert mean_distance("gaussian", np.ones((5, 2)), np.ones(5), np.random.RandomState(0)) == 1.0


@every_kernel
def test_the_unit_of_scales_counts_weights_as_repeats(kernel):
    rows, counts = A[:M], RNG.integers(1, 4, M)
    found = mean_distance(kernel, rows, counts.astype(float), np.random.RandomState(0))
    repeated = np.repeat(rows, counts, axis=0)
    expected = mean_distance(kernel, repeated, np.ones(len(repeated)), np.random.RandomState(1))
    assert found == pytest.approx(expected, rel=1e-12)


def test_few_rows_are_solved_in_double_precision():
    noisy = leaf(noise=1.0)
    few = noisy.of(np.arange(50))
    assert tuned("gaussian", [few], Tuning(0.5, 0.1)).dtype is np.float64
    assert tuned("gaussian", [few, noisy], Tuning(0.5, 0.1)).dtype is np.float32
