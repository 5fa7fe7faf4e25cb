"""The average: weights of networks, time limits, and the laws of a whole fit."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pytest
from sklearn.base import clone

from karnet import KARClassifierCV, KARRegressorCV
from karnet._estimator.ensemble_base import RIDGES
from karnet._network.infinite_width import RidgeTargets
from karnet._search.average import TimeLimit, combined
from karnet._search.fit import Sizes
from karnet._search.leaves import SCALES
from karnet._search.settings import SETTINGS, settings_for

FEW = {
    "leaf": 100,
    "largest_leaf": 100,
    "smallest_leaf": 50,
    "most_rows_of_leaf": 100,
    "tuned_rows": 100,
    "fit_tuned_rows": 100,
}


def table(m, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0.0)
    return X, y


# Weights


def outputs(n, noise, seed=0):
    """Return targets, and predictions of them with errors of some sizes."""
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((n, 2))
    return RidgeTargets(Y, np.ones(n), np.ones(1)), [
        Y + size * rng.standard_normal(Y.shape) for size in noise
    ]


def test_weights_are_those_of_the_best_sum_and_never_negative():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((2000, 2))
    targets = RidgeTargets(Y, np.ones(2000), np.ones(1))
    left_out = [0.5 * Y, -Y, rng.standard_normal(Y.shape)]
    weights, offset = combined(left_out, targets, np.ones(2000, dtype=bool), 0.0)
    assert (weights >= 0.0).all()
    assert weights[1] == 0.0
    np.testing.assert_allclose(offset, (1.0 - weights.sum()) * Y.mean(axis=0))
    assert weights[0] == pytest.approx(2.0, abs=0.1)


def test_weights_are_nearer_to_equal_ones_the_fewer_rows_there_are():
    ratios = []
    for n in (50, 500, 50_000):
        targets, left_out = outputs(n, [0.4, 0.8])
        weights, _ = combined(left_out, targets, np.ones(n, dtype=bool), SETTINGS.shrinkage)
        ratios.append(weights[1] / weights[0])
    assert 1.0 > ratios[0] > ratios[1] > ratios[2]
    assert ratios[0] > 1.5 * ratios[2]


def test_more_shrinkage_gives_more_equal_weights():
    targets, left_out = outputs(300, [0.4, 0.8])
    found = [combined(left_out, targets, np.ones(300, dtype=bool), s)[0] for s in (0.0, 5.0, 1e6)]
    ratios = [weights[1] / weights[0] for weights in found]
    assert ratios == sorted(ratios)
    np.testing.assert_allclose(found[-1], 0.5, rtol=1e-3)


def test_the_more_rows_there_are_the_less_weight_has_noise():
    shares = []
    for n in (100, 10_000, 100_000):
        targets, (good,) = outputs(n, [0.1])
        noise = np.random.default_rng(1).standard_normal(good.shape)
        judged = np.ones(n, dtype=bool)
        weights, _ = combined([good, noise], targets, judged, SETTINGS.shrinkage)
        shares.append(weights[1] / weights.sum())
        opposite, _ = combined([good, -good], targets, judged, 0.0)
        assert opposite[1] == 0.0 < opposite[0]
    assert shares[0] > shares[1] >= shares[2] == 0.0


def test_weights_of_rows_are_repeats():
    targets, left_out = outputs(60, [0.4, 0.8])
    counts = np.random.default_rng(1).integers(1, 4, 60)
    weighted = RidgeTargets(targets.Y, counts.astype(float), np.ones(1))
    again = RidgeTargets(np.repeat(targets.Y, counts, axis=0), np.ones(counts.sum()), np.ones(1))
    repeated = [np.repeat(each, counts, axis=0) for each in left_out]
    found = combined(left_out, weighted, np.ones(60, dtype=bool), SETTINGS.shrinkage)
    expected = combined(repeated, again, np.ones(counts.sum(), dtype=bool), SETTINGS.shrinkage)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs)


def test_rows_that_nothing_judges_have_no_part_in_the_weights():
    targets, left_out = outputs(400, [0.4, 0.8])
    judged = np.arange(400) < 300
    expected = combined(left_out, targets, judged, SETTINGS.shrinkage)
    unknown = [np.where(judged[:, None], each, np.nan) for each in left_out]
    found = combined(unknown, targets, judged, SETTINGS.shrinkage)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    weights, offset = combined(unknown, targets, np.zeros(400, dtype=bool), SETTINGS.shrinkage)
    np.testing.assert_array_equal(weights, 0.5)
    np.testing.assert_array_equal(offset, 0.0)


# Time


def test_a_fit_has_the_operations_that_the_time_left_allows():
    now = perf_counter()
    assert TimeLimit(np.inf, now).operations(1e9, 1000) == np.inf
    # 10 of 20 seconds were spent for 1e6 operations: the others allow as many, for 1000 rows.
    assert TimeLimit(20.0, now - 10.0).operations(1e6, 1000) == pytest.approx(1e3, rel=0.01)
    assert TimeLimit(5.0, now - 10.0).operations(1e6, 1000) == 0.0
    assert TimeLimit(20.0, now - 1.0).has_time()
    assert not TimeLimit(20.0, now - 15.0).has_time()


def test_less_time_means_fewer_trials_and_smaller_networks():
    X, y = table(700)
    patient = KARRegressorCV(random_state=0).fit(X, y)
    hasty = clone(patient).set_params(time_budget=1e-6).fit(X, y)
    assert len(hasty.cv_results_["view"]) < len(patient.cv_results_["view"])
    assert len(hasty.estimators_) == 1 < len(patient.estimators_)
    rows = [np.diff(part.starts).max() for part in hasty.estimators_[0].network.partitions]
    assert max(rows) < 700
    assert hasty.predict(X).shape == (700,)


def test_time_is_no_border_at_which_other_ridges_are_tried():
    X, y = table(1000)
    y = y + 0.3 * np.random.default_rng(1).standard_normal(1000)
    whole = KARRegressorCV(random_state=0).fit(X, y)
    limited = clone(whole).set_params(time_budget=1.0).fit(X, y)
    for net in (whole, limited):
        assert set(net.cv_results_["alpha"]) <= set(RIDGES)
        assert set(net.cv_results_["scale"]) <= {*SCALES}
        assert {member.alpha_ for member in net.estimators_} <= set(RIDGES)
    # As far as both went, they went the same way.
    first = limited.cv_results_["squared_error"].max()
    assert first in whole.cv_results_["squared_error"]


# The whole fit


def test_the_same_seed_gives_the_same_bits_and_another_one_other_networks(settings):
    settings(**FEW)
    X, y = table(400)
    first, again, other = (
        KARClassifierCV(random_state=seed).fit(X, y > 0.0).decision_function(X)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_there_are_at_most_as_many_networks_as_asked_for(n):
    X, y = table(150)
    net = KARRegressorCV(n_estimators=n, random_state=0).fit(X, y)
    assert 1 <= len(net.estimators_) <= n
    assert len(net.weights_) == len(net.estimators_)


def test_width_limits_the_rows_of_a_leaf():
    X, y = table(400)
    net = KARRegressorCV(width=60, n_estimators=2, random_state=0).fit(X, y)
    for member in net.estimators_:
        for partition in member.network.partitions:
            assert np.diff(partition.starts).max() <= 60
    assert settings_for(None).within(60).leaf == 60
    assert settings_for(None).within(None) is SETTINGS


def test_rows_that_judge_have_no_part_in_the_metrics(settings):
    settings(**FEW)
    X, y = table(900)
    net = KARRegressorCV(random_state=0).fit(X, y)
    scored = ~np.isnan(net.loo_decision_function_)
    new_X, new_y = table(3000, seed=1)
    # Few errors are large, and would decide a comparison of squares.
    honest = np.minimum(np.abs(y - net.loo_decision_function_)[scored], 0.2)
    fresh = np.minimum(np.abs(new_y - net.predict(new_X)), 0.2)
    assert scored.sum() > len(X) // 5
    assert abs(honest.mean() - fresh.mean()) < 4.0 * honest.std() / np.sqrt(scored.sum())


def test_targets_of_noise_are_predicted_by_their_mean(settings):
    settings(**FEW)
    X, _ = table(900)
    y = 5.0 + np.random.default_rng(1).standard_normal(len(X))
    net = KARRegressorCV(random_state=0).fit(X, y)
    assert np.std(net.predict(X)) < 0.35
    assert abs(np.mean(net.predict(X)) - 5.0) < 0.1


def test_the_sizes_of_a_fit_follow_from_the_settings(settings):
    settings(**FEW)
    X, y = table(400)
    net = KARRegressorCV(random_state=0).fit(X, y)
    sizes = Sizes.of(1, 5, X.shape, 100, settings_for(None))
    for member in net.estimators_:
        assert len(member.network.partitions) <= sizes.trees
        assert np.diff(member.network.partitions[0].starts).max() <= sizes.leaf


def test_the_metric_of_an_average_names_the_columns_that_matter(settings):
    settings(**FEW)
    X, y = table(400, d=8)
    net = KARRegressorCV(random_state=0).fit(X, y)
    assert net.input_metric_.sum() == pytest.approx(1.0)
    assert net.input_metric_[:3].sum() > 0.8
