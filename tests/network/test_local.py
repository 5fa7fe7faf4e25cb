"""Trees and the kernel networks of their leaves."""

from __future__ import annotations

import numpy as np
import pytest

from karnet._model.influence import left_out_predictions
from karnet._network.infinite_width import DualSolution, RidgeTargets
from karnet._network.input_metric import outer_products
from karnet._network.local import grow_tree, local_metric
from karnet._search.views import VIEWS
from karnet.kernels import KERNELS
from tests.members import member_of

RNG = np.random.default_rng(0)
X = RNG.standard_normal((700, 4))
Y = np.column_stack([np.sin(2.0 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 2]])
RIDGES = np.logspace(-4, 0, 5)


def member(kernel, leaf, n_trees=2, weight=None, alpha=1e-2):
    weight = np.ones(len(X)) if weight is None else weight
    targets, view = RidgeTargets(Y, weight, RIDGES), VIEWS["standard"](X, weight)
    # The search solves in double precision for small ridges, too.
    dtype = np.float64 if alpha < 1e-3 else np.float32
    return member_of(view, kernel, X, targets, leaf, n_trees, alpha, dtype)


@pytest.mark.parametrize("most", [1, 30, 64, 700, 1000])
def test_leaves_divide_the_rows_evenly_and_rows_reach_their_leaf(most):
    A = X[:200].astype(np.float32) if most == 1 else X.astype(np.float32)
    tree, leaves = grow_tree(A, most, np.random.RandomState(0))
    np.testing.assert_array_equal(np.sort(np.concatenate(leaves)), np.arange(len(A)))
    assert len(leaves) == -(-len(A) // most)
    assert max(map(len, leaves)) <= most
    for k, rows in tree.route(A):
        np.testing.assert_array_equal(np.sort(rows), np.sort(leaves[k]))
    (alone,) = tree.route(A[:1])
    assert 0 in leaves[alone[0]]


def test_equal_rows_stay_together_and_are_thinned():
    A = np.repeat(np.eye(3, dtype=np.float32), 50, axis=0)
    tree, leaves = grow_tree(A, 20, np.random.RandomState(0))
    assert all(len(np.unique(A[leaf], axis=0)) == 1 for leaf in leaves)
    assert all(len(leaf) <= 20 for leaf in leaves)
    assert sum(len(rows) for _, rows in tree.route(A)) == len(A)


@pytest.mark.parametrize("kernel", ["laplace_l1", "laplace", "gaussian"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-2])
def test_a_leaf_predicts_as_a_kernel_ridge_of_its_rows(kernel, alpha):
    targets = RidgeTargets(Y, RNG.uniform(0.5, 2.0, len(X)), RIDGES)
    found = member(kernel, 200, weight=targets.weight, alpha=alpha)
    A = found.view(X).astype(np.float32).astype(float)
    expected = np.zeros_like(Y)
    for partition in found.network.partitions:
        for k, new in partition.tree.route(A.astype(np.float32)):
            rows = partition.rows[partition.starts[k] : partition.starts[k + 1]]
            K = KERNELS[kernel](A[rows], A[rows], found.scale)
            solution = DualSolution.of(K, targets.of(rows), alpha)
            shown = KERNELS[kernel](A[new], A[rows], found.scale)
            expected[new] += (shown @ solution.D + solution.b) / 2
    np.testing.assert_allclose(
        found.network.scores(X), expected, atol=1e-8 if alpha < 1e-3 else 1e-3
    )


@pytest.mark.parametrize("n_trees", [1, 2])
def test_left_out_predictions_are_those_of_leaves_without_the_row(n_trees):
    targets, scored = RidgeTargets(Y, np.ones(len(X)), RIDGES), np.arange(0, 700, 50)
    network = (found := member("gaussian", 200, n_trees, alpha=1e-1)).network
    left_out = left_out_predictions(found, Y, targets.weight)
    A, kernel = found.X_fit_.astype(float), KERNELS["gaussian"]
    expected = np.zeros((len(scored), 2))
    for new, i in enumerate(scored):
        for leaf in network.reached(found.X_fit_[i : i + 1]):
            rows = leaf.centres[leaf.centres != i]
            K = kernel(A[rows], A[rows], found.scale)
            solution = DualSolution.of(K, targets.of(rows), 1e-1)
            shown = kernel(A[i : i + 1], A[rows], found.scale)
            expected[new] += leaf.share * (shown @ solution.D + solution.b)[0]
    np.testing.assert_allclose(left_out[scored], expected, atol=1e-4)


def test_one_leaf_is_the_kernel_network_of_all_rows():
    found = member("gaussian", 700, n_trees=1)
    (leaf,) = found.network.leaves()
    A = found.view(X)
    np.testing.assert_allclose(leaf.network.scores(A), found.network.scores(X), atol=1e-3)
    np.testing.assert_allclose(leaf.doubled.network.scores(A), leaf.network.scores(A), atol=1e-3)


def test_predictions_do_not_depend_on_the_rows_beside_them(block_sizes):
    network = member("gaussian", 100, alpha=1e-4).network
    expected = network.scores(X)
    block_sizes(block=2**8, chunk=2**7)
    np.testing.assert_allclose(network.scores(X), expected, atol=1e-10)
    alone = np.concatenate([network.scores(X[i : i + 1]) for i in range(50)])
    np.testing.assert_allclose(alone, expected[:50], atol=1e-10)


def test_the_metric_of_leaves_is_the_sum_of_theirs():
    network = member("gaussian", 200).network
    A = network.view(X)[:40].astype(np.float32)
    found = local_metric(network, A, np.ones(40), diagonal=False)
    expected = sum(
        0.5 * outer_products(leaf.network, A[leaf.rows], np.ones(len(leaf.rows)))
        for leaf in network.reached(A)
    )
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
