"""The same seed gives the same answers: again, on more threads, and as they were kept."""

from __future__ import annotations

import json

from trust.answers import CASES, GOLDEN, bound, difference
from trust.determinism import asked, threads


def test_answers_are_those_of_other_processes_and_threads_and_of_former_releases():
    two_threads, again = (asked(PYTHONHASHSEED=str(seed), **threads(2)) for seed in (7, 8))
    assert two_threads == again
    kept = json.loads(GOLDEN.read_text())
    for name, learn_and_ask in CASES.items():
        here = learn_and_ask().tolist()
        assert difference(here, two_threads[name]) <= bound(name), name
        assert difference(here, kept[name]) <= bound(name), name
