"""The protocol on the paper's data sets: nothing seen that must not be, nothing counted twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from math import isnan, nan

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder

from karnet import KARClassifier
from karnet.datasets import DATASETS, Loaded, load
from karnet.paper.methods import EXPERIMENTS_OF_SETS, METHODS
from karnet.paper.protocol import WIDTHS, Coding, choose_width, inputs, one_hot, ordinal, parts
from karnet.paper.store import Fit, Store, write_csv
from karnet.paper.summary import (
    accuracy_differences,
    mean_over_sets,
    speed_ratios,
    summarise,
    tables,
)
from karnet.paper.uci import RunSettings, effort, planned_fits, run, run_all, run_sets

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
QUICK = RunSettings(("iris",), n_folds=2, time_limit=0.0)


def fit(**changes):
    values = {"method": "m", "dataset": "iris", "trial": 0, "fold": 0, "structure": "10"}
    values |= {
        "accuracy": 0.9,
        "cpu": 0.1,
        "wall": 0.2,
        "cpu_in_all": 0.3,
        "seed": 3,
        "versions": "v",
    }
    return Fit(**(values | changes))


def test_a_store_keeps_every_fit_once(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path, "a") as store:
        store.add([fit(fold=1), fit(fold=0)])
        store.add([fit(fold=1, accuracy=0.1)])
    with Store(path, "a") as store:
        assert store.fits() == [fit(fold=0), fit(fold=1)]
        assert store.keys() == {fit(fold=0).key, fit(fold=1).key}
        write_csv(tmp_path / "results.csv", Fit._fields, store.fits())
    table = pd.read_csv(tmp_path / "results.csv")
    assert list(table["fold"]) == [0, 1]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["results.csv", "results.sqlite"]


def test_a_store_keeps_every_command_once(tmp_path):
    with Store(tmp_path / "results.sqlite", "a") as store:
        for command in ("first", "second", "first"):
            store.add_command(command)
        assert store.commands() == ["first", "second"]


def test_a_store_of_other_settings_is_refused(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path, "seed 0") as store:
        store.add([fit()])
    with pytest.raises(ValueError, match=r"made with other settings \(seed 0\)"):
        Store(path, "seed 1")
    with Store(path, "seed 0") as store:
        assert store.fits() == [fit()]


def test_parts_are_stratified_folds_of_all_rows():
    data = load("iris")
    folds = parts(data, 0, 10, 0)
    assert len(folds) == 10
    np.testing.assert_array_equal(np.sort(np.concatenate([p.test for p in folds])), range(150))
    for part in folds:
        assert not set(part.train) & set(part.test)
        assert list(np.unique(data.y[part.test], return_counts=True)[1]) == [5, 5, 5]
    other = parts(data, 1, 10, 0)
    assert any(set(a.test) != set(b.test) for a, b in zip(folds, other, strict=True))


def test_a_fixed_split_is_used_where_the_paper_uses_one_and_only_there():
    data = load("waveform")
    (part,) = parts(data, 0, 10, 0)
    assert (len(part.train), len(part.test)) == (600, 3000)
    monks = DATASETS["monks-1"]
    split = np.arange(556) >= monks.paper.rows
    given = Loaded("monks-1", pd.DataFrame({"a": range(556)}), np.arange(556) % 2, split, "folder")
    folds = parts(given, 0, 10, 0)
    assert np.concatenate([p.test for p in folds]).max() < monks.paper.rows


def mixed(n, seed):
    """Return a data frame of two categories and two numbers; some categories are rare."""
    rng = np.random.default_rng(seed)
    rare = np.where(rng.random(n) < 0.05, rng.choice(list("uvwz"), n), "x")
    return pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": pd.Categorical(rare),
            "c": rng.integers(0, 9, n),
            "d": pd.Categorical(rng.integers(3, 8, n)),
        }
    )


CODINGS = {
    ordinal: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    one_hot: OneHotEncoder(handle_unknown="ignore", sparse_output=False),
}


@pytest.mark.parametrize("encode", CODINGS)
@pytest.mark.parametrize("name", [None, "iris", "tic-tac-toe", "shuttle-landing-control"])
def test_coding_is_that_of_a_scikit_learn_pipeline_fitted_on_the_training_rows(name, encode):
    X = mixed(60, 0) if name is None else load(name).X
    selector = make_column_selector(dtype_include="category")
    encoder = make_column_transformer((CODINGS[encode], selector), remainder="passthrough")
    for seed in range(5):
        rows = np.random.default_rng(seed).permutation(len(X))
        train, test = rows[: len(X) // 2], rows[len(X) // 2 :]
        reference = make_pipeline(encoder, MinMaxScaler()).fit(X.iloc[train])
        coded = Coding(encode)(inputs(X)[train], inputs(X)[test])
        for ours, part in zip(coded, (train, test), strict=True):
            np.testing.assert_array_equal(ours, reference.transform(X.iloc[part]))


def test_coding_and_scaling_see_the_training_rows_alone():
    X = pd.DataFrame({"a": [0.0, 2.0, 4.0], "b": pd.Categorical(["x", "z", "y"])})
    X_train, X_test = Coding()(inputs(X)[np.arange(2)], inputs(X)[np.arange(2, 3)])
    np.testing.assert_array_equal(X_train, [[0, 0], [1, 1]])
    np.testing.assert_array_equal(X_test, [[-1, 2]])
    X_train, _ = Coding(scaler=None)(inputs(X)[np.arange(2)], inputs(X)[np.arange(2, 3)])
    np.testing.assert_array_equal(X_train, [[0, 0], [1, 2]])


def test_the_width_is_chosen_by_accuracy_and_of_equals_the_first():
    data = load("iris")
    X, tried = inputs(data.X), []

    def make(width):
        tried.append(width)
        return KARClassifier((width,), random_state=0)

    width = choose_width(make, X, data.y, 0, Coding(), n_folds=3)
    assert list(dict.fromkeys(tried)) == list(WIDTHS)
    n_correct = []
    for each in WIDTHS:
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        net = make_pipeline(MinMaxScaler(), KARClassifier((each,), random_state=0))
        n_correct.append(np.sum(cross_val_predict(net, data.X, data.y, cv=folds) == data.y))
    assert width == WIDTHS[int(np.argmax(n_correct))]

    class Same:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.full(len(X), data.y[0])

    for widths in (WIDTHS, WIDTHS[::-1]):
        assert choose_width(lambda _: Same(), X, data.y, 0, Coding(), widths) == widths[0]


def test_a_fit_is_measured_the_same_way_twice():
    first, names = planned_fits(QUICK, ["karnet"])[0], ["accuracy", "structure", "seed", "fold"]
    one, two = run(first, QUICK), run(first, QUICK)
    assert [getattr(one, name) for name in names] == [getattr(two, name) for name in names]
    assert one.key == first
    assert one.accuracy > 0.8
    assert one.cpu > 0
    assert int(one.structure) in WIDTHS


def test_planned_fits_cover_every_fold_of_every_trial_and_baselines_few():
    settings = RunSettings(("iris", "waveform", "wine"), n_trials=3, n_folds=5, slow_folds=2)
    keys = planned_fits(settings, ["karnet, 3 layers", "mlp"])
    assert len(keys) == len(set(keys)) == 3 * 5 + 3 + 3 * 5 + 2 + 1 + 2
    efforts = [effort(each) for each in planned_fits(settings, ["karnet"])]
    assert efforts == sorted(efforts, reverse=True)
    assert sum(1 for _ in run_all(planned_fits(QUICK, ["karnet, baseline's width"]), QUICK, 2)) == 2


def test_every_method_has_its_experiment_and_differs_from_every_other():
    named = {name for names in EXPERIMENTS_OF_SETS.values() for name in names}
    assert named == set(METHODS)
    assert all(method.name == name for name, method in METHODS.items())
    assert len({method.title for method in METHODS.values()}) == len(METHODS)
    assert METHODS["karnet, 4 layers"].sizes(10) == (40, 20, 10)
    iris, letter = DATASETS["iris"], DATASETS["letter"]
    assert METHODS["karnet"].given_width(iris) is None
    for name in ("karnet, baseline's width", "levenberg-marquardt", "mlp, baseline's width"):
        assert METHODS[name].given_width(iris) == iris.widths.baseline
        assert METHODS[name].given_width(letter) == 500


@pytest.mark.parametrize("name", [*EXPERIMENTS_OF_SETS["choices"], "mlp, baseline's width"])
def test_every_variation_learns_iris(name):
    fit = run(planned_fits(QUICK, [name])[0], QUICK)
    assert fit.accuracy > 0.85
    assert fit.note == ""


def test_a_training_that_the_time_limit_ends_says_so():
    fit = run(planned_fits(QUICK, ["levenberg-marquardt"])[0], QUICK)
    assert fit.note == "time limit"
    assert fit.structure == "500"
    assert 0.0 <= fit.accuracy <= 1.0


def test_what_does_not_fit_into_memory_is_a_result_too(tmp_path, monkeypatch):
    def refuse(*_):
        raise MemoryError

    monkeypatch.setattr("karnet.paper.baseline.LevenbergMarquardtClassifier.fit", refuse)
    (fit,) = run_sets(QUICK, ["levenberg-marquardt"], tmp_path, 1, lambda *_: None)
    assert fit.note == "out of memory"
    assert all(map(isnan, (fit.accuracy, fit.cpu, fit.wall)))
    assert isnan(pd.read_csv(tmp_path / "results.csv")["accuracy"][0])
    (summary,) = summarise([fit])
    assert summary.notes == {"out of memory": 1}
    assert mean_over_sets([summary], fit.method, "accuracy").n_sets == 0
    assert "out of memory" in str(tables([fit], [fit.method])[0])


def test_one_store_takes_up_experiment_after_experiment(tmp_path):
    seen = []
    arguments = (tmp_path, 1, lambda *told: seen.append(told))
    first = run_sets(QUICK, ["karnet, baseline's width"], *arguments)
    more = RunSettings(("iris", "wine"), n_trials=2, n_folds=2, time_limit=0.0, slow_folds=9)
    both = run_sets(more, ["karnet, baseline's width", "karnet, ridge 1e-6"], *arguments)
    assert list(pd.read_csv(tmp_path / "summary.csv")["dataset"]) == ["iris", "wine"] * 2
    assert len(first) == 2
    assert len(both) == 2 * 2 * 2 * 2
    assert set(first) < set(both)  # to the last digit of the time: not fitted again
    for told in (seen[:3], seen[3:]):
        done = [each[1] for each in told]
        assert done == sorted(set(done))
    assert seen[-1][1] == seen[-1][2]
    assert seen[-1][0] == ""
    assert "karnet, baseline's width" in seen[0][0]


# Summaries


def test_a_summary_is_the_mean_of_fits_and_the_spread_of_trials():
    fits = [
        fit(trial=0, fold=0, accuracy=0.8, structure="20-10", cpu=1.0),
        fit(trial=0, fold=1, accuracy=0.6, structure="6-3", cpu=2.0),
        fit(trial=1, fold=0, accuracy=0.9, structure="6-3", cpu=3.0, note="time limit"),
        fit(trial=1, fold=1, accuracy=0.9, structure="20-10", cpu=2.0),
        fit(method="n", dataset="letter"),
        fit(method="n", dataset="wine", accuracy=0.5, cpu=0.3),
        fit(method="n", dataset="iris", accuracy=0.7, cpu=0.1),
    ]
    m, iris, wine, letter = summarise(reversed(fits))
    assert (m.number, m.dataset, m.width, m.n_fits, m.n_trials) == (17, "iris", 3, 4, 2)
    assert m.accuracy == pytest.approx(0.8)
    assert m.spread == pytest.approx(np.std([0.7, 0.9], ddof=1))
    assert m.cpu == 2.0
    assert m.notes == {"time limit": 1}
    assert [each.number for each in (iris, wine, letter)] == [17, 24, 42]
    assert isnan(wine.spread)
    # The mean leaves out letter, as in the paper.
    mean = mean_over_sets([m, iris, wine, letter], "n", "accuracy")
    assert (mean.value, mean.n_sets) == (pytest.approx(0.6), 2)
    assert mean_over_sets([m, iris, wine, letter], "n", "cpu").value == pytest.approx(0.2)
    assert isnan(mean_over_sets([], "n", "accuracy").value)


def test_methods_are_compared_on_folds_that_both_were_trained_on():
    fits = [
        fit(method="slow", fold=0, cpu=6.0, accuracy=0.5),
        fit(method="slow", fold=1, cpu=nan, accuracy=nan),
        fit(method="fast", fold=0, cpu=2.0, accuracy=0.75),
        fit(method="fast", fold=1, cpu=100.0, accuracy=0.0),
        fit(method="fast", fold=0, trial=1, cpu=100.0, accuracy=0.0),
        fit(method="fast", dataset="wine"),
    ]
    assert speed_ratios(fits, "slow", "fast") == {"iris": 3.0}
    assert accuracy_differences(fits, "fast", "slow") == {"iris": 0.25}
    assert accuracy_differences(fits, "fast", "fast") == {"iris": 0.0, "wine": 0.0}


def test_tables_show_the_paper_s_numbers_beside_ours():
    fits = [
        fit(method=name, accuracy=0.9, note="time limit" if name == "levenberg-marquardt" else "")
        for name in METHODS
    ]
    accuracy, widths, times = map(str, tables(fits, EXPERIMENTS_OF_SETS["uci"]))
    assert "90.0 %*" in accuracy
    assert "79.39 %" in accuracy
    assert "66.99 %" in accuracy
    assert widths.splitlines()[4].split() == ["17", "iris", "10", "10", "500", "5", "5", "2"]
    assert "180.3700 s" in times
    (choices,) = tables(fits, EXPERIMENTS_OF_SETS["choices"])
    assert len(choices.rows) == 1 + 10
    assert {row[-1] for row in choices.rows[1:]} == {"+0.00"}


# Killed runs


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="Windows has no groups of processes")
def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path):
    # Without time, Levenberg-Marquardt does not depend on how fast this machine is.
    settings = RunSettings(("iris", "wine"), n_folds=3, time_limit=0.0)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    killed.mkdir()

    def start():
        command = [sys.executable, "-c", "from karnet.cli import main; main()"]
        command += ["reproduce", "uci", "--sets", *settings.datasets, "--folds", "3"]
        command += ["--time-limit", "0", "--jobs", "2", "--out", str(killed)]
        return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)

    def n_kept():
        with Store(killed / "results.sqlite", str(settings)) as store:
            return len(store.keys())

    def results(out):
        table = pd.read_csv(out / "results.csv", keep_default_na=False)
        return table.drop(columns=["cpu", "wall", "cpu_in_all"])

    rng = random.Random(0)
    for _ in range(4):
        process = start()
        while not n_kept():  # the first is killed when it has something to lose
            time.sleep(0.05)
        time.sleep(rng.uniform(0.0, 3.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    last = start()
    run_sets(settings, EXPERIMENTS_OF_SETS["uci"], whole, 2, lambda *_: None)
    assert last.wait() == 0
    pd.testing.assert_frame_equal(results(killed), results(whole))
    assert len(results(whole)) == 2 * (2 * 3 + 3)
