"""Local members: their search, their weights and their honest scores."""

from __future__ import annotations

import numpy as np
import pytest

from karnet import KARClassifierCV, KARRegressorCV
from karnet._ensemble import local_members
from karnet._ensemble.leaves import solve_leaf
from karnet._ensemble.local_members import combined, divide, weighted
from karnet._search.member import Member, Shape
from karnet._network.infinite_width import RidgeTargets


@pytest.fixture(autouse=True)
def _few_rows(local_sizes):
    local_sizes(
        first_rows=300,
        later_rows=600,
        leaf=100,
        leaf_of_one_output=100,
        tuned_rows=100,
        metric_rows=200,
    )


def table(m, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0.0)
    return X, y


@pytest.mark.parametrize("n", [40, 1600, 40_000, 100_000])
def test_parts_are_disjoint_and_most_rows_shape_or_score(n, local_sizes):
    local_sizes(later_rows=32_000)
    parts = divide(n, 1, np.random.RandomState(0))
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together)
    assert all(len(part) for part in parts)
    assert len(parts.shaping) >= min(n // 2, 32_000)


def test_rows_that_score_have_no_part_in_the_search():
    X, y = table(900)
    net = KARRegressorCV(width=150, random_state=0).fit(X, y)
    scored = ~np.isnan(net.loo_decision_function_)
    assert 0 < scored.sum() < len(X) // 2
    new_X, new_y = table(3000, seed=1)
    # Few errors are large, and would decide a comparison of squares.
    honest = np.minimum(np.abs(y - net.loo_decision_function_)[scored], 0.2)
    fresh = np.minimum(np.abs(new_y - net.predict(new_X)), 0.2)
    assert abs(honest.mean() - fresh.mean()) < 3.0 * honest.std() / np.sqrt(scored.sum())


def test_targets_of_noise_are_predicted_by_their_mean():
    X, _ = table(900)
    y = 5.0 + np.random.default_rng(1).standard_normal(len(X))
    net = KARRegressorCV(width=150, random_state=0).fit(X, y)
    assert np.std(net.predict(X)) < 0.35
    assert abs(np.mean(net.predict(X)) - 5.0) < 0.1


def test_weights_are_those_of_the_best_sum_and_never_negative():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((200, 2))
    targets = RidgeTargets(Y, np.ones(200), np.ones(1))
    outputs = [0.5 * Y, -Y, rng.standard_normal(Y.shape)]
    members = [Member(Shape("standard", "gaussian"), None, 1.0, 0.0, each) for each in outputs]
    weights, offset = combined(members, targets, np.ones(200, dtype=bool))
    assert (weights >= 0.0).all()
    assert weights[1] == 0.0
    np.testing.assert_allclose(offset, (1.0 - weights.sum()) * Y.mean(axis=0))
    assert weights[0] == pytest.approx(2.0, abs=0.2)


def test_a_fit_depends_on_its_seed_only():
    X, y = table(700)
    first, again, other = (
        KARClassifierCV(width=120, random_state=seed).fit(X, y > 0.0).decision_function(X)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_weights_of_zero_leave_rows_out():
    X, y = table(700)
    weight = np.r_[np.ones(500), np.zeros(200)]
    found = KARRegressorCV(width=120, random_state=0).fit(X, y, weight)
    expected = KARRegressorCV(width=120, random_state=0).fit(X[:500], y[:500])
    np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-9)


def test_several_outputs_and_intervals():
    X, y = table(900)
    net = KARRegressorCV(width=150, random_state=0).fit(X, np.column_stack([y, -2.0 * y]))
    new_X, new_y = table(2000, seed=1)
    low, high = np.moveaxis(net.predict_interval(new_X, coverage=0.8), -1, 0)
    inside = (low[:, 0] <= new_y) & (new_y <= high[:, 0])
    assert 0.7 < inside.mean() < 0.9
    assert net.predict(new_X).shape == (2000, 2)


def test_leaves_are_halved_if_a_device_runs_out_of_memory(monkeypatch):
    class OutOfMemoryError(RuntimeError):
        pass

    def solved(kernel, table, *options):
        if len(table.A) > 60:
            raise OutOfMemoryError("no memory is left")
        return solve_leaf(kernel, table, *options)

    X, y = table(900)
    monkeypatch.setattr(local_members, "solve_leaf", solved)
    net = KARRegressorCV(width=200, random_state=0).fit(X, y)
    leaves = [np.diff(part.starts) for part in net.estimators_[0].network.partitions]
    assert 30 < np.max(leaves) <= 60
    assert net.score(X, y) > 0.5


def test_members_without_weight_are_left_out():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((300, 1))
    targets, judged = RidgeTargets(Y, np.ones(300), np.ones(1)), np.ones(300, dtype=bool)
    good, other, noise = (
        Member(Shape("standard", "gaussian"), None, 1.0, 0.0, left_out)
        for left_out in (Y + 0.1 * rng.standard_normal(Y.shape), -Y, rng.standard_normal(Y.shape))
    )
    kept, weights, _ = weighted([good, other], targets, judged)
    assert kept == [good]
    np.testing.assert_allclose(weights, combined([good], targets, judged)[0])
    assert weighted([other], targets, judged)[0] == [other]
    assert good in weighted([noise, good], targets, judged)[0]


@pytest.mark.parametrize("clear", [True, False])
def test_a_single_tree_is_enough_for_classes_that_are_clearly_apart(clear):
    X, _ = table(900)
    X[:, 0] += 20.0 * np.sign(X[:, 0]) if clear else 0.0
    y = (X[:, 0] > 0.0) ^ (not clear and X[:, 1] > 0.0)
    net = KARClassifierCV(width=150, random_state=0).fit(X, y)
    n_trees = [len(each.network.partitions) for each in net.estimators_]
    assert n_trees == [1] if clear else min(n_trees) > 1


def test_tables_of_many_columns_have_larger_leaves_and_more_trees(local_sizes):
    X, y = table(900)
    local_sizes(rows_of_large_leaves=100, gain_for_one_output=1.0, operations_of_one_output=1)

    def trees_and_rows():
        net = KARRegressorCV(width=200, random_state=0).fit(X, y)
        partitions = [p for each in net.estimators_ for p in each.network.partitions]
        return len(partitions) / len(net.estimators_), np.diff(partitions[0].starts).max()

    assert trees_and_rows() == (2, 100)
    local_sizes(wide=X.shape[1] - 1, trees_of_wide=6)
    n_trees, n_rows = trees_and_rows()
    assert n_trees >= 3
    assert n_rows > 100


def test_steps_of_a_sum_of_effects_are_found_by_scores():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 8))
    y = np.sum(X**2, axis=1) > 7.34
    net = KARClassifierCV(width=200, random_state=0).fit(X[:1000], y[:1000])
    assert {each.shape.view.split(" and ")[-1] for each in net.estimators_} == {"scores"}
    assert net.score(X[1000:], y[1000:]) > 0.85
    assert net.input_metric_.min() > 0.2 / 8
    # A table without such effects is not changed by the attempt.
    X, y = table(900)
    net = KARRegressorCV(width=150, random_state=0).fit(X, y)
    assert all("scores" not in each.shape.view for each in net.estimators_)


def test_the_diagonal_of_the_metric_helps_if_few_of_many_columns_matter(local_sizes):
    X, y = table(600, d=30)
    new_X, new_y = table(3000, d=30, seed=1)

    def score():
        return KARRegressorCV(width=150, random_state=0).fit(X, y).score(new_X, new_y)

    with_diagonal = score()
    local_sizes(columns_of_full=30)
    assert with_diagonal > score() + 0.1


def test_pixels_are_shown_by_their_principal_directions(local_sizes):
    X, y = table(900)
    wide = X @ np.random.default_rng(1).standard_normal((4, 30)) + 0.01
    local_sizes(wide=20, n_directions=6, width_of_rotated=300)
    net = KARRegressorCV(random_state=0, width=200).fit(wide, y)
    (member,) = net.estimators_
    assert member.X_fit_.shape[1] <= 6
    assert np.diff(member.network.partitions[0].starts).max() <= 200
    assert net.score(wide, y) > 0.5
    assert net.input_metric_.shape == (30,)
    assert net.feature_importances_.shape == (30,)


def test_constant_inputs_are_predicted_by_the_mean():
    y = np.random.default_rng(0).standard_normal(900)
    net = KARRegressorCV(width=150, random_state=0).fit(np.ones((900, 2)), y)
    np.testing.assert_allclose(net.predict(np.ones((3, 2))), np.mean(y), atol=0.05)


def test_few_distinct_rows_are_predicted_by_their_share():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(3000, 2)).astype(float)
    share = np.array([[0.9, 0.2], [0.6, 0.05]])[X[:, 0].astype(int), X[:, 1].astype(int)]
    y = rng.random(len(X)) < share
    net = KARClassifierCV(width=150, random_state=0).fit(X, y)
    own = net.best_score_
    assert (net.predict(X) == (share > 0.5)).all()
    assert np.abs(net.predict_proba(X)[:, 1] - share).mean() < 0.1
    assert abs(own - np.maximum(share, 1.0 - share).mean()) < 0.05
    assert np.isfinite(net.loo_decision_function_).sum() >= 200
