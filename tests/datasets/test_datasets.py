"""The paper's data sets: the table, what is built in, and the user's own files."""

from __future__ import annotations

import csv
import os
import sys
from collections import Counter

import numpy as np
import pytest

from karnet.datasets import DATASETS, LISTING_HEADER, available, listing, load
from karnet.datasets._builtin import BUILT_IN
from karnet.datasets._load import cache_folder
from tests.datasets.openml import plausible

FOLDER = os.environ.get("KARNET_DATA")
needs_folder = pytest.mark.skipif(
    not FOLDER, reason="KARNET_DATA names no folder with files of the data sets"
)
DRAWN = ("waveform", "led")
EXACT = [name for name in BUILT_IN if name not in DRAWN]


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch, tmp_path):
    """Let no test see the folders that the environment names, unless it says so."""
    monkeypatch.delenv("KARNET_DATA", raising=False)
    monkeypatch.setenv("KARNET_CACHE", str(tmp_path / "cache"))


def write(folder, name, header, rows):
    with open(folder / f"{name}.csv", "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def refused(folder, name):
    """Return the one sentence with which a file is refused."""
    with pytest.raises(ValueError, match="is refused as the data set") as error:
        load(name, data=folder)
    message = str(error.value)
    assert str(folder / f"{name}.csv") in message
    assert message.endswith(".")
    assert "\n" not in message
    return message


# The table


def test_the_table_has_the_paper_s_42_sets_in_order():
    assert [data.number for data in DATASETS.values()] == list(range(1, 43))
    assert all(name == data.name for name, data in DATASETS.items())
    marked = {name for name, data in DATASETS.items() if data.fixed_split}
    assert marked == {"smoking", "waveform", "thyroid", "dna", "satimage", "led"}
    assert not any(data.verified for data in DATASETS.values())


def test_used_and_given_numbers_of_the_paper_are_told_apart():
    shuttle = DATASETS["shuttle-landing-control"]
    assert shuttle.printed == ("279(15)", "6", "2")
    assert shuttle.paper == (279, 6, 2)
    assert DATASETS["nursery"].paper == (12960, 8, 4)


def test_every_difference_from_the_paper_is_said():
    for data in DATASETS.values():
        if data.here != data.paper or (data.fixed_split and not data.test_rows):
            assert data.deviation, data.name


def test_the_table_agrees_with_itself():
    for data in DATASETS.values():
        if data.name not in DRAWN:
            assert sum(data.class_sizes) == data.here.rows
            assert len(data.class_sizes) == data.here.classes
        assert list(data.class_sizes) == sorted(data.class_sizes, reverse=True)
        assert all(0 <= k < data.here.features for k in data.categorical)
        assert data.missing in ("no", "drop", "value")
        assert data.source
        assert data.licence
        # A set whose split counts can't come from OpenML, which has none.
        assert not (data.fixed_split and data.openml)
    assert set(BUILT_IN) == {data.name for data in DATASETS.values() if data.built_in}


# Built in


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_sets_need_no_file(name):
    data, loaded = DATASETS[name], load(name)
    assert loaded.source == "built-in"
    assert loaded.X.shape == (data.built_in, data.here.features)
    assert len(loaded.y) == data.built_in
    kinds = ["category" if k in data.categorical else "number" for k in range(loaded.X.shape[1])]
    found = ["category" if str(t) == "category" else "number" for t in loaded.X.dtypes]
    assert found == kinds


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("shuttle-landing-control", {"auto": 145, "noauto": 133}),
        ("tic-tac-toe", {"positive": 626, "negative": 332}),
        ("balance-scale", {"L": 288, "B": 49, "R": 288}),
        ("monks-1", {0: 216, 1: 216}),
        ("monks-2", {0: 290, 1: 142}),
        ("monks-3", {0: 204, 1: 228}),
        ("iris", {"Iris-setosa": 50, "Iris-versicolor": 50, "Iris-virginica": 50}),
        ("wine", {1: 59, 2: 71, 3: 48}),
        ("wdbc", {"B": 357, "M": 212}),
    ],
)
def test_rules_give_the_known_numbers_of_each_class(name, counts):
    assert Counter(load(name).y.tolist()) == counts


def test_shuttle_repeats_what_two_rules_cover():
    X = load("shuttle-landing-control").X
    assert len(X) == 278
    assert len(X.drop_duplicates()) == 253


def test_iris_has_uci_s_two_rows():
    X = load("iris").X.to_numpy()
    np.testing.assert_array_equal(X[[34, 37]], [[4.9, 3.1, 1.5, 0.1]] * 2)


def test_led_inverts_a_tenth_of_the_segments():
    loaded = load("led")
    clean = np.array([loaded.X[loaded.y == digit].median() for digit in range(10)])
    assert len(np.unique(clean, axis=0)) == 10
    np.testing.assert_array_equal(clean[8], 1)
    assert clean.sum() == 6 + 2 + 5 + 5 + 4 + 5 + 6 + 3 + 7 + 6
    noise = np.mean(loaded.X.to_numpy() != clean[loaded.y])
    assert abs(noise - 0.1) < 5 * np.sqrt(0.09 / 42000)
    assert (~loaded.split).sum() == 2000
    assert not loaded.split[:2000].any()


def test_waveform_has_the_law_of_breiman():
    loaded = load("waveform")
    place = np.arange(1, 22)
    waves = {peak: np.maximum(6 - np.abs(place - peak), 0) for peak in (7, 11, 15)}
    for label, (a, b) in enumerate([(7, 15), (7, 11), (11, 15)]):
        X = loaded.X[loaded.y == label].to_numpy()
        mean, variance = (waves[a] + waves[b]) / 2, 1 + (waves[a] - waves[b]) ** 2 / 12
        assert np.abs((X.mean(axis=0) - mean) / np.sqrt(variance / len(X))).max() < 4
        assert np.abs(X.var(axis=0) / variance - 1).max() < 0.25
    assert loaded.split.sum() == 3000


def test_draws_are_the_same_every_time():
    for name in DRAWN:
        assert load(name).X.equals(load(name).X)


# The user's folder


@needs_folder
@pytest.mark.parametrize("name", DATASETS)
def test_every_set_loads_from_the_folder(name):
    data, loaded = DATASETS[name], load(name, data=FOLDER)
    assert loaded.source == "folder"
    assert (*loaded.X.shape, len(np.unique(loaded.y))) == data.here
    assert not loaded.X.isna().any(axis=None)
    assert (loaded.split is None) == (data.test_rows is None)
    categories = [k for k, dtype in enumerate(loaded.X.dtypes) if str(dtype) == "category"]
    assert tuple(categories) == data.categorical
    assert loaded.y.dtype.kind in "iU"


@needs_folder
@pytest.mark.parametrize("name", EXACT)
def test_built_in_sets_equal_the_files_row_for_row(name):
    built_in, file = load(name), load(name, data=FOLDER)
    part = file.split if name.startswith("monks") else np.ones(len(file.y), dtype=bool)
    X = file.X[part].reset_index(drop=True)
    assert built_in.X.equals(X)
    np.testing.assert_array_equal(built_in.y, file.y[part])


def test_the_folder_comes_before_what_is_built_in(tmp_path, monkeypatch):
    header, rows = plausible("iris")
    write(tmp_path, "iris", header, rows)
    assert load("iris", data=tmp_path).source == "folder"
    assert load("wine", data=tmp_path).source == "built-in"
    assert load("iris").source == "built-in"
    monkeypatch.setenv("KARNET_DATA", str(tmp_path))
    assert load("iris").source == "folder"


def test_numbers_are_whole_where_all_are_and_categories_keep_their_order(tmp_path):
    header, rows = plausible("tae")
    for i, row in enumerate(rows):
        row[0] = "3.0"
        row[1] = str(i % 25)
        row[4] = "2.5"
    write(tmp_path, "tae", header, rows)
    X = load("tae", data=tmp_path).X
    types = [str(dtype) for dtype in X.dtypes]
    assert types == ["int64", "category", "category", "int64", "float64"]
    assert X["f1"].cat.categories.tolist() == list(range(25))


def test_decimal_numbers_are_read_to_the_last_bit(tmp_path):
    header, rows = plausible("bupa")
    values = np.random.RandomState(0).standard_normal(len(rows)).tolist()
    for row, value in zip(rows, values, strict=True):
        row[3] = repr(value)
    write(tmp_path, "bupa", header, rows)
    assert load("bupa", data=tmp_path).X["f3"].tolist() == values


def test_rows_with_gaps_are_left_out_or_the_gap_is_a_value(tmp_path):
    header, rows = plausible("wpbc")
    short = ["", *rows[0][1:]]
    write(tmp_path, "wpbc", header, [short, *rows, short])
    assert len(load("wpbc", data=tmp_path).X) == 194
    header, rows = plausible("votes")
    rows = [[*("ny"[int(cell) % 2] for cell in row[:-1]), row[-1]] for row in rows]
    rows[7][2] = ""
    write(tmp_path, "votes", header, rows)
    X = load("votes", data=tmp_path).X
    assert X["f2"].cat.categories.tolist() == ["n", "neither", "y"]
    assert X["f2"][7] == "neither"


def test_nursery_is_left_without_its_two_row_class(tmp_path):
    header, rows = plausible("nursery")
    extra = [*rows[0][:-1], "recommend"]
    write(tmp_path, "nursery", header, [extra, *rows, extra])
    loaded = load("nursery", data=tmp_path)
    assert len(loaded.y) == 12958
    assert set(loaded.y) == {"c0", "c1", "c2", "c3"}


def test_a_split_says_which_rows_are_for_testing(tmp_path):
    header, rows = plausible("monks-1")
    parts = ["train"] * 124 + ["test"] * 432
    split = [[*row[:-1], part, row[-1]] for row, part in zip(rows, parts, strict=True)]
    write(tmp_path, "monks-1", [*header[:-1], "split", "target"], split)
    np.testing.assert_array_equal(
        load("monks-1", data=tmp_path).split, [part == "test" for part in parts]
    )
    write(tmp_path, "monks-1", header, rows)
    assert load("monks-1", data=tmp_path).split is None


# What is refused


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda header, rows: (header, rows[:-1]), "344 usable rows and should have 345"),
        (lambda header, rows: (header, []), "0 usable rows and should have 345"),
        (lambda header, rows: (header[1:], [row[1:] for row in rows]), "5 features and should"),
        (lambda header, rows: ([*header[:-1], "class"], rows), "must be called 'target'"),
        (lambda header, rows: (["f1", *header[1:]], rows), "have the same name"),
        (lambda header, rows: (header, [[*rows[0][:-1], "c2"], *rows[1:]]), "3 classes"),
        (lambda header, rows: (header, [[*rows[0][:-1], "c1"], *rows[1:]]), "199, 146 rows"),
        (lambda header, rows: (header, [rows[0][1:], *rows[1:]]), "row 1 has 6 cells"),
        (lambda header, rows: (header, [["x", *rows[0][1:]], *rows[1:]]), "'x' where a number"),
        (lambda header, rows: (header, [["inf", *rows[0][1:]], *rows[1:]]), "'inf' where a number"),
        (lambda header, rows: (header, [["", *rows[0][1:]], *rows[1:]]), "'f0' is empty in row 1"),
        (lambda header, rows: (header, [[*rows[0][:-1], ""], *rows[1:]]), "'target' is empty"),
    ],
)
def test_a_damaged_file_is_refused_with_one_sentence(tmp_path, damage, says):
    write(tmp_path, "bupa", *damage(*plausible("bupa")))
    assert says in refused(tmp_path, "bupa")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b'a,"b\n', b"a\x00,target\n1,2\n"])
def test_what_is_no_csv_is_refused(tmp_path, content):
    (tmp_path / "bupa.csv").write_bytes(content)
    refused(tmp_path, "bupa")


def test_another_set_s_file_is_refused(tmp_path):
    write(tmp_path, "pima", *plausible("bupa"))
    assert "6 features and should have 8" in refused(tmp_path, "pima")


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (["train"] * 556, "0 rows and should have 432"),
        (["train"] * 555 + ["Test"], "must say train or test"),
        (["train"] * 555 + [""], "'split' is empty"),
    ],
)
def test_a_wrong_split_is_refused(tmp_path, parts, says):
    header, rows = plausible("monks-1")
    split = [[*row[:-1], part, row[-1]] for row, part in zip(rows, parts, strict=True)]
    write(tmp_path, "monks-1", [*header[:-1], "split", "target"], split)
    assert says in refused(tmp_path, "monks-1")


def test_a_set_that_is_measured_on_its_split_needs_one(tmp_path):
    write(tmp_path, "thyroid", *plausible("thyroid"))
    assert "needs a column 'split'" in refused(tmp_path, "thyroid")


def test_a_damaged_file_is_never_replaced_by_another_source(tmp_path):
    (tmp_path / "iris.csv").write_text("target\n")
    refused(tmp_path, "iris")


# What a user is told


def test_a_set_that_is_nowhere_says_what_to_do():
    with pytest.raises(FileNotFoundError, match=r"put pima\.csv into .* or fetch it .*\.$"):
        load("pima")
    with pytest.raises(FileNotFoundError, match=r"put wpbc\.csv into .* KARNET_DATA names\.$"):
        load("wpbc", download=True)


def test_an_unknown_name_or_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no data set 'irish': .* such as 'iris'\.$"):
        load("irish")
    with pytest.raises(NotADirectoryError, match="does not exist: set data or KARNET_DATA to"):
        load("iris", data=tmp_path / "nowhere")


def test_without_pandas_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"^karnet\.datasets needs pandas: .*'karnet\[paper\]'"):
        load("iris")
    assert len(listing()) == 42


def test_available_says_who_would_serve(tmp_path):
    folder, cache = tmp_path / "data", tmp_path / "kept"
    folder.mkdir()
    cache.mkdir()
    write(folder, "wpbc", *plausible("wpbc"))
    write(cache, "pima", *plausible("pima"))
    here = available(data=folder, cache=cache)
    assert list(here) == list(DATASETS)
    expected = {"wpbc": "folder", "iris": "built-in", "pima": "cache", "car": "openml", "dna": None}
    assert {name: here[name] for name in expected} == expected
    assert load("pima", cache=cache).source == "cache"


def test_the_listing_has_a_row_of_text_for_every_set(tmp_path):
    rows = listing()
    assert len(rows) == 42
    for row in rows:
        assert len(row) == len(LISTING_HEADER)
        assert all(isinstance(cell, str) for cell in row)
    by_name = {row[1]: row for row in rows}
    assert by_name["monks-1"][:6] == ("3", "monks-1", "432", "6", "2", "built in")
    assert by_name["car"][2:6] == ("1728", "6", "4", "OpenML, by download")
    assert "2782" in by_name["car"][6]
    assert by_name["dna"][5] == "none"


@pytest.mark.parametrize(
    ("platform", "variable", "tail"),
    [
        ("linux", "XDG_CACHE_HOME", ("karnet",)),
        ("win32", "LOCALAPPDATA", ("karnet",)),
        ("darwin", "HOME", ("Library", "Caches", "karnet")),
    ],
)
def test_downloads_go_where_the_platform_keeps_them(
    monkeypatch, tmp_path, platform, variable, tail
):
    monkeypatch.delenv("KARNET_CACHE")
    monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr("sys.platform", platform)
    assert cache_folder(None) == tmp_path.joinpath(*tail)
