"""Laws of prediction intervals and prediction sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris, load_wine, make_friedman1

from karnet import KARClassifierCV, KARRegressorCV, load, save
from karnet._model.calibration import prediction_sets
from karnet._model.intervals import around, quantile, too_few, widening

COVERAGES = (0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999)


def clouds(n, seed=0, n_classes=3):
    """Return overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return np.column_stack([y, -y]) + rng.standard_normal((n, 2)), y


def diabetes(n):
    X, y = load_diabetes(return_X_y=True)
    return X[:n], y[:n]


# The quantile


@pytest.mark.parametrize("n", [1, 2, 5, 9, 10, 19, 100])
@pytest.mark.parametrize("coverage", COVERAGES)
def test_a_quantile_counts_one_more_value(n, coverage):
    values = np.random.default_rng(n).permutation(n) + 1.0
    place = int(np.ceil((n + 1) * coverage - 1e-9))
    assert too_few(n, coverage) == (place > n)
    assert quantile(values[None], np.ones(n), coverage)[0] == min(place, n)


def test_whole_weights_are_counts():
    values, counts = np.array([[3.0, 1.0, 2.0, 5.0]]), np.array([2, 5, 1, 3])
    repeated = np.repeat(values, counts, axis=1)
    for coverage in (0.1, 0.45, 0.6, 0.7):
        # The further value weighs 1 in one case, and the mean weight in the other.
        more = coverage * (counts.sum() + 1) / (counts.sum() + counts.mean())
        found = quantile(values, counts.astype(float), more)
        assert found == quantile(repeated, np.ones(counts.sum()), coverage)


@pytest.mark.parametrize("n", [1, 2, 8, 30])
def test_too_few_errors_widen_intervals_steadily(n):
    most = n / (n + 1)
    assert widening(n, most) == widening(n, 0.5 * most) == 1.0
    factors = [widening(n, c) for c in (most, most + 1e-6, 0.5 + 0.5 * most, 0.9999)]
    assert 1.0 < factors[1] < 1.0 + 1e-3
    assert factors == sorted(factors)
    assert np.isfinite(factors).all()


# Intervals


@pytest.mark.parametrize("n", [3, 8, 25, 80])
@pytest.mark.parametrize("options", [{}, {"cv": 4}, {"n_estimators": 1}, {"width": 20}], ids=str)
def test_intervals_contain_their_prediction_and_nest(n, options):
    if n < 4 and "cv" in options:
        pytest.skip("three rows have no four folds")
    X, y = diabetes(n)
    net = KARRegressorCV(random_state=0, **options).fit(X, np.column_stack([y, y**2]))
    new = load_diabetes().data[100:120]
    inner = np.repeat(net.predict(new)[..., None], 2, axis=-1)
    for coverage in COVERAGES:
        outer = net.predict_interval(new, coverage)
        scale = 1e-9 * np.abs(outer).max()
        assert (outer[..., 0] <= inner[..., 0] + scale).all()
        assert (outer[..., 1] >= inner[..., 1] - scale).all()
        inner = outer


def test_half_of_the_width_is_a_quantile_of_left_out_errors():
    X, y = diabetes(60)
    net = KARRegressorCV(random_state=0).fit(X, y)
    low, high = net.predict_interval(X, 0.8).T
    errors = np.sort(np.abs(y - net.loo_decision_function_))
    spread = errors[int(np.ceil(0.8 * 61)) - 1]
    np.testing.assert_allclose(0.5 * (low + high), net.predict(X))
    np.testing.assert_allclose(0.5 * (high - low), spread)


def test_rows_without_a_left_out_prediction_have_no_part_in_intervals():
    predictions, errors = np.zeros((2, 1)), np.array([1.0, np.nan, 2.0, 3.0])[:, None]
    known = errors[~np.isnan(errors[:, 0])]
    found = around(predictions, errors, np.array([1.0, 9.0, 1.0, 1.0]), 0.5)
    np.testing.assert_array_equal(found, around(predictions, known, None, 0.5))
    np.testing.assert_array_equal(found[..., 1], 2.0)


@pytest.mark.parametrize("cv", [None, 4])
def test_intervals_of_short_tables_hold_what_they_promise(cv):
    held = []
    for seed in range(12):
        X, y = make_friedman1(430, noise=1.0, random_state=seed)
        net = KARRegressorCV(random_state=0, cv=cv).fit(X[:40], y[:40])
        low, high = net.predict_interval(X[40:]).T
        held.append(np.mean((low <= y[40:]) & (y[40:] <= high)))
    assert 0.85 <= np.mean(held) <= 0.95


def test_intervals_of_divided_tables_hold_what_they_promise(settings):
    leaves = {"leaf": 80, "largest_leaf": 80, "smallest_leaf": 40, "most_rows_of_leaf": 80}
    settings(**leaves, tuned_rows=80)
    held = []
    for seed in range(4):
        X, y = make_friedman1(1000, noise=1.0, random_state=seed)
        net = KARRegressorCV(random_state=0).fit(X[:400], y[:400])
        low, high = net.predict_interval(X[400:], 0.9).T
        held.append(np.mean((low <= y[400:]) & (y[400:] <= high)))
    assert 0.85 <= np.mean(held) <= 0.95


# Sets


def test_a_set_holds_the_classes_above_a_threshold():
    left_out = np.linspace(0.05, 0.95, 19)  # the threshold of 0.8 is the fourth least
    P = np.array([[0.7, 0.2, 0.1], [0.25, 0.25, 0.5], [0.1, 0.15, 0.75]])
    expected = [[True, True, False], [True, True, True], [False, False, True]]
    found = prediction_sets(P, left_out, None, 0.8)
    np.testing.assert_array_equal(found, expected)
    order = np.random.default_rng(0).permutation(19)
    np.testing.assert_array_equal(prediction_sets(P, left_out[order], None, 0.8), expected)
    weight = np.full(19, 3.5)
    np.testing.assert_array_equal(prediction_sets(P, left_out, weight, 0.8), expected)
    columns = [2, 0, 1]
    relabelled = prediction_sets(P[:, columns], left_out, None, 0.8)
    np.testing.assert_array_equal(relabelled, np.array(expected)[:, columns])


def test_exchangeable_rows_are_held_as_often_as_promised():
    rng = np.random.default_rng(0)
    for n, coverage in ((9, 0.8), (19, 0.9), (30, 0.5)):
        held = []
        for _ in range(4000):
            p = rng.random(n + 1) * 0.5  # never the most probable class
            held.append(prediction_sets(np.array([[1 - p[0], p[0]]]), p[1:], None, coverage)[0, 1])
        assert coverage - 0.025 <= np.mean(held) <= coverage + 1 / (n + 1) + 0.025


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sets_grow_with_coverage_and_are_never_empty(n_classes):
    X, y = clouds(80, n_classes=n_classes)
    net = KARClassifierCV(random_state=0).fit(X, y)
    new = clouds(200, seed=1)[0]
    inner = np.zeros((200, n_classes), dtype=bool)
    for coverage in COVERAGES:
        outer = net.predict_set(new, coverage)
        assert outer.dtype == bool
        assert outer.shape == (200, n_classes)
        assert outer[np.arange(200), net.predict_proba(new).argmax(axis=1)].all()
        assert (outer >= inner).all()
        inner = outer
    assert inner.all()  # 80 rows are too few for 99.9 %
    assert net.predict_set(new, 0.05).sum() == 200


def test_sets_hold_what_they_promise():
    held = []
    for seed in range(12):
        X, y = clouds(560, seed)
        sets = KARClassifierCV(random_state=0).fit(X[:60], y[:60]).predict_set(X[60:])
        held.append(sets[np.arange(500), y[60:]].mean())
    assert 0.87 <= np.mean(held) <= 0.94


def test_names_of_classes_do_not_matter():
    X, y = load_iris(return_X_y=True)
    X, y = X[::2, :2], y[::2]
    names = np.array(["a", "bb", "c"])
    plain, named = (KARClassifierCV(random_state=0).fit(X, each) for each in (y, names[y]))
    np.testing.assert_array_equal(plain.predict_set(X), named.predict_set(X))


def test_weights_of_rows_count_in_sets():
    X, y = clouds(120, n_classes=2)
    hard = np.abs(X[:, 0] - X[:, 1] - 1.0) < 1.0
    net = KARClassifierCV(random_state=0).fit(X, y)
    even = net.predict_set(X).sum()
    evidence = replace(net.model_.evidence, weight=np.where(hard, 5.0, 1.0))
    net.model_ = replace(net.model_, evidence=evidence)
    assert net.predict_set(X).sum() > even
    weighted = KARClassifierCV(random_state=0).fit(X, y, np.where(hard, 5.0, 0.0))
    model = weighted.model_
    assert len(model.evidence.honest_weight) == len(model.true_probabilities) == hard.sum()


def test_sets_of_long_tables_come_from_rows_without_a_part_in_the_search():
    X, y = clouds(600)
    net = KARClassifierCV(width=100, random_state=0).fit(X, y)
    judged = np.isfinite(net.loo_decision_function_).all(axis=1)
    assert 0 < len(net.model_.true_probabilities) <= judged.sum() <= 600
    new_X, new_y = clouds(1000, seed=1)
    held = net.predict_set(new_X)[np.arange(1000), new_y].mean()
    assert 0.85 <= held <= 0.95


def test_sets_come_back_from_a_file(tmp_path):
    X, y = load_wine(return_X_y=True)
    net = KARClassifierCV(n_estimators=1, random_state=0).fit(X, y, np.linspace(0.5, 1.5, len(y)))
    save(net, tmp_path / "net.karnet")
    again = load(tmp_path / "net.karnet")
    np.testing.assert_array_equal(again.predict_set(X, 0.995), net.predict_set(X, 0.995))


@pytest.mark.parametrize("coverage", [None, "0.9", 0.0, 1.0, True, np.ones(2), 1j], ids=str)
def test_a_set_needs_a_probability(coverage):
    net = KARClassifierCV(n_estimators=1, random_state=0).fit(*clouds(30))
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        net.predict_set(clouds(3)[0], coverage=coverage)
