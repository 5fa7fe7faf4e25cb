"""The protocol on the paper's data sets: nothing seen that must not be, nothing counted twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from karnet import KARClassifier
from karnet.datasets import DATASETS, Loaded, load
from karnet.paper.protocol import WIDTHS, choose_width, coding, parts
from karnet.paper.store import Fit, Store
from karnet.paper.uci import DEPTHS, run, run_all, tasks

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def fit(**changes):
    values = {"method": "m", "dataset": "iris", "trial": 0, "fold": 0, "structure": "10"}
    values |= {"accuracy": 0.9, "cpu": 0.1, "wall": 0.2, "seed": 3, "versions": "v"}
    return Fit(**(values | changes))


def test_a_store_keeps_every_fit_once(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path, "a") as store:
        store.add([fit(fold=1), fit(fold=0)])
        store.add([fit(fold=1, accuracy=0.1)])
    with Store(path, "a") as store:
        assert store.fits() == [fit(fold=0), fit(fold=1)]
        assert store.keys() == {fit(fold=0).key, fit(fold=1).key}
        store.write_csv(tmp_path / "results.csv")
    table = pd.read_csv(tmp_path / "results.csv")
    assert list(table["fold"]) == [0, 1]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["results.csv", "results.sqlite"]


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


def test_coding_and_scaling_see_the_training_rows_alone():
    train = pd.DataFrame({"a": [0.0, 2.0], "b": pd.Categorical(["x", "y"])})
    test = pd.DataFrame({"a": [4.0], "b": pd.Categorical(["z"])})
    X_train, X_test = coding(train, test)
    np.testing.assert_array_equal(np.sort(X_train, axis=0), [[0, 0], [1, 1]])
    assert sorted(X_test[0]) == [-1.0, 2.0]


def test_the_width_is_chosen_by_accuracy_and_of_equals_the_least():
    data = load("iris")
    chosen = []

    def make(width):
        chosen.append(width)
        return KARClassifier((width,), random_state=0)

    width = choose_width(make, data.X, data.y, 0, coding)
    assert width in WIDTHS
    assert len(chosen) == 10 * len(WIDTHS)

    class Same:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.full(len(X), data.y[0])

    assert choose_width(lambda _: Same(), data.X, data.y, 0, coding) == min(WIDTHS)


def test_a_task_is_measured_the_same_way_twice():
    (first, *_), names = list(tasks(["iris"], 1, 10, 0)), ["accuracy", "structure", "seed", "fold"]
    one, two = run(first), run(first)
    assert [getattr(one, name) for name in names] == [getattr(two, name) for name in names]
    assert one.key == first.key
    assert one.accuracy > 0.8
    assert one.cpu > 0
    deep = next(tasks(["iris"], 1, 10, 0, depth=3))
    width, chosen = map(int, run(deep).structure.split("-"))
    assert (width, chosen) == tuple(chosen * factor for factor in DEPTHS[3])


def test_tasks_cover_every_fold_of_every_trial():
    keys = [task.key for task in tasks(["iris", "waveform"], 3, 5, 0)]
    assert len(keys) == len(set(keys)) == 3 * 5 + 3
    assert sum(1 for _ in run_all(list(tasks(["iris"], 1, 2, 0)), 2)) == 2


SCRIPT = """
import sys
from pathlib import Path
from karnet.paper.store import Store
from karnet.paper.uci import run, tasks
with Store(Path(sys.argv[1]), "test") as store:
    for task in tasks(["iris", "wine"], 1, 5, 0):
        if task.key not in store.keys():
            store.add([run(task)])
"""


def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path):
    def start(name):
        return subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path / name)])

    rng = random.Random(0)
    for _ in range(4):
        process = start("killed.sqlite")
        time.sleep(rng.uniform(1.0, 3.0))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert start("killed.sqlite").wait() == 0
    assert start("whole.sqlite").wait() == 0

    def results(name):
        with Store(Path(tmp_path / name), "test") as store:
            return [(fit.key, fit.structure, fit.accuracy, fit.seed) for fit in store.fits()]

    assert results("killed.sqlite") == results("whole.sqlite")
    assert len(results("whole.sqlite")) == 10
