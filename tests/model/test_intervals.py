"""Intervals: predictions plus and minus a quantile of left-out errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import t as student
from sklearn.datasets import load_diabetes

from karnet import KARRegressorCV
from karnet._model.intervals import around, widening

RNG = np.random.default_rng(0)
PREDICTIONS = RNG.normal(size=(7, 2))
ERRORS = RNG.normal(size=(99, 2)) * [1.0, 3.0]


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
def test_intervals_are_centred_at_predictions_and_contain_the_share_of_errors(coverage):
    ends = around(PREDICTIONS, ERRORS, None, coverage)
    assert_allclose(ends.mean(axis=2), PREDICTIONS)
    half = np.diff(ends[0], axis=1)[:, 0] / 2.0
    # One more row counts, which no interval contains.
    covered = (np.abs(ERRORS) <= half * (1.0 + 1e-12)).sum(axis=0)
    assert np.all(covered == np.ceil(coverage * 100 - 1e-9))


def test_weights_are_repeats_and_rows_without_left_out_predictions_have_no_part():
    counts = RNG.integers(1, 4, len(ERRORS))
    weighted = around(PREDICTIONS, ERRORS, counts.astype(float), 0.8)
    repeated = around(PREDICTIONS, np.repeat(ERRORS, counts, axis=0), None, 0.8)
    # Of weights, the row at infinity has the mean.
    assert_allclose(weighted, repeated, rtol=0.1)
    unknown = np.full((5, 2), np.nan)
    more = around(PREDICTIONS, np.vstack([ERRORS, unknown]), np.ones(104), 0.8)
    assert_allclose(more, around(PREDICTIONS, ERRORS, None, 0.8))


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_few_rows_widen_the_largest_error_as_students_distribution(n):
    errors = ERRORS[:n]
    half = np.diff(around(PREDICTIONS, errors, None, 0.9)[0], axis=1)[:, 0] / 2.0
    assert_allclose(half, np.abs(errors).max(axis=0) * widening(n, 0.9))
    ends = student(max(n - 1, 1)).ppf([(1.0 + 0.9) / 2.0, (1.0 + n / (n + 1)) / 2.0])
    assert_allclose(widening(n, 0.9), ends[0] / ends[1])
    assert widening(n, 0.9) > 1.0
    assert widening(9, 0.9) == 1.0


def test_intervals_of_an_estimator_contain_its_predictions_and_about_the_coverage():
    X, y = load_diabetes(return_X_y=True)
    train = np.arange(len(y)) % 2 == 0
    net = KARRegressorCV(random_state=0).fit(X[train], y[train])
    predictions = net.predict(X[~train])
    inner, outer = (net.predict_interval(X[~train], share) for share in (0.5, 0.9))
    assert_allclose(inner.mean(axis=1), predictions)
    assert np.all((outer[:, 0] < inner[:, 0]) & (inner[:, 1] < outer[:, 1]))
    inside = (outer[:, 0] <= y[~train]) & (y[~train] <= outer[:, 1])
    assert 0.8 < inside.mean() < 0.98
