"""Explanations name training rows as the user counts them, and columns as the table names them."""

from __future__ import annotations

import numpy as np
import pytest
from pyarrow import parquet

from karnet import load
from karnet.cli import _explain, main
from karnet.inspection import column_effects, row_influence
from karnet.tables import inputs_of, network_of, read_table
from tests.cli.test_cli import as_file, code_of, strict
from tests.tables.test_tables import Table, table_of

KINDS = ("classes", "numbers")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return a folder with tables, in which the first rows have no target, and their models."""
    folder = tmp_path_factory.mktemp("models")
    for name in KINDS:
        table = table_of(numbers=name == "numbers")
        lines = (folder / as_file(table, folder / f"{name}.csv")).read_text().splitlines()
        gaps = [line.rsplit(",", 1)[0] + "," for line in lines[1:4]]
        (folder / f"{name}.csv").write_text("\n".join([lines[0], *gaps, *lines[1:]]) + "\n")
        paths = [str(folder / f"{name}.csv"), "--model", str(folder / f"{name}.karnet")]
        main(["fit", *paths, "--target", "target", "--quiet"])
    return folder


def explained(models, kind, capsys, *options):
    paths = [str(models / f"{kind}.karnet"), str(models / f"{kind}.csv")]
    main(["predict", *paths, "--explain", "--json", "-q", *options])
    return strict(capsys.readouterr().out)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_target_do_not_shift_the_numbers_of_training_rows(kind, models, capsys):
    said = explained(models, kind, capsys)
    model, table = load(models / f"{kind}.karnet"), read_table(models / f"{kind}.csv")
    found = row_influence(network_of(model), inputs_of(model, table)).most_influential()
    # The first three rows have no target, and the first row has the number 1.
    for k in range(3):
        assert said[f"target_row_{k + 1}"] == (found[:, k] + 4).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_sorted_by_effects_which_are_those_on_the_prediction(kind, models, capsys):
    said = explained(models, kind, capsys)
    effects = np.array([said[f"target_effect_{k}"] for k in (1, 2, 3)])
    assert np.all(np.diff(np.abs(effects), axis=0) <= 0.0)
    model, table = load(models / f"{kind}.karnet"), read_table(models / f"{kind}.csv")
    single = column_effects(network_of(model), inputs_of(model, table))[:, 0]
    if kind == "classes":
        # The scores of two classes sum to one, and the decision function is their difference.
        single *= np.where(np.array(said["target"]) == network_of(model).classes_[1], 0.5, -0.5)
    names = np.array([said[f"target_column_{k}"] for k in (1, 2, 3)])
    assert set(names.ravel()) <= {"size", "kind", "day", "name"}
    place, row = np.nonzero(names == "size")
    np.testing.assert_allclose(effects[place, row], single[row], atol=1e-6)
    assert len(row) > 40


def test_explanations_do_not_depend_on_the_rows_in_memory_at_a_time(models, capsys, monkeypatch):
    whole = explained(models, "classes", capsys)
    monkeypatch.setattr(_explain, "MAX_INFLUENCES", 700)
    monkeypatch.setattr(_explain, "MAX_VALUES", 500)
    parts = explained(models, "classes", capsys)
    for name, values in whole.items():
        if "effect" in name:
            np.testing.assert_allclose(parts[name], values, atol=1e-6)
        elif "row" in name:
            assert parts[name] == values


def test_explanations_stand_beside_probabilities_and_sets_in_files(models, tmp_path):
    paths = [str(models / "classes.karnet"), str(models / "classes.csv")]
    options = ["--proba", "--coverage", "0.9", "--explain", "-q"]
    main(["predict", *paths, *options, "-o", str(tmp_path / "p.parquet")])
    names = parquet.read_table(tmp_path / "p.parquet").column_names
    assert names[:4] == ["target", "p(high)", "p(low)", "target_set"]
    assert names[4:7] == [f"target_row_{k}" for k in (1, 2, 3)]
    pairs = [f"target_{kind}_{k}" for k in (1, 2, 3) for kind in ("column", "effect")]
    assert names[7:] == pairs


def test_networks_that_keep_no_rows_are_refused_in_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    as_file(Table("t", table_of().columns.select(["size", "target"])), tmp_path / "t.csv")
    main(["fit", "t.csv", "-t", "target", "--paper", "-q"])
    capsys.readouterr()
    assert code_of(["predict", "t.karnet", "t.csv", "--explain", "-q"]) == 2
    said = capsys.readouterr()
    assert "keeps no training rows" in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
