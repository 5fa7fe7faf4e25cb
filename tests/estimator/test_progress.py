"""Long fits report their steps if asked to, and an interrupt ends them soon."""

from __future__ import annotations

import pickle
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from karnet import KARClassifierCV, KARRegressorCV
from karnet._util.progress import Progress

# Seconds after an interrupt: far more than it takes, for busy machines.
SOON = 10.0
needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")


@pytest.fixture(autouse=True)
def _few_rows(settings):
    settings(leaf=100, largest_leaf=100, smallest_leaf=50, tuned_rows=100, metric_rows=200)


def table(m, d=4):
    X = np.random.default_rng(0).standard_normal((m, d))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0.0)


def steps_of(net, m):
    """Return the steps of a fit to m rows."""
    steps = []
    net._fit((*table(m), None), steps.append)
    return steps


# A table that is a single leaf in the search and in the fit, one that is divided in the search, and
# one that is divided in both.
TABLES = {50: {}, 200: {}, 900: {"width": 150}}
KERNEL = "(gaussian|laplace|laplace_l1)"
STAGES = [rf"search, {KERNEL}, round \d+", rf"fit, {KERNEL}, network \d+ of \d+"]


@pytest.mark.parametrize("m", TABLES)
def test_verbose_prints_lines_and_changes_nothing_else(m, capsys):
    X, y = table(m)
    nets = [KARRegressorCV(random_state=0, verbose=v, **TABLES[m]).fit(X, y) for v in (0, 1)]
    said = capsys.readouterr()
    assert said.err == ""
    assert all(line.startswith("[KARRegressorCV] ") for line in said.out.splitlines())
    np.testing.assert_array_equal(*(net.predict(X) for net in nets))
    nets[0].fit(X, y)
    assert capsys.readouterr() == ("", "")
    KARClassifierCV(random_state=0, verbose=True, **TABLES[m]).fit(X, y > 0.0)
    assert capsys.readouterr().out.startswith("[KARClassifierCV] search, ")


@pytest.mark.parametrize("m", TABLES)
def test_each_step_has_its_name_its_rows_and_the_time_left(m):
    steps = steps_of(KARRegressorCV(random_state=0, **TABLES[m]), m)
    for stage in STAGES:
        assert any(re.fullmatch(stage, step.name) for step in steps)
    assert all(any(re.fullmatch(stage, step.name) for stage in STAGES) for step in steps)
    assert all(step.rows > 0 for step in steps)
    assert steps[-1].rows == m
    assert all(step.left >= 0.0 and 0.0 < step.share <= 1.0 for step in steps)
    for values in ([-step.error for step in steps], [step.seconds for step in steps]):
        assert values == sorted(values)
    assert steps[-1].left == pytest.approx(0.0, abs=1e-9)
    assert re.search(r"best error \S+, \d+\.\d s, about 0\.0 s left$", str(steps[-1]))


def test_each_network_is_a_step_and_the_last_ends_the_fit():
    net = KARRegressorCV(n_estimators=3, random_state=0)
    names = [step.name for step in steps_of(net, 200)]
    n_networks = sum(name.startswith("fit") for name in names)
    assert n_networks <= 3
    number, last = re.findall(r"\d+", names[-1])[-2:]
    assert number == last


def test_the_time_left_is_that_of_the_work_left_and_never_above_the_limit():
    steps = []
    progress = Progress(steps.append, start=time.perf_counter() - 60.0)
    progress.plan(search=4.0, fit=6.0)
    progress.step("search", "round 1", 5, work=2.0, error=0.5)
    progress.step("search", "round 2", 5, work=3.0, error=0.7)  # more than was planned
    progress.plan(search=0.0, fit=5.0)
    progress.step("fit", "network 1 of 1", 5)
    progress.most_seconds = 70.0
    progress.step("fit", "network 1 of 1", 5)
    progress.most_seconds = 1.0
    progress.step("fit", "network 1 of 1", 5)
    lefts = [step.left for step in steps]
    assert lefts[:3] == pytest.approx(
        [60.0 / 2.0 * 8.0, 60.0 / 5.0 * 6.0, 60.0 / 6.0 * 4.0], rel=0.1
    )
    assert lefts[3:] == pytest.approx([10.0, 0.0], abs=1.0)
    assert {step.error for step in steps} == {0.5}
    assert (
        str(steps[0]) == "search, round 1: 5 rows, best error 0.5, 1 min 0 s, about 4 min 0 s left"
    )


@pytest.mark.parametrize("verbose", [-1, 0.5, "yes", None])
def test_verbose_is_a_count(verbose):
    with pytest.raises(ValueError, match=r"^verbose=.* must be an integer of at least 0\.$"):
        KARRegressorCV(verbose=verbose).fit(*table(20))


@pytest.mark.parametrize("m", TABLES)
@pytest.mark.parametrize("number", [1, 5])
def test_an_interrupt_between_steps_leaves_the_estimator_as_it_was(m, number):
    net = KARRegressorCV(random_state=0, **TABLES[m])
    for fitted in (False, True):
        if fitted:
            net.fit(*table(40))
        before, seen = pickle.dumps(net), []

        def interrupt(step, seen=seen):
            seen.append(step)
            if len(seen) == number:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            net._fit((*table(m), None), interrupt)
        assert pickle.dumps(net) == before


def interrupted(process, stream, begun):
    """Interrupt a process after a line that says that it has begun; return its further output."""
    with process:
        while begun not in (line := stream.readline()):
            assert line, "the process ended before it began to fit"
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert time.monotonic() - sent < SOON
    return out, err


FIT = """
import numpy as np
from karnet import KARClassifierCV

X = np.random.default_rng(0).standard_normal((20000, 54))
net = KARClassifierCV(random_state=0, verbose=1)
try:
    net.fit(X, X[:, 0] * X[:, 1] > 0.0)
except KeyboardInterrupt:
    print(hasattr(net, "n_features_in_"))
"""


def started(arguments, monkeypatch, **options):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *arguments], **pipes, **options)


@needs_signals
def test_an_interrupt_ends_the_fit_of_a_long_table_soon(monkeypatch):
    process = started(["-c", FIT], monkeypatch)
    assert interrupted(process, process.stdout, "search, gaussian, round 1") == ("False\n", "")


@needs_signals
def test_an_interrupt_ends_karnet_fit_soon_and_without_a_file(tmp_path, monkeypatch):
    pytest.importorskip("skrub")
    X = np.random.default_rng(0).standard_normal((20000, 54)).round(3)
    names = ",".join(f"x{k}" for k in range(54))
    lines = np.column_stack([X, X[:, 0] * X[:, 1] > 0.0])
    np.savetxt(tmp_path / "t.csv", lines, "%g", ",", header=f"{names},y", comments="")
    command = ["-c", "from karnet.cli import main; main()", "fit", "t.csv", "--target", "y"]
    process = started(command, monkeypatch, cwd=tmp_path)
    assert interrupted(process, process.stderr, "Fitting") == ("", "karnet: interrupted.\n")
    assert process.returncode == 130
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
