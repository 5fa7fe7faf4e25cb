"""Leaves of long tables: precision, the selection of scale and ridge, and metrics of kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from karnet import KARClassifierCV
from karnet._ensemble.leaves import SINGLE_RIDGE, LocalTable, solve_leaf, telling, tuned
from karnet._ensemble.local_search import STARTS, Chain
from karnet._search.views import VIEWS
from karnet._network.infinite_width import KernelMap, RidgeTargets, kernel_network
from karnet._network.input_metric import outer_products
from karnet.kernels import KERNELS, lower_geometry, lower_profile

RNG = np.random.default_rng(0)
A = RNG.standard_normal((300, 3)).astype(np.float32)
Y = np.column_stack([np.sin(2.0 * A[:, 0]), A[:, 1] ** 2])
RIDGES = np.logspace(-7, 1, 17)


def leaf(noise=0.2, rows=slice(None)):
    targets = Y[rows] + noise * np.random.default_rng(1).standard_normal(Y[rows].shape)
    return LocalTable(A[rows], RidgeTargets(targets, np.ones(len(targets)), RIDGES))


@pytest.mark.parametrize("kernel", STARTS)
def test_the_smallest_ridges_of_single_precision_keep_the_predictions(kernel):
    table, K = leaf(), KernelMap(kernel, float(KERNELS[kernel].geometry(A, A).mean()))
    single, double = (
        tuned(kernel, [table], K.scale, STARTS[kernel])._replace(
            alpha=1.2 * SINGLE_RIDGE[kernel], dtype=dtype
        )
        for dtype in (np.float32, np.float64)
    )
    found, expected = (solve_leaf(K, table, each, last=300)[1] for each in (single, double))
    errors = np.sqrt(np.mean((expected - table.targets.Y) ** 2))
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.02 * errors


@pytest.mark.parametrize("kernel", STARTS)
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


def test_scale_and_ridge_are_not_refined_once_the_error_is_small_enough():
    plain = leaf()
    (first,) = plain.targets.ridges[plain.targets.ridges == 0.1]
    start = 1.0, float(first)
    at_start = tuned("gaussian", [plain], 2.0, start)
    enough = LocalTable(A, replace(plain.targets, enough=1e3))
    found = tuned("gaussian", [enough], 2.0, start)
    assert (found.scale, found.alpha) == start != (at_start.scale, at_start.alpha)


def test_tables_almost_without_errors_are_solved_in_double_precision():
    smooth = LocalTable(A, RidgeTargets(A[:, :1].astype(float), np.ones(300), RIDGES))
    assert tuned("gaussian", [smooth], 2.0, (4.0, 0.1)).dtype is np.float64
    assert tuned("gaussian", [leaf(noise=1.0)], 2.0, (0.5, 0.1)).dtype is np.float32


def test_scales_are_selected_where_the_targets_vary():
    constant = LocalTable(A[:50], RidgeTargets(np.zeros((50, 1)), np.ones(50), RIDGES))
    varied = leaf(rows=slice(0, 50))
    leaves = [constant, constant, constant, varied]
    for seed in range(5):
        assert telling(leaves, 1, np.random.RandomState(seed))[0] is varied


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "laplace_l1", "matern"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outer_products_are_those_of_differences_of_predictions(kernel, dtype):
    centres, new = A[:80].astype(dtype), A[100:105].astype(dtype)
    D = RNG.standard_normal((80, 2)).astype(dtype)
    network = kernel_network(D, np.zeros(2, dtype), KernelMap(kernel, 1.5, Z=centres), None)
    found = outer_products(network, new, None)
    step, expected, double = 1e-6, np.zeros((3, 3)), KernelMap(kernel, 1.5, Z=centres.astype(float))
    for row in new.astype(float):
        moves = row + step * np.vstack([np.eye(3), -np.eye(3)])
        outputs = double(moves) @ D.astype(float)
        slopes = (outputs[:3] - outputs[3:]) / (2.0 * step)
        expected += slopes @ slopes.T
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_city_block_distances_take_the_diagonal_of_the_metric():
    table = leaf()
    view = VIEWS["standard"](A.astype(float), np.ones(300))
    chain = Chain(
        "standard", view, "gaussian", np.random.RandomState(0), 200, 100, STARTS["gaussian"]
    )
    for _ in range(2):
        chain.advance(table, table)
    chain.counted = 1  # the round with a metric
    root = chain.branch("laplace").root
    diagonal = chain.branch("laplace_l1").root
    np.testing.assert_allclose(diagonal**2, (root @ root).diagonal())


def test_rounds_end_when_all_classes_are_right(local_sizes):
    local_sizes(first_rows=300, later_rows=600, leaf=100, leaf_of_one_output=100, tuned_rows=100)
    X = RNG.standard_normal((600, 2))
    X[:, 0] += 20.0 * (X[:, 0] > 0.0)
    easy = KARClassifierCV(width=150, random_state=0).fit(X, X[:, 0] > 5.0)
    hard = KARClassifierCV(width=150, random_state=0).fit(X, X[:, 1] > 0.0)
    assert len(easy.cv_results_["kernel"]) < len(hard.cv_results_["kernel"])
    assert easy.best_score_ == 1.0
