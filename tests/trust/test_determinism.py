"""The same seed gives the same predictions: in every run, on more threads, and as stored."""

from __future__ import annotations

import json

from trust.answers import CASES, GOLDEN, bound, difference
from trust.determinism import predictions_of, threads


def test_predictions_agree_with_other_processes_other_threads_and_earlier_releases():
    first, second = (predictions_of(PYTHONHASHSEED=str(seed), **threads(2)) for seed in (7, 8))
    assert first == second
    stored = json.loads(GOLDEN.read_text())
    for name, fit_and_predict in CASES.items():
        here = fit_and_predict().tolist()
        assert difference(here, first[name]) <= bound(name), name
        assert difference(here, stored[name]) <= bound(name), name
