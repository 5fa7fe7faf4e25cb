"""Tables are read as they are meant, models take them as they come, and doubts are said."""

from __future__ import annotations

import gzip
import itertools
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet
from sklearn.metrics import log_loss, mean_absolute_error, r2_score

from karnet import KARClassifier, KARClassifierCV, KARRegressorCV, load, save
from karnet.tables import (
    Table,
    as_text,
    columns_of,
    find_target,
    fit_large,
    fit_table,
    importances_of,
    importances_with_errors,
    is_large,
    kinds_of,
    origins_of,
    portable,
    predict_table,
    prediction_columns,
    read_table,
    row_numbers,
    score_table,
    scores,
    table_blocks,
    target_of,
    wilson,
    write_table,
)
from karnet.tables._sizes import SIZES, TableSizes

CELLS = {"size": ["1.5", "", "-3"], "kind, or so": ["a", 'b "c"', "ä"], "day": ["x", "y\nz", ""]}


def text(cells, delimiter=","):
    columns = {name: np.array(values, dtype=object) for name, values in cells.items()}
    return as_text(columns, delimiter)


def written(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def table_of(n=80, seed=0, numbers=False):
    """Return a mixed table whose target depends on a number and a category."""
    rng = np.random.RandomState(seed)
    size, kind = rng.standard_normal(n), rng.choice(["red", "green", "blue"], n)
    answer = size + (kind == "red") + 0.3 * rng.standard_normal(n)
    cells = {
        "size": [f"{value:.4f}" if rng.uniform() > 0.1 else "" for value in size],
        "kind": [value if rng.uniform() > 0.1 else "?" for value in kind],
        "day": [f"2024-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(n)],
        "name": [f"person {k * 7919 % 1000}" for k in range(n)],
        "empty": [""] * n,
        "target": [f"{value:.3f}" for value in answer]
        if numbers
        else [["low", "high"][int(value > 0.3)] for value in answer],
    }
    return Table("mixed.csv", pa.table(cells))


@pytest.fixture(scope="module")
def classifier():
    return fit_table(table_of(), "target")


@pytest.fixture(scope="module")
def regressor():
    return fit_table(table_of(numbers=True), "target")


# Reading


def as_stream(table, path):
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


WRITERS = {
    "t.csv": lambda table, path: path.write_text(text(CELLS)),
    "t.tsv": lambda table, path: path.write_text(text(CELLS, "\t")),
    "t.csv.gz": lambda table, path: path.write_bytes(gzip.compress(text(CELLS).encode())),
    "bars.csv": lambda table, path: path.write_text(text(CELLS, "|")),
    "mark.csv": lambda table, path: path.write_bytes(b"\xef\xbb\xbf" + text(CELLS).encode()),
    "wide.csv": lambda table, path: path.write_bytes(text(CELLS).encode("utf-16")),
    "lines.csv": lambda table, path: path.write_bytes(
        text(CELLS).replace("\n", "\r\n").replace("y\r\nz", "y\nz").encode()
    ),
    "t.parquet": lambda table, path: parquet.write_table(table, path),
    "t.arrow": feather.write_feather,
    "named_wrongly.csv": feather.write_feather,
    "stream.arrow": as_stream,
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_same_cells_come_out_of_every_kind_of_file(name, tmp_path):
    WRITERS[name](pa.table(CELLS), tmp_path / name)
    assert read_table(tmp_path / name).columns.to_pydict() == CELLS


@pytest.mark.parametrize(
    ("name", "content", "note"),
    [
        ("t.csv", "a;b\n1,5;2\n-2,25;x,y\n", "separates columns by semicolons and not by commas"),
        ("t.tsv", "a,b\n1.5,2\n-2.25,x\n", "separates columns by commas and not by tabs"),
        ("t.csv", "a,b\n1.5,é\n".encode("latin-1"), "not UTF-8: read as Latin-1"),
        ("t.csv", ",a,b\n0,5,6\n1,7,8\n", "has no name and holds row numbers: left out"),
    ],
)
def test_what_had_to_be_assumed_is_said_in_one_sentence(name, content, note, tmp_path):
    table = read_table(written(tmp_path / name, content))
    assert table.names == ["a", "b"]
    assert [note in each for each in table.notes] == [True]
    assert table.notes[0].endswith(".")


def test_a_decimal_comma_is_a_point_where_semicolons_separate(tmp_path):
    table = read_table(written(tmp_path / "t.csv", "a;b\n1,5;2\n-2,25;x,y\n"))
    assert table.columns.to_pydict() == {"a": ["1.5", "-2.25"], "b": ["2", "x,y"]}


def test_a_single_column_is_a_table(tmp_path):
    for name in ("t.csv", "t.tsv"):
        table = read_table(written(tmp_path / name, "size\n1.5\ntwo words\n"))
        assert table.columns.to_pydict() == {"size": ["1.5", "two words"]}


REFUSED = {
    "empty": ("", "t.csv is empty"),
    "blank": (" \n\n", "t.csv is empty"),
    "header": ("a,b\n", "no rows below it"),
    "binary": (bytes(range(256)) * 9, "t.csv is binary"),
    "excel": (b"PK\x03\x04" + bytes(50), "an Excel file or zip archive"),
    "blanks": ("a b c\n1 2 3\n", "separates columns by blanks, 'a b c'"),
    "twice": ("a,b,a\n1,2,3\n", "2 columns of the name 'a' (numbers 1, 3)"),
    "spaced": ("a,b, a\n1,2,3\n", "2 columns of the name 'a' (numbers 1, 3)"),
    "nameless": ("a,,c\n1,2,3\n", "column 2 of t.csv has no name"),
    "unnamed": (",b\nx,2\ny,3\n", "column 1 of t.csv has no name"),
    "short": ("a,b,c\n1,2,3\n4,5\n", "row 3, the header included, of t.csv has 2 cells"),
    "long": ("a,b\n1,2\n3,4,5\n", "has 3 cells, but there are 2 column names"),
    "quotes": ('a,b\n"1,2\n3,4\n', "of t.csv has 1 cells"),
    "gzip": (gzip.compress(b"a,b\n1,2\n" * 99)[:-9], "is damaged"),
    "parquet": (b"PAR1" + bytes(20) + b"PAR1", "cannot be read as Parquet"),
    "arrow": (b"ARROW1" + bytes(20), "cannot be read as Arrow"),
    "utf-16": (b"\xff\xfea", "begins as UTF-16 but is not"),
    "feather": (b"FEA1" + bytes(20), "Feather of version 1"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_a_table_is_refused_with_one_sentence(kind, tmp_path):
    content, message = REFUSED[kind]
    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        read_table(written(tmp_path / "t.csv", content))
    assert "\n" not in str(refusal.value)


def test_files_that_are_not_there_and_folders_are_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="is a folder"):
        read_table(tmp_path)


def test_parquet_with_two_columns_of_one_name_or_no_rows_is_refused(tmp_path):
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    parquet.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    for name, message in (("twice", "2 columns of the name 'a'"), ("none", "but no rows")):
        with pytest.raises(ValueError, match=message):
            read_table(tmp_path / f"{name}.parquet")


def test_blocks_joined_are_the_table(tmp_path):
    whole = pa.table({"a": list(range(100)), "b": ["x"] * 100})
    parquet.write_table(whole, tmp_path / "t.parquet", row_group_size=17)
    (tmp_path / "t.csv").write_text(text(whole.to_pydict()))
    for name in ("t.parquet", "t.csv"):
        blocks = list(table_blocks(tmp_path / name, 30))
        assert [len(block) for block in blocks] == [30, 30, 30, 10]
        assert Table.joined(blocks).columns.equals(read_table(tmp_path / name).columns)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".feather"])
def test_what_is_written_is_read_again(suffix, tmp_path):
    columns = {"y, z": np.array(['a"b', "c\nd", ""]), "p": np.array([0.1, 1e-300, 1.0])}
    write_table(columns, tmp_path / f"t{suffix}")
    table = read_table(tmp_path / f"t{suffix}")
    assert table.columns["y, z"].to_pylist() == columns["y, z"].tolist()
    np.testing.assert_array_equal(table.numbers(["p"])[:, 0], columns["p"])
    assert [path.name for path in tmp_path.iterdir()] == [f"t{suffix}"]


def test_an_unknown_form_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match=r"must end in one of \.csv"):
        write_table({}, tmp_path / "t.xlsx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (pa.array([True, None, False]), ["True", None, "False"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.array([1, None, 3], pa.int8()), [1.0, np.nan, 3.0]),
        (pa.array([1, 2, 2**63], pa.uint64()), [1.0, 2.0, 2.0**63]),
        (pa.array([1.5, None]).cast(pa.decimal128(5, 2)), [1.5, np.nan]),
        (pa.array([None, None]), [np.nan, np.nan]),
        (pa.array([90], pa.duration("s")), [90.0]),
        (pa.array([90_000_000_000], pa.duration("ns")), [90.0]),
        (pa.array([90], pa.time32("s")), [90.0]),
    ],
    ids=[
        "bool",
        "dictionary",
        "int8",
        "uint64",
        "decimal",
        "null",
        "seconds",
        "nanoseconds",
        "time",
    ],
)
def test_typed_columns_become_text_and_numbers(values, shown):
    column = Table("t", pa.table({"a": values})).frame(["a"])["a"]
    assert [None if cell != cell else cell for cell in column] == [
        None if cell != cell else cell for cell in shown
    ]


def test_columns_of_lists_are_refused_by_name():
    table = Table("t.parquet", pa.table({"a": [[1], [2]], "target": [0, 1]}))
    with pytest.raises(ValueError, match=r"column 'a' of t\.parquet holds list"):
        fit_table(table, "target")


# The target


@pytest.mark.parametrize(
    ("values", "task", "y"),
    [
        (["yes", "no", " yes"], "classification", ["yes", "no", "yes"]),
        (["1", "0", "1", "0"], "classification", [1, 0, 1, 0]),
        (["01", "2", "01", "2"], "classification", ["01", "2", "01", "2"]),
        ([1.0, None, 2.0, 1.0, 2.0], "classification", [1, 2, 1, 2]),
        ([True, False, True], "classification", ["True", "False", "True"]),
        (["1.5", "2", "NA", "3"], "regression", [1.5, 2.0, 3.0]),
        ([str(k) for k in range(30)], "regression", list(range(30))),
        ([7, 8, 9], "regression", [7, 8, 9]),
    ],
    ids=["text", "0-1", "leading zero", "whole floats", "bool", "floats", "many", "all differ"],
)
def test_the_task_is_inferred_and_said(values, task, y):
    found = find_target(Table("t", pa.table({"a": values, "y": values})), "y")
    assert found.task == task
    assert found.y.tolist() == y
    assert found.notes[-1].startswith(task.capitalize())
    assert len(found.notes) == 1 + (len(y) < len(values))


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        (["a"] * 5, "auto", "has one value only, 'a'"),
        (["", "NA"], "auto", "is empty in every row"),
        ([f"id {k}" for k in range(50)], "auto", "like a name or an id"),
        ([*map(str, range(49)), "unknown"], "auto", "1 of 50 cells of the target 'y' are not num"),
        (["a", "b"], "regression", "2 of 2 cells of the target 'y' are not numbers, such as 'a'"),
        ([np.datetime64("2024-01-01", "s")] * 2, "auto", "holds dates"),
        (["1e999", "2"], "auto", "holds infinite numbers"),
        ([1, 2], "both", "task='both' is not known"),
    ],
    ids=["one value", "empty", "ids", "mistakes", "text", "dates", "infinite", "task"],
)
def test_a_target_that_cannot_be_learned_is_refused(values, task, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        find_target(Table("t", pa.table({"a": values, "y": values})), "y", task)


@pytest.mark.parametrize(
    ("names", "wanted", "message"),
    [
        (["price", "size"], "prize", "did you mean 'price'?"),
        (["Price", "size"], "PRICE", "did you mean 'Price'?"),
        (["5.1", "3.5"], "species", "its first line holds numbers and no names"),
    ],
)
def test_a_target_that_is_not_there_is_guessed_at(names, wanted, message):
    table = Table("t.csv", pa.table({name: ["1", "2"] for name in names}))
    with pytest.raises(ValueError, match=re.escape(message)):
        find_target(table, wanted)


def test_rows_without_a_target_have_no_part_in_the_model(classifier):
    table = table_of()
    gaps = pa.table({name: [*table.columns[name].to_pylist(), "9"] for name in table.names})
    gaps = gaps.set_column(5, "target", pa.array([*table.columns["target"].to_pylist(), ""]))
    fitted = fit_table(Table("t", gaps), "target")
    assert fitted.target.notes[0] == "1 of 81 rows has no 'target': left out."
    np.testing.assert_array_equal(
        predict_table(fitted.model, table, proba=True),
        predict_table(classifier.model, table, proba=True),
    )


# Models


def test_columns_are_taken_for_what_they_are(classifier):
    kinds = {
        "size": "number",
        "kind": "category",
        "day": "date",
        "name": "text",
        "empty": "empty: not used",
    }
    assert kinds_of(classifier.model) == kinds
    weights = importances_of(classifier.model)
    assert sum(weights.values()) == pytest.approx(1.0)
    assert max(weights, key=weights.get) == "size"
    assert (target_of(classifier.model), columns_of(classifier.model)) == ("target", list(kinds))


def test_all_features_of_a_column_are_shuffled_together(classifier):
    """The importance of text is not the sum over its many numbers, which replace each other."""
    shares, errors = importances_with_errors(classifier.model)
    assert shares == importances_of(classifier.model)
    assert min(shares.values()) >= 0.0
    assert list(errors) == list(shares)
    network = classifier.model[-1]
    groups = np.unique(origins_of(classifier.model), return_inverse=True)[1]
    assert len(groups) == network.n_features_in_ > len(shares)
    np.testing.assert_allclose(
        sorted(network.model_.importances(groups)[0]), sorted(shares.values())[1:]
    )


def test_row_numbers_count_rows_without_a_target():
    columns = table_of().columns
    target = columns["target"].to_pylist()
    gaps = [None if k in (0, 5) else value for k, value in enumerate(target)]
    place = columns.column_names.index("target")
    table = Table("t", columns.set_column(place, "target", pa.array(gaps)))
    rows = np.arange(78)
    model = fit_table(table, "target").model
    expected = [k + 1 for k in range(80) if k not in (0, 5)]
    assert row_numbers(model, rows).tolist() == expected
    assert row_numbers(KARClassifierCV(), rows).tolist() == list(range(1, 79))


def test_the_model_is_the_estimator_as_it_is_fitted_on_a_data_frame():
    table = Table("t", table_of().columns.drop_columns(["name"]))
    cells = table.columns.to_pandas()
    frame = pd.DataFrame(
        {
            "size": pd.to_numeric(cells["size"]),
            "kind": cells["kind"].where(cells["kind"] != "?", None).astype("category"),
            "day": pd.to_datetime(cells["day"]),
        }
    )
    net = KARClassifierCV(random_state=0).fit(frame, cells["target"])
    model = fit_table(table, "target").model
    assert type(model) is KARClassifierCV
    assert list(model.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(predict_table(model, table, True), net.predict_proba(frame))


def test_there_is_a_step_before_the_estimator_only_where_there_is_text(classifier):
    assert [name for name, _ in classifier.model.steps] == ["text", "network"]
    assert set(classifier.model[-1].feature_names_in_) >= {"size", "kind", "day"}


@pytest.mark.parametrize("paper", [False, True], ids=["average", "paper"])
def test_a_cell_that_cannot_be_read_is_a_gap(paper, few_widths):
    table = table_of(numbers=True)
    model = fit_table(table, "target", paper=paper).model
    rows = table.columns.slice(0, 2).drop_columns(["target"])
    predictions = []
    for size, day in (("big", "never"), ("", ""), ("NA", "None"), (None, None)):
        changed = rows.set_column(0, "size", pa.array([size, "1.5"]))
        changed = changed.set_column(2, "day", pa.array([day, "2024-01-05"]))
        predictions.append(predict_table(model, Table("t", changed)).tolist())
    assert predictions == predictions[:1] * 4


def test_gaps_in_columns_that_had_none_are_handled():
    X = np.random.RandomState(0).standard_normal((60, 3))
    columns = {f"x{k}": X[:, k] for k in range(3)}
    model = fit_table(Table("t", pa.table({**columns, "y": X[:, 0] + X[:, 1]})), "y").model
    median = {"x0": [np.median(X[:, 0])], "x1": [0.5], "x2": [1.0]}
    gap = median | {"x0": [None]}
    said = [predict_table(model, Table("t", pa.table(row)))[0] for row in (median, gap)]
    assert said[0] == pytest.approx(said[1], rel=1e-12)


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%m/%d/%Y %H:%M", "%d %B %Y", "%Y-%m-%dT%H:%M:%S"])
def test_dates_are_the_same_as_text_in_any_form_and_as_dates(form):
    days = pd.Timestamp("2021-01-30") + pd.to_timedelta(np.arange(70) * 11, "D")
    y = np.where(days.month < 7, "a", "b")
    tables = [
        Table("t", pa.table({"day": values, "y": y}))
        for values in (days.strftime(form).astype(object), pa.array(days))
    ]
    said = []
    for table in tables:
        model = fit_table(table, "y").model
        assert kinds_of(model) == {"day": "date"}
        said += [predict_table(model, other, proba=True) for other in (table, tables[1])]
    for each in said[1:]:
        np.testing.assert_array_equal(each, said[0])


def test_years_are_numbers_in_files_of_text_too():
    years = [1990 + k % 30 for k in range(60)]
    for column in (years, [str(year) for year in years]):
        model = fit_table(Table("t", pa.table({"year": column, "y": years[::-1]})), "y").model
        assert kinds_of(model) == {"year": "number"}


def test_order_and_further_columns_do_not_matter(classifier, regressor):
    table = table_of(seed=1)
    names = ["more", *reversed([name for name in table.names if name != "target"])]
    columns = table.columns.append_column("more", table.columns["name"]).select(names)
    for fitted in (classifier, regressor):
        np.testing.assert_array_equal(
            predict_table(fitted.model, Table("t", columns)), predict_table(fitted.model, table)
        )


def test_a_missing_column_is_refused_by_name(classifier):
    table = Table("new.csv", table_of().columns.drop_columns(["kind", "day"]))
    message = "new.csv lacks the columns 'kind', 'day' that the model was fitted on"
    with pytest.raises(ValueError, match=message):
        predict_table(classifier.model, table)


def test_unseen_categories_text_dates_and_gaps_are_handled(classifier):
    strange = {"size": "big", "kind": "mauve", "day": "never", "name": "", "empty": "full"}
    gaps = dict.fromkeys(strange, "")
    rows = [strange, gaps, strange | {"size": "1.5"}]
    table = Table("t", pa.table({name: [row[name] for row in rows] for name in strange}))
    proba = predict_table(classifier.model, table, proba=True)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_a_typed_file_gives_what_a_file_of_text_gives(classifier):
    table = table_of(seed=2)
    typed = table.columns
    numbers = table.numbers(["size"])[:, 0]
    typed = typed.set_column(0, "size", pa.array(numbers, from_pandas=True))
    days = typed["day"].cast(pa.timestamp("s")).cast(pa.date32())
    typed = typed.set_column(2, "day", days).set_column(4, "empty", pa.nulls(len(table)))
    np.testing.assert_array_equal(
        predict_table(classifier.model, Table("t", typed), proba=True),
        predict_table(classifier.model, table, proba=True),
    )


def test_a_category_of_digits_is_the_same_as_text_and_as_numbers():
    rng = np.random.RandomState(0)
    code = rng.choice(["1", "2", "x"], 60)
    y = np.where(code == "1", "a", "b")
    model = fit_table(Table("t", pa.table({"code": code, "y": y})), "y").model
    for codes in (["1", "2"], [1, 2], [1.0, 2.0]):
        assert predict_table(model, Table("t", pa.table({"code": codes}))).tolist() == ["a", "b"]


def test_infinite_numbers_are_refused_by_name(classifier):
    columns = {name: ["1", "2"] for name in columns_of(classifier.model)} | {"size": [np.inf, 2.0]}
    with pytest.raises(ValueError, match="infinite or too large numbers in 'size'"):
        predict_table(classifier.model, Table("t", pa.table(columns)))


def test_a_table_without_anything_to_learn_from_is_refused():
    for cells, message in (({}, "no column other than"), ({"a": ["", ""]}, "are empty")):
        with pytest.raises(ValueError, match=message):
            fit_table(Table("t", pa.table({**cells, "y": ["1", "2"]})), "y")


def test_wide_tables_of_numbers_are_not_encoded_and_others_are_refused(few_widths, monkeypatch):
    assert TableSizes().max_encoded_columns == 10_000
    monkeypatch.setattr(SIZES, "max_encoded_columns", 20)
    X, y = np.random.RandomState(0).standard_normal((12, 21)), np.arange(12) % 2
    cells = {f"x{k}": X[:, k] for k in range(21)} | {"x9": [*map(str, X[:-1, 9]), ""]}
    model = fit_table(Table("t", pa.table({**cells, "y": y})), "y", paper=True).model
    assert [name for name, _ in model.steps] == ["imputer", "scaler", "network"]
    assert portable(model) == (model, None)
    assert len(predict_table(model, Table("t", pa.table(cells)))) == 12
    cells["x7"] = ["text"] * 12
    with pytest.raises(ValueError, match="column 'x7' of t holds values other than numbers"):
        fit_table(Table("t", pa.table({**cells, "y": y})), "y")


def test_columns_of_text_and_of_numbers_give_the_same_numbers():
    X = np.random.RandomState(0).standard_normal((7, 3))
    typed = Table("t", pa.table({f"x{k}": X[:, k] for k in range(3)}))
    text = Table("t", pa.table({f"x{k}": X[:, k].astype(str) for k in range(3)}))
    mixed = Table("t", text.columns.set_column(1, "x1", pa.array(X[:, 1])))
    for table in (typed, text, mixed):
        np.testing.assert_array_equal(table.numbers(["x2", "x0", "x1"]), X[:, [2, 0, 1]])


def test_the_widths_tried_are_the_paper_s():
    from karnet.paper.protocol import WIDTHS

    assert TableSizes().paper_widths == WIDTHS


def test_the_paper_s_network_has_a_width_chosen_by_folds_and_inputs_in_0_1(few_widths):
    fitted = fit_table(table_of(), "target", paper=True)
    assert isinstance(fitted.model[-1], KARClassifier)
    assert fitted.judged_by == "10 folds"
    assert type(fitted.model[-2]).__name__ == "MinMaxScaler"


def test_classes_of_one_row_do_not_keep_the_paper_s_network_from_its_width(few_widths):
    cells = {"a": ["1", "2", "3", "4", "5"], "y": ["u", "u", "u", "v", "w"]}
    assert fit_table(Table("t", pa.table(cells)), "y", paper=True).judged_by == "3 folds"
    cells["y"] = ["a", "b", "c", "d", "e"]
    with pytest.raises(ValueError, match="needs a class with two rows"):
        fit_table(Table("t", pa.table(cells)), "y", paper=True)


def test_a_device_that_cannot_be_used_is_refused():
    with pytest.raises((ValueError, ImportError), match="device='abacus'"):
        fit_table(table_of(), "target", device="abacus")


def test_models_are_saved_and_loaded_with_what_they_know_of_their_table(classifier, tmp_path):
    save(classifier.model, tmp_path / "m.karnet")
    again = load(tmp_path / "m.karnet")
    assert again.table_ == classifier.model.table_
    table = table_of(seed=3)
    np.testing.assert_array_equal(
        predict_table(again, table, proba=True), predict_table(classifier.model, table, proba=True)
    )


def test_any_model_of_named_columns_takes_tables_and_others_say_why_not():
    table = Table("t", pa.table({"b": ["1", "2", "3", "4"], "a": ["4", "", "1", "2"]}))
    frame = table.frame(["b"]).astype(float)
    net = KARClassifierCV(random_state=0).fit(frame, [0, 0, 1, 1])
    assert predict_table(net, table).tolist() == net.predict(frame).tolist()
    assert (kinds_of(net), target_of(net)) == ({"b": "number"}, None)
    assert set(importances_of(net)) == {"b"}
    with pytest.raises(ValueError, match="does not know its target's name"):
        score_table(net, table)
    with pytest.raises(ValueError, match="without column names"):
        predict_table(net.fit(frame.to_numpy(), [0, 0, 1, 1]), table)


def test_an_estimator_of_a_data_frame_takes_tables_with_its_categories_and_dates():
    frame = pd.DataFrame(
        {"kind": ["a", "b", "1"] * 10, "day": pd.date_range("2024-01-01", None, 30)}
    )
    net = KARRegressorCV(random_state=0).fit(frame, np.arange(30.0) % 3)
    table = Table("t", pa.table({"day": frame["day"].astype(str), "kind": ["a", "b", "1"] * 10}))
    assert kinds_of(net) == {"kind": "category", "day": "date"}
    np.testing.assert_array_equal(predict_table(net, table), net.predict(frame))


# Intervals and sets


def test_intervals_are_the_estimator_s_and_contain_the_prediction(regressor):
    table = table_of(seed=1, numbers=True)
    columns = prediction_columns(regressor.model, table, coverage=0.9)
    y, low, high = columns.values()
    assert list(columns) == ["target", "target_low", "target_high"]
    np.testing.assert_array_equal(y, predict_table(regressor.model, table))
    assert ((low <= y) & (y <= high)).all()
    inside = (low <= (true := table.numbers(["target"])[:, 0])) & (true <= high)
    assert 0.75 < inside.mean() <= 1.0
    _, lower, higher = prediction_columns(regressor.model, table, coverage=0.95).values()
    assert ((lower <= low) & (high <= higher)).all()


def test_sets_contain_the_prediction_and_grow_with_the_coverage(classifier):
    table, sets = table_of(seed=1), []
    for coverage in (0.5, 0.8, 0.99):
        columns = prediction_columns(classifier.model, table, proba=True, coverage=coverage)
        assert list(columns) == ["target", "p(high)", "p(low)", "target_set"]
        sets.append([set(each.split("|")) for each in columns["target_set"]])
        assert all(y in each for y, each in zip(columns["target"], sets[-1], strict=True))
        assert set().union(*sets[-1]) <= {"high", "low"}
    for small, large in itertools.pairwise(sets):
        assert all(map(set.issubset, small, large))
    assert sum(map(len, sets[0])) < sum(map(len, sets[-1]))


def test_models_without_intervals_or_sets_and_classes_with_bars_are_refused(few_widths):
    table = table_of()
    model = fit_table(table, "target", paper=True).model
    with pytest.raises(ValueError, match="a KARClassifier has no prediction intervals or sets"):
        prediction_columns(model, table, coverage=0.9)
    cells = {"a": ["1", "2", "3", "4"] * 5, "y": ["u|v", "u|v", "w", "w"] * 5}
    bars = Table("t", pa.table(cells))
    with pytest.raises(ValueError, match=r"the class 'u\|v' contains '\|'"):
        prediction_columns(fit_table(bars, "y").model, bars, coverage=0.9)


def test_numbers_have_no_probabilities(regressor):
    with pytest.raises(ValueError, match="have no class probabilities"):
        predict_table(regressor.model, table_of(), proba=True)


# Other programs


@pytest.mark.parametrize("paper", [False, True], ids=["average", "paper"])
def test_an_exported_model_answers_as_the_model_does(paper, few_widths):
    ort = pytest.importorskip("onnxruntime")
    from karnet.export._convert import to_onnx

    table = table_of()
    table = Table("t", table.columns.select(["size", "kind", "empty", "target"]))
    model = fit_table(table, "target", paper=paper).model
    graph = to_onnx(*portable(model))
    rows = table_of(seed=4)
    kind = [{"?": "", "red": "never seen"}.get(cell, cell) for cell in rows.frame(["kind"])["kind"]]
    size = rows.numbers(["size"]).astype(np.float32)
    session = ort.InferenceSession(graph.SerializeToString())
    _, said = session.run(None, {"size": size, "kind": np.array(kind)[:, None]})
    new = Table("t", pa.table({"size": size[:, 0], "kind": kind, "empty": [""] * len(kind)}))
    np.testing.assert_allclose(said, predict_table(model, new, proba=True), atol=1e-5)


def test_dates_and_text_are_not_exported(classifier):
    with pytest.raises(ValueError, match="the model uses 'day', 'name'"):
        portable(classifier.model)


# Scores


def test_scores_are_those_of_scikit_learn_and_lie_in_their_intervals():
    rng = np.random.RandomState(0)
    y = rng.choice(["a", "b", "c"], 200)
    proba = rng.dirichlet([1.0, 1.0, 1.0], 200)
    accuracy, loss = scores(y, proba, np.array(["a", "b", "c"]))
    assert accuracy.value == np.mean(np.array(["a", "b", "c"])[proba.argmax(axis=1)] == y)
    assert loss.value == pytest.approx(log_loss(y, proba))
    numbers, guesses = rng.standard_normal((2, 200))
    r2, rmse, mae = scores(numbers, guesses, None)
    assert r2.value == pytest.approx(r2_score(numbers, guesses))
    assert mae.value == pytest.approx(mean_absolute_error(numbers, guesses))
    for each in (accuracy, loss, r2, rmse, mae):
        assert each.low < each.value < each.high


def test_wilson_s_interval_is_that_of_the_formula():
    for k in (0, 3, 50):
        p, n, z = k / 50, 50, 1.959963984540054
        half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        ends = [(p + z * z / (2 * n) + side * half) / (1 + z * z / n) for side in (-1, 1)]
        np.testing.assert_allclose(wilson(p, n), ends, atol=1e-12)


def test_wilson_s_interval_holds_the_probability_as_often_as_it_says():
    rng = np.random.RandomState(0)
    shares = rng.binomial(50, 0.9, 2000) / 50
    inside = [low <= 0.9 <= high for low, high in (wilson(share, 50) for share in shares)]
    assert 0.93 < np.mean(inside) < 0.985


def test_classes_count_as_equal_whether_written_as_text_or_as_numbers():
    table = Table("t", pa.table({"a": ["1", "2", "3", "4"] * 5, "y": ["0", "0", "1", "1"] * 5}))
    model = fit_table(table, "y").model
    assert model.classes_.tolist() == [0, 1]
    one = table.columns.set_column(1, "y", pa.array(["1"] * 20))
    target, found = score_table(model, Table("t", one))
    assert found[0].value == pytest.approx(np.mean(predict_table(model, table) == 1))
    assert len(target.y) == 20


# More rows than fit in memory


@pytest.mark.parametrize("numbers", [False, True], ids=["classes", "numbers"])
@pytest.mark.parametrize("kept", [True, False], ids=["average", "units"])
def test_a_large_file_gives_one_model_whatever_its_row_groups(
    numbers, kept, tmp_path, small_sample, monkeypatch, settings
):
    settings(leaf=80, smallest_leaf=40, largest_leaf=80, most_rows_of_leaf=80, tuned_rows=80)
    if not kept:  # memory does not hold the rows that averaged networks keep
        monkeypatch.setattr(SIZES, "memory_share", 1e-12)
    table = table_of(600, numbers=numbers)
    gaps = [None if k % 50 == 0 else y for k, y in enumerate(table.columns["target"].to_pylist())]
    columns = table.columns.drop_columns(["name"]).set_column(4, "target", pa.array(gaps))
    answers, told = [], []
    for size in (600, 70):
        path = tmp_path / f"{size}.parquet"
        parquet.write_table(columns, path, row_group_size=size)
        fitted = fit_large(path, "target", tell=told.append)
        answers.append(predict_table(fitted.model, table, proba=not numbers))
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-8)
    assert hasattr(fitted.model[-1], "estimators_") == kept
    assert fitted.judged_by == "58 rows left out"
    assert fitted.score > 0.6
    assert len(fitted.left_out[1]) == 58
    assert sum(importances_of(fitted.model).values()) == pytest.approx(float(kept))
    assert len(fitted.model.table_rows_) == len(fitted.target.y) - 58
    assert fitted.target.known[fitted.model.table_rows_].all()
    save(fitted.model, tmp_path / "m.karnet")
    again = predict_table(load(tmp_path / "m.karnet"), table, proba=not numbers)
    np.testing.assert_array_equal(again, answers[-1])
    assert any("530 of 530 rows" in each for each in told)


def test_only_parquet_of_more_rows_than_fit_is_large(tmp_path, monkeypatch):
    parquet.write_table(pa.table({"a": list(range(100))}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    assert is_large(tmp_path / "t.parquet", 99)
    assert not is_large(tmp_path / "t.parquet", 100)
    assert not is_large(tmp_path / "t.parquet")
    assert not is_large(tmp_path / "t.csv", 0)
    monkeypatch.setattr(SIZES, "memory_share", 1e-12)
    assert is_large(tmp_path / "t.parquet")


def test_a_large_file_without_the_target_or_anything_else_is_refused(tmp_path):
    parquet.write_table(pa.table({"a": [1.5, 2.5]}), tmp_path / "t.parquet")
    for name, message in (("b", "has no column 'b'"), ("a", "no column other than the target")):
        with pytest.raises(ValueError, match=message):
            fit_large(tmp_path / "t.parquet", name)


def test_text_beyond_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(SIZES, "text_share", 1e-12)
    with pytest.raises(ValueError, match="save it as Parquet"):
        read_table(written(tmp_path / "t.csv", "a,b\n1,2\n"))


# What was found by chance


def test_an_arrow_file_whose_cells_lie_elsewhere_is_refused(tmp_path):
    table = pa.table({"a": ["one", "two", "three"], "b": [1, 2, 3]})
    right, far = np.array([[0, 3, 6, 11], [0, 2**30, 2**30 + 3, 2**30 + 8]], np.int32)
    for opened in (ipc.new_file, ipc.new_stream):
        path = tmp_path / "rows"
        with opened(path, table.schema) as writer:
            writer.write_table(table)
        path.write_bytes(path.read_bytes().replace(right.tobytes(), far.tobytes()))
        with pytest.raises(ValueError, match="rows cannot be read as Arrow"):
            read_table(path)


def test_names_that_are_not_utf_8_are_refused(tmp_path):
    path = tmp_path / "rows.arrow"
    as_stream(pa.table({"abcdefgh": [1, 2]}), path)
    path.write_bytes(path.read_bytes().replace(b"abcdefgh", b"abc\xffefgh"))
    with pytest.raises(ValueError, match="arrow cannot be read as Arrow"):
        read_table(path)


def test_text_takes_memory_for_what_is_there_alone(tmp_path):
    import tracemalloc

    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    tracemalloc.start()
    try:
        read_table(path)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_wide_encodings_are_read_and_said(encoding, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("a,b\n1,ü\n".encode(encoding))
    table = read_table(path)
    assert table.columns.to_pydict() == {"a": ["1"], "b": ["ü"]}
    assert encoding.upper() in table.notes[0]


def test_a_table_of_row_numbers_alone_is_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("__index_level_0__\n0\n1\n")
    with pytest.raises(ValueError, match="no column except row numbers"):
        read_table(path)
    path.write_text("__index_level_0__,b\ninf,1\ninf,2\n")
    with pytest.raises(ValueError, match="does not hold row numbers"):
        read_table(path)


def test_long_names_are_cut_in_sentences(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x" * 5000 + ",b\n1,1\n1,2\n")
    table = read_table(path)
    with pytest.raises(ValueError, match="has one value only") as error:
        find_target(table, "x" * 5000)
    assert len(str(error.value)) < 600
