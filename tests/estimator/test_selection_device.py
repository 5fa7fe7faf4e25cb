"""Estimators that select all hyper-parameters, on a device: the predictions of the CPU."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from karnet import KARClassifierCV, KARRegressorCV
from karnet._arrays import linalg as algebra
from karnet._arrays import namespace as arrays
from karnet._search.leaves import SINGLE_RIDGE
from karnet.kernels import KERNELS

torch = pytest.importorskip("torch")
strict = pytest.importorskip("array_api_strict")

M, D = 300, 4
LIBRARIES = {"torch": torch.asarray, "strict": strict.asarray}
NETS = {
    "classes": (KARClassifierCV, "decision_function"),
    "numbers": (KARRegressorCV, "predict"),
}
# Leaves of at most so many rows divide a table, or do not.
WIDTHS = {"long": 50, "short": 1500}


def drawn(m):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, D))
    X[:, 3] = rng.integers(0, 4, m)
    y = np.sign(X[:, 0]) + np.floor(2.0 * X[:, 1]) + X[:, 3] % 2 + 0.3 * rng.standard_normal(m)
    return X, {"numbers": y, "classes": np.digitize(y, [-0.5, 0.5])}


@pytest.fixture(scope="module")
def table():
    return drawn(M)


@pytest.fixture
def many_blocks(block_sizes):
    """Make every table many blocks, here and on the way to a device."""
    block_sizes(block=2**12, chunk=2**11, copied=2**12, shortest=64)


DIGITS = 1e-7


@pytest.fixture(autouse=True)
def leaves_in_double_precision(monkeypatch):
    """Solve all leaves in double precision: in single precision, scales of equal errors differ."""
    for kernel in SINGLE_RIDGE:
        monkeypatch.setitem(SINGLE_RIDGE, kernel, np.inf)


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def arrays_in(thing):
    if isinstance(thing, dict | list):
        values = thing.values() if isinstance(thing, dict) else thing
        return [each for value in values for each in arrays_in(value)]
    if type(thing).__module__.startswith("karnet"):
        return arrays_in(vars(thing))
    return [thing] if hasattr(thing, "shape") and hasattr(thing, "dtype") else []


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", NETS)
def test_a_device_predicts_as_the_cpu(kind, width, cv, weighted, table, request):
    net, method = NETS[kind]
    X, y = table[0], table[1][kind]
    if width == "short":
        X, y = X[:80], y[:80]
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float) if weighted else None
    options = {"width": WIDTHS[width], "cv": cv, "random_state": 0}
    here = net(**options).fit(X, y, weight)
    expected = getattr(here, method)(X)
    request.getfixturevalue("many_blocks")
    there = net(device="cpu", **options).fit(X, y, weight)
    found = getattr(there, method)(X)
    assert type(found) is np.ndarray
    assert relative(found, expected) < DIGITS
    seen = ~np.isnan(here.loo_decision_function_)
    assert relative(there.loo_decision_function_[seen], here.loo_decision_function_[seen]) < DIGITS
    assert there.best_score_ == pytest.approx(here.best_score_, abs=DIGITS)
    assert [each.alpha_ for each in there.estimators_] == [each.alpha_ for each in here.estimators_]
    if kind == "numbers":
        assert relative(there.predict_interval(X), here.predict_interval(X)) < DIGITS


@pytest.mark.usefixtures("many_blocks")
def test_several_outputs_are_learned_on_a_device(table):
    X, y = table[0], np.column_stack([table[1]["numbers"], table[1]["classes"]])
    here, there = (
        KARRegressorCV(width=40, random_state=0, device=each).fit(X, y).predict(X)
        for each in (None, "cpu")
    )
    assert relative(there, here) < DIGITS


@pytest.mark.parametrize("kind", NETS)
def test_what_a_device_learned_is_numpy_s_and_can_be_kept(kind, table):
    net, method = NETS[kind]
    X, y = table[0], table[1][kind]
    fitted = net(width=40, random_state=0, device="cpu").fit(X, y)
    assert arrays_in(vars(fitted))
    assert {type(each) for each in arrays_in(vars(fitted))} <= {np.ndarray, np.float64}
    expected = getattr(fitted, method)(X)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(getattr(again, method)(X), expected)
    assert relative(getattr(again.set_params(device=None), method)(X), expected) < DIGITS


def test_a_device_that_is_not_there_is_said_so_and_changes_nothing(table):
    X, y = table[0], table[1]["numbers"]
    net = KARRegressorCV(width=40, random_state=0).fit(X, y)
    expected = net.predict(X)
    net.set_params(device="toaster")
    with pytest.raises(ValueError, match="device='toaster' cannot be used here"):
        net.fit(X[:100], y[:100])
    with pytest.raises(ValueError, match="device='toaster' cannot be used here"):
        net.predict(X)
    np.testing.assert_array_equal(net.set_params(device=None).predict(X), expected)
    fresh = KARClassifierCV(device="cuda:63")
    with pytest.raises(ValueError, match="device='cuda:63' cannot be used here"):
        fresh.fit(X, table[1]["classes"])
    assert not hasattr(fresh, "classes_")


@pytest.mark.parametrize("copied", [2**9, 2**11])
def test_a_device_that_takes_small_blocks_gives_the_same_predictions(copied, block_sizes):
    X, targets = drawn(1300)
    y = targets["numbers"]
    expected = KARRegressorCV(width=40, random_state=0).fit(X, y).predict(X)
    block_sizes(copied=copied, chunk=2**8, shortest=64)
    found = KARRegressorCV(width=40, random_state=0, device="cpu").fit(X, y).predict(X)
    assert relative(found, expected) < DIGITS


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_the_same_in_every_library(name, depth, library):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, D))
    Z = np.vstack([X[:5] + 1.0, rng.standard_normal((7, D))])
    found = KERNELS[name](*map(LIBRARIES[library], (X, Z)), 0.7, depth)
    expected = KERNELS[name](X, Z, 0.7, depth)
    np.testing.assert_allclose(arrays.to_numpy(found), expected, rtol=1e-12, atol=1e-14)
    same = KERNELS[name](*map(LIBRARIES[library], (X, X)), 0.7, depth)
    # The slope of an angle is steep where it is zero.
    atol = 1e-7 if name == "tangent" else 1e-14
    np.testing.assert_allclose(np.diag(arrays.to_numpy(same)), 1.0, rtol=0.0, atol=atol)
    nothing = LIBRARIES[library](np.empty((3, 0)))
    np.testing.assert_array_equal(arrays.to_numpy(KERNELS[name](nothing, nothing)), 1.0)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("p", [1, 2])
def test_distances_are_the_same_in_every_library(p, library):
    X = np.random.default_rng(0).standard_normal((9, D))
    there = LIBRARIES[library](X)
    found = arrays.to_numpy(algebra.distances(there, there, p))
    np.testing.assert_allclose(found, algebra.distances(X, X, p), rtol=1e-14)
    assert not np.diag(found).any()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_triangle_is_divided_by_whatever_is_below_it(library):
    rng = np.random.default_rng(0)
    A, R = rng.standard_normal((6, 4)), rng.standard_normal((4, 4)) + 4.0 * np.eye(4)
    for x in (A, LIBRARIES[library](A)):
        found = algebra.over_triangle(x, arrays.like(x, R))
        np.testing.assert_allclose(arrays.to_numpy(found) @ np.triu(R), A, atol=1e-13)
