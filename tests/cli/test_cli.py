"""The commands: two are enough, results are for people or programs, and errors are sentences."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from pyarrow import parquet

from karnet import KARRegressor, __version__, save
from karnet.cli import main
from karnet.cli._console import Output
from karnet.tables import Table, as_text, fit_table, read_table
from karnet.tables._sizes import SIZES
from tests.tables.test_tables import table_of

DATA = os.environ.get("KARNET_DATA")


def strict(text):
    """Return what JSON says, if it is JSON and has no numbers that are none."""

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def as_file(table, path):
    columns = {name: table.frame([name])[name].to_numpy(object) for name in table.names}
    path.write_text(as_text(columns), encoding="utf-8")
    return str(path)


def code_of(arguments):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return end.value.code


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return a folder with tables of classes and of numbers, and a model of each."""
    folder = tmp_path_factory.mktemp("models")
    for name, numbers in (("classes", False), ("numbers", True)):
        as_file(table_of(numbers=numbers), folder / f"{name}.csv")
        as_file(table_of(seed=1, numbers=numbers), folder / f"{name}-new.csv")
        paths = [str(folder / f"{name}.csv"), "--model", str(folder / f"{name}.karnet")]
        main(["fit", *paths, "--target", "target", "--quiet"])
    return folder


def test_two_commands_go_from_a_table_to_predictions(here, capsys):
    as_file(table_of(), here / "people.csv")
    main(["fit", "people.csv", "--target", "target"])
    said = capsys.readouterr()
    assert said.err.splitlines()[0] == "Classification: 'target' has 2 classes (high, low)."
    assert said.out.startswith("people.karnet predicts 'target': accuracy ")
    as_file(table_of(seed=1), here / "new.csv")
    main(["predict", "people.karnet", "new.csv", "-o", "answers.csv"])
    answers = read_table("answers.csv").frame(["target"])["target"]
    true = table_of(seed=1).frame(["target"])["target"]
    assert np.mean(answers.to_numpy() == true.to_numpy()) > 0.7
    assert sorted(path.name for path in here.iterdir()) == sorted(
        ["people.csv", "people.karnet", "new.csv", "answers.csv"]
    )


@pytest.mark.skipif(not DATA, reason="KARNET_DATA names no folder")
def test_a_mixed_table_with_strings_and_gaps_is_taken_as_it_is(here, capsys):
    main(["fit", f"{DATA}/votes.csv", "--target", "target", "--json"])
    assert strict(capsys.readouterr().out)["score"] > 0.94
    main(["predict", "votes.karnet", f"{DATA}/votes.csv"])
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "target"
    assert len(printed) == 1 + len(read_table(f"{DATA}/votes.csv"))


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_results_as_json_are_valid_and_say_what_the_text_says(kind, models, capsys):
    model, table = str(models / f"{kind}.karnet"), str(models / f"{kind}-new.csv")
    main(["predict", model, table])
    lines = capsys.readouterr().out.splitlines()[1:]
    main(["predict", model, table, "--json"])
    values = strict(capsys.readouterr().out)["target"]
    assert [str(value) for value in values] == lines
    main(["score", model, table, "--json"])
    scores = strict(capsys.readouterr().out)
    name = {"classes": "accuracy", "numbers": "r2"}[kind]
    assert scores["rows"] == len(lines)
    assert scores[name]["low"] < scores[name]["value"] < scores[name]["high"]
    main(["score", model, table])
    assert f"{scores[name]['value']:.4f}" in capsys.readouterr().out
    main(["inspect", model, "--json"])
    about = strict(capsys.readouterr().out)
    assert about["columns"]["kind"] == "category"
    assert about["rows"] == 80
    main(["inspect", model])
    printed = capsys.readouterr().out
    assert "Networks that are averaged" in printed
    share, error = (100 * about[key]["size"] for key in ("importances", "importances_se"))
    assert f"{share:.1f} % ± {error:.1f}" in printed
    assert "when the column is shuffled" in printed


def test_json_has_no_numbers_that_are_none(models, here, capsys):
    one = (models / "numbers-new.csv").read_text().splitlines()[:2]
    (here / "one.csv").write_text("\n".join(one) + "\n")
    main(["score", str(models / "numbers.karnet"), "one.csv", "--json"])
    assert strict(capsys.readouterr().out)["r2"]["value"] is None


def test_probabilities_stand_beside_the_predictions(models, here):
    model, table = str(models / "classes.karnet"), str(models / "classes-new.csv")
    main(["predict", model, table, "--proba", "-o", "p.parquet", "-q"])
    table = parquet.read_table("p.parquet")
    assert table.column_names == ["target", "p(high)", "p(low)"]
    proba = np.column_stack([table["p(high)"], table["p(low)"]])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    said = np.array(["high", "low"])[proba.argmax(axis=1)]
    assert table["target"].to_pylist() == said.tolist()


def test_intervals_and_sets_stand_beside_the_predictions(models, here, capsys):
    for kind, names in (("classes", ["target_set"]), ("numbers", ["target_low", "target_high"])):
        model, table = str(models / f"{kind}.karnet"), str(models / f"{kind}-new.csv")
        main(["predict", model, table, "--coverage", "0.9", "-o", "p.csv", "-q"])
        written = read_table("p.csv")
        assert written.names == ["target", *names]
        capsys.readouterr()
        main(["predict", model, table, "--coverage", "0.9", "--json"])
        printed = strict(capsys.readouterr().out)
        assert {key: list(map(str, values)) for key, values in printed.items()} == {
            name: written.columns[name].to_pylist() for name in written.names
        }
        assert code_of(["predict", model, table, "--coverage", "1.5"]) == 2
        assert "coverage=1.5" in capsys.readouterr().err


def test_the_paper_s_network_has_no_intervals(here, capsys):
    as_file(Table("t", table_of().columns.select(["size", "target"])), here / "t.csv")
    main(["fit", "t.csv", "-t", "target", "--paper", "-q"])
    assert code_of(["predict", "t.karnet", "t.csv", "--coverage", "0.9", "-q"]) == 2
    said = capsys.readouterr().err
    assert "has no prediction intervals or sets" in said
    assert said.count("\n") == 1


def test_quiet_commands_say_nothing_beside_results(models, here, capsys):
    model, table = str(models / "classes.karnet"), str(models / "classes-new.csv")
    main(["fit", table, "-t", "target", "-q", "--model", "m.karnet"])
    main(["predict", model, table, "-q"])
    main(["score", model, table, "-q"])
    assert capsys.readouterr().err == ""


def test_rows_are_not_lost_and_stay_in_order(models, here, capsys):
    """Every row has its prediction, in its place, whatever form the table has."""
    table = read_table(models / "numbers-new.csv")
    parquet.write_table(table.columns, "new.parquet", row_group_size=13)
    printed = []
    for path in ("new.parquet", str(models / "numbers-new.csv")):
        main(["predict", str(models / "numbers.karnet"), path])
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_a_large_file_is_fitted_block_by_block(here, capsys, monkeypatch):
    monkeypatch.setattr(SIZES, "sample_rows", 150)
    monkeypatch.setattr(SIZES, "hidden_units", 20)
    parquet.write_table(table_of(600).columns.drop_columns(["name"]), "t.parquet")
    main(["fit", "t.parquet", "-t", "target", "--max-rows", "599", "--report", "t.html", "--json"])
    about = strict(capsys.readouterr().out)
    assert about["judged_by"] == "60 rows left out"
    assert about["rows"] == 600
    assert "60 held-out rows" in (here / "t.html").read_text()
    main(["predict", "t.karnet", "t.parquet", "-q"])
    assert len(capsys.readouterr().out.splitlines()) == 601
    assert code_of(["fit", "t.parquet", "-t", "target", "--max-rows", "5", "--paper"]) == 2


def test_an_exported_model_is_onnx(models, here, capsys):
    onnx = pytest.importorskip("onnx")
    frame = table_of().columns.select(["size", "kind", "target"])
    parquet.write_table(frame, "t.parquet")
    main(["fit", "t.parquet", "-t", "target", "-q"])
    main(["export", "t.karnet", "t.onnx"])
    onnx.checker.check_model(onnx.load("t.onnx"))
    capsys.readouterr()
    assert code_of(["export", str(models / "classes.karnet"), "c.onnx"]) == 2
    assert "dates and text cannot be exported" in capsys.readouterr().err
    assert not (here / "c.onnx").exists()


# What goes wrong

ROWS = "a,b,target\n" + "".join(f"{k},{k % 3},{'xy'[k % 2]}\n" for k in range(12))
WRONG = {
    "typo": (ROWS.encode(), "did you mean 'target'?", "tagret"),
    "spaces": (ROWS.replace(",", " ").encode(), "separates columns by blanks", "target"),
    "twice": (ROWS.replace("b", "a", 1).encode(), "2 columns of the name 'a'", "target"),
    "empty": (b"", "is empty", "target"),
    "binary": (bytes(range(256)), "is binary", "target"),
    "one value": (ROWS.replace("y\n", "x\n").encode(), "has one value only, 'x'", "target"),
    "no target": (ROWS.replace("x\n", "\n").replace("y\n", "\n").encode(), "is empty in", "target"),
    "10^5 columns": (
        (
            ",".join(f"x{k}" for k in range(10**5))
            + ",target\n"
            + "a," * 10**5
            + "1\n"
            + "b," * 10**5
            + "2\n"
        ).encode(),
        "a table of 100001 columns may hold",
        "target",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_table_that_cannot_be_learned_ends_in_one_sentence(kind, here, capsys):
    content, message, target = WRONG[kind]
    (here / "t.csv").write_bytes(content)
    assert code_of(["fit", "t.csv", "--target", target, "--quiet", "--report", "t.html"]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.startswith("karnet: ")
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert [path.name for path in here.iterdir()] == ["t.csv"]


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (ROWS.replace(",", ";").encode(), "separates columns by semicolons and not by commas"),
        (ROWS.replace("3,0", "é,0").encode("latin-1"), "read as Latin-1"),
        (ROWS.replace("x\n", "\n", 2).encode(), "2 of 12 rows have no 'target': left out."),
    ],
    ids=["delimiter", "Latin-1", "target missing in some rows"],
)
def test_what_can_be_made_sense_of_is_said_in_one_line(content, note, here, capsys):
    (here / "t.csv").write_bytes(content)
    main(["fit", "t.csv", "--target", "target"])
    assert [note in line for line in capsys.readouterr().err.splitlines()].count(True) == 1
    main(["predict", "t.karnet", "t.csv", "-q"])
    assert len(capsys.readouterr().out.splitlines()) == 13


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "none.karnet", "t.csv"], "there is no file none.karnet"),
        (["predict", "t.csv", "t.csv"], "it is not a whole model file of karnet"),
        (["predict", "MODEL", "none.csv"], "there is no file none.csv"),
        (["predict", "MODEL", "t.csv"], "t.csv lacks the columns 'size', 'kind', 'day'"),
        (["predict", "MODEL", "t.csv", "-o", "no/p.csv"], "the folder no of p.csv does not exist"),
        (["predict", "MODEL", "t.csv", "-o", "p.doc"], "p.doc must end in one of"),
        (["predict", "MODEL", "t.csv", "-o", "."], "is a folder"),
        (["score", "MODEL", "t.csv"], "t.csv has no column 'target'"),
        (["fit", "t.csv", "-t", "b", "--model", "no/m"], "the folder no of m does not exist"),
        (["fit", "t.csv", "-t", "b", "--device", "abacus"], "device='abacus'"),
        (["fit", "t.csv", "-t", "b", "--report", "no/r.html"], "the folder no of r.html"),
    ],
)
def test_commands_that_cannot_be_done_end_in_one_sentence(arguments, message, models, here, capsys):
    (here / "t.csv").write_text("a,b\n" + "1,2\n2,3\n" * 5)
    model = str(models / "classes.karnet")
    arguments = [model if each == "MODEL" else each for each in arguments]
    assert code_of([*arguments, "-q"]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert [path.name for path in here.iterdir()] == ["t.csv"]


def test_probabilities_of_numbers_are_refused(models, capsys):
    table = str(models / "numbers-new.csv")
    assert code_of(["predict", str(models / "numbers.karnet"), table, "--proba"]) == 2
    assert "have no class probabilities" in capsys.readouterr().err


def test_a_model_of_another_origin_is_shown_and_used_as_far_as_it_goes(here, capsys):
    frame = table_of().frame(["size"])
    frame["size"] = np.arange(80.0)
    save(KARRegressor((), random_state=0).fit(frame, 2.0 * frame["size"]), "m.karnet")
    main(["inspect", "m.karnet"])
    assert capsys.readouterr().out.startswith("m.karnet is a KARRegressor.")
    (here / "t.csv").write_text("n,size\n0,1.5\n0,-3\n")
    main(["predict", "m.karnet", "t.csv", "--json"])
    assert strict(capsys.readouterr().out)["prediction"] == pytest.approx([3.0, -6.0])


@pytest.mark.parametrize("module", ["skrub", "pyarrow", "skops"])
def test_a_missing_extra_is_named(module, capsys, monkeypatch):
    # As in a new process, in which tables are not imported yet.
    monkeypatch.delitem(sys.modules, "karnet.tables")
    monkeypatch.setitem(sys.modules, module, None)
    assert code_of(["fit", "t.csv", "--target", "y"]) == 2
    said = capsys.readouterr().err
    assert module in said
    assert "pip install 'karnet[table]'" in said


def test_without_typer_there_is_one_sentence_too(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    assert code_of(["datasets"]) == 2
    assert "the command line needs typer: pip install 'karnet[table]'" in capsys.readouterr().err
    main(["--version"])
    assert capsys.readouterr().out == f"karnet {__version__}\n"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyError("x"), 1, "karnet: an internal error, KeyError: 'x'"),
        (MemoryError(), 2, "karnet: there is not enough memory"),
        (KeyboardInterrupt(), 130, "karnet: interrupted."),
        (OSError(28, "No space left on device"), 2, "No space left on device"),
        (ValueError("two\n  lines"), 2, "karnet: two lines\n"),
    ],
)
def test_every_error_is_one_line_and_has_its_code(error, code, message, here, capsys, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr("karnet.tables.read_table", fail)
    (here / "t.csv").write_text(ROWS)
    assert code_of(["fit", "t.csv", "--target", "target"]) == code
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_traceback_of_an_internal_error_can_be_asked_for(here, monkeypatch):
    def fail(*_):
        raise KeyError("x")

    monkeypatch.setenv("KARNET_TRACEBACK", "1")
    monkeypatch.setattr("karnet.tables.read_table", fail)
    (here / "t.csv").write_text(ROWS)
    with pytest.raises(KeyError):
        main(["fit", "t.csv", "--target", "target"])


# What is written


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    from karnet._util.atomic_file import whole_file

    path = tmp_path / "out.txt"
    path.write_text("old")
    (tmp_path / "link.txt").symlink_to(path)

    def half():
        with whole_file(path) as unfinished:
            unfinished.write_text("half")
            assert path.read_text() == "old"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert path.read_text() == "old"
    with whole_file(tmp_path / "link.txt") as unfinished:
        unfinished.write_text("new")
    assert path.read_text() == "new"
    assert (tmp_path / "link.txt").is_symlink()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_leaves_the_old_predictions(models, here, capsys, monkeypatch):
    (here / "p.parquet").write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    table = str(models / "classes-new.csv")
    assert code_of(["predict", str(models / "classes.karnet"), table, "-o", "p.parquet", "-q"]) == 2
    assert (here / "p.parquet").read_text() == "old"
    assert [path.name for path in here.iterdir()] == ["p.parquet"]


# What is said meanwhile


def test_long_work_is_announced_once_and_short_work_is_not(capsys):
    for quiet, pause, said in ((False, 0.3, "Thinking ...\n"), (False, 0.0, ""), (True, 0.3, "")):
        with Output(quiet, False, patience=0.05).timed("Thinking") as clock:
            time.sleep(pause)
            clock.tell("Thinking more")
        assert capsys.readouterr().err == said
        assert clock.seconds >= pause


def test_the_bar_shows_the_steps_of_a_fit(models):
    steps, rows = [], read_table(models / "numbers.csv")
    fit_table(rows, "target", tell=steps.append)
    with Output(False, False).timed("Fitting") as clock:
        assert clock.bar.tasks[0].total is None
        for step in steps:
            clock.tell(step)
            assert clock.bar.tasks[0].description == str(step)
            assert clock.bar.tasks[0].percentage == pytest.approx(100.0 * step.share)
    assert clock.bar.finished


def test_the_names_of_experiments_are_those_of_the_paper():
    from karnet.cli._paper import Experiment
    from karnet.paper import EXPERIMENTS
    from karnet.paper.methods import EXPERIMENTS_OF_SETS

    assert [*EXPERIMENTS, *EXPERIMENTS_OF_SETS, "report", "all"] == list(Experiment)


def test_rooms_are_loaded_only_by_the_commands_that_need_them():
    code = "import sys, karnet.cli._app; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ended.stdout.split()
    rooms = ["paper", "datasets", "tables", "reports", "export", "_pages"]
    assert [room for room in rooms if f"karnet.{room}" in loaded] == []


@pytest.mark.parametrize(
    "command", ["fit", "predict", "score", "inspect", "export", "reproduce", "datasets"]
)
def test_help_shows_an_example_and_what_exit_codes_mean(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    main([command, "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "Exit codes: 0 done" in printed
    # Once in the line on usage, once or more in examples.
    assert printed.count(f"karnet {command}") > 1
