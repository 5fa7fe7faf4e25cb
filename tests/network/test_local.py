"""Trees and the kernel networks of their leaves."""

from __future__ import annotations

import numpy as np
import pytest

from karnet._network.infinite_width import DualSolution, KernelMap, RidgeTargets
from karnet._network.input_metric import outer_products
from karnet._network.local import LocalNetwork, Partition, grow_tree, local_metric
from karnet.kernels import KERNELS

RNG = np.random.default_rng(0)
X = RNG.standard_normal((700, 4))
Y = np.column_stack([np.sin(2.0 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 2]])
RIDGES = np.logspace(-4, 0, 5)


def view(rows):
    """Return rows with columns of one size."""
    return rows / X.std(axis=0)


def network(kernel, leaf, n_trees=2, targets=None, alpha=1e-2):
    """Return the kernel ridge solutions of the leaves of some trees."""
    targets = RidgeTargets(Y, np.ones(len(X)), RIDGES) if targets is None else targets
    A, rng = view(X).astype(np.float32), np.random.RandomState(0)
    partitions = []
    for _ in range(n_trees):
        tree, leaves = grow_tree(A, leaf, rng)
        in_leaves = [A[rows].astype(float) for rows in leaves]
        found = [
            DualSolution.of(KERNELS[kernel](Z, Z), targets.of(rows), alpha)
            for Z, rows in zip(in_leaves, leaves, strict=True)
        ]
        starts, D = np.cumsum([0, *map(len, leaves)]), np.concatenate([each.D for each in found])
        b = np.array([each.b for each in found])
        partitions.append(Partition(tree, np.concatenate(leaves), starts, D, b))
    return LocalNetwork(view, KernelMap(kernel, Z=A), tuple(partitions))


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
    targets = RidgeTargets(Y, RNG.uniform(0.5, 2.0, len(X)), np.array([alpha]))
    found = network(kernel, 200, targets=targets, alpha=alpha)
    A = view(X).astype(np.float32).astype(float)
    expected = np.zeros_like(Y)
    for partition in found.partitions:
        for k, new in partition.tree.route(A.astype(np.float32)):
            rows = partition.rows[partition.starts[k] : partition.starts[k + 1]]
            K = KERNELS[kernel](A[rows], A[rows])
            solution = DualSolution.of(K, targets.of(rows), alpha)
            shown = KERNELS[kernel](A[new], A[rows])
            expected[new] += (shown @ solution.D + solution.b) / 2
    np.testing.assert_allclose(found.scores(X), expected, atol=1e-8 if alpha < 1e-3 else 1e-3)


def test_one_leaf_is_the_kernel_network_of_all_rows():
    found = network("gaussian", 700, n_trees=1)
    leaf = found.leaf(found.partitions[0], 0)
    np.testing.assert_allclose(leaf.scores(view(X)), found.scores(X), atol=1e-3)


def test_predictions_do_not_depend_on_the_rows_beside_them(block_sizes):
    found = network("gaussian", 100, alpha=1e-4)
    expected = found.scores(X)
    block_sizes(block=2**8, chunk=2**7)
    np.testing.assert_allclose(found.scores(X), expected, atol=1e-10)
    alone = np.concatenate([found.scores(X[i : i + 1]) for i in range(50)])
    np.testing.assert_allclose(alone, expected[:50], atol=1e-10)


def test_the_metric_of_leaves_is_the_sum_of_theirs():
    whole, A = network("gaussian", 700, n_trees=1), view(X)[:40]
    leaf = whole.leaf(whole.partitions[0], 0)
    found = local_metric(whole, A, np.ones(40), diagonal=False)
    expected = outer_products(leaf, A.astype(np.float32), np.ones(40), diagonal=False)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
