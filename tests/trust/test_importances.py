"""Importances of columns: the short form of `python -m trust.importances`."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from karnet import KARClassifierCV
from trust.importances import (
    DEFAULT,
    N_TRAIN,
    SQUARED,
    Agreement,
    Rows,
    agreement,
    codes,
    correlated,
    correlation,
    mean_of,
    noise_share,
    page_parts,
    relative_times,
    scores,
)


def friedman(n=100):
    X, y = make_friedman1(2 * n, n_features=6, noise=0.5, random_state=0)
    return Rows(X[:n], y[:n], X[n:], y[n:], classes=False)


def test_importances_agree_with_shuffling_of_held_out_rows():
    found = agreement(friedman())
    assert found.importances > 0.7
    assert found.halves > 0.7


def test_columns_of_noise_have_small_shares():
    rows = friedman()
    assert 0.0 <= noise_share(rows.X, rows.y, False, seed=0) < 0.05


def test_correlated_columns_have_eight_coefficients():
    rows = correlated(0, 500)
    X, y = np.vstack([rows.X, rows.X_new]), np.concatenate([rows.y, rows.y_new])
    assert len(rows.X) == N_TRAIN
    assert np.corrcoef(X.T)[0, 1] == pytest.approx(0.7, abs=0.05)
    errors = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    assert errors.std() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_the_accuracy_and_the_squared_error_of_indicators(n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 60)
    X = y[:, None] + rng.standard_normal((60, 2))
    net = KARClassifierCV(random_state=0).fit(X, y)
    found = scores(net, X, y)
    assert found[DEFAULT] == pytest.approx(net.score(X, y))
    assert -1.0 < found[SQUARED] < 0.0
    truth = np.where(y[:, None] == np.arange(n_classes), 1.0, 0.0)
    errors = net.model_.scores(X) - truth
    assert found[SQUARED] == pytest.approx(-np.mean(np.sum(errors**2, axis=1)))


def test_times_are_relative_to_that_of_the_fit():
    times = relative_times(60, 5, 1)
    assert min(times) > 0.0


def test_constant_importances_rank_nothing_and_a_constant_reference_is_left_out():
    assert correlation(np.arange(4), 2.0 ** np.arange(4)) == pytest.approx(1.0)
    assert correlation(np.ones(4), np.arange(4)) == 0.0
    assert np.isnan(correlation(np.arange(4), np.ones(4)))
    ranked, unknown = Agreement(0.8, 0.9, 0.7, 0.9, 0.6), Agreement(np.nan, 0.9, 0.5, 0.9, 0.6)
    assert mean_of([ranked, unknown]).importances == pytest.approx(0.8)


def test_categories_become_codes():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": pandas.Categorical(["x", "y", "x"]), "b": [0.5, 1.0, 2.0]})
    np.testing.assert_allclose(codes(frame), [[0.0, 0.5], [1.0, 1.0], [0.0, 2.0]])


def test_a_page_says_what_was_missed():
    good, bad = Agreement(0.95, 0.96, 0.9, 0.97, 0.9), Agreement(0.8, 0.9, 0.7, 0.9, 0.8)
    parts, met = page_parts({"a": [good]}, {"b": [0.01]}, (1.0, 0.5))
    assert met
    assert "| a | 0.95 | 0.96 | 0.90 | 0.97 | 0.90 |" in "\n".join(parts)
    parts, met = page_parts({"a": [bad]}, {"b": [0.01, 0.03]}, (2.5, 1.5))
    assert not met
    assert sum(part.count("**missed**") for part in parts) == 4
