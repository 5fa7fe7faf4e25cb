"""The estimators that select all hyper-parameters: honest scores, and sane on odd tables."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_wine, make_friedman1, make_moons
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from karnet import KARClassifierCV, KARRegressorCV


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def table(m, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, (X[:, 0] + 0.3 * rng.standard_normal(m) > 0.0).astype(int)


def test_moons_are_learned_where_the_linear_fit_stops():
    X, y = make_moons(400, noise=0.2, random_state=0)
    new, labels = make_moons(1000, noise=0.2, random_state=1)
    assert KARClassifierCV(random_state=0).fit(X, y).score(new, labels) > 0.95


def test_fitted_attributes_say_what_was_chosen():
    X, y = load_wine(return_X_y=True, as_frame=True)
    net = KARClassifierCV(random_state=0).fit(X, y)
    assert net.feature_names_in_.tolist() == list(X.columns)
    assert net.loo_decision_function_.shape == (178, 3)
    assert net.best_score_ == np.mean(net.loo_decision_function_.argmax(axis=1) == y)
    assert net.feature_importances_.shape == (13,)
    assert net.feature_importances_.sum() == pytest.approx(1.0)
    results = pd.DataFrame(net.cv_results_)
    assert results.squared_error.is_monotonic_increasing
    kinds = results[results.averaged]
    assert {each.shape.kernel for each in net.estimators_} <= set(kinds.kernel)
    assert {each.shape.rounds for each in net.estimators_} <= set(kinds.metric_rounds)
    assert {each.error for each in net.estimators_} <= set(kinds.squared_error)
    assert len(net.weights_) == len(net.estimators_) <= net.n_estimators == 20
    for member in net.estimators_:
        assert member.alpha_ > 0.0
        assert member.activation in ("cos", "relu")
        assert np.isinf(member.hidden_layer_sizes).all()


def test_the_same_seed_gives_the_same_network():
    X, y = table(80, 4)
    decisions = [KARClassifierCV(random_state=3).fit(X, y).decision_function(X) for _ in range(2)]
    np.testing.assert_array_equal(*decisions)


def test_a_network_can_be_kept():
    X, y = table(300, 4)
    for estimator in (KARClassifierCV, KARRegressorCV):
        net = estimator(random_state=0).fit(X, y)
        again = pickle.loads(pickle.dumps(net))
        np.testing.assert_array_equal(again.predict(X), net.predict(X))


def test_noise_is_not_taken_for_knowledge():
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(10):
        X, y = rng.standard_normal((100, 8)), np.repeat([0, 1], 50)
        net = KARClassifierCV(random_state=0).fit(X, rng.permutation(y))
        scores.append(net.best_score_)
    assert np.mean(scores) < 0.56
    assert KARRegressorCV(random_state=0).fit(X, rng.standard_normal(100)).best_score_ < 0.1


def test_the_score_is_that_of_fresh_folds():
    X, y = load_iris(return_X_y=True)
    net = KARClassifierCV(random_state=0)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    fresh = cross_val_score(net, X, y, cv=folds).mean()
    two_errors = 2.0 * np.sqrt(fresh * (1.0 - fresh) / len(y))
    assert clone(net).fit(X, y).best_score_ == pytest.approx(fresh, abs=two_errors)


def test_probabilities_are_calibrated():
    rng = np.random.default_rng(2)
    X = rng.uniform(-2.0, 2.0, (600, 2))
    p = 1.0 / (1.0 + np.exp(-2.0 * X[:, 0] * X[:, 1]))
    y = rng.random(600) < p
    net = KARClassifierCV(random_state=0).fit(X[:400], y[:400])
    proba = net.predict_proba(X[400:])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(net.classes_[proba.argmax(axis=1)], net.predict(X[400:]))
    assert np.abs(proba[:, 1] - p[400:]).mean() < 0.12


def test_intervals_hold_what_they_promise():
    held = []
    for seed in range(10):
        X, y = make_friedman1(100, noise=1.0, random_state=seed)
        new, targets = make_friedman1(1000, noise=1.0, random_state=seed + 100)
        net = KARRegressorCV(random_state=0).fit(X, y)
        low, high = net.predict_interval(new).T
        held.append(np.mean((low <= targets) & (targets <= high)))
        narrow_low, narrow_high = net.predict_interval(new, coverage=0.5).T
        assert (narrow_high - narrow_low).mean() < (high - low).mean()
    assert 0.88 <= np.mean(held) <= 0.93


def test_several_outputs_are_predicted_in_their_own_units():
    X, y = load_diabetes(return_X_y=True)
    both = np.column_stack([y, 1e-6 * X[:, 2] + 5.0])
    net = KARRegressorCV(random_state=0).fit(X[:200], both[:200])
    assert net.predict(X).shape == (442, 2)
    assert net.predict_interval(X[:3]).shape == (3, 2, 2)
    assert np.corrcoef(net.predict(X[200:])[:, 1], both[200:, 1])[0, 1] > 0.99


def test_a_linear_problem_is_left_to_the_linear_fit_to_within_a_little():
    X, y = load_diabetes(return_X_y=True)
    folds = KFold(5, shuffle=True, random_state=0)
    ours = cross_val_score(KARRegressorCV(random_state=0), X, y, cv=folds).mean()
    assert ours > cross_val_score(RidgeCV(), X, y, cv=folds).mean() - 0.02


ODD = {
    "ten rows": table(10, 3),
    "one feature": table(50, 1),
    "200 classes": (np.arange(400.0)[:, None] // 2, np.arange(400) // 2),
    "5000 features": table(60, 5000),
    "equal rows": tuple(np.repeat(each, 4, axis=0) for each in table(30, 3)),
    "equal columns": (np.repeat(table(60, 2)[0], 3, axis=1), table(60, 2)[1]),
    "a class with one member": (table(50, 3)[0], np.where(np.arange(50) == 7, 2, table(50, 3)[1])),
    "an offset of 1e6": (table(60, 2)[0] + [1e6, 0.0], table(60, 2)[1]),
    "two rows": (np.array([[0.0], [1.0]]), np.array([0, 1])),
    "constant inputs": (np.ones((20, 3)), np.arange(20) % 2),
    "a heavy tail": (np.random.default_rng(0).standard_cauchy((80, 3)) ** 3, np.arange(80) % 2),
    "tiny units": (1e-200 * table(60, 2)[0], table(60, 2)[1]),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_tables_give_a_sane_model(name):
    X, y = ODD[name]
    net = KARClassifierCV(random_state=0).fit(X, y)
    proba = net.predict_proba(X)
    assert np.isfinite(proba).all()
    assert set(net.predict(X)) <= set(np.unique(y))
    assert 0.0 <= net.best_score_ <= 1.0
    regressor = KARRegressorCV(random_state=0).fit(X, y.astype(float))
    assert np.isfinite(regressor.predict(X)).all()
    assert np.isfinite(regressor.predict_interval(X)).all()


@pytest.mark.parametrize("name", ["5000 features", "equal columns", "an offset of 1e6"])
def test_what_can_be_learned_from_odd_tables_is(name):
    X, y = ODD[name]
    score = KARClassifierCV(random_state=0).fit(X, y).best_score_
    assert score > (0.5 if name == "5000 features" else 0.85)


@pytest.mark.parametrize("cv", [5, KFold(4), [(np.arange(30, 80), np.arange(30))]])
@pytest.mark.parametrize("width", [2000, 30])
def test_networks_are_judged_as_asked_for(cv, width):
    X, y = table(80, 3)
    net = KARClassifierCV(cv=cv, width=width, random_state=0).fit(X, y)
    assert net.best_score_ > (0.8 if width > 80 else 0.5)
    judged = ~np.isnan(net.loo_decision_function_)
    assert judged.sum() == (30 if isinstance(cv, list) else 80)


def test_rows_of_weight_zero_are_left_out():
    X, y = table(60, 3)
    weight = np.r_[np.ones(40), np.zeros(20)]
    weighted = KARClassifierCV(random_state=0).fit(X, y, weight)
    alone = KARClassifierCV(random_state=0).fit(X[:40], y[:40])
    np.testing.assert_allclose(weighted.decision_function(X), alone.decision_function(X))
    assert weighted.loo_decision_function_.shape == (60,)
    np.testing.assert_allclose(
        weighted.loo_decision_function_[40:], alone.decision_function(X[40:])
    )


@pytest.mark.parametrize("estimator", [KARClassifierCV, KARRegressorCV])
def test_trees_divide_tables_of_more_rows_than_a_kernel_may_have(estimator):
    X, y = table(400, 3)
    net = estimator(width=100, random_state=0).fit(X, y)
    for member in net.estimators_:
        leaves = [np.diff(partition.starts) for partition in member.network.partitions]
        assert max(map(max, leaves)) <= 100
    assert net.score(*table(500, 3, seed=1)) > (0.8 if estimator is KARClassifierCV else 0.5)
    assert net.loo_decision_function_.shape == (400,)
    if estimator is KARRegressorCV:
        low, high = net.predict_interval(X).T
        assert 0.85 < np.mean((low <= y) & (y <= high)) <= 1.0


def test_a_short_table_is_a_tree_of_one_leaf():
    X, y = table(200, 3)
    net = KARClassifierCV(random_state=0).fit(X, y)
    for member in net.estimators_:
        (partition,) = member.network.partitions
        assert len(partition.starts) == 2
        assert len(member.X_fit_) == 200
        assert np.isinf(member.hidden_layer_sizes).all()


def test_a_short_time_means_less_is_tried():
    X, y = table(900, 10)
    hasty = KARClassifierCV(time_budget=1e-3, random_state=0).fit(X, y)
    patient = KARClassifierCV(random_state=0).fit(X, y)
    assert len(hasty.cv_results_["view"]) < len(patient.cv_results_["view"])
    assert len(hasty.estimators_) == 1
    assert hasty.best_score_ > 0.7


def test_importances_name_the_features_that_matter():
    X, y = table(200, 6)
    assert KARClassifierCV(random_state=0).fit(X, y).feature_importances_.argmax() == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_estimators": 0}, "n_estimators=0 must be an integer of at least 1"),
        ({"width": 1.5}, "width=1.5 must be an integer"),
        ({"alphas": [0.0]}, "must hold positive, finite numbers"),
        ({"time_budget": -1}, "time_budget=-1 must be a positive number"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        KARClassifierCV(**parameters).fit(*table(20, 2))


def test_an_interval_needs_a_probability():
    net = KARRegressorCV(random_state=0).fit(*table(20, 2))
    with pytest.raises(ValueError, match=r"coverage=1\.5 must lie between 0 and 1"):
        net.predict_interval(table(3, 2)[0], coverage=1.5)


@pytest.mark.parametrize("kind", [KARClassifierCV, KARRegressorCV])
def test_inputs_and_weights_of_all_magnitudes_are_fitted(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3)) * 10.0 ** rng.uniform(-300, 308, 3)
    weight = 10.0 ** rng.uniform(-200, 19, 20)
    net = kind(n_estimators=2, random_state=0).fit(X, np.arange(20) % 2, weight)
    for rows in (X, X[:, ::-1], np.full((1, 3), np.finfo(float).max)):
        assert np.isfinite(net.predict(rows)).all()


def test_light_weights_are_as_good_as_heavy_ones():
    X, y = load_diabetes(return_X_y=True)
    net = KARRegressorCV(n_estimators=1, random_state=0)
    light, plain = (clone(net).fit(X[:40], y[:40], np.full(40, w)) for w in (1e-200, 1.0))
    np.testing.assert_allclose(light.predict(X[:5]), plain.predict(X[:5]), rtol=1e-8)


@pytest.mark.parametrize(
    "cv", [(0,), [], "x", np.array(2.5), [([0], [99])], [([0], [0.5])]], ids=str
)
def test_splits_that_are_none_are_refused_in_one_sentence(cv):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="cv=") as error:
        KARClassifierCV(cv=cv).fit(X[::5], y[::5])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("coverage", [None, "0.9", 1.0, True, np.ones(2), 1j], ids=str)
def test_a_coverage_that_is_none_is_refused(coverage):
    X, y = load_diabetes(return_X_y=True)
    net = KARRegressorCV(n_estimators=1, random_state=0).fit(X[:20], y[:20])
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        net.predict_interval(X[:2], coverage=coverage)
