"""The CV estimators take tables as they are: gaps, categories and dates."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from karnet import KARClassifierCV, KARRegressorCV
from karnet._columns.encoder import MOST_LABELS, TableEncoder
from karnet._columns.frames import columns_of
from karnet.export import to_onnx
from karnet.files import load, save

N = 90


def mixed_table(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40.0, 10.0, N),
            "city": rng.choice(["Rome", "Oslo", "Bern"], N),
            "size": pd.Categorical(rng.choice(["s", "m", "l"], N)),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 999, N), "D"),
            "member": rng.choice([True, False], N),
            "visits": pd.array(rng.integers(0, 9, N), dtype="Int64"),
        }
    )
    y = np.where(frame.age + 15.0 * (frame.city == "Rome") > 45.0, "yes", "no")
    for step, name in ((7, "age"), (11, "city"), (13, "visits"), (17, "when")):
        frame.loc[::step, name] = None
    return frame, y


@pytest.fixture(scope="module")
def fitted():
    frame, y = mixed_table()
    return KARClassifierCV(random_state=0).fit(frame, y), frame, y


def test_a_mixed_table_is_learned_and_named_as_the_user_has_it(fitted):
    net, frame, _ = fitted
    assert net.best_score_ > 0.8
    assert list(net.feature_names_in_) == list(frame.columns)
    assert net.n_features_in_ == len(net.feature_importances_) == frame.shape[1]
    assert net.feature_importances_.sum() == pytest.approx(1.0)
    assert net.feature_importances_.argmax() == 0


def test_pandas_and_polars_give_the_same_model(fitted):
    net, frame, y = fitted
    other = pl.from_pandas(frame)
    again = KARClassifierCV(random_state=0).fit(other, y)
    np.testing.assert_array_equal(again.predict_proba(other), net.predict_proba(frame))
    np.testing.assert_array_equal(net.predict_proba(other), net.predict_proba(frame))


def test_objects_without_types_give_the_same_predictions(fitted):
    net, frame, _ = fitted
    with pytest.warns(UserWarning, match="valid feature names"):
        predictions = net.predict_proba(frame.to_numpy(dtype=object))
    np.testing.assert_array_equal(predictions, net.predict_proba(frame))


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA], ids=["None", "NaN", "NA"])
def test_all_gaps_are_alike(gap):
    numbers, labels = columns_of(
        pd.DataFrame({"a": [1.0, gap, 3.0], "b": ["x", gap, "y"]}, dtype=object), ["a", "b"]
    )
    np.testing.assert_array_equal(numbers, [1.0, np.nan, 3.0])
    assert list(labels) == ["x", None, "y"]


def test_numbers_without_gaps_are_not_encoded():
    X = np.random.default_rng(0).standard_normal((40, 3))
    plain = KARRegressorCV(random_state=0).fit(X, X[:, 0])
    named = KARRegressorCV(random_state=0).fit(pd.DataFrame(X, columns=list("abc")), X[:, 0])
    assert plain.model_.encoder is None
    assert named.model_.encoder is None
    np.testing.assert_array_equal(
        named.predict(pd.DataFrame(X, columns=list("abc"))), plain.predict(X)
    )


def encoded(**columns):
    frame = pd.DataFrame(columns)
    names = list(frame.columns)
    read = columns_of(frame, names)
    return TableEncoder.of(read, np.ones(len(frame))), lambda new: columns_of(new, names)


@pytest.mark.parametrize("as_given", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_a_column_without_gaps_in_fit_may_have_gaps_in_predictions(as_given, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3))
    net = KARRegressorCV(random_state=0).fit(as_given(X), X[:, 0] + X[:, 1] ** 2)
    new, filled = X[:5].copy(), X[:5].copy()
    new[[0, 3], 1] = np.nan
    filled[[0, 3], 1] = np.median(X[:, 1])
    expected = net.predict(as_given(filled))
    np.testing.assert_array_equal(net.predict(as_given(new)), expected)
    save(net, tmp_path / "net.karnet")
    np.testing.assert_array_equal(load(tmp_path / "net.karnet").predict(as_given(new)), expected)
    new[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        net.predict(as_given(new))


def test_gaps_are_filled_with_the_median_and_have_an_indicator():
    encoder, read = encoded(a=[1.0, np.nan, 2.0, 9.0])
    V = encoder(read(pd.DataFrame({"a": [np.nan, 5.0]})), ["a"])
    np.testing.assert_array_equal(V, [[2.0, 1.0], [5.0, 0.0]])


def test_categories_differ_by_the_same_amount_and_an_unseen_one_has_no_indicator():
    encoder, read = encoded(a=["x", "y", "z", None])
    V = encoder(read(pd.DataFrame({"a": ["x", "y", "z", None, "new"]})), ["a"])
    np.testing.assert_array_equal(V, [*np.eye(4), np.zeros(4)])


def test_the_rarest_of_many_categories_share_an_indicator():
    labels = [f"c{k:04}" for k in range(MOST_LABELS + 5)]
    encoder, read = encoded(a=labels[:MOST_LABELS] * 2 + labels[MOST_LABELS:])
    V = encoder(read(pd.DataFrame({"a": labels})), ["a"])
    assert V.shape[1] == MOST_LABELS + 1
    np.testing.assert_array_equal(V[MOST_LABELS:, -1], np.ones(5))
    np.testing.assert_array_equal(V.sum(axis=1), np.ones(len(labels)))


def test_whole_numbers_are_the_same_categories_in_any_type():
    encoder, read = encoded(a=pd.Categorical([1, 2, 3, 2]))
    texts, integers, floats = (
        encoder(read(pd.DataFrame({"a": values})), ["a"])
        for values in (pd.Categorical(["1", "3"]), [1, 3], [1.0, 3.0])
    )
    np.testing.assert_array_equal(texts, [[1, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(integers, texts)
    np.testing.assert_array_equal(floats, texts)


def test_a_date_becomes_time_month_day_of_the_week_and_hour():
    when = pd.to_datetime(["1970-01-01 06:00", "2026-11-18 00:00", None])
    encoder, read = encoded(a=when)
    V = encoder(read(pd.DataFrame({"a": when})), ["a"])
    assert list(V[0]) == [0.25, 0.0, 0.0, 3.0, 6.0]  # a Thursday
    days = (dt.date(2026, 11, 18) - dt.date(1970, 1, 1)).days
    assert list(V[1]) == [days, 0.0, 10.0, 2.0, 0.0]
    assert V[2, 1] == 1.0


def test_dates_of_all_libraries_and_time_zones_are_the_same():
    stamps = pd.to_datetime(["2024-05-01 12:00", "2025-06-01 00:30"])
    zoned = pd.DataFrame({"a": stamps.tz_localize("UTC").tz_convert("Europe/Rome")})
    objects = pd.DataFrame({"a": [each.to_pydatetime() for each in stamps]}, dtype=object)
    expected = columns_of(pd.DataFrame({"a": stamps}), ["a"])[0]
    for frame in (zoned, objects, pl.DataFrame({"a": stamps.to_list()})):
        np.testing.assert_array_equal(columns_of(frame, ["a"])[0], expected)


def test_weights_count_as_repeats_and_rows_of_weight_0_have_no_part():
    values = np.array([1.0, 2.0, 7.0, 100.0, np.nan])
    labels = np.array(["x", "y", "y", "z", None], dtype=object)
    weight = np.array([2.0, 1.0, 3.0, 1.0, 2.0])
    repeats = weight.astype(int)
    once = TableEncoder.of([values, labels], weight)
    often = TableEncoder.of([values.repeat(repeats), labels.repeat(repeats)], np.ones(9))
    assert once.columns[0] == often.columns[0]
    np.testing.assert_array_equal(once.columns[1].labels, often.columns[1].labels)
    frame, y = mixed_table()
    more = pd.concat([frame, frame.head(3).assign(age=1e9, city="nowhere")], ignore_index=True)
    weight = np.r_[np.ones(N), np.zeros(3)]
    with_zeros = KARClassifierCV(random_state=0).fit(more, [*y, *y[:3]], weight)
    without = KARClassifierCV(random_state=0).fit(frame, y)
    np.testing.assert_array_equal(with_zeros.predict_proba(frame), without.predict_proba(frame))


def test_a_data_frame_of_numbers_may_have_gaps():
    X = np.random.default_rng(2).standard_normal((50, 3))
    X[::9, 1] = np.nan
    frame = pd.DataFrame(X, columns=list("abc"))
    net = KARRegressorCV(random_state=0).fit(frame, X[:, 0])
    assert list(net.feature_names_in_) == list("abc")
    unnamed = KARRegressorCV(random_state=0).fit(X, X[:, 0])
    np.testing.assert_array_equal(net.predict(frame), unnamed.predict(X))


def test_a_regression_with_gaps_knows_that_they_are_gaps():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 2))
    y = np.where(X[:, 1] > 1.0, 5.0, X[:, 0])
    X[X[:, 1] > 1.0, 1] = np.nan
    assert KARRegressorCV(random_state=0).fit(X, y).best_score_ > 0.97


def test_columns_without_values_change_nothing(fitted):
    _, frame, y = fitted
    with_empty = frame.assign(empty=np.nan, nothing=None)
    net = KARClassifierCV(random_state=0).fit(with_empty, y)
    assert list(net.feature_importances_[-2:]) == [0.0, 0.0]
    np.testing.assert_allclose(net.predict_proba(with_empty), fitted[0].predict_proba(frame))


def test_a_model_file_holds_the_encoder(fitted, tmp_path):
    net, frame, _ = fitted
    save(net, tmp_path / "table.karnet")
    again = load(tmp_path / "table.karnet")
    np.testing.assert_array_equal(again.predict_proba(frame), net.predict_proba(frame))


def test_onnx_encodes_numbers_and_categories():
    runtime = pytest.importorskip("onnxruntime")
    frame, y = mixed_table()
    frame = pd.DataFrame({"age": frame.age, "city": frame.city.astype(object)})
    net = KARClassifierCV(random_state=0).fit(frame, y)
    frame.loc[3, "city"] = "unseen"
    session = runtime.InferenceSession(to_onnx(net, frame).SerializeToString())
    text = np.array([[each if isinstance(each, str) else ""] for each in frame.city], dtype=object)
    _, probabilities = session.run(None, {"age": frame[["age"]].to_numpy(), "city": text})
    np.testing.assert_allclose(probabilities, net.predict_proba(frame), atol=1e-9)
    with pytest.raises(ValueError, match="different inputs of ONNX"):
        to_onnx(net)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X.assign(a=[[1]] * N), r"column 'a' of X holds list"),
        (lambda X: X.rename(columns={"age": 3}), r"several types \(int and str\)"),
        (lambda X: pd.concat([X, X[["age"]]], axis=1), "several columns of one name"),
        (lambda X: X.assign(age=np.inf), r"infinity \(inf\) in column 'age'"),
        (lambda X: X.iloc[:0], "0 sample"),
    ],
    ids=["lists", "mixed names", "equal names", "infinity", "no rows"],
)
def test_a_fit_is_refused_in_one_sentence(change, message):
    frame, y = mixed_table()
    with pytest.raises((ValueError, TypeError), match=message) as refusal:
        KARClassifierCV(random_state=0).fit(change(frame), y)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X.assign(age="old"), "'age' of X held numbers in fit, but now holds 'old'"),
        (lambda X: X.assign(when=1.5), "'when' of X held dates in fit, but now holds '1.5'"),
        (lambda X: X.drop(columns="city"), "feature names should match"),
    ],
    ids=["text for numbers", "numbers for dates", "a column less"],
)
def test_other_columns_than_in_fit_are_refused(fitted, change, message):
    with pytest.raises(ValueError, match=message):
        fitted[0].predict(change(fitted[1]))


def test_a_target_with_gaps_is_refused_in_one_sentence(fitted):
    _, frame, y = fitted
    with pytest.raises(ValueError, match="missing labels"):
        KARClassifierCV().fit(frame, [None, *y[1:]])
    with pytest.raises(ValueError, match="NaN"):
        KARRegressorCV().fit(frame, pd.Series([pd.NA, *range(1, N)], dtype="Int64"))
