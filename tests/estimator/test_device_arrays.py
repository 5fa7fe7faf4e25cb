"""Arrays on a device, without the switches of scikit-learn and SciPy: used where they lie.

The second device of array-api-strict stands for a GPU: NumPy cannot read its arrays.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn import config_context, get_config

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV
from karnet._arrays import namespace as arrays

torch = pytest.importorskip("torch")
strict = pytest.importorskip("array_api_strict")

DEVICE = strict.Device("device1")
OPTIONS = {
    "pullback": {"alpha": 1e-2},
    "two hidden layers": {"hidden_layer_sizes": (20, 10), "alpha": 1e-2},
    "random": {"hidden": "random", "activation": "tanh"},
    "metric": {"hidden": "metric", "activation": "tanh", "alpha": 1e-3},
    "links": {"hidden": "random", "activation": "tanh", "direct_links": True},
    "infinite": {"hidden_layer_sizes": (np.inf,), "hidden": "random", "activation": "relu"},
}


def remote(values):
    return strict.asarray(np.asarray(values), device=DEVICE)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    signal = X[:, 0] + 0.3 * rng.standard_normal(300)
    return X, signal, np.digitize(signal, [-0.5, 0.5])


def test_numpy_cannot_read_these_arrays_but_reads_tensors_in_host_memory():
    assert arrays.is_remote(remote([[1.0]]))
    assert arrays.is_remote(remote(1.0))
    assert not arrays.is_remote(strict.asarray([[1.0]]))
    assert not arrays.is_remote(torch.ones(2, requires_grad=True))
    assert not arrays.is_remote(np.ones(2))
    assert not arrays.is_remote([[1.0]])


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", [remote, np.asarray], ids=["device targets", "numpy targets"])
def test_the_network_of_device_arrays_is_that_of_numpy_arrays(options, kind, table):
    X, signal, labels = table
    there = remote(X)
    for estimator, y, methods in (
        (KARRegressor, signal, ["predict"]),
        (KARClassifier, labels, ["predict", "predict_proba", "decision_function"]),
        (KARClassifier, labels > 0, ["predict", "predict_proba", "decision_function"]),
    ):
        given = {"hidden_layer_sizes": (10,), "random_state": 0, **OPTIONS[options]}
        here = estimator(**given).fit(X, y)
        net = estimator(**given).fit(there, kind(y))
        assert not get_config()["array_api_dispatch"]
        for method in methods:
            found = getattr(net, method)(there)
            assert type(found) is type(there)
            assert found.device == DEVICE
            expected = getattr(here, method)(X)
            np.testing.assert_allclose(arrays.to_numpy(found), expected, rtol=1e-6, atol=1e-8)
        assert net.score(there, kind(y)) == pytest.approx(here.score(X, y), abs=1e-8)


def test_rows_on_a_device_have_weights_and_are_added_and_removed(table):
    X, signal, _ = table
    there, weight = remote(X), np.arange(300) % 3
    options = {"hidden_layer_sizes": (10,), "hidden": "random", "random_state": 0}
    here = KARRegressor(**options).fit(X, signal, weight)
    net = KARRegressor(**options).fit(there, remote(signal), remote(weight))
    np.testing.assert_allclose(arrays.to_numpy(net.predict(there)), here.predict(X), rtol=1e-7)
    score = here.score(X, signal, weight)
    assert net.score(there, signal, remote(weight)) == pytest.approx(score, abs=1e-9)
    some = slice(0, 50)
    for each, rows in ((here, X[some]), (net, remote(X[some]))):
        each.partial_fit(rows, signal[some]).partial_fit(rows, signal[some])
        each.forget(rows, signal[some])
    np.testing.assert_allclose(arrays.to_numpy(net.predict(there)), here.predict(X), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_results_have_the_precision_that_numpy_arrays_give(dtype, table):
    X = (2 * table[0]).astype(dtype)
    here = KARRegressor((5,), random_state=0).fit(X, table[1]).predict(X)
    found = KARRegressor((5,), random_state=0).fit(remote(X), table[1]).predict(remote(X))
    assert str(here.dtype) in str(found.dtype)
    np.testing.assert_allclose(arrays.to_numpy(found), here, rtol=1e-4, atol=1e-5)


def test_words_are_predicted_from_device_arrays(table):
    words = np.array(["low", "middle", "high"])[table[2]]
    net = KARClassifier((5,), random_state=0).fit(remote(table[0]), words)
    assert set(net.predict(remote(table[0]))) <= set(words)
    assert net.score(remote(table[0]), words) > 0.5


BAD = {
    "one dimension": np.ones(4),
    "three dimensions": np.ones((3, 4, 2)),
    "no rows": np.ones((0, 4)),
    "no columns": np.ones((3, 0)),
    "another number of columns": np.ones((3, 5)),
    "complex numbers": np.ones((3, 4), complex),
    "infinity": np.full((3, 4), np.inf),
}


def refusal(method, *args):
    with pytest.raises((TypeError, ValueError)) as error:
        method(*args)
    assert "\n" not in str(error.value)
    return type(error.value), str(error.value)


@pytest.mark.parametrize("dispatch", [False, True])
@pytest.mark.parametrize("bad", BAD)
def test_bad_inputs_are_refused_in_the_words_for_numpy_arrays(bad, dispatch, table):
    X, signal, _ = table
    here, net = (KARRegressor((5,), random_state=0) for _ in range(2))
    here.fit(X, signal)
    with config_context(array_api_dispatch=dispatch):
        net.fit(remote(X), signal)
        expected = refusal(here.predict, BAD[bad])
        assert refusal(net.predict, remote(BAD[bad])) == expected
        if bad != "another number of columns":
            expected = refusal(here.fit, BAD[bad], np.ones(len(BAD[bad])))
            assert refusal(net.fit, remote(BAD[bad]), np.ones(len(BAD[bad]))) == expected


def test_rows_to_predict_lie_where_the_rows_of_the_fit_lay(table):
    X, signal, _ = table
    for fitted, other in ((X, remote(X)), (remote(X), X), (remote(X), torch.asarray(X))):
        net = KARRegressor((5,), random_state=0).fit(fitted, signal)
        with pytest.raises(ValueError, match=r"must use the same namespace and the same device"):
            net.predict(other)


@pytest.mark.parametrize("dispatch", [False, True])
def test_what_cannot_use_device_arrays_says_what_to_pass(dispatch, table):
    X, signal, labels = table
    there = remote(X)
    words = r"X is an array of array_api_strict on .*device1.*, which {} cannot use: give a NumPy"
    with config_context(array_api_dispatch=dispatch):
        for estimator, y in ((KARClassifierCV(), labels), (KARRegressorCV(), signal)):
            name = type(estimator).__name__
            with pytest.raises(ValueError, match=words.format(name)):
                estimator.fit(there, y)
        for block in ((there, signal), (X, remote(signal))):
            with pytest.raises(ValueError, match=r"device1.*: give blocks as NumPy arrays"):
                KARRegressor((5,)).fit_blocks([block])


def test_tensors_in_host_memory_are_read_as_numpy_arrays(table):
    X, signal, _ = table
    expected = KARRegressor((5,), random_state=0).fit(X, signal)
    for gradient in (False, True):
        given, y = torch.asarray(X).requires_grad_(gradient), torch.asarray(signal)
        net = KARRegressor((5,), random_state=0).fit(given, y)
        found = net.predict(given)
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, expected.predict(X))
        assert net.score(given, y) == expected.score(X, signal)


WITHOUT_SWITCHES = """
import numpy as np, array_api_strict as strict
from karnet import KARClassifier
X = np.random.default_rng(0).standard_normal((60, 3))
X, y = (strict.asarray(each, device=strict.Device("device1")) for each in (X, X[:, 0] > 0.0))
net = KARClassifier((5,), random_state=0).fit(X, y)
assert net.predict_proba(X).device == X.device
assert net.score(X, y) > 0.9
"""


def test_no_environment_variable_is_needed():
    environment = {k: v for k, v in os.environ.items() if k != "SCIPY_ARRAY_API"}
    subprocess.run([sys.executable, "-c", WITHOUT_SWITCHES], check=True, env=environment)


def test_networks_of_device_arrays_are_exported(table):
    pytest.importorskip("skl2onnx")
    from karnet.export import to_onnx

    X, _, labels = table
    net = KARClassifier((5,), random_state=0)
    expected = to_onnx(net.fit(X, labels), X).graph
    found = to_onnx(net.fit(remote(X), remote(labels)), remote(X)).graph
    assert [node.op_type for node in found.node] == [node.op_type for node in expected.node]
