"""Errors of the estimators: one sentence each, and the estimator is not changed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from karnet import KARClassifier, KARRegressor
from karnet.activations import Activation
from tests.paper.iris import IRIS_X, IRIS_Y, assert_same_network

BAD_PARAMETERS = [
    ({"hidden_layer_sizes": (0,)}, r"hidden_layer_sizes=\(0,\) must hold integers of at least 1"),
    ({"hidden_layer_sizes": (2.5,)}, r"hidden_layer_sizes=\(2.5,\) must hold integers"),
    ({"hidden_layer_sizes": (True,)}, r"hidden_layer_sizes=\(True,\) must hold integers"),
    ({"hidden_layer_sizes": "10"}, "hidden_layer_sizes='10' must hold integers"),
    ({"hidden_layer_sizes": None}, "hidden_layer_sizes=None must hold integers"),
    ({"activation": "swish"}, "activation='swish' is not known: give one of logit, "),
    ({"output_activation": "swish"}, "output_activation='swish' is not known"),
    ({"activation": "relu"}, "activation='relu' has no inverse: use hidden='random' or one of"),
    ({"output_activation": "relu"}, "output_activation='relu' has no inverse: use 'identity'"),
    ({"hidden": "learned"}, "hidden='learned' is not known: give one of pullback, random"),
    ({"alpha": -1.0}, "alpha=-1.0 must be finite and not negative"),
    ({"alpha": "big"}, "alpha='big' must be a number"),
    ({"rcond": -1.0}, "rcond=-1.0 must be finite and not negative"),
    ({"solver": "lu"}, "solver='lu' is not known: give one of auto, cholesky, sketch, qr, svd"),
    ({"n_sweeps": 0}, "n_sweeps=0 must be an integer of at least 1"),
    ({"n_sweeps": 2, "hidden": "random"}, "n_sweeps=2 needs hidden='pullback'"),
    ({"solver": np.ones(3)}, "solver=array.* is not known"),
    ({"rcond": 1.0}, "rcond=1.0 must be below 1"),
    ({"alpha": 1j}, "alpha=1j must be a number"),
    ({"fit_intercept": "no"}, "fit_intercept='no' must be True or False"),
    ({"direct_links": 1}, "direct_links=1 must be True or False"),
    ({"random_state": "a"}, "random_state='a' must be an integer, a RandomState or None"),
    ({"random_state": "a", "hidden_layer_sizes": ()}, "random_state='a' must be an integer"),
    ({"hidden_layer_sizes": np.array(5)}, r"hidden_layer_sizes=array\(5\) must hold integers"),
    ({"init": [[["a"] * 3] * 11]}, r"init\[0\] must hold real numbers only"),
    ({"init": [[[1.0], [1.0, 2.0]]]}, r"init\[0\] must hold real numbers only"),
    ({"init": "zeros"}, "init='zeros' is not known: give one of normal, uniform"),
    ({"init": "zeros", "hidden_layer_sizes": ()}, "init='zeros' is not known"),
    ({"init": []}, r"init must be a list of 1 arrays, of shapes \(11, 3\)"),
    ({"init": np.ones((1, 11, 3))}, "init must be a list of 1 arrays"),
    ({"init": [np.ones((10, 3))]}, r"init\[0\] has shape \(10, 3\), but \(11, 3\) is needed"),
    ({"init": [np.full((11, 3), np.nan)]}, r"init\[0\] must be finite"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS, ids=str)
def test_a_bad_parameter_is_named_in_one_sentence(parameters, message):
    net = KARClassifier(**{"hidden_layer_sizes": (10,), **parameters})
    with pytest.raises(ValueError, match=message) as error:
        net.fit(IRIS_X, IRIS_Y)
    assert "\n" not in str(error.value)
    assert not hasattr(net, "coefs_")


def bad_data():
    missing, infinite = IRIS_X.copy(), IRIS_X.copy()
    missing[100, 2], infinite[3, 1] = np.nan, np.inf
    named = pd.DataFrame(missing, columns=["a", "b", "petal length", "d"])
    y = IRIS_Y.astype(float)
    return {
        "NaN in a column": (missing, y, {}, r"NaN or infinity \(inf\) in column 2"),
        "inf in a column": (infinite, y, {}, r"NaN or infinity \(inf\) in column 1"),
        "NaN in a named column": (named, y, {}, "in column 'petal length'"),
        "NaN, sparse": (sparse.csr_array(missing), y, {}, "in column 2"),
        "NaN in y": (IRIS_X, np.where(y == 0, np.nan, y), {}, "y holds NaN or infinity"),
        "no y": (IRIS_X, None, {}, "requires y to be passed"),
        "lengths": (IRIS_X, y[:-1], {}, "y must have as many rows as X, 150, but has 149"),
        "weights of words": (IRIS_X, y, {"sample_weight": "all"}, "sample_weight must hold real"),
        "weight shape": (IRIS_X, y, {"sample_weight": np.ones(3)}, r"per row of X, \(150,\)"),
        "negative weight": (IRIS_X, y, {"sample_weight": -np.ones(150)}, "not negative"),
        "NaN weight": (IRIS_X, y, {"sample_weight": np.full(150, np.nan)}, "must be finite"),
        "no weight": (IRIS_X, y, {"sample_weight": np.zeros(150)}, "not zero for every row"),
    }


@pytest.mark.parametrize("case", bad_data())
@pytest.mark.parametrize("estimator", [KARClassifier, KARRegressor])
def test_bad_data_is_named_in_one_sentence(case, estimator):
    X, y, options, message = bad_data()[case]
    with pytest.raises(ValueError, match=message) as error:
        estimator((5,)).fit(X, y, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("estimator", "y", "message"),
    [
        (KARClassifier, np.zeros(150), "at least two classes, but holds one class only: 0.0"),
        (KARClassifier, np.linspace(0, 1, 150), "Unknown label type: continuous"),
        (KARRegressor, np.zeros((150, 1, 1)), "y must hold real numbers"),
        (KARRegressor, np.array(["a"] * 150), "y must hold real numbers"),
        (KARRegressor, IRIS_Y + 1j, "y must hold real numbers"),
        (KARRegressor, IRIS_Y * 1e300, "y holds values too large to be squared"),
        (KARClassifier, np.array(["a", None] * 75, dtype=object), "missing labels"),
        (KARClassifier, np.array(["a", 1] * 75, dtype=object), "labels that cannot be sorted"),
        (KARClassifier, np.ones((150, 2)), "y should be a 1d array"),
    ],
    ids=str,
)
def test_bad_targets_are_refused_in_one_sentence(estimator, y, message):
    with pytest.raises(ValueError, match=message) as error:
        estimator((5,)).fit(IRIS_X, y)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (IRIS_X[:, 0], r"two dimensions, rows and features, but its shape is \(150,\)"),
        (IRIS_X + 1j, "real numbers: Complex data not supported"),
        (np.where(IRIS_X < 2, "u", "v"), r"column 0 \(counted from 0\) does not"),
        (pd.DataFrame({"a": IRIS_X[:, 0], "b": "u"}), "column 'b' does not"),
        (sparse.csr_array(IRIS_X + 1j), "Complex data not supported"),
        (np.empty((150, 0)), "0 feature"),
        (np.ones((150, 2, 2)), "dim 3"),
    ],
    ids=["1-D", "complex", "strings", "named strings", "sparse complex", "no columns", "3-D"],
)
@pytest.mark.parametrize("estimator", [KARClassifier, KARRegressor])
def test_inputs_that_are_no_table_of_numbers_are_refused_in_one_sentence(estimator, X, message):
    with pytest.raises(ValueError, match=message) as error:
        estimator((5,)).fit(X, IRIS_Y)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("Balanced", "class_weight='Balanced' must be a dict, 'balanced' or None"),
        (np.ones(3), "must be a dict, 'balanced' or None"),
        ({0: -1.0}, "class_weight must be finite, not negative"),
        ({0: np.nan}, "class_weight must be finite"),
        ({0: 0.0, 1: 0.0, 2: 0.0}, "not zero for every class"),
        ({0: "a"}, "class_weight must hold real numbers"),
        ({7: 2.0}, "class_weight names 7, a class that y does not hold"),
    ],
    ids=str,
)
def test_bad_class_weights_are_refused(class_weight, message):
    with pytest.raises(ValueError, match=message):
        KARClassifier((5,), class_weight=class_weight).fit(IRIS_X, IRIS_Y)


def test_a_class_of_weight_zero_is_left_out():
    net = KARClassifier((5,), alpha=1e-2, random_state=0)
    weighted = clone(net).set_params(class_weight={0: 0.0}).fit(IRIS_X, IRIS_Y)
    without = net.fit(IRIS_X[IRIS_Y > 0], IRIS_Y[IRIS_Y > 0])
    np.testing.assert_array_equal(weighted.classes_, [1, 2])
    assert_same_network(weighted, without)


@pytest.mark.parametrize("hidden", ["pullback", "random"])
def test_a_pair_that_gives_nan_is_refused_by_name(hidden):
    X = np.random.default_rng(0).standard_normal((30, 2))
    with np.errstate(all="ignore"):
        for pair in ((np.tanh, np.arctanh), (np.log, np.exp)):
            net = KARClassifier((5,), activation=pair, hidden=hidden, random_state=0)
            with pytest.raises(ValueError, match="of activation 'custom' gives NaN or infinity"):
                net.fit(X, np.arange(30) % 3).predict(np.vstack([X, -X]) * 10)
    own = Activation("own tanh", np.tanh, np.arctanh, codomain=(-1.0, 1.0))
    net = KARClassifier((5,), activation=own, hidden=hidden, random_state=0)
    assert np.isfinite(net.fit(X, np.arange(30) % 3).decision_function(X)).all()


@pytest.mark.parametrize("estimator", [KARClassifier, KARRegressor])
def test_a_failing_refit_leaves_the_earlier_fit_as_it_was(estimator):
    net = estimator((5,), random_state=0).fit(pd.DataFrame(IRIS_X, columns=list("abcd")), IRIS_Y)
    before = dict(vars(net))
    two_columns = pd.DataFrame(IRIS_X[:, :2].copy(), columns=list("xy"))
    two_columns.iloc[0, 0] = np.nan
    with pytest.raises(ValueError, match="in column 'x'"):
        net.fit(two_columns, IRIS_Y)
    for failure in ({"alpha": -1.0}, {"init": [np.ones(3)]}, {"solver": "lu"}):
        net.set_params(**failure)
        with pytest.raises(ValueError, match=next(iter(failure))):
            net.fit(IRIS_X[:, :3], IRIS_Y)
        net.set_params(**{name: before[name] for name in failure})
    assert vars(net) == before
    net.predict(pd.DataFrame(IRIS_X, columns=list("abcd")))


@pytest.mark.parametrize("estimator", [KARClassifier, KARRegressor])
def test_an_interrupted_refit_leaves_the_earlier_fit_as_it_was(estimator):
    interrupts = []

    def tanh(x):
        if interrupts:
            raise interrupts.pop()
        return np.tanh(x)

    own = Activation("own tanh", tanh, np.arctanh, codomain=(-1.0, 1.0))
    net = estimator((5,), activation=own, random_state=0).fit(IRIS_X, IRIS_Y)
    before = dict(vars(net))
    interrupts.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        net.fit(IRIS_X[:, :2], IRIS_Y)
    assert vars(net) == before


def test_prediction_checks_its_input_too():
    net = KARClassifier((5,), random_state=0).fit(IRIS_X, IRIS_Y)
    with pytest.raises(ValueError, match="in column 0"):
        net.predict(np.full((1, 4), np.nan))
    with pytest.raises(ValueError, match="3 features"):
        net.predict(IRIS_X[:, :3])


# Cases that random tests found

ENDLESS = np.array([[1, 10**400], [2, 3], [4, 5]], dtype=object)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (ENDLESS, r"column 1 \(counted from 0\) does not"),
        ([[1.0], [1.0, 2.0], [3.0]], "rows of equal length"),
        (pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]), "several columns of one name"),
    ],
    ids=["endless integers", "ragged", "one name"],
)
@pytest.mark.parametrize("estimator", [KARClassifier, KARRegressor])
def test_rows_that_are_no_numbers_of_float64_are_refused(estimator, X, message):
    with pytest.raises(ValueError, match=message) as error:
        estimator((2,)).fit(X, [0, 1, 0])
    assert type(error.value) is ValueError


def test_targets_and_weights_that_are_no_numbers_of_float64_are_refused():
    X, endless = np.ones((3, 2)), np.array([10**400, 1, 2], dtype=object)
    with pytest.raises(ValueError, match="y must hold real numbers"):
        KARRegressor((2,)).fit(X, endless)
    with pytest.raises(ValueError, match="sample_weight must hold real numbers"):
        KARRegressor((2,)).fit(X, [0, 1, 2], sample_weight=endless)
    with pytest.raises(ValueError, match=r"must not exceed 1e\+20"):
        KARRegressor((2,)).fit(X, [0, 1, 2], sample_weight=[1e300, 1.0, 1.0])


def test_labels_of_any_kind_are_learned_or_refused_in_one_sentence():
    X = np.arange(8.0).reshape(4, 2)
    lists = np.empty(4, dtype=object)
    lists[:] = [[1], [2, 3], np.ones(2), "a"]
    with pytest.raises(ValueError, match="labels that cannot be sorted"):
        KARClassifier((2,)).fit(X, lists)
    with pytest.raises(ValueError, match="y must hold one label per row"):
        KARClassifier((2,)).fit(X, pd.DataFrame({"a": [1, 2, 1, 2], "b": 0}))
    words = np.array(["b", "a", "b", "a"], dtype=np.dtypes.StringDType())
    for learn in (lambda net: net.fit(X, words), lambda net: net.fit_blocks([(X, words)])):
        net = learn(KARClassifier((2,), hidden="random", random_state=0))
        assert net.classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("estimator", [KARClassifier, KARRegressor])
def test_score_refuses_what_fit_would(estimator):
    net = estimator((3,), random_state=0).fit(IRIS_X, IRIS_Y)
    with pytest.raises(ValueError, match="must have as many rows as X, 150"):
        net.score(IRIS_X, IRIS_Y[1:])
    with pytest.raises(ValueError, match="sample_weight must hold real numbers"):
        net.score(IRIS_X, IRIS_Y, sample_weight=sparse.csr_array(np.ones((1, 150))))
    with pytest.raises(ValueError, match="y holds NaN or infinity"):
        net.score(IRIS_X, np.full(150, np.inf))


def test_layers_beyond_memory_are_refused_in_one_sentence():
    with pytest.raises(MemoryError, match=r"\(1000000000000,\) takes more memory than there is"):
        KARClassifier((10**12,), hidden="random").fit(IRIS_X, IRIS_Y)
    with pytest.raises(ValueError, match=r"up to 2\*\*48"):
        KARClassifier((10**30,)).fit(IRIS_X, IRIS_Y)


@pytest.mark.parametrize("name", ["alpha", "hidden", "hidden_layer_sizes", "activation", "solver"])
@pytest.mark.parametrize("value", [np.ones((2, 2, 2)), 10**5000, ["x"] * 1000], ids=range(3))
def test_parameters_of_any_text_are_shown_in_one_line(name, value):
    with pytest.raises(ValueError, match=f"{name}=") as error:
        KARClassifier(**{name: value}).fit(IRIS_X, IRIS_Y)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600


def test_times_are_not_compared_with_other_classes():
    times = np.arange(150).astype("M8[D]")
    net = KARClassifier((3,), random_state=0).fit(IRIS_X, IRIS_Y)
    with pytest.raises(ValueError, match=r"y holds datetime64\[D\], but the classes"):
        net.score(IRIS_X, times)
    assert 0.0 <= net.fit(IRIS_X, times[IRIS_Y]).score(IRIS_X, times[IRIS_Y]) <= 1.0


def test_the_score_of_overflowing_errors_is_minus_infinity():
    net = KARRegressor((), output_activation="identity").fit(IRIS_X, IRIS_Y)
    assert net.score(IRIS_X * 1e305, IRIS_Y) == -np.inf
