"""A model card says where a model is wrong, what it depends on, and what it was not made for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from karnet.reports import _groups, held_out
from karnet.reports._card import Card
from karnet.reports._dependence import Response, drawable_columns
from karnet.reports._drawings import dependence, literal
from karnet.reports._groups import RowErrors, all_groups, row_errors, worst_groups
from karnet.reports._importances import Importances
from karnet.tables import Table, fit_table, kinds_of
from tests.paper.test_report import Page
from tests.reports.test_fit_report import report
from tests.tables.test_tables import table_of


def made(n, seed=0):
    """Return a table in which a and b are related, and act together with the kind."""
    rng = np.random.RandomState(seed)
    a = rng.standard_normal(n)
    b, c = a + 0.1 * rng.standard_normal(n), rng.standard_normal(n)
    kind = rng.choice(["quiet", "loud"], n, p=[0.8, 0.2])
    noise = np.where(kind == "loud", 2.0, 0.05) * rng.standard_normal(n)
    y = a + c * (kind == "quiet") + noise
    columns = {"a": a, "b": b, "c": c, "kind": kind, "y": y}
    return Table("made", pa.table(columns))


@pytest.fixture(scope="module")
def fitted():
    table = made(400)
    found = fit_table(table, "y")
    return table, found, held_out(table, found, fit_table)


def test_the_group_with_more_noise_is_the_worst(fitted):
    table, found, other = fitted
    rows = row_errors(table, found, other)
    assert rows.words == "80 held-out rows"
    groups, n = worst_groups(found.model, rows)
    assert (groups[0].column, groups[0].values) == ("kind", "loud")
    assert groups[0].excess > 3.0
    # Four quarters of each column of numbers, or fewer if they are short, and two categories.
    assert 2 < n <= 14
    assert all(each.n >= 20 for each in groups)
    assert [each.excess for each in groups] == sorted((g.excess for g in groups), reverse=True)
    # The mean error of all rows is that of the groups of a column together.
    loud = np.array(rows.table.frame(["kind"])["kind"] == "loud")
    assert groups[0].error == pytest.approx(rows.errors[loud].mean())


def test_excesses_of_groups_are_standard_normal_if_the_columns_make_no_difference(fitted):
    table, found, _ = fitted
    rng, excesses = np.random.RandomState(0), []
    for _ in range(100):
        rows = RowErrors(table, rng.exponential(size=len(table)), "")
        excesses.append([group.excess for group in all_groups(found.model, rows)])
    # Quarters of one column are not independent, and neither are those of related ones.
    assert np.mean(excesses) == pytest.approx(0.0, abs=0.05)
    assert np.std(excesses) == pytest.approx(1.0, abs=0.1)


def test_few_held_out_rows_give_way_to_left_out_predictions():
    for numbers in (False, True):
        table = table_of(numbers=numbers)
        found = fit_table(table, "target")
        rows = row_errors(table, found, held_out(table, found, fit_table))
        assert rows.words == "left-out predictions of 80 rows"
        if not numbers:
            assert 1.0 - rows.errors.mean() == pytest.approx(found.score)


def test_gaps_and_few_distinct_numbers_are_groups_of_their_own():
    values = np.array([1.0, 2.0, np.nan, 2.0])
    parts = {name: rows.tolist() for name, rows in _groups._parts_of_numbers(values)}
    assert parts == {
        "missing": [False, False, True, False],
        "1": [True, False, False, False],
        "2": [False, True, False, True],
    }
    many = np.append(np.arange(100.0), np.nan)
    quarters = [rows for _, rows in _groups._parts_of_numbers(many)]
    assert [rows.sum() for rows in quarters] == [1, 25, 25, 25, 25]
    assert np.all(np.sum(quarters, axis=0) == 1)


def test_the_most_important_columns_that_vary_are_drawn(fitted):
    table, found, _ = fitted
    response = Response.of(table, found)
    weights = {"a": 0.4, "b": 0.0, "c": 0.3, "kind": 1.0}
    assert drawable_columns(response.frame, kinds_of(found.model), weights) == ["kind", "a", "c"]


def test_the_mean_of_the_curves_is_the_partial_dependence(fitted):
    table, found, _ = fitted
    response = Response.of(table, found)
    ax = dependence(response, "a", "number").axes[0]
    *curves, mean = ax.get_lines()
    assert len(curves) == 50
    x, y = mean.get_data()
    changed = response.frame.assign(a=x[3])
    assert y[3] == pytest.approx(found.model.predict(changed).mean())
    bars = dependence(response, "kind", "category").axes[0].patches
    changed = response.frame.assign(kind=response.frame["kind"].where([False] * 100, "loud"))
    assert bars[0].get_height() == pytest.approx(found.model.predict(changed).mean())


def test_the_card_names_what_the_model_depends_on(fitted):
    table, found, other = fitted
    importances = Importances.of(found, other)
    assert sorted(importances.weights.values(), reverse=True) == list(importances.weights.values())
    card = Card.of(table, found, other, importances)
    text = " ".join(Page("".join(card.summary([(other.scores[0], "on rows")]))).text)
    assert "rows with kind loud" in text
    assert "400 rows and 4 columns of made" in text
    assert f"{next(iter(importances.weights))} " in text
    assert "%" in importances.words["c"]
    assert "±" in importances.words["c"]
    assert "novelty above 1" in text


def test_reports_of_unusual_tables_say_what_they_lack(tmp_path):
    rng = np.random.RandomState(0)
    words = [f"word{k} text{k % 7}" for k in rng.permutation(60)]
    cells = {"note": words, "target": rng.choice(["u", "v"], 60)}
    text = " ".join(Page(report(tmp_path, Table("t", pa.table(cells)))).text)
    assert "No column of numbers or categories matters" in text
    cells = {"$x^{": rng.standard_normal(60), "target": rng.standard_normal(60)}
    cells["target"] = cells["target"] + cells["$x^{"]
    assert "Partial dependence on $x^{" in report(tmp_path, Table("t", pa.table(cells)))
    assert literal("$x") == r"\$x"


def test_several_classes_have_curves_of_the_most_frequent_one(tmp_path):
    rng = np.random.RandomState(0)
    x = rng.standard_normal(120)
    cells = {"x": x, "target": np.array(["few", "many", "some"])[np.digitize(x, [-1.0, 0.6])]}
    text = " ".join(Page(report(tmp_path, Table("t", pa.table(cells)))).text)
    assert "the probability of many, the most frequent class" in text
