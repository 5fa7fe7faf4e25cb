"""An audit finds what was made wrong, and little else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_friedman1

from karnet import KARClassifierCV
from karnet.audit import audit
from karnet.audit._columns import drifts, giving_away, unusable
from karnet.audit._rows import equal_rows, far_outside


@pytest.fixture(scope="module")
def flipped():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = X.iloc[:300], y.to_numpy()[:300].copy()
    rows = np.random.RandomState(0).permutation(len(y))[:6]
    y[rows] = 1 - y[rows]
    return audit(X, y), X, y, set(rows.tolist())


def test_wrong_labels_are_found_with_the_right_label(flipped):
    found, _, y, rows = flipped
    labels = [each for each in found.suspects if each.reason == "label"]
    assert len(rows & {each.row for each in labels}) >= 3
    assert len(labels) <= 12
    assert {each.row for each in labels[:3]} <= rows
    assert all(each.suggestion == str(1 - y[each.row]) for each in labels)
    assert found.counts["label"] == len(labels)


def test_a_clean_table_has_few_suspects():
    X, y = load_iris(return_X_y=True)
    found = audit(X, y)
    assert found.counts.get("label", 0) <= 6
    assert "far outside" not in found.counts


def test_the_score_without_suspects_is_that_of_networks_without_them(flipped):
    found, X, y, _ = flipped
    kept = np.ones(len(y), dtype=bool)
    kept[found.rows] = False
    assert found.score_without_suspects >= found.score - 0.02
    # The same networks fitted to the other rows: their left-out predictions are right as often.
    again = KARClassifierCV(random_state=0).fit(X[kept], y[kept])
    assert_allclose(found.score_without_suspects, again.best_score_, atol=0.03)


def test_wrong_numbers_are_found():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:200], y[:200].copy()
    y[[20, 120]] += 900.0
    found = audit(X, y)
    assert {each.row for each in found.suspects if each.reason == "target"} == {20, 120}
    assert found.score_without_suspects > found.score
    assert all(float(each.suggestion) < 500.0 for each in found.suspects if each.suggestion)


def test_columns_that_give_the_target_away_do_not_hide_wrong_labels():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, y = X.copy(), y.to_numpy().copy()
    y[7] = 2
    X["number"], X["leak"], X["same"] = np.arange(150) + 5, 2.0 * y, "a"
    found = audit(X, y)
    reasons = {(each.subject, each.reason) for each in found.findings}
    expected = {("number", "row numbers"), ("leak", "gives the target away"), ("same", "constant")}
    assert expected <= reasons
    assert 7 in [each.row for each in found.suspects[:3] if each.reason == "label"]


def test_equal_rows_are_duplicates_or_conflicts():
    columns = [np.array([1.0, 1.0, 2.0, 2.0, np.nan, np.nan]), np.array(list("aabbcc"), object)]
    y = np.array(["x", "x", "x", "z", "y", "y"])
    names = [f"r{k}" for k in range(6)]
    found = {each.row: each for each in equal_rows(columns, y, True, names)}
    assert {row: each.reason for row, each in found.items()} == {
        1: "duplicate",
        2: "conflict",
        3: "conflict",
        5: "duplicate",
    }
    assert found[5].detail == "the same as row r4, target included"
    # Numbers may differ for equal inputs.
    numbers = np.array([1.0, 1.0, 2.0, 3.0, 4.0, 4.0])
    assert [each.row for each in equal_rows(columns, numbers, False, names)] == [1, 5]


def test_numbers_far_outside_are_found_but_no_heavy_tails():
    rng = np.random.RandomState(0)
    normal, tail = rng.normal(size=400), rng.lognormal(0.0, 2.0, 400)
    normal[7] = 300.0
    found = list(far_outside(["a", "b"], [normal, tail]))
    assert [each.row for each in found] == [7]
    assert "a is 300" in found[0].detail
    # A spread of zero makes no value an outlier.
    assert not list(far_outside(["c"], [np.r_[np.zeros(399), 1.0]]))


def test_columns_that_cannot_be_used():
    n = 100
    gaps = np.full(n, np.nan)
    gaps[:3] = 1.0
    names = np.array([f"name {k}" for k in range(n)], dtype=object)
    step, random = np.arange(n) * 0.5, np.random.RandomState(0).normal(size=n)
    columns = [gaps, names, step, random, np.full(n, 3.0)]
    found = {each.subject: each.reason for each in unusable(list("abcde"), columns)}
    expected = {"a": "nearly all missing", "b": "names of rows", "c": "row numbers"}
    assert found == expected | {"e": "constant"}


def test_a_column_gives_numbers_away_in_any_order():
    rng = np.random.RandomState(0)
    y = rng.normal(size=500)
    columns = [y**3, rng.normal(size=500), np.array([f"{v:.0f}" for v in 3.0 * y], dtype=object)]
    found = {each.subject for each in giving_away(list("abc"), columns, y[:, None])}
    assert "a" in found
    assert "b" not in found


def test_drift_names_the_column_or_only_the_target():
    rng = np.random.RandomState(0)
    y = rng.normal(size=600)
    steady, moving = rng.normal(size=600), rng.normal(size=600) + np.arange(600) / 200.0
    found = list(drifts(["a", "b"], [steady, moving], y, classes=False))
    assert [each.subject for each in found] == ["b"]
    found = list(drifts(["a", "b"], [steady, moving], np.sort(y), classes=False))
    assert [each.subject for each in found] == ["target"]
    assert not list(drifts(["b"], [moving[:100]], y[:100], classes=False))


def test_trees_divide_long_tables(settings):
    settings(leaf=80, smallest_leaf=40, largest_leaf=80, most_rows_of_leaf=80, tuned_rows=80)
    X, y = make_friedman1(1000, noise=0.5, random_state=0)
    y[[10, 900]] += 60.0
    found = audit(X, y, task="regression")
    assert {10, 900} <= {each.row for each in found.suspects if each.reason == "target"}
    assert np.isfinite(found.left_out).mean() > 0.95


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((5, 2)), [0.5, 1.0, np.nan, 2.0, 3.0], "NaN"),
        (np.ones((5, 2)), np.ones((5, 2)) / 3.0, "one column"),
        (np.ones((5, 2)), [1, 1, 1, 1, 1], "two classes|one class"),
        (np.ones((4, 2)), [0.1, 0.2, 0.3], "rows|inconsistent"),
        ([[np.inf], [1.0], [2.0]], [0, 1, 0], "infinity"),
        (pd.DataFrame({"a": [{}, {}, {}]}), [0, 1, 0], "dict"),
    ],
)
def test_bad_tables_get_a_sentence(X, y, message):
    with pytest.raises(ValueError, match=message):
        audit(X, y)
    with pytest.raises(ValueError, match="task='x' must be"):
        audit(X, y, task="x")


def test_few_rows_can_be_audited():
    found = audit(np.array([[0.0], [1.0], [2.0], [3.0]]), ["a", "a", "b", "b"])
    assert [each.reason for each in found.findings].count("class with few rows") == 2
