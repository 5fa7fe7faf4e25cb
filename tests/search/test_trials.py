"""What the search tries: starts, lenses and trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from karnet._network.infinite_width import RidgeTargets
from karnet._search.average import folds_of, starts_of
from karnet._search.leaves import Tuning
from karnet._search.settings import SETTINGS
from karnet._search.trial import FIRST_TUNING, LEAST_STRETCH, Lens, Start, Trial
from karnet._search.views import VIEWS, Stretched, WithScores

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
VIEW = VIEWS["standard"](X, np.ones(60))
B = RNG.standard_normal((2, 3, 3))
FULL, OTHER = B @ B.transpose(0, 2, 1)
LENS = Lens("standard", VIEW)


def seeded():
    return np.random.RandomState(0)


def scaled(M):
    return M * len(M) / (M.sum() if M.ndim == 1 else np.trace(M))


# Folds and starts


@pytest.mark.parametrize("n", [2, 3, 7, 40, 1000])
def test_folds_hold_each_row_once_and_equal_shares_of_every_stratum(n):
    strata = np.arange(n) % 3
    folds = folds_of(strata, None, 5, seeded())
    assert len(folds) == min(n, 5)
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(n))
    counts = np.array([np.bincount(strata[fold], minlength=3) for fold in folds])
    assert np.ptp(counts, axis=0).max() <= 1 + (n < 15)


def test_folds_are_unions_of_splits():
    splits = np.array_split(np.random.default_rng(1).permutation(60), 8)
    folds = folds_of(np.zeros(60, dtype=int), splits, 5, seeded())
    assert len(folds) == 5
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(60))
    for split in splits:
        assert sum(np.isin(split, fold).all() for fold in folds) == 1
        assert sum(np.isin(split, fold).any() for fold in folds) == 1


def test_splits_that_leave_out_all_rows_are_not_used():
    some = np.arange(10)
    folds = folds_of(np.zeros(20, dtype=int), [np.arange(20), some], 5, seeded())
    np.testing.assert_array_equal(np.sort(folds[0]), some)
    assert len(folds_of(np.zeros(20, dtype=int), [np.arange(20)], 5, seeded())) == 5


def test_rows_in_no_split_shape_metrics():
    some = np.arange(10)
    (start,) = starts_of([some], 50, replace(SETTINGS, shaping_share=1.0), seeded())
    np.testing.assert_array_equal(np.sort(start.shaping), np.arange(10, 50))


@pytest.mark.parametrize("n", [2, 9, 500, 30_000, 100_000])
def test_rows_that_shape_and_rows_that_judge_are_disjoint(n):
    folds = folds_of(np.zeros(n, dtype=int), None, SETTINGS.n_folds, seeded())
    starts = starts_of(folds, n, SETTINGS, seeded())
    assert 1 <= len(starts) <= SETTINGS.n_folds
    for start in starts:
        assert len(start.shaping)
        assert len(start.judging)
        together = np.concatenate(start.all)
        assert len(np.unique(together)) == len(together)
        assert together.max() < n
    assert sum(len(start.shaping) for start in starts) <= SETTINGS.shaping
    assert sum(len(start.judging) for start in starts) <= SETTINGS.judging


def test_all_rows_of_a_short_table_judge_once_and_starts_shape_differently():
    folds = folds_of(np.zeros(500, dtype=int), None, 5, seeded())
    starts = starts_of(folds, 500, SETTINGS, seeded())
    judging = np.concatenate([start.judging for start in starts])
    np.testing.assert_array_equal(np.sort(judging), np.arange(500))
    shaping = [set(start.shaping) for start in starts]
    assert len({frozenset(each) for each in shaping}) == 5
    assert all(len(each) == round(SETTINGS.shaping_share * 400) for each in shaping)


def test_a_start_among_some_rows_has_the_same_rows():
    start = Start(np.array([8, 2, 5]), np.array([9, 3]))
    some = np.array([2, 3, 5, 8, 9])
    for before, after in zip(start.all, start.within(some).all, strict=True):
        np.testing.assert_array_equal(some[after], before)


# Lenses


def test_the_metric_of_a_lens_is_the_mean_of_those_of_its_rounds():
    first = LENS.next(FULL)
    np.testing.assert_allclose(first.root @ first.root, scaled(FULL), rtol=1e-6, atol=1e-5)
    second = first.next(OTHER)
    expected = scaled(scaled(FULL) + scaled(first.root @ OTHER @ first.root))
    np.testing.assert_allclose(scaled(second.root @ second.root), expected, atol=1e-5)


@pytest.mark.parametrize("M", [FULL, FULL.diagonal()], ids=["full", "diagonal"])
def test_a_lens_of_diagonals_has_that_of_the_metric(M):
    diagonal = replace(LENS, diagonal=True).next(M)
    np.testing.assert_allclose(scaled(diagonal.root**2), scaled(FULL.diagonal()))
    again = diagonal.next(OTHER)
    assert again.root.shape == (3,)
    of_round = scaled(OTHER.diagonal() * diagonal.root**2)
    expected = scaled(scaled(FULL.diagonal()) + of_round)
    np.testing.assert_allclose(scaled(again.root**2), expected)


@pytest.mark.parametrize("M", [np.diag([1.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0])])
def test_no_direction_is_lost_for_the_next_round(M):
    root = LENS.next(M).root
    values = root if root.ndim == 1 else np.linalg.eigvalsh(root)
    assert values.min() == pytest.approx(LEAST_STRETCH * values.max())


def test_a_lens_shows_rows_times_its_root():
    A = VIEW(X).astype(np.float32)
    assert LENS.of(A) is A
    lens = LENS.next(FULL)
    shown = lens.of(A)
    assert shown.dtype == np.float32
    np.testing.assert_allclose(shown, VIEW(X) @ lens.root, atol=1e-5)
    np.testing.assert_allclose(Stretched(VIEW, lens.root)(X), shown, atol=1e-5)


def test_city_block_distances_take_the_diagonal_of_the_metric():
    lens = LENS.next(FULL).next(OTHER)
    assert lens.for_kernel("laplace") is lens
    diagonal = lens.for_kernel("laplace_l1").root
    np.testing.assert_allclose(diagonal**2, (lens.root @ lens.root).diagonal())
    assert LENS.for_kernel("laplace_l1").root is None


def test_a_shortened_lens_keeps_the_distances_but_for_a_share():
    lens = LENS.next(np.diag([1.0, 1.0, 1e-8]))
    short = lens.shortened(1e-4)
    assert short.root.shape == (3, 2)
    A = VIEW(X)
    expected, found = (np.sum(each.of(A) ** 2, axis=1).mean() for each in (lens, short))
    assert found == pytest.approx(expected, rel=2e-4)
    assert LENS.shortened(0.5).root is None


def test_a_lens_is_shaped_by_targets_if_it_has_a_metric_or_scores():
    targets = RidgeTargets(np.abs(X[:, :1]), np.ones(60), np.logspace(-6, 1, 8))
    assert not LENS.is_shaped
    assert LENS.next(FULL).is_shaped
    assert replace(LENS, view=WithScores.of(VIEW, X, targets)).is_shaped


# Trials


def judged(errors, weights, **options):
    options = {"lenses": (LENS,) * 3, **options}
    starts = range(len(errors))
    return Trial(
        "gaussian",
        leaf=100,
        tuning=Tuning(1.0, 0.1),
        errors=dict(zip(starts, errors, strict=True)),
        weights=dict(zip(starts, weights, strict=True)),
        metrics=dict.fromkeys(starts, FULL),
        n_rows=100,
        **options,
    )


def test_the_error_of_a_trial_is_that_of_all_judging_rows():
    trial = judged([2.0, 9.0, 4.0], [1.0, 3.0, 2.0])
    assert trial.error == 15.0 / 6.0
    assert trial.error_at([0, 2]) == 2.0
    assert trial.error_at([1]) == 3.0


def test_a_trial_is_complete_when_all_starts_have_judged_it():
    assert not judged([1.0, 1.0], [1.0, 1.0]).is_complete
    assert judged([1.0] * 3, [1.0] * 3).is_complete


def test_a_trial_that_is_begun_anew_forgets_what_was_judged():
    trial = replace(judged([1.0] * 3, [1.0] * 3), is_tuned=True)
    others = [
        trial.begun_with(leaf=200),
        trial.next_round(),
        trial.with_kernel("laplace"),
        trial.without_metric(),
    ]
    for other in others:
        assert len(other.errors) == len(other.weights) == len(other.metrics) == 0
        assert other.n_rows == 0
        assert not other.is_tuned
    assert others[0].leaf == 200
    assert others[0].tuning == trial.tuning
    assert trial.is_complete


def test_each_start_has_a_metric_of_its_own():
    trial = replace(judged([1.0] * 2, [1.0] * 2), metrics={0: FULL, 1: OTHER})
    following = trial.next_round()
    assert following.rounds == 1
    roots = [lens.root for lens in following.lenses]
    np.testing.assert_allclose(scaled(roots[0] @ roots[0]), scaled(FULL), atol=1e-5)
    np.testing.assert_allclose(scaled(roots[1] @ roots[1]), scaled(OTHER), atol=1e-5)
    assert roots[2] is None
    plain = following.without_metric()
    assert plain.rounds == 0
    assert all(lens.root is None for lens in plain.lenses)


def test_scale_and_ridge_stay_once_a_round_has_kept_them():
    trial = judged([1.0] * 3, [1.0] * 3)
    settled = replace(trial, is_settled=True, rounds=1)
    assert settled.next_round().is_tuned
    assert not replace(settled, rounds=0).next_round().is_tuned
    assert not replace(settled, is_settled=False).next_round().is_tuned


def test_another_kernel_begins_with_the_metrics_and_its_own_scale():
    trial = judged([1.0] * 3, [1.0] * 3).next_round()
    other = trial.with_kernel("laplace")
    assert other.tuning == FIRST_TUNING["laplace"]
    assert other.rounds == trial.rounds == 1
    for found, expected in zip(other.lenses, trial.lenses, strict=True):
        np.testing.assert_array_equal(found.root, expected.root)


def test_the_shape_names_each_view_once():
    lenses = (LENS, Lens("ranks", VIEW), LENS)
    shape = judged([1.0] * 3, [1.0] * 3, lenses=lenses).shape
    assert shape.view == "standard, ranks"
    assert (shape.kernel, shape.scale, shape.rounds) == ("gaussian", 1.0, 0)
