"""The model of AutoGluon predicts like the estimator in it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from karnet import KARClassifierCV, KARRegressorCV

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("autogluon.tabular")
    import pandas as pd
    from autogluon.core.utils.exceptions import TimeLimitExceeded
    from autogluon.tabular import TabularPredictor

    from karnet.contrib.autogluon import KARModel

# AutoGluon uses parts of its own libraries that are deprecated.
pytestmark = pytest.mark.filterwarnings("ignore")
N_TRAIN = 120
TARGETS = {
    "regression": lambda price: price,
    "binary": lambda price: np.where(price > np.median(price), "high", "low"),
    "multiclass": lambda price: np.array(["low", "middle", "high"])[np.digitize(price, [450, 700])],
}


@pytest.fixture(scope="module")
def flats():
    rng = np.random.default_rng(0)
    n = 160
    frame = pd.DataFrame(
        {
            "area": np.where(rng.random(n) < 0.2, np.nan, rng.normal(60.0, 20.0, n)),
            "city": pd.Categorical(rng.choice(["Oslo", "Bern", None], n)),
            "rooms": rng.integers(1, 6, n),
        }
    )
    price = 9.0 * frame["area"].fillna(50.0) + 150.0 * (frame["city"] == "Oslo")
    return frame, np.asarray(price)


def model(problem_type, tmp_path, **hyperparameters):
    return KARModel(
        path=str(tmp_path), name="KAR", problem_type=problem_type, hyperparameters=hyperparameters
    )


@pytest.mark.parametrize("problem_type", TARGETS)
def test_a_predictor_takes_categories_and_gaps(problem_type, flats, tmp_path):
    frame, price = flats
    table = frame.assign(target=TARGETS[problem_type](price))
    predictor = TabularPredictor("target", path=str(tmp_path), verbosity=0)
    predictor.fit(table[:N_TRAIN], hyperparameters={KARModel: {"n_estimators": 2}}, time_limit=60.0)
    assert predictor.problem_type == problem_type
    right = predictor.evaluate(table[N_TRAIN:])
    score = right["r2"] if problem_type == "regression" else right["accuracy"]
    assert score > 0.7


def test_the_model_predicts_what_the_estimator_predicts(flats, tmp_path):
    frame, price = flats
    fitted = model("regression", tmp_path, n_estimators=2).fit(X=frame, y=pd.Series(price))
    alone = KARRegressorCV(n_estimators=2, random_state=0).fit(frame, price)
    np.testing.assert_allclose(fitted.predict(frame), alone.predict(frame), rtol=1e-6)


def test_weights_and_seeds_are_passed_on(flats, tmp_path):
    frame, price = flats
    y, weight = (price > 500).astype(int), np.arange(160) % 3.0
    fitted = model("binary", tmp_path, n_estimators=2, random_state=5)
    fitted.fit(X=frame, y=pd.Series(y), sample_weight=pd.Series(weight))
    alone = KARClassifierCV(n_estimators=2, random_state=5).fit(frame, y, sample_weight=weight)
    expected = alone.predict_proba(frame)[:, 1]
    np.testing.assert_allclose(fitted.predict_proba(frame), expected, rtol=1e-5)


def test_the_time_limit_is_the_time_budget(flats, tmp_path):
    frame, price = flats
    fitted = model("regression", tmp_path).fit(X=frame, y=pd.Series(price), time_limit=20.0)
    assert 10.0 < fitted.model.time_budget <= 19.0
    shorter = model("regression", tmp_path, time_budget=2.0)
    assert shorter.fit(X=frame, y=pd.Series(price), time_limit=20.0).model.time_budget == 2.0


def test_a_fit_without_time_is_refused(flats, tmp_path):
    frame, price = flats
    with pytest.raises(TimeLimitExceeded):
        model("regression", tmp_path).fit(X=frame, y=pd.Series(price), time_limit=1e-6)


def test_threads_of_blas_are_as_before(flats, tmp_path):
    frame, price = flats
    before = threadpool_info()
    model("regression", tmp_path).fit(X=frame, y=pd.Series(price), num_cpus=1)
    assert threadpool_info() == before


def test_memory_grows_with_rows_up_to_the_size_of_a_leaf():
    tables = [pd.DataFrame(np.zeros((n, 2))) for n in (500, 4000, 5000, 50000)]
    small, whole, leaves, long = (KARModel._estimate_memory_usage_static(X=X) for X in tables)
    assert small < leaves < whole
    assert leaves < long < 3 * leaves
