"""Probabilities of classes: their limits, and the selection of their link."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from karnet._model.calibration import Calibration, bent

RNG = np.random.default_rng(0)
SCORES = RNG.normal(0.3, 0.4, (200, 3))


@pytest.mark.parametrize("knee", [np.inf, 1.0, 0.03])
def test_probabilities_are_those_of_the_formula_and_keep_the_order_of_scores(knee):
    P = Calibration(knee, 0.5, 0.01).probabilities(SCORES)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert P.min() >= 0.01 / 3
    np.testing.assert_array_equal(P.argmax(axis=1), SCORES.argmax(axis=1))
    if np.isfinite(knee):
        powers = np.log1p(np.exp(np.maximum(SCORES / knee, -20.0))) ** 2.0
        np.testing.assert_allclose(P, 0.99 * powers / powers.sum(1, keepdims=True) + 0.01 / 3)


def test_a_large_knee_is_the_softmax():
    knee = 1e6
    found = softmax(bent(SCORES, knee) * (2.0 * np.log(2.0) * knee), axis=1)
    np.testing.assert_allclose(found, softmax(SCORES, axis=1), atol=1e-5)


def drawn(P, seed=1):
    """Return a class for each row, drawn with its probabilities."""
    uniform = np.random.default_rng(seed).random((len(P), 1))
    return (P.cumsum(axis=1) < uniform).sum(axis=1).clip(max=P.shape[1] - 1)


def test_scores_that_are_probabilities_need_a_knee():
    P = np.random.default_rng(2).dirichlet([0.3, 0.3, 0.3, 0.3], 3000)
    found = Calibration.of(drawn(P), P, None, 1e-4)
    assert found.knee <= 0.3
    np.testing.assert_allclose(found.probabilities(P), P, atol=0.05)


def test_logits_need_none():
    logits = np.random.default_rng(3).normal(0.0, 2.0, (2000, 3))
    found = Calibration.of(drawn(softmax(logits, axis=1)), logits, None, 1e-4)
    assert np.isinf(found.knee)
    assert found.temperature == pytest.approx(1.0, rel=0.1)


def test_weights_are_repeats():
    P = np.random.default_rng(4).dirichlet([0.4, 0.4, 0.4], 300)
    codes, repeats = drawn(P), np.random.default_rng(5).integers(1, 4, 300)
    weighted = Calibration.of(codes, P, repeats.astype(float), 1e-3)
    repeated = Calibration.of(np.repeat(codes, repeats), np.repeat(P, repeats, axis=0), None, 1e-3)
    assert weighted.knee == repeated.knee
    assert weighted.temperature == pytest.approx(repeated.temperature, rel=1e-3)
