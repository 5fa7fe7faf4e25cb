"""The short form of `make fuzz`: a few fixed cases of each target, and all attacks."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

pytest.importorskip("pyarrow")
pytest.importorskip("skops")
pytest.importorskip("skrub")
pytest.importorskip("skl2onnx")
pytest.importorskip("resource", reason="the fuzzer limits memory and time as only POSIX can")

from karnet import KARClassifier
from trust.fuzz_attacks import ATTACKS, TABLE_ATTACKS, attacked
from trust.fuzz_case import BrokenError, Case, OwnError, TheirError, judge, kept_in
from trust.fuzz_worker import TARGETS

# Numbers of cases, by the time that they take.
CASES = {"arrays": 150, "parameters": 80, "model files": 60, "tables": 120, "ONNX": 15}
# Number of cases of all other targets.
FEW = 8


@pytest.mark.parametrize("target", TARGETS)
def test_every_case_ends_in_a_result_or_is_refused(target, tmp_path):
    files = tmp_path / "files"
    files.mkdir()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = TARGETS[target](files)

        @settings(
            max_examples=CASES.get(target, FEW),
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(cases)
        def each(case):
            verdict = judge(case, files)
            assert not verdict.broken, (verdict, case.about)

        each()


def test_every_attack_is_refused(tmp_path):
    found = attacked(tmp_path)
    assert len(found) == len(ATTACKS) + len(TABLE_ATTACKS)
    assert {verdict.kind for verdict in found.values()} == {"refused"}


# The judge itself


def ended(run, folder=None, seconds=5.0):
    return judge(Case("a case", run), folder, seconds).kind


def raising(error):
    def run():
        raise error

    return run


def test_results_and_refusals_are_accepted():
    X, y = np.ones((4, 2)), [0, 1, 0, 1]
    assert ended(lambda: KARClassifier((2,), random_state=0).fit(X, y)) == "result"
    assert ended(lambda: KARClassifier((2,)).fit(X, None)) == "refused"
    assert ended(lambda: KARClassifier((2,)).predict(X)) == "refused"
    assert ended(raising(OwnError())) == "refused"
    assert ended(raising(TheirError())) == "theirs"


@pytest.mark.parametrize(
    "run",
    [
        raising(ValueError("raised by no line of karnet")),
        raising(BrokenError("not finite")),
        lambda: {}["key"],
        lambda: [][1],
        lambda: np.linalg.cholesky(-np.eye(2)),
        lambda: np.ones(2) @ np.ones(3),
        lambda: np.float64(1e308) * 10,
        lambda: KARClassifier(np.ones(3)).nothing,
        lambda: exec("f = lambda: f()\nf()", {}),
    ],
    ids=range(9),
)
def test_all_other_endings_are_failures(run):
    assert ended(run) == "broken"


def test_a_case_that_does_not_end_is_a_hang():
    def forever():
        while True:
            pass

    assert ended(forever, seconds=0.05) == "hang"


def test_unexpected_files_and_code_are_noticed(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (there / "old").touch()
    assert ended((there / "new").touch, here) == "stray"
    assert ended((there / "old").unlink, here) == "stray"
    assert ended((here / "left").touch, here) == "stray"
    assert ended(lambda: os.system("true"), here) == "stray"

    def run_code():
        with kept_in():
            exec("1 + 1")

    assert ended(run_code, here) == "stray"

    def written_and_gone():
        (here / "draft").touch()
        (here / "draft").unlink()

    assert ended(written_and_gone, here) == "result"
