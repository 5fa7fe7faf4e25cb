"""Displays store the right numbers and draw on the given axes."""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV
from karnet._estimator.notebook import layer_table
from karnet.inspection import (
    LayerSpectrumDisplay,
    LooPathDisplay,
    MetricDisplay,
)

matplotlib.use("Agg")
from matplotlib import pyplot as plt

IRIS = load_iris(as_frame=True)
X, y = IRIS.data.to_numpy(), IRIS.target.to_numpy()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def ensemble():
    return KARClassifierCV(random_state=0).fit(IRIS.data, y)


@pytest.fixture(scope="module")
def pulled_back():
    return make_pipeline(MinMaxScaler(), KARClassifier((100,), random_state=0)).fit(X, y)


@pytest.fixture(scope="module")
def regressor():
    return KARRegressorCV(random_state=0).fit(X[:, :3], X[:, 3])


def random_net(**settings):
    return KARClassifier((20,), activation="tanh", hidden="random", random_state=0, **settings)


# The metric


def test_inputs_are_sorted_by_importance_and_named(ensemble):
    ax = plt.figure().subplots()
    display = MetricDisplay.from_estimator(ensemble, ax=ax, max_features=3)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    first = np.argsort(-ensemble.input_metric_)[:3]
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        IRIS.feature_names[k] for k in first
    ]
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, ensemble.input_metric_[first])


def test_a_full_metric_is_plotted_as_a_matrix(ensemble):
    net = KARClassifier((30,), activation="tanh", hidden="metric", random_state=0).fit(X, y)
    display = MetricDisplay.from_estimator(net, matrix=True)
    assert display.metric is net.metric_
    assert len(display.ax_.images) == 1
    assert display.feature_names == ["x0", "x1", "x2", "x3"]
    with pytest.raises(ValueError, match="only the diagonal"):
        MetricDisplay.from_estimator(ensemble, matrix=True)


def test_feature_names_come_from_the_pipeline_or_the_argument(ensemble):
    piped = make_pipeline(MinMaxScaler(), clone(ensemble).set_params(n_estimators=1))
    names = MetricDisplay.from_estimator(piped.fit(IRIS.data, y)).feature_names
    assert list(names) == IRIS.feature_names
    given = MetricDisplay.from_estimator(ensemble, feature_names=["a", "b", "c", "d"])
    assert given.feature_names == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="must name all 4 inputs, but names 1"):
        MetricDisplay.from_estimator(ensemble, feature_names=["a"])


def test_a_network_without_a_metric_is_refused(pulled_back):
    with pytest.raises(ValueError, match="has no input metric"):
        MetricDisplay.from_estimator(pulled_back)


# Inputs of the layers


def test_ranks_equal_the_ranks_in_the_layers_reports(pulled_back):
    display = LayerSpectrumDisplay.from_estimator(pulled_back, X)
    reports = pulled_back[-1].layers_
    assert [spectrum.rank + 1 for spectrum in display.spectra] == [each.rank for each in reports]
    assert len(display.lines_) == 2
    assert "rank 4 of 4" in display.lines_[0].get_label()


def test_singular_values_are_of_centred_columns_of_unit_length():
    net = random_net().fit(X, y)
    (spectrum,) = LayerSpectrumDisplay.from_estimator(net, X).spectra
    A = np.tanh(X @ net.coefs_[0] + net.intercepts_[0])
    A = A - A.mean(axis=0)
    values = np.linalg.svd(A / np.linalg.norm(A, axis=0), compute_uv=False)
    np.testing.assert_allclose(spectrum.values, values / values[0], rtol=1e-6, atol=1e-12)
    assert spectrum.rank + 1 == net.layers_[-1].rank


def test_every_network_of_an_ensemble_has_a_spectrum(ensemble, regressor):
    for net, rows in ((ensemble, X), (regressor, X[:, :3])):
        display = LayerSpectrumDisplay.from_estimator(net, rows)
        assert len(display.spectra) == len(net.estimators_)
        assert all(spectrum.values[0] == 1.0 for spectrum in display.spectra)


def test_values_outside_the_domain_are_counted_in_the_label():
    net = KARClassifier((5,), random_state=0).fit(X, y)
    net.layers_[0] = net.layers_[0].__class__(5, "qr", 0.1, 0.25)
    display = LayerSpectrumDisplay.from_estimator(net, X)
    assert "25.0 % outside" in display.lines_[0].get_label()


# Leave-one-out over ridges


def test_a_path_equals_refitting_without_each_row():
    rows = np.arange(0, 150, 5)
    net = random_net(alpha=0.1).fit(X[rows], y[rows])
    (path,) = LooPathDisplay.from_estimator(
        net, X[rows], y[rows], alphas=[0.1, 10.0], widths=[20]
    ).paths
    right = [
        clone(net).fit(np.delete(X[rows], k, 0), np.delete(y[rows], k)).predict(X[rows][[k]])[0]
        == y[rows][k]
        for k in range(len(rows))
    ]
    assert path.scores[0] == pytest.approx(np.mean(right))
    assert (path.name, path.alpha) == ("20 units", 0.1)


def test_the_path_of_infinitely_wide_layers_equals_refitting_without_each_row():
    net = KARRegressor((np.inf,), hidden="random", activation="relu", alpha=0.1)
    for fit_intercept in (True, False):
        net.set_params(fit_intercept=fit_intercept)
        rows, t = X[::5, :3], X[::5, 3] - X[::5, 3].mean()
        display = LooPathDisplay.from_estimator(net.fit(rows, t), rows, t, alphas=[0.1, 10.0])
        (path,) = display.paths
        left_out = [
            clone(net).fit(np.delete(rows, k, 0), np.delete(t, k)).predict(rows[[k]])[0]
            for k in range(len(rows))
        ]
        assert path.scores[0] == pytest.approx(r2_score(t, left_out))
        assert (path.name, path.alpha) == ("network 1", 0.1)


def test_paths_of_an_ensemble_have_the_ridges_of_its_networks(ensemble, regressor):
    display = LooPathDisplay.from_estimator(regressor, X[:, :3], X[:, 3])
    assert [path.alpha for path in display.paths] == [m.alpha_ for m in regressor.estimators_]
    assert display.score_name == "R²"
    plain = [k for k, m in enumerate(regressor.estimators_) if m.shape.rounds == 0]
    for k in plain:
        # The hidden layer does not depend on the labels, so its ridge is nearly the best.
        path = display.paths[k]
        at = np.interp(np.log(path.alpha), np.log(path.alphas), path.scores)
        assert at > path.scores.max() - 0.02
    assert LooPathDisplay.from_estimator(ensemble, X, y).score_name == "accuracy"
    with pytest.raises(ValueError, match="widths must be None for an ensemble"):
        LooPathDisplay.from_estimator(ensemble, X, y, widths=[5])


def test_widths_need_hidden_layers(regressor):
    display = LooPathDisplay.from_estimator(random_net().fit(X, y), X, y)
    assert [path.name for path in display.paths] == [f"{n} units" for n in (5, 10, 20, 40)]
    with pytest.raises(ValueError, match="no hidden layers"):
        LooPathDisplay.from_estimator(KARRegressor(()).fit(X, y), X, y)


# All displays


@pytest.mark.parametrize("display", [LayerSpectrumDisplay, LooPathDisplay])
def test_rows_may_be_a_data_frame(display, ensemble):
    targets = () if display is LayerSpectrumDisplay else (y,)
    numbers = [
        line.get_ydata()
        for rows in (IRIS.data, X)
        for line in display.from_estimator(ensemble, rows, *targets).lines_
    ]
    np.testing.assert_array_equal(*np.split(np.array(numbers), 2))


def test_other_and_unfitted_estimators_are_refused():
    for estimator in (MinMaxScaler(), KARClassifier()):
        with pytest.raises(ValueError, match="is not a fitted estimator of karnet"):
            LayerSpectrumDisplay.from_estimator(estimator, X)


def test_without_matplotlib_the_error_names_the_extra(ensemble, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'karnet\[plot\]'"):
        MetricDisplay.from_estimator(ensemble)


# In a notebook


@pytest.mark.parametrize("kind", ["plain", "ensemble", "infinite"])
def test_a_fitted_estimator_shows_its_layers(kind, ensemble):
    nets = {
        "plain": KARClassifier((7, 5), random_state=0),
        "ensemble": clone(ensemble),
        "infinite": KARClassifier((np.inf,), activation="relu", hidden="random"),
    }
    net = nets[kind]
    assert layer_table(net) is None
    assert "<table title=" not in net._repr_html_()
    net.fit(X, y)
    table = layer_table(net)
    n = len(net.estimators_) if kind == "ensemble" else len(net.layers_)
    assert len(table.rows) == n
    bundle = net._repr_mimebundle_()
    for html in (net._repr_html_(), bundle["text/html"]):
        assert html.count("<tr>") >= 1 + n
        assert f"<summary>{table.title}</summary>" in html
    assert bundle["text/plain"] == repr(net)
    with config_context(display="text"):
        assert "text/html" not in net._repr_mimebundle_()
        assert not hasattr(net, "_repr_html_")


def test_the_layer_table_agrees_with_the_estimator():
    net = KARClassifier((7, 5), random_state=0).fit(X, y)
    rows = layer_table(net).rows
    assert [row[0] for row in rows] == ["1", "2", "output"]
    assert [row[1] for row in rows] == ["7", "5", "3"]
    assert [row[4] for row in rows] == [str(report.rank) for report in net.layers_]
