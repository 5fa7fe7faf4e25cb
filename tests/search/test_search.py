"""The search: what it tries, in which order, and what it finds."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from karnet import KARClassifierCV, KARRegressorCV
from karnet._network.infinite_width import RidgeTargets
from karnet._search.average import folds_of, starts_of
from karnet._search.search import ERROR, OTHERS, SMOOTH, Search
from karnet._search.settings import Settings
from karnet._search.trial import FIRST_TUNING, Lens, Trial
from karnet._search.views import VIEWS, Stretched, WithScores

FEW = Settings(leaf=100, largest_leaf=100, smallest_leaf=50, most_rows_of_leaf=100, tuned_rows=100)


def table(m, d=4, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0.0) + noise * rng.standard_normal(m)
    return X, y[:, None]


def search(X, Y, settings=FEW, enough=0.0, views=None, **options):
    rng = np.random.RandomState(0)
    ones, ridges = np.ones(len(X)), np.logspace(-6, 1, 15)
    starts = starts_of(folds_of(np.zeros(len(X), dtype=int), None, 5, rng), len(X), settings, rng)
    targets = RidgeTargets(Y, ones, ridges, enough=enough)
    views = {name: VIEWS[name](X, ones) for name in views or ["standard"]}
    return Search(X, targets, starts, views, settings, rng, **options)


@pytest.fixture(scope="module")
def done():
    """Return a search that has ended, and its trials."""
    X, _ = table(300, d=6)
    waves = np.sin(2.0 * X[:, :1]) * np.sign(X[:, 1:2])
    ended = search(X, waves, views=["standard", "ranks"])
    return ended, ended.trials()


def test_trials_are_sorted_and_each_is_kept_once(done):
    _, trials = done
    errors = [trial.error for trial in trials]
    assert errors == sorted(errors)
    assert len({id(trial) for trial in trials}) == len(trials)
    assert all(trial.is_tuned and trial.errors for trial in trials)


def test_the_best_trials_were_judged_at_all_starts(done):
    ended, trials = done
    near = ended.near_best(trials)
    assert all(trial.is_complete for trial in near)
    errors = [trial.error for trial in near]
    assert errors == sorted(errors)
    assert errors[-1] <= (1.0 + ended._margin) * errors[0]
    kinds = [(trial.kernel, trial.rounds > 0) for trial in near]
    assert len(set(kinds)) == len(kinds) <= FEW.n_kernels


def test_the_metric_finds_the_inputs_that_matter(done):
    _, trials = done
    best, plain = trials[0], next(each for each in reversed(trials) if each.rounds == 0)
    assert best.rounds > 0
    assert best.error < 0.8 * plain.error
    for lens in best.lenses:
        squares = lens.root**2 if lens.root.ndim == 1 else (lens.root @ lens.root).diagonal()
        assert squares[:2].sum() > 0.7 * squares.sum()


def test_the_smooth_kernel_comes_first_and_others_begin_with_its_metrics(done):
    ended, _ = done
    kernels = [trial.kernel for trial in ended.tried]
    assert kernels[0] == SMOOTH
    assert {*OTHERS} <= set(kernels)
    whole = [each for each in ended.tried if each.is_complete and each.kernel == SMOOTH]
    best, other = min(whole, key=ERROR), next(each for each in ended.tried if each.kernel in OTHERS)
    assert other.rounds == best.rounds
    np.testing.assert_array_equal(other.lenses[0].root, best.lenses[0].root)


def test_rows_that_judge_have_no_part_in_metrics_or_tunings():
    X, Y = table(200)
    one = search(X, Y)
    changed = Y.copy()
    judging = one.starts[0].judging
    changed[judging] = 10.0 + 5.0 * changed[judging]
    trials = [each._judged(plain(each), range(1)) for each in (search(X, Y), search(X, changed))]
    np.testing.assert_array_equal(*(trial.metrics[0] for trial in trials))
    assert trials[0].tuning == trials[1].tuning
    assert 10.0 * trials[0].error < trials[1].error


def test_a_trial_is_judged_once_at_each_start():
    each = search(*table(150))
    some = each._judged(plain(each), range(2))
    assert set(some.errors) == {0, 1}
    whole = each._judged(some)
    assert whole.is_complete
    assert whole.errors[0] == some.errors[0]
    assert each._shaping(0, 5).tolist() == each.starts[0].shaping[:5].tolist()
    assert whole.n_rows == sum(len(start.shaping) for start in each.starts)
    assert each._judged(whole) is whole
    assert [trial is whole for trial in each.tried] == [True]


def test_the_error_of_a_trial_weighs_rows_as_repeats():
    X, Y = table(60)
    each = search(X, Y)
    weight = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    weighted = replace(each, targets=replace(each.targets, weight=weight))
    found = weighted._judged(plain(each), range(1))
    assert found.weights[0] == weight[each.starts[0].judging].sum()


def test_a_search_without_time_ends_after_its_first_trials():
    X, Y = table(150)
    steps = count()
    trials = search(X, Y, has_time=lambda: next(steps) < 0).trials()
    assert all(trial.kernel == SMOOTH and trial.rounds == 0 for trial in trials)
    assert any(trial.is_complete for trial in trials)


def test_a_search_ends_when_the_error_is_small_enough():
    X, Y = table(150)
    whole, easy = (len(search(X, Y, enough=enough).trials()) for enough in (0.0, 10.0))
    assert easy < whole
    assert easy <= 2


def test_views_with_a_metric_take_turns_among_the_starts():
    each = search(*table(300), replace(FEW, turn_margin=10.0), views=["standard", "ranks"])
    first = each._in_turn(ways := each._ways()[:2])
    assert [lens.name for lens in first.lenses] == [ways[k % 2].lenses[0].name for k in range(5)]
    one = replace(each, settings=replace(FEW, turn_margin=0.0))._in_turn(ways)
    assert {lens.name for lens in one.lenses} == {ways[0].lenses[0].name}


def test_leaves_grow_as_long_as_the_error_falls():
    each = search(*table(400, d=3, noise=0.01), replace(FEW, leaf=40, largest_leaf=160))
    ways = each._ways()
    leaves = [
        replace(each, settings=replace(each.settings, gain_of_leaf=gain))._in_turn(ways).leaf
        for gain in (-1.0, 1.0)
    ]
    assert leaves == [160, 120]  # a single output begins with three times the rows


def plain(each):
    """Return the first trial of a search."""
    lenses = (Lens("standard", each.views["standard"]),) * len(each.starts)
    return Trial(SMOOTH, lenses, each.settings.leaf, FIRST_TUNING[SMOOTH])


# What it finds


def test_the_diagonal_of_the_metric_helps_if_few_of_many_columns_matter():
    X, _ = table(300, d=40)
    product = X[:, :1] * X[:, 1:2]
    errors = [
        search(X, product, replace(FEW, columns_of_full=most)).trials()[0].error
        for most in (10, 40)
    ]
    assert errors[0] < 0.1 * errors[1]


def test_steps_of_a_sum_of_effects_are_found_by_scores():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 8))
    y = np.sum(X**2, axis=1) > 7.34
    net = KARClassifierCV(n_estimators=2, random_state=0).fit(X[:600], y[:600])
    assert {each.shape.view.split(" and ")[-1] for each in net.estimators_} == {"scores"}
    assert net.score(X[600:], y[600:]) > 0.85
    assert net.input_metric_.min() > 0.2 / 8


def test_scores_do_not_join_columns_without_such_effects():
    views = [trial.lenses[0].view for trial in search(*table(300)).trials()]
    assert any(isinstance(view, WithScores) for view in views)  # they were tried
    assert not isinstance(views[0], WithScores)


def test_principal_directions_replace_very_many_columns(settings):
    X, Y = table(400)
    wide = X @ np.random.default_rng(1).standard_normal((4, 30)) + 0.01
    settings(wide=20, n_directions=6)
    net = KARRegressorCV(n_estimators=1, random_state=0).fit(wide, Y[:, 0])
    (member,) = net.estimators_
    assert isinstance(member.view, Stretched)
    assert member.X_fit_.shape[1] <= 6
    assert net.score(wide, Y[:, 0]) > 0.5
    assert net.input_metric_.shape == net.feature_importances_.shape == (30,)


def test_classes_that_are_clearly_apart_need_few_trials():
    X, _ = table(300)
    easy = X + [20.0, 0.0, 0.0, 0.0] * (X[:, :1] > 0.0)
    nets = [
        KARClassifierCV(n_estimators=1, random_state=0).fit(rows, rows[:, 0] > 0.0)
        for rows in (easy, X)
    ]
    n_trials = [len(net.cv_results_["kernel"]) for net in nets]
    assert n_trials[0] < n_trials[1]
    assert nets[0].best_score_ == 1.0


def test_constant_inputs_are_predicted_by_the_mean():
    y = np.random.default_rng(0).standard_normal(300)
    net = KARRegressorCV(random_state=0).fit(np.ones((300, 2)), y)
    np.testing.assert_allclose(net.predict(np.ones((3, 2))), np.mean(y), atol=0.05)


def test_few_distinct_rows_are_predicted_by_their_share(settings):
    settings(leaf=100, largest_leaf=100, smallest_leaf=50, most_rows_of_leaf=100, tuned_rows=100)
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(2000, 2)).astype(float)
    share = np.array([[0.9, 0.2], [0.6, 0.05]])[X[:, 0].astype(int), X[:, 1].astype(int)]
    y = rng.random(len(X)) < share
    net = KARClassifierCV(random_state=0).fit(X, y)
    assert (net.predict(X) == (share > 0.5)).all()
    assert np.abs(net.predict_proba(X)[:, 1] - share).mean() < 0.1
    assert abs(net.best_score_ - np.maximum(share, 1.0 - share).mean()) < 0.05
    assert np.isfinite(net.loo_decision_function_).sum() >= 200
