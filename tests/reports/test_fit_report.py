"""The report on a fit needs no other files, has all its sections, and escapes all text."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from karnet._pages.style import INK
from karnet.reports import held_out, write_fit_report
from karnet.tables import Table, find_target, fit_table
from tests.paper.test_report import Page
from tests.tables.test_tables import table_of

SECTIONS = [
    *("card", "errors", "limits", "scores", "data", "predictions"),
    *("columns", "dependence", "network", "environment"),
]
HOSTILE = "<b onclick='x'>&\""


def report(folder, table, **settings):
    fitted = fit_table(table, "target", **settings)
    again = partial(fit_table, **settings)
    path = folder / "report.html"
    write_fit_report(path, table, fitted, again, {"Fitting": 1.25}, f"karnet fit {HOSTILE}")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    columns = table_of().columns
    columns = columns.rename_columns([HOSTILE if n == "kind" else n for n in columns.column_names])
    columns = columns.set_column(4, "empty", pa.array([HOSTILE, "other"] * 40))
    return {
        "classes": report(folder, Table(HOSTILE, columns, (f"Note {HOSTILE}.",))),
        "numbers": report(folder, table_of(numbers=True)),
    }


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_report_is_self_contained_and_has_all_sections(kind, pages):
    content = Page(pages[kind])
    assert [name for name in content.names if name in SECTIONS] == SECTIONS
    assert len(set(content.names)) == len(content.names)
    inside = {f"#{name}" for name in content.names}
    assert all(link in inside for link in content.links)
    assert "http" not in pages[kind]
    assert "url(" not in pages[kind].replace("url(#", "")
    assert INK not in pages[kind]
    assert not re.search(r"\bnan\b|\binf\b", " ".join(content.text), re.IGNORECASE)
    assert "prefers-color-scheme: dark" in pages[kind]


def test_text_of_a_table_is_escaped(pages):
    assert "<b onclick" not in pages["classes"]
    text = "".join(Page(pages["classes"]).text)
    assert text.count(HOSTILE) >= 4


def test_scores_have_intervals_and_name_their_rows(pages):
    for kind, name in (("classes", "accuracy"), ("numbers", "R²")):
        text = " ".join(Page(pages[kind]).text)
        assert "leave-one-out" in text
        assert "16 held-out rows, model fitted on the others" in text
        assert text.count(name) >= 2
        assert len(re.findall(r"[-\d.]+ to [-\d.]+", text)) >= 3


@pytest.mark.parametrize(
    ("kind", "figures"),
    [
        (
            "classes",
            ["Confusion matrix", "Calibration", "Importances", "Singular values of layer inputs"],
        ),
        (
            "numbers",
            ["True and predicted values", "Importances", "Singular values of layer inputs"],
        ),
    ],
)
def test_all_figures_are_on_the_page(kind, figures, pages):
    text = pages[kind]
    for figure in (*figures, "Singular values of layer inputs", "Score and ridge"):
        assert f'aria-label="{figure}"' in text
    assert "Networks that are averaged" in text


def test_importances_of_the_paper_s_network_are_found_by_shuffling(tmp_path):
    columns = table_of().columns.select(["size", "kind", "target"])
    text = report(tmp_path, Table("t", columns), paper=True)
    assert "when a column is shuffled" in text
    assert "10 folds" in text
    assert "Layers" in text
    assert "novelty" not in text
    assert "Partial dependence on size" in text
    assert re.search(r"size \d+\.\d points", text)


def test_held_out_rows_are_not_used_for_fitting():
    table, fitted_on = table_of(), []

    def again(rows, target):
        fitted_on.append(rows)
        return fit_table(rows, target)

    fitted = fit_table(table, "target")
    other = held_out(table, fitted, again)
    names = [set(part.frame(["name"])["name"]) for part in (*fitted_on, other.table)]
    assert names[0] | names[1] == set(table.frame(["name"])["name"])
    assert not names[0] & names[1]
    right = other.classes[other.predictions.argmax(axis=1)] == other.y
    assert other.scores[0].value == np.mean(right)


def test_the_report_on_a_small_table_has_no_held_out_rows(tmp_path):
    columns = {"a": ["1", "2", "3", "4", "5", "6"], "target": ["u", "u", "v", "v", "u", "v"]}
    text = " ".join(Page(report(tmp_path, Table("t", pa.table(columns)))).text)
    assert "too few rows to hold some out" in text


def test_a_class_of_one_row_does_not_stop_a_report(tmp_path):
    cells = {"a": [str(k % 7) for k in range(40)], "target": ["u", "v"] * 19 + ["u", "w"]}
    table = Table("t", pa.table(cells))
    assert len(np.unique(find_target(table, "target").y)) == 3
    assert "Confusion matrix" in report(tmp_path, table)


def test_a_report_needs_no_held_out_row_of_a_known_class(tmp_path):
    cells = {"a": [str(k % 7) for k in range(30)], "target": [f"name {k}" for k in range(30)]}
    text = report(tmp_path, Table("t", pa.table(cells)), task="classification")
    assert "Confusion matrix" in text
