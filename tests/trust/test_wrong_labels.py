"""Search for wrong labels: the short form of `python -m trust.wrong_labels`."""

from __future__ import annotations

import numpy as np
import pytest

from trust.wrong_labels import (
    CONTENDERS,
    HOW,
    OURS,
    SCORES,
    SETTINGS,
    chosen,
    logistic,
    margins,
    neighbours,
    page_parts,
    precisions,
    qualities,
    with_wrong_labels,
)


def clusters(n_classes, n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return 3.0 * y[:, None] ** 1.3 + rng.standard_normal((n, 3)), y


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_share_of_labels_is_changed_to_another_class(setting):
    X, y = clusters(4)
    given, changed = with_wrong_labels(X, y, setting, np.random.default_rng(0))
    assert changed.sum() == round(setting[1] * len(y))
    np.testing.assert_array_equal(given != y, changed)
    if setting[0] == HOW[1]:
        np.testing.assert_array_equal(given[changed], neighbours(X, y)[y[changed]])


def test_the_neighbour_of_a_class_has_the_nearest_mean():
    np.testing.assert_array_equal(neighbours(*clusters(4)), [1, 0, 1, 2])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_most_wrong_labels_of_clusters_are_found(n_classes):
    some = {OURS: CONTENDERS[OURS], "logistic": logistic}
    seconds = dict.fromkeys(some, 0.0)
    found = precisions(*clusters(n_classes), some, seconds)
    assert min(found.values()) > 0.7
    assert min(seconds.values()) > 0.0


def test_margins_are_negative_where_another_class_has_a_larger_score():
    scores, y = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]), np.array([0, 2])
    np.testing.assert_allclose(margins(scores, y), [0.5, -0.3])
    for name, quality in qualities(y, scores).items():
        assert name in SCORES
        assert quality[0] > quality[1]


def test_scores_are_those_of_cleanlab(monkeypatch):
    rank = pytest.importorskip("cleanlab.rank")
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 4, 50), rng.dirichlet(np.ones(4), 50)
    theirs = qualities(y, p)
    monkeypatch.delattr(rank, "get_label_quality_scores")
    for name, quality in qualities(y, p).items():
        np.testing.assert_allclose(quality, theirs[name])


def precisions_of(ours, peer):
    of = {(s, OURS, score): ours[score] for s in SETTINGS for score in SCORES}
    return of | {(s, "peer", score): peer for s in SETTINGS for score in SCORES}


def test_our_score_is_chosen_by_other_data_sets():
    margin, probability = SCORES
    found = {
        "a": precisions_of({margin: 0.9, probability: 0.5}, 0.6),
        "b": precisions_of({margin: 0.5, probability: 0.6}, 0.6),
    }
    np.testing.assert_allclose(chosen(found, SETTINGS[0], OURS), [0.5, 0.5])


def test_a_page_says_what_was_missed():
    equal = dict.fromkeys(SCORES, 0.8)
    seconds = {OURS: 1.0, "peer": 2.0}
    parts, met = page_parts({"a": precisions_of(equal, 0.7)}, seconds)
    assert met
    assert "| a | 80.0 | 70.0 |" in parts[-1]
    parts, met = page_parts({"a": precisions_of(equal, 0.9)}, seconds)
    assert not met
    assert sum(part.count("**missed**") for part in parts) == 1
