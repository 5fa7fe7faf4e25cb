"""Arrays of other libraries, and devices: the same networks, where the data live."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context

from karnet import KARClassifier, KARRegressor
from karnet._arrays import linalg as algebra
from karnet._arrays import namespace as arrays
from karnet._lstsq.statistics import Gram, Sum
from karnet._rows.device import on_device
from karnet._rows.memory import Rows
from karnet.activations import ACTIVATIONS, Activation

torch = pytest.importorskip("torch")
strict = pytest.importorskip("array_api_strict")

M, D = 700, 5
SIZES = [(), (30,), (40, 20), (50, 30, 20)]
OPTIONS = {
    "random": {"hidden": "random"},
    "ridge": {"alpha": 1.0},
    "links": {"hidden": "random", "direct_links": True, "fit_intercept": False},
}
LIBRARIES = {"torch": torch.asarray, "strict": strict.asarray}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((M, D))
    signal = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    return X, signal + 0.1 * rng.standard_normal(M), np.digitize(signal, [-0.5, 0.5])


@pytest.fixture
def many_blocks(solver_sizes, block_sizes, device_settings):
    """Make every table many blocks, here and on a device."""
    block_sizes(block=2**12, chunk=2**11)
    device_settings(free_numbers=2**16)
    solver_sizes(product=1e5)


def relative(a, b):
    a = arrays.to_numpy(a)
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def nets(sizes, options):
    options = {"activation": "tanh", "random_state": 0, **options}
    yield KARRegressor(sizes, **options), 1, "predict"
    yield KARClassifier(sizes, output_activation="identity", **options), 2, "decision_function"


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("blocks", ["one block", "many blocks"])
def test_a_device_learns_the_network_of_this_machine(sizes, options, blocks, table, request):
    for net, y, method in nets(sizes, OPTIONS[options]):
        expected = getattr(net.fit(table[0], table[y]), method)(table[0])
        ranks = [layer.rank for layer in net.layers_]
        if blocks == "many blocks":
            request.getfixturevalue("many_blocks")
        net.set_params(device="cpu").fit(table[0], table[y])
        assert all(isinstance(each, np.ndarray) for each in (*net.coefs_, *net.intercepts_))
        found = getattr(net, method)(table[0])
        assert isinstance(found, np.ndarray)
        assert relative(found, expected) < 1e-8
        assert [layer.rank for layer in net.layers_] == ranks


@pytest.mark.usefixtures("many_blocks")
@pytest.mark.parametrize("sizes", SIZES[1:], ids=str)
def test_plain_pull_back_fits_as_well_on_a_device(sizes):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, M)
    X = rng.random((M, D)) + np.eye(3, D)[y]
    nets = [KARClassifier(sizes, random_state=0, device=each).fit(X, y) for each in (None, "cpu")]
    assert np.mean(nets[0].predict(X) == nets[1].predict(X)) >= 0.99
    residuals = [net.layers_[0].residual for net in nets]
    assert residuals[1] == pytest.approx(residuals[0], rel=1e-6)


def test_blocks_of_files_go_to_a_device_too(table):
    X, y, _ = table
    options = {"hidden": "random", "random_state": 0, "alpha": 1e-3}
    net = KARRegressor((20,), **options).fit(X, y)
    same = KARRegressor((20,), device="cpu", **options)
    same.fit_blocks([(X[:100], y[:100]), (X[100:], y[100:])])
    assert relative(same.predict(X), net.predict(X)) < 1e-8


@pytest.mark.parametrize("hidden", ["random", "metric"])
def test_weights_act_on_a_device_as_here(hidden, table):
    X, y, labels = table
    weight = np.random.default_rng(1).integers(0, 3, M).astype(float)
    options = {"hidden": hidden, "activation": "tanh", "alpha": 1e-3, "random_state": 0}
    net = KARRegressor((20,), **options).fit(X, y, weight)
    same = KARRegressor((20,), device="cpu", **options).fit(X, y, weight)
    assert relative(same.predict(X), net.predict(X)) < 1e-8
    options["class_weight"] = "balanced"
    net = KARClassifier((20,), **options).fit(X, labels, weight)
    same = KARClassifier((20,), device="cpu", **options).fit(X, labels, weight)
    assert relative(same.decision_function(X), net.decision_function(X)) < 1e-8


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_arrays_are_used_where_they_live(library, sizes, table):
    as_array = LIBRARIES[library]
    X = as_array(table[0])
    for net, y, method in nets(sizes, OPTIONS["random"]):
        expected = getattr(net.fit(table[0], table[y]), method)(table[0])
        with config_context(array_api_dispatch=True):
            found = getattr(net.fit(X, as_array(table[y])), method)(X)
            assert type(found) is type(X)
            assert type(net.coefs_[-1]) is type(X)
            assert relative(found, expected) < 1e-8
            assert type(net.predict(X)) is type(X)
            with pytest.raises(ValueError, match="same namespace"):
                net.predict(table[0])


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_activations_are_the_same_functions_in_every_library(name, library):
    f, x = ACTIVATIONS[name], np.linspace(-3.0, 3.0, 41)
    functions = [f, f.derivative, f.outside]
    if f.invertible:
        functions += [f.phi, f.outside_codomain]
    for function in functions:
        found = function(LIBRARIES[library](x))
        np.testing.assert_allclose(arrays.to_numpy(found), function(x), rtol=1e-12, atol=1e-14)


def test_words_are_predicted_from_arrays_of_other_libraries(table):
    X, _, labels = table
    words = np.array(["low", "middle", "high"])[labels]
    with config_context(array_api_dispatch=True):
        net = KARClassifier((10,), random_state=0).fit(torch.asarray(X), words)
        assert set(net.predict(torch.asarray(X))) <= set(words)


def test_a_device_that_is_not_there_is_said_so(table):
    net = KARRegressor((5,), device="cuda:63")
    with pytest.raises(ValueError, match="device='cuda:63' cannot be used here"):
        net.fit(table[0], table[1])
    assert not hasattr(net, "coefs_")
    with pytest.raises(ValueError, match="device='toaster'"):
        net.set_params(device="toaster").fit(table[0], table[1])


class OutOfMemoryError(RuntimeError):
    """The error of a device without free memory, under the name that torch and CuPy use."""


def test_a_device_out_of_memory_takes_smaller_blocks(table, block_sizes, device_settings):
    X, y, _ = table
    lengths = []

    def forward(Z):
        lengths.append(len(Z))
        if len(Z) > 400 and not isinstance(Z, np.ndarray):
            raise OutOfMemoryError("out of memory")
        return arrays.namespace(Z).tanh(Z)

    options = {"hidden": "random", "random_state": 0, "alpha": 1e-3}
    options["activation"] = Activation("tanh", forward)
    expected = KARRegressor((60,), **options).fit(X, y).predict(X)
    lengths.clear()
    block_sizes(block=2**10, chunk=2**10)
    device_settings(free_numbers=2**15)
    net = KARRegressor((60,), device="cpu", **options).fit(X, y)
    assert max(lengths) > 400 > min(lengths)
    assert relative(net.set_params(device=None).predict(X), expected) < 1e-8


@pytest.mark.parametrize("error", [OutOfMemoryError, RuntimeError])
def test_a_device_too_full_for_the_next_block_gets_smaller_ones(error, table):
    X, y, _ = table
    lengths = []

    def check(X, y, weight):
        lengths.append(len(X))
        if len(X) > 400:
            raise error("out of memory")
        return X, y, weight

    rows = on_device(Rows(X, y), "cpu", check)
    if error is RuntimeError:
        with pytest.raises(RuntimeError):
            rows.reduce(lambda A, B, weight: Sum(A.sum(axis=0)))
        return
    total = rows.reduce(lambda A, B, weight: Sum(A.sum(axis=0)))
    assert max(lengths) > 400 > min(lengths)
    np.testing.assert_allclose(total.value.numpy(), X.sum(axis=0))


def test_half_of_a_symmetric_product_is_mirrored():
    A = torch.asarray(np.random.default_rng(0).standard_normal((50, 701)))
    K = algebra.symmetric_product(A)
    np.testing.assert_allclose(K.numpy(), (A.T @ A).numpy(), atol=1e-12)
    np.testing.assert_array_equal(K[:175, 175:].numpy(), K[175:, :175].numpy().T)


@pytest.mark.parametrize("far", [False, True], ids=["near", "far from zero"])
def test_products_in_single_precision_are_refined_to_all_digits(
    far, table, solver_sizes, device_settings
):
    X, y, _ = table
    X = X + 300.0 * far
    options = {"hidden": "random", "activation": "identity", "random_state": 0, "alpha": 1.0}
    expected = KARRegressor((4,), **options).fit(X, y).predict(X)
    device_settings(slow_in_float64=True)
    solver_sizes(product=1.0)
    A, B = torch.asarray(X), torch.asarray(y)[:, None]
    assert Gram.of(A, B, None, bias=True).single
    net = KARRegressor((4,), device="cpu", **options).fit(X, y)
    assert net.layers_[-1].solver == "cholesky"
    assert relative(net.predict(X), expected) < 1e-8


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
@pytest.mark.parametrize("weighted", [False, True])
def test_means_near_zero_are_taken_off_products_and_others_off_rows(offset, weighted):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((200, 4)) + offset, rng.standard_normal((200, 2))
    weight = rng.random(200) if weighted else None
    expected = Gram.of(A.copy(), B.copy(), weight, bias=True)
    parts = [torch.asarray(each) if each is not None else None for each in (A, B, weight)]
    found = arrays.on_host(Gram.of(*parts, bias=True))
    np.testing.assert_allclose(found.AA, expected.AA, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.AB, expected.AB, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.centre.mean, expected.centre.mean, rtol=1e-14, atol=1e-14)
