"""Coverage of intervals and sets: the short form of `python -m trust.coverage`."""

from __future__ import annotations

import numpy as np

from trust.coverage import Held, generated, interval_of, mean_of, page_parts, sets_of


def test_intervals_of_generated_tables_hold_their_coverage():
    found = mean_of(interval_of(draw, 40, seed) for draw in generated().values() for seed in (0, 1))
    assert 0.86 <= found.coverage <= 0.97


def test_sets_are_smaller_than_those_of_a_forest():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = y[:, None] + rng.standard_normal((600, 4))
    ours, forest = sets_of((X, y), range(2))
    assert 0.86 <= ours.coverage <= 0.96
    assert ours.size < forest.size


def test_a_page_says_what_was_missed():
    held, good = Held(0.7, 3.0), Held(0.9, 3.3)
    parts, met = page_parts({("a", 100): held}, {"b": (good, good)})
    assert not met
    assert sum(part.count("**missed**") for part in parts) == 2
    parts, met = page_parts({("a", 100): good}, {"b": (good, good)})
    assert met
    assert "| a | 90.0 %, 3.30 |" in parts[2]
