"""Data sets from OpenML, with a server on this machine in its place."""

from __future__ import annotations

from threading import Thread

import numpy as np
import pytest
from sklearn.datasets import _openml

from karnet.datasets import load
from tests.datasets.openml import plausible, server_in_place_of_openml

pytest.importorskip("pandas")


@pytest.fixture
def openml(monkeypatch):
    server, stand_in = server_in_place_of_openml(monkeypatch)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield stand_in
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_set_is_fetched_checked_and_kept(openml, tmp_path):
    header, rows = plausible("tae")
    openml.offer("tae", header, rows, nominal=("f1", "f2", "target"))
    cache = tmp_path / "not" / "yet"
    fetched = load("tae", cache=cache, download=True)
    assert fetched.source == "openml"
    assert fetched.split is None
    assert [path.name for path in cache.iterdir()] == ["tae.csv"]
    openml.pages.clear()
    n_asked = len(openml.asked)
    for download in (False, True):
        kept = load("tae", cache=cache, download=download)
        assert kept.source == "cache"
        assert kept.X.equals(fetched.X)
        assert kept.X.dtypes.equals(fetched.X.dtypes)
        np.testing.assert_array_equal(kept.y, fetched.y)
    assert len(openml.asked) == n_asked


def test_nothing_is_asked_without_leave(openml, tmp_path):
    openml.offer("tae", *plausible("tae"), nominal=("target",))
    with pytest.raises(FileNotFoundError, match="fetch it from OpenML with download=True"):
        load("tae", cache=tmp_path)
    assert not openml.asked


def test_gaps_are_kept_until_the_rows_are_left_out(openml, tmp_path):
    header, rows = plausible("breast-cancer-wisconsin")
    short = [*rows[0][:5], "", *rows[0][6:]]
    openml.offer("breast-cancer-wisconsin", header, [*rows, short], nominal=("target",))
    for source in ("openml", "cache"):
        loaded = load("breast-cancer-wisconsin", cache=tmp_path, download=True)
        assert loaded.source == source
        assert len(loaded.y) == 683
        assert {str(dtype) for dtype in loaded.X.dtypes} == {"int64"}


def test_a_gap_in_a_vote_is_a_third_value(openml, tmp_path):
    header, rows = plausible("votes")
    rows = [[*("ny"[int(cell) % 2] for cell in row[:-1]), row[-1]] for row in rows]
    rows[3][2] = ""
    openml.offer("votes", header, rows, nominal=header)
    X = load("votes", cache=tmp_path, download=True).X
    assert X["f2"].cat.categories.tolist() == ["n", "neither", "y"]


def test_true_and_false_are_numbers(openml, tmp_path):
    header, rows = plausible("zoo")
    for row in rows:
        row[0] = ("false", "true")[int(row[0]) % 2]
    openml.offer("zoo", header, rows, nominal=("f0", "target"))
    values = load("zoo", cache=tmp_path, download=True).X["f0"].tolist()
    assert values == [int(row[0] == "true") for row in rows]


def test_counts_of_rings_and_prices_are_grouped_to_the_paper_s_classes(openml, tmp_path):
    header, rows = plausible("abalone")
    rings = {"c0": "11", "c1": "8", "c2": "10"}
    openml.offer("abalone", header, [[*row[:-1], rings[row[-1]]] for row in rows])
    y = load("abalone", cache=tmp_path, download=True).y
    assert np.unique(y).tolist() == ["1-8", "11+", "9-10"]
    header, rows = plausible("boston-housing")
    prices = {"c0": "23.7", "c1": "18.7", "c2": "23.8"}
    openml.offer("boston-housing", header, [[*row[:-1], prices[row[-1]]] for row in rows])
    y = load("boston-housing", cache=tmp_path, download=True).y
    classes = {"c0": 2, "c1": 1, "c2": 3}
    assert y.tolist() == [classes[row[-1]] for row in rows]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda header, rows: (header, rows[1:]), "150 usable rows and should have 151"),
        (lambda header, rows: (header[1:], [row[1:] for row in rows]), "4 features"),
        (lambda header, rows: (header, [[*rows[0][:-1], "c7"], *rows[1:]]), "4 classes"),
        (lambda header, rows: ([*header[:-1], "class"], rows), "6 features and should"),
    ],
)
def test_another_set_under_the_id_is_refused_and_not_kept(openml, tmp_path, change, says):
    header, rows = change(*plausible("tae"))
    openml.offer("tae", header, rows, nominal=("target", "class"))
    with pytest.raises(ValueError, match=says) as error:
        load("tae", cache=tmp_path, download=True)
    assert str(error.value).startswith("OpenML's data set 48 is refused as the data set 'tae': ")
    assert not list(tmp_path.iterdir())


def test_a_damaged_answer_is_refused_and_not_kept(openml, tmp_path):
    openml.offer("tae", *plausible("tae"), nominal=("target",), md5="0" * 32)
    with pytest.raises(ValueError, match=r"OpenML's data set 48 is refused .*md5[^\n]*\)\.$"):
        load("tae", cache=tmp_path, download=True)
    openml.pages["api/v1/json/data/48"] = b"<html>please log in</html>"
    with pytest.raises(ValueError, match="OpenML's data set 48 is refused"):
        load("tae", cache=tmp_path, download=True)
    openml.pages.clear()
    with pytest.raises(ValueError, match=r"OpenML's data set 48 is refused .*not found"):
        load("tae", cache=tmp_path, download=True)
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_in_the_cache_is_refused(openml, tmp_path):
    openml.offer("tae", *plausible("tae"), nominal=("target",))
    load("tae", cache=tmp_path, download=True)
    file = tmp_path / "tae.csv"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"tae\.csv is refused"):
        load("tae", cache=tmp_path, download=True)


def test_no_connection_is_said_with_what_to_do(openml, tmp_path, monkeypatch):
    for constant, address in list(vars(_openml).items()):
        if isinstance(address, str) and address.startswith(openml.url):
            # Nothing listens on port 9 of this machine.
            monkeypatch.setattr(
                _openml, constant, address.replace(openml.url, "http://127.0.0.1:9")
            )
    with pytest.raises(ConnectionError, match=r"cannot be fetched .* put tae\.csv into the folder"):
        load("tae", cache=tmp_path, download=True)
