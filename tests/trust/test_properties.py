"""Properties of the estimators over random inputs."""

from __future__ import annotations

import os
import re
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV, load, save
from karnet.activations import ACTIVATIONS
from karnet.blocks import Blocks

# Factor of the number of examples, which are then random: set by `make fuzz`.
TIMES = int(os.environ.get("KARNET_PROPERTIES", "0"))


def some(n_examples):
    """Return settings for a few fixed examples or for many random ones."""
    return settings(
        max_examples=n_examples * max(TIMES, 1),
        derandomize=not TIMES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


INVERTIBLE = [name for name, f in ACTIVATIONS.items() if f.invertible]
RIDGES = [0.0, 1e-8, 1e-3, 1.0, 1e3]
# Messages about numbers so large or small that the fit overflows.
TOO_LARGE = re.compile("overflows|too large to be (squared|summed)")


@st.composite
def networks(draw, kind=None, hidden=("pullback", "random", "metric", "infinite"), ridges=RIDGES):
    """Draw an estimator with any depth, activation and ridge."""
    kind = kind or draw(st.sampled_from([KARClassifier, KARRegressor]))
    how = draw(st.sampled_from(hidden))
    sizes = tuple(draw(st.lists(st.integers(1, 8), min_size=how == "metric", max_size=3)))
    activation = draw(st.sampled_from(INVERTIBLE if how == "pullback" else list(ACTIVATIONS)))
    if how == "infinite":
        sizes, activation = (np.inf,), draw(st.sampled_from(["relu", "cos", "sin"]))
    return kind(
        sizes,
        hidden="random" if how == "infinite" else how,
        activation=activation,
        alpha=draw(st.sampled_from(ridges)),
        direct_links=draw(st.booleans()),
        fit_intercept=draw(st.booleans()),
        random_state=draw(st.integers(0, 99)),
    )


@st.composite
def rows(draw, min_rows=1, max_rows=15):
    """Draw finite inputs of any magnitude, type and rank."""
    m, d = draw(st.integers(min_rows, max_rows)), draw(st.integers(1, 18))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((m, d))
    match draw(st.sampled_from(["plain", "mixed", "columns", "rows", "constant", "alike", "type"])):
        case "mixed":
            X *= 10.0 ** rng.uniform(-300, 300, (m, d))
        case "columns":
            X *= 10.0 ** rng.uniform(-300, 300, d)
        case "rows":
            X *= 10.0 ** rng.uniform(-300, 300, (m, 1))
        case "constant":
            X[:, rng.random(d) < 0.5] = 10.0 ** rng.uniform(-300, 300)
        case "alike":
            X = X[rng.integers(0, m, m)]
        case "type":
            kind = draw(st.sampled_from([np.float32, np.int8, np.int64, np.uint64, bool]))
            X = (X * 40).astype(kind) if kind is not np.uint64 else np.abs(X * 40).astype(kind)
    return X


def targets(net, m, rng, q=3):
    """Return targets of m rows: at least two classes, or numbers of any magnitude."""
    if isinstance(net, KARClassifier | KARClassifierCV):
        y = rng.integers(0, q, m)
        y[:2] = np.arange(2)[:m]
        return y
    return rng.standard_normal(m) * 10.0 ** rng.uniform(-100, 100)


def predictions(net, X):
    """Return all floating-point predictions of an estimator."""
    methods = ("predict", "decision_function", "predict_proba", "predict_interval")
    found = [np.asarray(getattr(net, name)(X)) for name in methods if hasattr(net, name)]
    return [each for each in found if each.dtype.kind == "f"]


# Finite inputs


@some(150)
@given(net=networks(), data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_finite_inputs_give_finite_predictions(net, data, seed):
    X = data.draw(rows(min_rows=2 if isinstance(net, KARClassifier) else 1))
    y = targets(net, len(X), np.random.default_rng(seed))
    try:
        net.fit(X, y)
    except ValueError as error:
        if not TOO_LARGE.search(str(error)):
            raise
        sizes = np.abs(np.append(X[X != 0].astype(float), y[y != 0]))
        assert sizes.max() > 1e70 or sizes.min() < 1e-70
        return
    for each in predictions(net, X) + predictions(net, X[::-1][:1]):
        assert np.isfinite(each).all()


@pytest.mark.parametrize("kind", [KARClassifierCV, KARRegressorCV])
@some(6)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_finite_inputs_give_finite_predictions_of_cv_estimators(kind, data, seed):
    net, rng = kind(n_estimators=1, random_state=0), np.random.default_rng(seed)
    X = data.draw(rows(min_rows=3))
    weight = data.draw(st.sampled_from([None, 10.0 ** rng.uniform(-200, 19, len(X))]))
    net.fit(X, targets(net, len(X), rng), weight)
    for each in predictions(net, X) + predictions(net, X * 2):
        assert np.isfinite(each).all()


@some(60)
@given(net=networks(), data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_predictions_for_rows_far_from_all_others_are_finite(net, data, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (9, 2))
    net.fit(X, targets(net, 9, rng))
    far = rng.standard_normal((5, 2)) * 10.0 ** rng.uniform(-308, 307, (5, 2))
    far[0] = [np.finfo(float).max, -np.finfo(float).max]
    narrow = far.clip(-3e38, 3e38).astype(np.float32)
    for each in predictions(net, far) + predictions(net, narrow):
        assert np.isfinite(each).all()


# Labels

LABELS = [
    np.array([-5, 0, 7]),
    np.array(["a", "b", "bb"]),
    np.array([0.0, 1.0, 2.0]),
    np.array(["x", "y", "z"], dtype=object),
    np.array([2**62, 2**62 + 1, 2**62 + 2]),
    np.array([1, 2, 255], dtype=np.uint8),
]


@some(60)
@given(
    net=networks(KARClassifier),
    names=st.sampled_from(LABELS),
    q=st.integers(2, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_renaming_labels_in_order_commutes_with_fitting(net, names, q, seed):
    rng = np.random.default_rng(seed)
    X, new = rng.uniform(0.0, 1.0, (12, 2)), rng.uniform(0.0, 1.0, (6, 2))
    codes = targets(net, 12, rng, q)
    q = len(np.unique(codes))
    plain, named = clone(net).fit(X, codes), clone(net).fit(X, names[codes])
    np.testing.assert_array_equal(named.classes_, names[:q])
    np.testing.assert_array_equal(named.predict(new), names[plain.predict(new)])
    np.testing.assert_array_equal(named.predict_proba(new), plain.predict_proba(new))


@some(3)
@given(names=st.sampled_from(LABELS), seed=st.integers(0, 2**32 - 1))
def test_renaming_labels_in_order_commutes_with_cv_estimators(names, seed):
    rng = np.random.default_rng(seed)
    X, net = rng.uniform(0.0, 1.0, (12, 2)), KARClassifierCV(n_estimators=1, random_state=0)
    codes = np.arange(12) % 3
    plain, named = clone(net).fit(X, codes), clone(net).fit(X, names[codes])
    np.testing.assert_array_equal(named.predict(X), names[plain.predict(X)])
    np.testing.assert_array_equal(named.predict_proba(X), plain.predict_proba(X))


# Blocks, weights, merging and forgetting


def assert_same_weights(net, whole, digits=1e-8):
    for ours, theirs in zip(
        (*net.coefs_, *net.intercepts_), (*whole.coefs_, *whole.intercepts_), strict=True
    ):
        size = max(1.0, np.abs(theirs).max(initial=0.0))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=digits * size)


def ridged(hidden=("random",)):
    """Draw random layers with a ridge, whose weights depend only on the rows."""
    return networks(hidden=hidden, ridges=[1e-3, 1.0])


@st.composite
def split(draw, m):
    """Draw a way to split m rows into blocks in any order."""
    order = draw(st.permutations(range(m)))
    cuts = sorted(draw(st.sets(st.integers(1, m - 1), max_size=5)))
    return [np.array(part) for part in np.split(order, cuts)]


@some(80)
@given(net=ridged(), data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_blocks_in_any_order_give_the_same_weights(net, data, seed):
    rng, m = np.random.default_rng(seed), 16
    X, y = rng.uniform(-1.0, 1.0, (m, 3)), targets(net, m, rng) / 1.0
    y = y.astype(int) if isinstance(net, KARClassifier) else y / np.abs(y).max()
    parts = data.draw(split(m))
    whole = clone(net).fit(X, y)
    blocks = Blocks([(X[part], y[part]) for part in parts])
    assert_same_weights(clone(net).fit_blocks(blocks), whole)

    grown = clone(net)
    options = {"classes": np.unique(y)} if isinstance(net, KARClassifier) else {}
    for part in parts:
        grown.partial_fit(X[part], y[part], **options)
    assert_same_weights(grown, whole)


@some(50)
@given(net=ridged(), data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_merged_parts_give_the_weights_of_all_rows_and_forgetting_takes_them_back(net, data, seed):
    rng, m = np.random.default_rng(seed), 16
    X, y = rng.uniform(-1.0, 1.0, (m, 3)), np.arange(m) % 2
    y = y if isinstance(net, KARClassifier) else rng.standard_normal(m)
    order = np.array(data.draw(st.permutations(range(m))))
    half = data.draw(st.integers(4, m - 4))
    first, second = order[:half], order[half:]
    assume(len(np.unique(y[first])) > 1 and len(np.unique(y[second])) > 1)
    parts = [clone(net).fit(X[part], y[part]) for part in (first, second)]
    merged = parts[0].merge(parts[1])
    assert_same_weights(merged, clone(net).fit(X, y))
    try:
        merged.forget(X[second], y[second])
    except ValueError as refusal:
        if "cannot be removed" not in str(refusal):
            raise
        return
    # The accuracy is that of weights times outputs of units, which are up to 36 for logit_clipped;
    # the bias compensates for their errors.
    assert_same_weights(merged, clone(net).fit(X[first], y[first]), digits=1e-6)


@some(60)
@given(
    net=networks(hidden=("random", "infinite"), ridges=[1e-3, 1.0]),
    data=st.data(),
    seed=st.integers(0, 2**32 - 1),
)
def test_integer_weights_equal_repeated_rows(net, data, seed):
    rng, m = np.random.default_rng(seed), 10
    X, new = rng.uniform(-1.0, 1.0, (m, 2)), rng.uniform(-1.0, 1.0, (5, 2))
    y = np.arange(m) % 3 if isinstance(net, KARClassifier) else rng.standard_normal(m)
    counts = np.array(data.draw(st.lists(st.integers(0, 4), min_size=m, max_size=m)))
    assume(len(np.unique(y[counts > 0])) > 1)
    weighted = clone(net).fit(X, y, sample_weight=counts)
    repeated = clone(net).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    for ours, theirs in zip(predictions(weighted, new), predictions(repeated, new), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)


# Files


@some(20)
@given(net=networks(), seed=st.integers(0, 2**32 - 1))
def test_a_loaded_model_predicts_the_same_bit_for_bit(net, seed, tmp_path_factory):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (9, 2))
    y = targets(net, 9, rng)
    net.fit(X, y if isinstance(net, KARClassifier) else y / np.abs(y).max())
    path = tmp_path_factory.getbasetemp() / "property.karnet"
    save(net, path)
    for ours, theirs in zip(predictions(load(path), X), predictions(net, X), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@some(25)
@given(net=networks(ridges=[1e-3, 1.0]), seed=st.integers(0, 2**32 - 1))
def test_the_onnx_model_predicts_the_same_as_the_network(net, seed):
    onnxruntime = pytest.importorskip("onnxruntime")
    from karnet.export import to_onnx

    rng = np.random.default_rng(seed)
    X = rng.uniform(0.1, 0.9, (9, 2))
    net.fit(X, np.arange(9) % 3 if isinstance(net, KARClassifier) else rng.standard_normal(9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = to_onnx(net, X).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    found = session.run(None, {"X": X})[-1].reshape(9, -1)
    wanted = net.predict_proba(X) if isinstance(net, KARClassifier) else net.predict(X)[:, None]
    # Products are rounded differently, and large weights amplify the difference.
    weights = [net.dual_coef_] if hasattr(net, "dual_coef_") else net.coefs_
    size = max(np.abs(W).max() for W in weights)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=max(1e-6, 1e-10 * size))
