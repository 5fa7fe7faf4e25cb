"""partial_fit, merge and forget: the network of the rows that are there, however they came."""

from __future__ import annotations

import copy
import pickle
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from karnet import KARClassifier, KARRegressor
from karnet._arrays.namespace import to_numpy
from karnet._lstsq.statistics import Gram

RANDOM = {"hidden": "random", "activation": "tanh", "random_state": 0}
KINDS = [KARClassifier, KARRegressor]


def table(kind, m=200, d=3, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (m, d))
    signal = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    y = np.digitize(signal, [-0.5, 0.5]) if kind is KARClassifier else signal + 0.1 * X[:, 0] ** 3
    return scale * X, y


def weights(net):
    return np.vstack([net.intercepts_[-1], net.coefs_[-1]])


def distance(net, reference):
    return np.linalg.norm(weights(net) - weights(reference)) / np.linalg.norm(weights(reference))


def hidden_condition(net, X):
    for V, w, f in list(zip(net.coefs_, net.intercepts_, net.activations_, strict=True))[:-1]:
        X = f(X @ V + w)
    X = X - X.mean(axis=0)
    return np.linalg.cond(X / np.linalg.norm(X, axis=0))


def state(net):
    return pickle.dumps(vars(net))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("scale", "condition"),
    [(3.0, 1e1), (1.0, 1e2), (0.35, 1e3), (0.15, 1e4), (0.06, 1e5), (0.028, 1e6)],
)
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_merged_parts_are_the_union_and_what_is_forgotten_was_never_seen(
    kind, scale, condition, way
):
    X, y = table(kind, 1600, scale=scale)
    net = kind((20,), **RANDOM)
    union = clone(net).set_params(solver="qr").fit(X, y)
    assert condition < hidden_condition(union, X) < 10.0 * condition
    parts = np.array_split(np.random.default_rng(1).permutation(len(X)), 8)
    nets = [getattr(clone(net), way)(X[part], y[part]) for part in parts]
    merged = reduce(lambda first, second: first.merge(second), nets)
    assert distance(merged, union) < 1e-9
    rest = np.delete(np.arange(len(X)), slice(0, None, 10))
    merged.forget(X[::10], y[::10])
    assert distance(merged, clone(net).set_params(solver="qr").fit(X[rest], y[rest])) < 1e-9


SHAPES = [
    {"hidden_layer_sizes": (15,)},
    {"hidden_layer_sizes": (10, 12)},
    {"hidden_layer_sizes": ()},
    {"hidden_layer_sizes": (15,), "direct_links": True},
    {"hidden_layer_sizes": (15,), "fit_intercept": False},
    {"hidden_layer_sizes": (15,), "alpha": 0.1},
    {"hidden_layer_sizes": (300,), "alpha": 0.1},
    {"hidden_layer_sizes": (15,), "solver": "svd"},
    {"hidden_layer_sizes": (), "output_activation": "relu"},
    {"hidden_layer_sizes": (15,), "output_activation": "tanh"},
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batches_are_all_rows_at_once(kind, shape):
    X, y = table(kind)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    net = kind(**{**RANDOM, **shape})
    for part in np.array_split(np.arange(len(X)), 3):
        net.partial_fit(X[part], y[part], sample_weight=weight[part])
    assert distance(net, clone(net).fit(X, y, weight)) < 1e-9
    net.forget(X[:20], y[:20], weight[:20])
    fresh = clone(net).fit(X[20:], y[20:], weight[20:])
    assert distance(net, fresh) < 1e-9
    np.testing.assert_allclose(net.predict(X), fresh.predict(X), atol=1e-8)
    report, reference = net.layers_[-1], fresh.layers_[-1]
    assert report.rank == reference.rank
    assert report.solver in ("cholesky", "qr", "svd")
    assert (report.residual, report.outside, report.clipped) == (None, None, None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["cholesky", "qr", "svd"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-2])
@pytest.mark.parametrize("m", [200, 30])
def test_fit_leaves_what_updates_need(kind, solver, bias, alpha, m):
    """Whatever it was solved from: Gram products, a triangle or, for few rows, these."""
    X, y = table(kind, m + 60)
    net = kind((40 if m == 30 else 12,), fit_intercept=bias, alpha=alpha, solver=solver, **RANDOM)
    net.fit(X[:m], y[:m]).partial_fit(X[m:], y[m:])
    reference = clone(net).set_params(solver="qr").fit(X, y)
    assert distance(net, reference) < 1e-8


def test_fit_of_many_rows_keeps_products_that_updates_refuse_where_digits_are_lacking(solver_sizes):
    solver_sizes(product=1.0)
    X, y = table(KARRegressor, 400)
    good = KARRegressor((12,), **RANDOM).fit(X[:200], y[:200])
    assert isinstance(good.layers_[-1].statistic, Gram)
    good.partial_fit(X[200:], y[200:])
    assert distance(good, clone(good).fit(X, y)) < 1e-9
    bad = KARRegressor((12,), **RANDOM).fit(0.05 * X, y)
    before = state(bad)
    for update in (bad.partial_fit, bad.forget):
        with pytest.raises(ValueError, match=r"condition 9\.\de\+03, .*fit by partial_fit"):
            update(0.05 * X[:9], y[:9])
    assert state(bad) == before
    ridged = clone(bad).set_params(alpha=1e-2).fit(0.05 * X, y).forget(0.05 * X[:9], y[:9])
    assert distance(ridged, clone(ridged).fit(0.05 * X[9:], y[9:])) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "fitted", [{"activation": "logit"}, {"hidden": "metric"}], ids=["pullback", "metric"]
)
def test_fitted_hidden_layers_stay_and_the_output_layer_is_exact_above_them(kind, way, fitted):
    X, y = table(kind, 300)
    net = kind((20,), **{**RANDOM, "hidden": "pullback", "alpha": 1e-4, **fitted})
    getattr(net, way)(X[:150], y[:150])
    hidden, reports = copy.deepcopy((net.coefs_[:-1], net.layers_[:-1]))
    net.partial_fit(X[150:], y[150:]).forget(X[:30], y[:30])
    np.testing.assert_array_equal(net.coefs_[:-1], hidden)
    assert net.layers_[:-1] == reports
    above = clone(net).set_params(
        hidden="random", init=[np.vstack([net.intercepts_[0], net.coefs_[0]])]
    )
    assert distance(net, above.fit(X[30:], y[30:])) < 1e-9


def test_a_pulled_back_network_without_a_ridge_predicts_the_same():
    X, y = table(KARClassifier, 300)
    net = KARClassifier(output_activation="identity", random_state=0)
    net.partial_fit(X[:200], y[:200])
    net.partial_fit(X[200:], y[200:]).forget(X[:30], y[:30])
    above = clone(net).set_params(
        hidden="random", rcond=1e-9, init=[np.vstack([net.intercepts_[0], net.coefs_[0]])]
    )
    above.fit(X[30:], y[30:])
    assert np.mean(net.predict(X) == above.predict(X)) >= 0.99
    residual = np.linalg.norm(net.decision_function(X[30:]) - np.eye(3)[y[30:]])
    assert residual < (1 + 1e-6) * above.layers_[-1].residual * np.sqrt(len(y) - 30)


def test_a_class_first_seen_later_is_a_column_of_zeros_before():
    X, y = table(KARClassifier)
    names = np.array(["b", "c", "a"])[y]
    net = KARClassifier((15,), **RANDOM)
    seen = y < 2
    net.partial_fit(X[seen], names[seen])
    assert net.classes_.tolist() == ["b", "c"]
    assert set(net.predict(X)) <= {"b", "c"}
    net.partial_fit(X[~seen], names[~seen])
    assert net.classes_.tolist() == ["a", "b", "c"]
    assert distance(net, clone(net).fit(X, names)) < 1e-9
    told = clone(net).partial_fit(X[seen], names[seen], classes=["c", "a", "b"])
    assert told.classes_.tolist() == ["a", "b", "c"]
    assert distance(told.partial_fit(X[~seen], names[~seen]), net) < 1e-9


def test_sites_with_different_classes_merge_and_a_forgotten_class_stays_known():
    X, y = table(KARClassifier)
    first, second = y < 2, y > 0
    net = KARClassifier((15,), **RANDOM)
    one = clone(net).fit(X[first], y[first])
    two = clone(net).partial_fit(X[second], y[second])
    before = state(two)
    one.merge(two).forget(X[y == 1], y[y == 1])
    assert one.classes_.tolist() == [0, 1, 2]
    assert state(two) == before
    assert distance(one, clone(net).fit(X, y)) < 1e-9
    one.forget(X[y == 1], y[y == 1])
    reference = clone(net).partial_fit(X[y != 1], y[y != 1], classes=[0, 1, 2])
    assert one.classes_.tolist() == [0, 1, 2]
    assert distance(one, reference) < 1e-9


def test_two_classes_may_come_one_at_a_time():
    X, y = table(KARClassifier)
    y = np.minimum(y, 1)
    net = KARClassifier((15,), **RANDOM).partial_fit(X[y == 1], y[y == 1], classes=[0, 1])
    assert set(net.predict(X)) == {1}
    net.partial_fit(X[y == 0], y[y == 0])
    assert distance(net, clone(net).fit(X, y)) < 1e-9


def test_weights_of_classes_act_in_every_batch():
    X, y = table(KARClassifier)
    net = KARClassifier((15,), class_weight={0: 2.0, 2: 0.0}, **RANDOM)
    for part in (y < 1, y > 0):
        net.partial_fit(X[part], y[part], classes=[0, 1])
    weight = np.array([2.0, 1.0, 0.0])[y]
    assert distance(net, clone(net).set_params(class_weight=None).fit(X, y, weight)) < 1e-9
    net.forget(X[:9], y[:9])
    reference = clone(net).set_params(class_weight=None).fit(X[9:], y[9:], weight[9:])
    assert distance(net, reference) < 1e-9


@pytest.mark.parametrize(("scale", "passes"), [(1.0, 1), (0.15, 2)], ids=["products", "triangle"])
def test_rows_are_read_once_or_twice_and_block_by_block(scale, passes, block_sizes):
    block_sizes(block=100 * 20, chunk=50 * 20)
    X, y = table(KARRegressor, 1200, scale=scale)
    counts = []

    def tanh(Z):
        counts.append(len(Z))
        return np.tanh(Z)

    net = KARRegressor((20,), **{**RANDOM, "activation": (tanh, np.arctanh)})
    net.partial_fit(X, y)
    assert sum(counts) == passes * len(X)
    assert max(counts) <= 256
    counts.clear()
    net.forget(X[:300], y[:300])
    assert sum(counts) == 300
    assert distance(net, clone(net).fit(X[300:], y[300:])) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_learned_from_blocks_is_updated(kind):
    X, y = table(kind)
    net = kind((15,), **RANDOM).fit_blocks([(X[:50], y[:50]), (X[50:120], y[50:120])])
    net.partial_fit(X[120:], y[120:]).forget(X[:20], y[:20])
    assert distance(net, clone(net).fit(X[20:], y[20:])) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_a_device_gives_the_same_updates(kind, way):
    pytest.importorskip("torch")
    X, y = table(kind)
    here = kind((15,), **RANDOM).fit(X[20:], y[20:])
    net = getattr(clone(here).set_params(device="cpu"), way)(X[:90], y[:90])
    net.partial_fit(X[90:], y[90:]).forget(X[:20], y[:20])
    assert isinstance(net.coefs_[-1], np.ndarray)
    assert distance(net, here) < 1e-9
    assert distance(net.forget(X[:20], y[:20], np.full(20, 1e-3)), here) > 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_arrays_of_other_libraries_are_updated_where_they_live(kind, way, library):
    pytest.importorskip("scipy", "1.14", reason="scikit-learn's dispatch needs SciPy 1.14")
    as_array = pytest.importorskip(library).asarray
    X, y = table(kind)
    here = kind((15,), **RANDOM).fit(X[20:], y[20:])
    net = clone(here)
    with config_context(array_api_dispatch=True):
        getattr(net, way)(as_array(X[:90]), as_array(y[:90]))
        net.partial_fit(as_array(X[90:150]), as_array(y[90:150]))
        other = clone(net).partial_fit(as_array(X[150:]), as_array(y[150:]))
        net.merge(other).forget(as_array(X[:20]), as_array(y[:20]))
        assert type(net.coefs_[-1]) is type(as_array(X))
        assert type(net.predict(as_array(X))) is type(as_array(X))
        with pytest.raises(ValueError, match="same namespace"):
            net.partial_fit(X, y)
    found = np.vstack([to_numpy(each) for each in (net.intercepts_[-1][None, :], net.coefs_[-1])])
    assert np.linalg.norm(found - weights(here)) < 1e-9 * np.linalg.norm(found)


def test_sparse_rows_frames_and_several_outputs():
    X, y = table(KARRegressor)
    Y = np.column_stack([y, y**2])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    net = KARRegressor((15,), **RANDOM).partial_fit(sparse.csr_matrix(X[:90]), Y[:90])
    net.partial_fit(sparse.csr_matrix(X[90:]), Y[90:])
    assert distance(net, clone(net).fit(X, Y)) < 1e-9
    assert net.predict(X).shape == Y.shape
    with pytest.raises(ValueError, match="y must have 2 outputs, as before, but has 1"):
        net.partial_fit(X, y)
    named = KARRegressor((15,), **RANDOM).fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        named.partial_fit(frame[["b", "a", "c"]], y)
    other = clone(named).fit(frame[["b", "a", "c"]], y)
    with pytest.raises(ValueError, match="features of different names"):
        named.merge(other)


def test_the_ridge_may_change_from_call_to_call():
    X, y = table(KARRegressor)
    net = KARRegressor((15,), **RANDOM).partial_fit(X[:90], y[:90])
    net.set_params(alpha=1.0).partial_fit(X[90:], y[90:])
    assert distance(net, clone(net).fit(X, y)) < 1e-9


def test_what_is_kept_goes_with_copies_and_is_dropped_by_clone_and_fit():
    X, y = table(KARClassifier)
    net = KARClassifier((15,), **RANDOM).partial_fit(X[:90], y[:90])
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert distance(twin.partial_fit(X[90:], y[90:]), clone(net).fit(X, y)) < 1e-9
    assert not hasattr(clone(net), "layers_")
    net.fit(X[:50], y[:50])
    assert distance(net, clone(net).fit(X[:50], y[:50])) == 0.0


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
@pytest.mark.parametrize("m", [600, 50])
def test_the_statistics_have_the_documented_size(way, m):
    X, y = table(KARClassifier, m)
    h, q = 100, 3
    net = getattr(KARClassifier((h,), **RANDOM), way)(X, y)
    size = len(pickle.dumps(net.layers_[-1].statistic))
    assert size < 8 * (h + 10) * (h + q + 10) + 3000


def test_a_wrong_pair_is_not_merged():
    X, y = table(KARRegressor)
    net = KARRegressor((15,), **RANDOM).fit(X, y)
    strangers = [
        {"random_state": 1},
        {"hidden_layer_sizes": (16,)},
        {"activation": "sin"},
        {"direct_links": True},
        {"fit_intercept": False},
        {"output_activation": "asinh"},
        {"hidden": "metric"},
        {"hidden_layer_sizes": ()},
    ]
    before = state(net)
    for parameters in strangers:
        with pytest.raises(ValueError, match="the networks differ in their hidden weights"):
            net.merge(clone(net).set_params(**parameters).fit(X, np.abs(y) + 0.1))
    with pytest.raises(ValueError, match="can be merged with another one only"):
        net.merge(KARClassifier((15,), **RANDOM).fit(X, y > 0))
    pulled = KARRegressor((5,), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="the networks differ"):
        pulled.merge(clone(pulled).fit(X, y + 1.0))
    assert state(net) == before


def test_what_is_not_fitted_has_nothing_to_merge_or_forget():
    X, y = table(KARRegressor)
    net = KARRegressor((15,), **RANDOM)
    with pytest.raises(NotFittedError):
        net.forget(X, y)
    with pytest.raises(NotFittedError):
        net.merge(clone(net).fit(X, y))
    with pytest.raises(NotFittedError):
        clone(net).fit(X, y).merge(net)


def test_infinite_width_has_no_updates():
    net = KARRegressor((np.inf,), hidden="random", activation="relu")
    for name in ("partial_fit", "merge", "forget"):
        assert not hasattr(net, name)
    with pytest.raises(AttributeError) as error:
        _ = net.partial_fit
    assert "infinitely wide layers keep all their rows" in str(error.value.__cause__)
    X, y = table(KARRegressor, 30)
    net.fit(X, y).set_params(hidden_layer_sizes=(5,))
    with pytest.raises(ValueError, match="this network keeps no statistics of its rows"):
        net.partial_fit(X, y)


X, Y = table(KARClassifier)
REFUSED = [
    (
        lambda net: net.forget(X[:5], [7] * 5),
        "y holds 7, a class that the network was not",
    ),
    (lambda net: net.forget(X, Y), "these rows cannot be removed: their weight is 200"),
    (lambda net: net.forget(X[:195], Y[:195]), "these rows cannot be removed"),
    (lambda net: net.forget(9.0 * X[:50], Y[:50]), "so not all of them were added"),
    (lambda net: net.forget(X[:, :2], Y), "X has 2 features"),
    (lambda net: net.partial_fit(X[:, :2], Y), "X has 2 features"),
    (lambda net: net.partial_fit(X, Y[:-1]), "y must have as many rows as X"),
    (lambda net: net.partial_fit(X, Y.astype(str)), "cannot be sorted"),
    (lambda net: net.partial_fit(X, Y, sample_weight=np.zeros(200)), "not zero for every row"),
    (lambda net: net.set_params(alpha=-1.0).partial_fit(X, Y), "alpha=-1.0 must be finite"),
    (
        lambda net: net.set_params(class_weight="balanced").partial_fit(X, Y),
        "class_weight='balanced' needs all rows at once",
    ),
]


@pytest.mark.parametrize(("update", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_a_refused_update_leaves_the_network_as_it_was(update, message):
    net = KARClassifier((15,), **RANDOM).fit(X, Y)
    before, seen = net.predict(X), net.layers_[-1].statistic
    with pytest.raises(ValueError, match=message) as error:
        update(net)
    assert "\n" not in str(error.value)
    assert net.layers_[-1].statistic is seen
    assert net.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(net.predict(X), before)


def test_the_first_call_needs_two_classes():
    net = KARClassifier((15,), **RANDOM)
    with pytest.raises(ValueError, match="at least two classes"):
        net.partial_fit(X[Y == 0], Y[Y == 0])
    assert not hasattr(net, "n_features_in_")
    assert not hasattr(net, "classes_")
    with pytest.raises(ValueError, match="class_weight='balanced' needs all rows at once"):
        net.set_params(class_weight="balanced").partial_fit(X, Y)


@pytest.mark.parametrize("kind", KINDS)
def test_an_updated_network_is_shown_without_the_shares_that_only_rows_tell(kind):
    X, y = table(kind)
    html = kind((15,), **RANDOM).partial_fit(X, y)._repr_mimebundle_()["text/html"]
    assert "<summary>Layers</summary>" in html
    assert "<td>-</td>" in html
