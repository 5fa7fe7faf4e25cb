"""The short form of `make soak`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import joblib
import pytest

from karnet import save
from karnet._arrays.threads import ONE_THREAD
from trust.determinism import ROOT, threads
from trust.load import fit_many, models, predict_for
from trust.record import table, write_page

proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")


@proc
def test_eight_threads_predict_the_same_as_one(tmp_path):
    pytest.importorskip("skops")
    for name, net in models().items():
        save(net, tmp_path / f"{name}.karnet")
    done = predict_for(0.5, 8, tmp_path, row_counts=(1, 50, 2000))
    assert done["calls"] > 8
    assert done["wrong"] == 0


@proc
def test_fits_leave_nothing_behind():
    left = fit_many(140)["more"]
    assert left["threads"] == left["open files"] == 0
    # Fewer than one object per fit: caches of the libraries are filled once.
    assert left["objects"] < 140


WORKING = """
import os, sys
from contextlib import suppress
from pathlib import Path
from trust.load import small_fits, models, predictions, table_of_rows

def seconds_of_others():
    stats = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that ends meanwhile
            if task.name != str(os.getpid()):
                stats.append((task / "stat").read_text().rpartition(")")[2].split())
    return len(stats), sum(int(stat[11]) + int(stat[12]) for stat in stats)

fits, nets, X = small_fits().values(), models().values(), table_of_rows(1000)
before = seconds_of_others()
for _ in range(40):
    for fit in fits:
        fit()
    for net in nets:
        predictions(net, X)
print(before[0], seconds_of_others()[1] - before[1])
"""


@proc
def test_small_work_wakes_no_other_thread():
    # A second thread of BLAS gains nothing here, and takes a hundred times longer than the work
    # itself where cores are busy.
    command = [sys.executable, "-c", WORKING]
    settings = threads(2) | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": ""}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    others, worked = map(int, done.stdout.split())
    assert others > 0
    assert worked <= 2


def allowed(_):
    return ONE_THREAD.allowed()


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_of_joblib_share_the_cores(backend):
    with joblib.parallel_config(backend, n_jobs=os.cpu_count()):
        assert set(joblib.Parallel()(joblib.delayed(allowed)(k) for k in range(8))) == {1}


def test_a_page_has_the_command_the_counts_and_the_machine(tmp_path):
    page = write_page("load", "Load", "make soak", "3 fits", [table(["a"], [[1]])], tmp_path)
    text = page.read_text()
    for part in ("# Load", "`make soak`", "3 fits", "cores", "numpy", "| 1 |"):
        assert part in text
