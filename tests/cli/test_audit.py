"""karnet audit prints and writes what an audit found, and changes nothing else."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from karnet.cli._app import app


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    frame = load_iris(as_frame=True).frame
    frame["target"] = frame["target"].map({0: "setosa", 1: "versicolor", 2: "virginica"})
    frame.loc[7, "target"] = "virginica"
    frame.loc[2, "target"] = None
    frame["site"] = np.where(np.arange(150) % 2, "north", "south")
    path = tmp_path_factory.mktemp("audit") / "flowers.csv"
    frame.to_csv(path, index=False)
    return path


def _run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)], obj="karnet audit")


def test_files_are_written_only_if_they_are_named(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = table.read_bytes()
    result = _run(table, "-t", "target")
    assert result.exit_code == 0
    assert "rows look wrong" in result.stdout
    assert not list(tmp_path.iterdir())
    assert table.read_bytes() == before


def test_row_numbers_count_from_the_first_row_below_the_names(table, tmp_path):
    out = {name: tmp_path / name for name in ("suspects.csv", "page.html", "kept.csv")}
    files = zip(("--suspects", "--report", "--drop"), out.values(), strict=True)
    result = _run(table, "-t", "target", "--json", *(word for pair in files for word in pair))
    assert result.exit_code == 0
    values = json.loads(result.stdout)
    suspects = pd.read_csv(out["suspects.csv"])
    assert suspects["row"].tolist() == [each["row"] for each in values["suspects"]]
    # Row 8 of the file, whose number does not depend on the row without a target above it.
    assert values["suspects"][0]["row"] == 8
    assert values["suspects"][0]["suggestion"] == "setosa"
    whole, kept = pd.read_csv(table), pd.read_csv(out["kept.csv"])
    expected = whole.drop(index=suspects["row"].unique() - 1).reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, expected)
    page = out["page.html"].read_text(encoding="utf-8")
    assert page.count("<figure>") == 2
    assert "Audit of flowers.csv" in page


def test_parquet_keeps_its_types(table, tmp_path):
    frame = pd.read_csv(table)
    frame["site"] = frame["site"].astype("category")
    frame.to_parquet(tmp_path / "a.parquet")
    result = _run(tmp_path / "a.parquet", "-t", "target", "--drop", tmp_path / "b.parquet", "-q")
    assert result.exit_code == 0
    kept = pd.read_parquet(tmp_path / "b.parquet")
    assert (kept.dtypes == frame.dtypes).all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--target", "colour"], "has no column 'colour'"),
        (["--target", "target", "--suspects", "x.xlsx"], "must end in one of"),
        (["--target", "target", "--task", "regression"], "not numbers"),
    ],
)
def test_errors_are_sentences(table, arguments, sentence):
    result = _run(table, *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
