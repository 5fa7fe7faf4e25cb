"""What-if answers are those of the model, and a row is removed without a fit."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("skrub")

from karnet import KARRegressor
from karnet.cli import main
from karnet.inspection import row_influence
from karnet.play._what_if import WhatIf
from karnet.play._wire import reply
from karnet.tables import find_target, fit_table, inputs_of, network_of, predict_table
from tests.play.test_browser import after, settle, wait_until
from tests.tables.test_tables import table_of


@pytest.fixture(scope="module", params=[False, True], ids=["classes", "numbers"])
def asked(request):
    table = table_of(numbers=request.param)
    target = find_target(table, "target")
    return WhatIf(fit_table(table, target).model, "mixed.csv", table, target)


def cells_of(asked, row=3):
    return asked.answer({"kind": "cells", "row": row})[0]["cells"]


def test_the_page_learns_ranges_labels_and_typical_values(asked):
    about = asked.answer({"kind": "start"})[0]
    size, kind, day, name, empty = about["columns"]
    assert size["low"] < float(size["value"]) < size["high"]
    assert kind["labels"] == ["blue", "green", "red"]
    assert kind["value"] in kind["labels"]
    assert day["value"].startswith("2024-")
    assert (name["kind"], empty["kind"]) == ("text", "empty: not used")
    assert about["rows"] == 80


def test_the_prediction_is_that_of_the_model(asked):
    answer = asked.answer({"kind": "row", "cells": cells_of(asked), "coverage": 0.8})[0]
    row = asked.rows.take(np.array([2]))
    X, network = inputs_of(asked.model, row), network_of(asked.model)
    if asked.classes is None:
        assert answer["prediction"] == pytest.approx(predict_table(asked.model, row)[0])
        np.testing.assert_allclose(answer["interval"], network.predict_interval(X, 0.8)[0])
    else:
        np.testing.assert_allclose(answer["probabilities"], network.predict_proba(X)[0])
        assert answer["prediction"] in answer["set"]


@pytest.mark.parametrize("moved", ["size", "kind"])
def test_the_curve_passes_through_the_prediction_and_the_mean_over_rows(asked, moved):
    cells = cells_of(asked) | {"size": f"{asked.columns[0]['low']:.6g}", "kind": "blue"}
    answer = asked.answer({"kind": "row", "cells": cells, "moved": moved, "class": 0})[0]
    now = answer["prediction"] if asked.classes is None else answer["probabilities"][0]
    assert answer["curve"]["own"][0] == pytest.approx(now, rel=1e-6)
    assert len(answer["curve"]["own"]) == len(answer["curve"]["mean"])
    assert answer["curve"]["mean"] != answer["curve"]["own"]


def test_a_removed_row_changes_the_prediction_as_its_influence_says(asked):
    answer = asked.answer({"kind": "influence", "cells": cells_of(asked)})[0]
    found = row_influence(asked.network, inputs_of(asked.model, asked.rows.take(np.array([2]))))
    first = answer["influential"][0]
    assert first["row"] == found.most_influential(1)[0, 0] + 1
    assert first["change"] == pytest.approx(found.changes[0, first["row"] - 1])
    assert first["without"] == pytest.approx(answer["now"] + first["change"])
    if asked.classes is not None:
        other = asked.answer({"kind": "influence", "cells": cells_of(asked), "class": 0})[0]
        assert other["now"] == -answer["now"]


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"kind": "cells"},
        {"kind": "cells", "row": 10**9},
        {"kind": "row"},
        {"kind": "row", "cells": []},
        {"kind": "row", "cells": {"unknown": "1"}},
        {"kind": "row", "cells": {"size": 1}},
        {"kind": "row", "cells": {"size": "1e999"}},
        {"kind": "row", "cells": {}, "coverage": 2},
        {"kind": "row", "cells": {}, "moved": "size", "class": 99},
        {"kind": "influence", "cells": {}, "class": "x"},
    ],
    ids=str,
)
def test_what_cannot_be_used_gets_one_sentence(asked, message):
    error = json.loads(reply(asked, message))["error"]
    assert "internal" not in error
    assert "\n" not in error


def test_gaps_and_unknown_cells_are_predicted(asked):
    for cells in ({}, {"size": "what", "kind": "pink", "day": "never", "moved": ""}):
        cells.pop("moved", None)
        assert json.loads(reply(asked, {"kind": "row", "cells": cells}))["prediction"] is not None


def test_a_model_without_rows_is_refused():
    frame = pytest.importorskip("pandas").DataFrame({"a": [0.0, 1.0, 2.0]})
    net = KARRegressor((2,), hidden="random", random_state=0).fit(frame, [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="keeps no training rows"):
        WhatIf(net, "net.karnet")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.csv"], "there is no file"),
        (["--target", "x"], "needs a table"),
        (["table.csv"], "needs --target"),
        (["model.karnet", "--target", "x"], "knows its target"),
    ],
)
def test_arguments_that_cannot_be_used_are_a_sentence(
    arguments, words, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name in ("table.csv", "model.karnet"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(SystemExit) as end:
        main(["play", "--no-browser", *arguments])
    assert end.value.code == 2
    assert words in capsys.readouterr().err


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a table of houses and a model of it."""
    folder = tmp_path_factory.mktemp("houses")
    rng = np.random.default_rng(0)
    size, part = rng.integers(40, 200, 60), rng.choice(["north", "south"], 60)
    price = 3 * size + 80 * (part == "south") + rng.normal(0, 20, 60).round()
    lines = [f"{a},{b},{c:.0f}" for a, b, c in zip(size, part, price, strict=True)]
    (folder / "houses.csv").write_text("\n".join(["size,part,price", *lines]))
    model = str(folder / "houses.karnet")
    main(["fit", str(folder / "houses.csv"), "-t", "price", "--model", model, "--quiet"])
    return folder


def test_sliders_and_menus_move_the_prediction(running, tabs, files, shot):
    server = running(str(files / "houses.csv"), "--target", "price")
    page = tabs(server.address)
    settle(page)
    before = page.inner_text("#prediction")
    after(page, lambda: page.fill("#columns input[type=range]", "180"))
    assert page.inner_text("#prediction") != before
    assert "over size" in page.inner_text("#curve-title")
    after(page, lambda: page.select_option("#columns select", "south"))
    assert "over part" in page.inner_text("#curve-title")
    after(page, lambda: page.fill("#columns input[type=range]", "150"))
    assert "with probability 90 %" in page.inner_text("#range")
    after(page, lambda: page.fill("#coverage", "60"))
    assert "with probability 60 %" in page.inner_text("#range")
    wait_until(page, "document.querySelectorAll('#influential tbody tr').length === 8")
    page.locator("#influential button").first.click()
    assert "Nothing was fitted again" in page.inner_text("#without")
    shot(page, "what-if")
    wait_until(page, "location.hash.length > 10")
    said = page.inner_text("#prediction")
    page.reload()
    settle(page)
    assert page.inner_text("#prediction") == said
    page.fill("#row", "5")
    after(page, lambda: page.keyboard.press("Tab"))
    assert page.inner_text("#prediction") != said


def test_a_model_file_is_enough(running, tabs, files):
    page = tabs(running(str(files / "houses.karnet")).address)
    settle(page)
    assert page.is_hidden("#from-row")
    after(page, lambda: page.fill("#columns input[type=range]", "180"))
    wait_until(page, "document.querySelectorAll('#influential tbody tr').length === 8")
