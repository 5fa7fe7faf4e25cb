"""The fit of the networks selected: their sizes, and their left-out predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from karnet._network.infinite_width import RidgeTargets
from karnet._rows.inputs import Inputs
from karnet._search import fit as fit_module
from karnet._search.fit import FEWEST, KERNEL_OPERATIONS, FamilyFit, LeftOut, Sizes
from karnet._search.leaves import Tuning, solve_leaf
from karnet._search.settings import DEVICE_SETTINGS, SETTINGS
from karnet._search.trial import Lens, Trial
from karnet._search.views import VIEWS

RNG = np.random.default_rng(0)
N = 120
X = RNG.standard_normal((N, 3))
Y = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 1]]) + 0.1 * RNG.standard_normal((N, 2))
TARGETS = RidgeTargets(Y, np.ones(N), np.logspace(-6, 1, 15))
VIEW = VIEWS["standard"](X, np.ones(N))
LENS = Lens("standard", VIEW)
# The metric of each of two starts.
METRICS = {0: np.diag([1.0, 0.2, 0.1]), 1: np.diag([0.5, 1.0, 0.3])}
SHAPED = [np.arange(0, 40), np.arange(30, 60)]


def trial(rounds=1, kernel="gaussian", n_starts=2):
    plain = Trial(kernel, (LENS,) * n_starts, N, Tuning(1.0, 0.01))
    found = {"errors": {0: 0.02 * N, 1: 0.02 * N}, "weights": {0: N, 1: N}}
    shaped = replace(plain, metrics=METRICS).next_round() if rounds else plain
    return replace(shaped, **found)


def family(each, targets=TARGETS, leaf=N, trees=1, shaped=SHAPED, starts=2):
    sizes = Sizes(1, starts, trees, leaf)
    inputs = Inputs.in_memory(X, lambda rows: rows)
    fit = FamilyFit(inputs, targets, SETTINGS, sizes, np.random.RandomState(0))
    return fit.family(each, shaped)


# Sizes


@pytest.mark.parametrize("settings", [SETTINGS, DEVICE_SETTINGS], ids=["cpu", "device"])
@pytest.mark.parametrize("n", [2, 50, 999, 1001, 5000, 40_000, 10**6])
@pytest.mark.parametrize("d", [1, 30, 1000])
@pytest.mark.parametrize("n_trials", [1, 3])
def test_a_prediction_takes_about_the_operations_of_the_settings(n, d, n_trials, settings):
    n_starts = 5 if n < 20_000 else 1
    sizes = Sizes.of(n_trials, n_starts, (n, d), min(settings.leaf, n), settings)
    assert 1 <= sizes.kernels <= n_trials
    assert 1 <= sizes.starts <= n_starts
    assert 1 <= sizes.trees <= settings.most_trees
    assert 1 <= sizes.leaf <= settings.most_rows_of_leaf
    centres = sizes.networks * sizes.trees * min(sizes.leaf, n)
    least = min(
        settings.smallest_leaf, n
    )  # a single network with a leaf of this size may cost more
    assert centres <= max(settings.operations / (d + KERNEL_OPERATIONS), least)
    if n <= sizes.leaf:
        assert sizes.trees == 1


def test_leaves_of_longer_tables_are_not_larger():
    leaves = [
        Sizes.of(1, 1, (n, 5), 1000, SETTINGS).leaf for n in (4000, 16_000, 64_000, 256_000, 10**6)
    ]
    assert leaves == sorted(leaves, reverse=True)
    assert leaves[0] == SETTINGS.most_rows_of_leaf
    assert leaves[-1] >= SETTINGS.leaf


@pytest.mark.parametrize("most", [1, 3, 7, 20])
def test_networks_are_limited_by_trees_then_starts_then_kernels(most):
    sizes = Sizes(3, 5, 2, 1000)
    limited = sizes.limited(most, np.inf)
    assert limited.networks <= most
    assert limited.leaf == sizes.leaf
    assert sizes.limited(15, np.inf) == sizes
    assert limited.kernels == 3 or limited.starts == 1


@pytest.mark.parametrize("most", [1e9, 1e7, 1e5, 1e3, 0.0])
def test_operations_are_limited_down_to_one_small_leaf(most):
    limited = Sizes(3, 5, 4, 1000).limited(20, most)
    assert limited.operations <= most or limited == Sizes(1, 1, 1, FEWEST)
    assert limited.leaf >= FEWEST
    # A leaf that is small already is not enlarged.
    assert Sizes(1, 1, 1, 5).limited(20, 0.0).leaf <= 5


# Left-out predictions


def test_left_out_predictions_are_means_of_those_there_are():
    sums = LeftOut.none(RidgeTargets(np.zeros((3, 1)), np.ones(3), np.ones(1)))
    sums.add(np.array([0, 1]), np.array([[1.0], [2.0]]))
    sums.add(np.array([1]), np.array([[4.0]]))
    sums.add(np.array([0]), np.array([[np.nan]]))
    np.testing.assert_array_equal(sums.mean, [[1.0], [3.0], [np.nan]])


def test_each_tree_of_a_network_counts_once_in_it_and_each_network_once():
    targets = RidgeTargets(np.zeros((2, 1)), np.ones(2), np.ones(1))
    total, network = LeftOut.none(targets), LeftOut.none(targets)
    for value in (1.0, 3.0):
        network.add(np.array([0]), np.array([[value]]))
    total.join(network)
    total.add(np.array([0]), np.array([[8.0]]))
    np.testing.assert_array_equal(total.mean, [[5.0], [np.nan]])


@pytest.mark.parametrize("leaf", [N, 50])
def test_rows_that_shaped_a_metric_have_no_left_out_prediction_by_its_network(leaf):
    members, left_out = family(trial(), leaf=leaf)
    assert len(members) == 2
    by_none = np.intersect1d(*SHAPED)
    assert np.isnan(left_out[by_none]).all()
    assert np.isfinite(np.delete(left_out, by_none, axis=0)).all()
    for k in range(2):  # rows that shaped one metric have the prediction of the other network
        of_other = np.setdiff1d(SHAPED[k], SHAPED[1 - k])
        changed = [SHAPED[0], SHAPED[1]]
        changed[k] = np.arange(N)
        alone = family(trial(), leaf=leaf, shaped=changed)[1]
        np.testing.assert_allclose(alone[of_other], left_out[of_other], atol=1e-6)


def test_all_rows_have_left_out_predictions_if_targets_shaped_nothing():
    members, left_out = family(trial(rounds=0), leaf=50)
    assert np.isfinite(left_out).all()
    assert len(members) == 2
    # A single leaf would see the same rows twice.
    assert len(family(trial(rounds=0))[0]) == 1


@pytest.mark.parametrize("splits", [None, [np.arange(20), np.arange(20, 70)]])
def test_left_out_predictions_of_a_network_are_those_of_a_refit(splits):
    targets = replace(TARGETS, splits=splits)
    (member,), left_out = family(trial(rounds=0), targets)
    Z = VIEW(X)

    def refit(kept, new):
        K = member.kernel_map.at(Z[kept])(Z[kept]) + member.alpha_ * np.eye(len(kept))
        C = np.linalg.solve(K, np.column_stack([np.ones(len(kept)), Y[kept]]))
        b = C[:, 1:].sum(axis=0) / C[:, 0].sum()
        return member.kernel_map.at(Z[kept])(Z[new]) @ (C[:, 1:] - np.outer(C[:, 0], b)) + b

    for rows in [np.array([3]), np.array([77])] if splits is None else splits:
        expected = refit(np.setdiff1d(np.arange(N), rows), rows)
        np.testing.assert_allclose(left_out[rows], expected, atol=2e-3)
    if splits is not None:
        assert np.isnan(left_out[70:]).all()


@pytest.mark.parametrize("trees", [1, 3])
def test_networks_have_as_many_trees_and_rows_of_a_leaf_as_asked_for(trees):
    members, _ = family(trial(), leaf=50, trees=trees, starts=1)
    (member,) = members
    assert len(member.network.partitions) == trees
    for partition in member.network.partitions:
        assert np.diff(partition.starts).max() <= 50
        np.testing.assert_array_equal(np.sort(partition.rows), np.arange(N))


def test_leaves_are_halved_if_a_device_runs_out_of_memory(monkeypatch):
    class OutOfMemoryError(RuntimeError):
        pass

    def solved(kernel, table, *options):
        if len(table.A) > 60:
            raise OutOfMemoryError("no memory is left")
        return solve_leaf(kernel, table, *options)

    monkeypatch.setattr(fit_module, "solve_leaf", solved)
    members, _ = family(trial())
    leaves = [np.diff(part.starts) for each in members for part in each.network.partitions]
    assert 30 <= np.max(leaves) <= 60


def test_directions_that_hardly_matter_are_dropped():
    narrow = {0: np.diag([1.0, 1e-12, 1e-12]), 1: np.diag([1.0, 1.0, 1e-12])}
    each = replace(trial(rounds=0), metrics=narrow).next_round()
    each = replace(each, errors={0: 1.0, 1: 1.0}, weights={0: 1.0, 1: 1.0})
    members, _ = family(each)
    assert [member.X_fit_.shape[1] for member in members] == [1, 2]


def test_a_fit_of_almost_no_error_keeps_scale_and_ridge():
    enough = replace(TARGETS, enough=1.0)
    (member, _), _ = family(trial(), enough)
    assert (member.shape.scale, member.alpha_) == (1.0, 0.01)
