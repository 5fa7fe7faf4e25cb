"""Trees and the kernel networks of their leaves."""

from __future__ import annotations

import numpy as np
import pytest

from karnet._ensemble.local_members import fit_local
from karnet._ensemble.local_search import Round
from karnet._search.member import Shape
from karnet._search.views import VIEWS
from karnet._network.infinite_width import DualSolution, RidgeTargets
from karnet._network.input_metric import outer_products
from karnet._network.local import grow_tree, local_metric
from karnet._rows.streamed import Passes
from karnet.kernels import KERNELS

RNG = np.random.default_rng(0)
X = RNG.standard_normal((700, 4))
Y = np.column_stack([np.sin(2.0 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 2]])
RIDGES = np.logspace(-4, 0, 5)
NOTHING = np.empty(0, dtype=np.intp)


def targets_of(weight=None):
    return RidgeTargets(Y, np.ones(len(X)) if weight is None else weight, RIDGES)


def member(kernel, leaf, scored=NOTHING, n_trees=2, targets=None, alpha=1e-2):
    targets = targets_of() if targets is None else targets
    found = Round(VIEWS["standard"](X, targets.weight), Shape("standard", kernel), alpha)
    A, rng = found.view(X).astype(np.float32), np.random.RandomState(0)
    return fit_local(found, lambda _: n_trees, A, targets, scored, leaf, rng, Passes())


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
    found = member(kernel, 200, targets=targets, alpha=alpha)
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


def test_left_out_predictions_are_those_of_leaves_without_the_row():
    scored = np.arange(0, 700, 50)
    targets = RidgeTargets(Y, np.ones(len(X)), np.array([1e-4]))
    found = member("gaussian", 200, scored, n_trees=1, targets=targets, alpha=1e-4)
    assert np.isnan(np.delete(found.left_out, scored, axis=0)).all()
    (partition,), A = found.network.partitions, found.view(X).astype(np.float32)
    for i in scored:
        ((k, _),) = partition.tree.route(A[i : i + 1])
        rows = partition.rows[partition.starts[k] : partition.starts[k + 1]]
        rows = rows[rows != i]
        B = A.astype(float)
        K = KERNELS["gaussian"](B[rows], B[rows], found.scale)
        solution = DualSolution.of(K, targets.of(rows), 1e-4)
        shown = KERNELS["gaussian"](B[i : i + 1], B[rows], found.scale)
        np.testing.assert_allclose(
            found.left_out[i], (shown @ solution.D + solution.b)[0], atol=1e-6
        )


def test_one_leaf_is_the_kernel_network_of_all_rows():
    found = member("gaussian", 700 * 2, n_trees=5)
    assert len(found.network.partitions) == 1
    leaf = found.network.leaf(found.network.partitions[0], 0)
    np.testing.assert_allclose(leaf.scores(found.view(X)), found.network.scores(X), atol=1e-3)


def test_predictions_do_not_depend_on_the_rows_beside_them(block_sizes):
    network = member("gaussian", 100, alpha=1e-4).network
    expected = network.scores(X)
    block_sizes(block=2**8, chunk=2**7)
    np.testing.assert_allclose(network.scores(X), expected, atol=1e-10)
    alone = np.concatenate([network.scores(X[i : i + 1]) for i in range(50)])
    np.testing.assert_allclose(alone, expected[:50], atol=1e-10)


def test_the_metric_of_leaves_is_the_sum_of_theirs():
    network = member("gaussian", 2 * 700).network
    A = network.view(X)[:40]
    leaf = network.leaf(network.partitions[0], 0)
    found = local_metric(network, A, np.ones(40), diagonal=False)
    expected = outer_products(leaf, A.astype(np.float32), np.ones(40), diagonal=False)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
