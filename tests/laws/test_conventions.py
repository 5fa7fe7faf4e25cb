"""Conventions that users of scikit-learn, and their tools, rely on."""

from __future__ import annotations

import inspect
import re
from importlib.resources import files

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import karnet
from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV

ESTIMATORS = {
    "KARClassifier": KARClassifier((10,), alpha=1e-3, random_state=0),
    "KARRegressor": KARRegressor((10,), hidden="random", random_state=0),
    "KARClassifierCV": KARClassifierCV(random_state=0),
    "KARRegressorCV": KARRegressorCV(random_state=0),
}
CV_PAIR = ("KARClassifierCV", "KARRegressorCV")
NAMES = ["first", "second", "third"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] + 0.5 * rng.standard_normal(60) > 0.0).astype(int)
    return X, y, rng.integers(0, 3, 60).astype(float)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_pipeline_routes_weights_to_estimators_that_request_them(name, table):
    X, y, weight = table
    with sklearn.config_context(enable_metadata_routing=True):
        net = sklearn.clone(ESTIMATORS[name]).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        routed = make_pipeline(scaler, net).fit(X, y, sample_weight=weight)
    scaled = StandardScaler().fit_transform(X)
    direct = sklearn.clone(ESTIMATORS[name]).fit(scaled, y, sample_weight=weight)
    np.testing.assert_array_equal(routed.predict(X), direct.predict(scaled))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_without_a_request_are_an_error(name, table):
    X, y, weight = table
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(sklearn.clone(ESTIMATORS[name]))
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            pipeline.fit(X, y, sample_weight=weight)


def test_folds_route_weights_to_fit_and_score(table):
    X, y, weight = table
    net = sklearn.clone(ESTIMATORS["KARClassifier"])
    with sklearn.config_context(enable_metadata_routing=True):
        net.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        parts = np.split(np.arange(60), 3)
        splits = [(np.setdiff1d(np.arange(60), part), part) for part in parts]
        scores = cross_validate(net, X, y, cv=splits, params={"sample_weight": weight})
    for (train, test), score in zip(splits, scores["test_score"], strict=True):
        net.fit(X[train], y[train], sample_weight=weight[train])
        assert net.score(X[test], y[test], sample_weight=weight[test]) == score


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_feature_names_are_kept_and_checked(name, library, table):
    frames = pytest.importorskip(library)
    if library == "polars" and _version(sklearn) < (1, 9):
        pytest.skip("scikit-learn reads names of polars frames from 1.9 on")
    X, y, _ = table
    frame = frames.DataFrame(dict(zip(NAMES, X.T, strict=True)))
    net = sklearn.clone(ESTIMATORS[name]).fit(frame, y)
    assert net.feature_names_in_.tolist() == NAMES
    expected = sklearn.clone(ESTIMATORS[name]).fit(X, y).predict(X)
    np.testing.assert_allclose(net.predict(frame), expected)
    with pytest.raises(ValueError, match="feature names"):
        net.predict(frame[NAMES[::-1]])


def _version(package):
    return tuple(int(part) for part in package.__version__.split(".")[:2])


def test_types_are_shipped():
    assert files("karnet").joinpath("py.typed").is_file()


def documented(name):
    """Return the sections of a docstring, and in Parameters and Attributes the text per name."""
    parts = re.split(r"\n\n([A-Z]\w+)\n-+\n", inspect.getdoc(getattr(karnet, name)))
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    for section in ("Parameters", "Attributes"):
        entries = re.split(r"^(?=\w)", sections[section], flags=re.M)[1:]
        pairs = (entry.strip().split(" : ", 1) for entry in entries)
        sections[section] = {each: text for names, text in pairs for each in names.split(", ")}
    return sections


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fitted_attributes_are_documented(name, table):
    fitted = sklearn.clone(ESTIMATORS[name]).fit(*table[:2])
    attributes = {each for each in vars(fitted) if each.endswith("_") and each[0] != "_"}
    assert attributes <= documented(name)["Attributes"].keys()


# Texts that differ on purpose between a classifier and its regressor.
DIFFERENT = {"estimators_", "best_score_", "loo_decision_function_"}


@pytest.mark.parametrize("pair", [("KARClassifier", "KARRegressor"), CV_PAIR], ids=str)
def test_a_classifier_and_its_regressor_describe_shared_names_alike(pair):
    first, second = map(documented, pair)
    for section in ("Parameters", "Attributes"):
        shared = first[section].keys() & second[section].keys()
        assert len(shared) > 4
        for name in shared - DIFFERENT:
            assert first[section][name] == second[section][name], name


def test_all_estimators_describe_the_names_that_all_share_alike():
    sections = [documented(name) for name in ESTIMATORS]
    for section, names in (
        ("Parameters", {"class_weight"}),
        ("Attributes", {"classes_", "n_features_in_", "feature_names_in_"}),
    ):
        for name in names:
            assert len({each[section][name] for each in sections if name in each[section]}) == 1


@pytest.mark.parametrize("pair", [("KARClassifier", "KARRegressor"), CV_PAIR], ids=str)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict", "score"])
def test_methods_describe_shared_parameters_alike(pair, method):
    docs = [inspect.getdoc(getattr(getattr(karnet, name), method, None)) for name in pair]
    if None in docs:
        return
    texts = [
        dict(re.findall(r"^(X|sample_weight) : (.*?)(?=^\w|\Z)", d, re.M | re.S)) for d in docs
    ]
    assert texts[0] == texts[1]
