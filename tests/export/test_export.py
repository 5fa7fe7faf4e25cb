"""ONNX graphs predict in onnxruntime what the estimators predict."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV
from karnet._network.infinite_width import RidgeTargets
from karnet._search.views import VIEWS, Stretched, WithScores
from karnet.activations import ACTIVATIONS, Activation
from karnet.export import to_onnx
from karnet.export._functions import FUNCTIONS
from karnet.kernels import KERNELS
from tests.members import member_of

onnxruntime = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
X = RNG.uniform(0.05, 0.95, (40, 3))
NEW = RNG.uniform(0.0, 1.0, (25, 3))
TARGETS = {
    "two classes": np.array(["no", "yes"])[(X[:, 0] > X[:, 1]).astype(int)],
    "three classes": np.array([3, 5, 9])[np.argmax(X, axis=1)],
    "one output": np.sin(3 * X[:, 0]) + X[:, 1],
    "two outputs": np.column_stack([X[:, 0] * X[:, 1], np.cos(2 * X[:, 2])]),
}
TOLERANCE = {np.float64: 1e-8, np.float32: 1e-5}
# Leaves are in single precision, and a graph computes in double precision.
OF_AVERAGES = {np.float64: 1e-5, np.float32: 1e-4}
every_task = pytest.mark.parametrize("task", TARGETS)


def outputs(model, rows, optimised=True):
    """Return the outputs of a graph by name."""
    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    if hasattr(rows, "columns"):
        given = {name: rows[[name]].to_numpy() for name in rows.columns}
        given = {
            name: part.astype(str) if part.dtype == object else part for name, part in given.items()
        }
        given = {each.name: given[each.name] for each in session.get_inputs()}
    else:
        given = {"X": rows}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, given), strict=True))


def assert_agrees(estimator, rows=NEW, **parameters):
    """Export for inputs of both precisions, and compare with the estimator."""
    for kind, tolerance in tolerances_of(estimator).items():
        given = rows.astype(kind)
        found = outputs(to_onnx(estimator, given, **parameters), given)
        assert_equals_predictions(estimator, given, found, tolerance, kind)


def tolerances_of(estimator):
    network = estimator[-1] if hasattr(estimator, "steps") else estimator
    return OF_AVERAGES if hasattr(network, "model_") else TOLERANCE


def assert_equals_predictions(estimator, rows, found, tolerance, kind):
    if hasattr(estimator, "predict_proba"):
        expected = estimator.predict_proba(rows)
        assert found["probabilities"].dtype == kind
        np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=tolerance)
        clear = np.ptp(np.sort(expected, axis=1)[:, -2:], axis=1) > 1e-4
        np.testing.assert_array_equal(found["label"][clear], estimator.predict(rows)[clear])
        assert clear.mean() > 0.9
    else:
        expected = estimator.predict(rows).reshape(len(rows), -1)
        assert found["variable"].dtype == kind
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(found["variable"], expected, rtol=0, atol=tolerance * scale)


def fitted(task, **parameters):
    kind = KARClassifier if "classes" in task else KARRegressor
    return kind(random_state=0, **parameters).fit(X, TARGETS[task])


# Estimators


@every_task
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_plain_networks(task, activation):
    f = ACTIVATIONS[activation]
    kinds = [
        {"hidden_layer_sizes": ()},
        {"hidden_layer_sizes": (5, 4), "hidden": "random", "direct_links": True},
    ]
    if f.invertible:
        kinds.append({"hidden_layer_sizes": (4,), "fit_intercept": False})
    if f.derivative is not None and f.domain[0] == -np.inf:
        kinds.append({"hidden_layer_sizes": (6,), "hidden": "metric", "alpha": 1e-3})
    for kind in kinds:
        assert_agrees(fitted(task, activation=activation, **kind))


@every_task
@pytest.mark.parametrize(
    ("activation", "init", "depth"),
    [("relu", "normal", 3), ("cos", "normal", 1), ("sin", "cauchy", 1)],
)
def test_infinitely_wide_networks(task, activation, init, depth):
    net = fitted(
        task,
        hidden_layer_sizes=(np.inf,) * depth,
        hidden="random",
        activation=activation,
        init=init,
        alpha=1e-3,
        direct_links=depth == 1,
    )
    assert_agrees(net)


@every_task
def test_estimators_that_select_hyper_parameters(task):
    kind = KARClassifierCV if "classes" in task else KARRegressorCV
    assert_agrees(kind(random_state=0).fit(X, TARGETS[task]))


def test_averages_of_several_leaves(settings):
    settings(leaf=12, smallest_leaf=6, largest_leaf=12, most_rows_of_leaf=12, tuned_rows=12)
    net = KARRegressorCV(random_state=0).fit(X, TARGETS["two outputs"])
    assert all(len(list(each.network.leaves())) > 1 for each in net.estimators_)
    assert_agrees(net)


def test_a_tree_without_cuts_has_no_nodes():
    net = KARRegressorCV(random_state=0).fit(X, TARGETS["one output"])
    assert all(len(list(each.network.leaves())) == 1 for each in net.estimators_)
    kinds = {node.op_type for node in to_onnx(net, NEW).graph.node}
    assert not kinds & {"NonZero", "ScatterND", "GatherElements"}


def test_a_view_of_several_members_is_computed_once():
    net = KARRegressorCV(random_state=0).fit(X, TARGETS["one output"])
    model = net.model_
    members, weights = (model.members[0],) * 5, np.full(5, 0.2)
    net.model_ = replace(model, members=members, weights=weights)
    n_nodes = len(to_onnx(net, NEW).graph.node)
    net.model_ = replace(model, members=members[:1], weights=weights[:1])
    assert n_nodes < 5 * len(to_onnx(net, NEW).graph.node)


@pytest.mark.parametrize("knee", [1.0, 0.03])
def test_probabilities_from_powers_of_scores(knee):
    net = KARClassifierCV(random_state=0, n_estimators=2).fit(X, TARGETS["three classes"])
    output = net.model_.output
    bent = replace(output, calibration=replace(output.calibration, knee=knee))
    net.model_ = replace(net.model_, output=bent)
    assert_agrees(net)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("view", VIEWS)
def test_ensemble_members_of_all_kinds(kernel, view):
    rows = np.column_stack([X, RNG.integers(0, 4, len(X)), np.ones(len(X)), X[:, 0].round(1)])
    targets = RidgeTargets(TARGETS["two outputs"], np.ones(len(X)), np.logspace(-3, 0, 3))
    seen = VIEWS[view](rows, targets.weight)
    p = len(seen.features)
    shown = (
        seen,
        Stretched(seen, np.eye(p) + 0.1),
        Stretched(seen, np.linspace(0.5, 1.0, p)),
        WithScores.of(seen, rows, targets),
    )
    estimator = KARRegressorCV(random_state=0).fit(rows, TARGETS["two outputs"])
    members = tuple(member_of(each, kernel, rows, targets, n_trees=2) for each in shown)
    weights = np.array([0.2, 0.3, 0.6, 0.1])
    estimator.model_ = replace(estimator.model_, members=members, weights=weights)
    others = np.column_stack([NEW * 2.0 - 0.5, rows[: len(NEW), 3:]])
    assert_agrees(estimator, others)
    model = to_onnx(estimator, others)
    fast, plain = (outputs(model, others, optimised)["variable"] for optimised in (True, False))
    np.testing.assert_allclose(fast, plain, rtol=0, atol=1e-11)


def test_constant_inputs():
    constant = KARRegressorCV(random_state=0).fit(np.ones((6, 2)), np.arange(6.0))
    assert_agrees(constant, np.ones((3, 2)))


@pytest.mark.parametrize("opset", [15, 18, 21])
def test_opsets(opset):
    model = to_onnx(fitted("two classes", activation="gelu", hidden="random"), NEW, opset=opset)
    assert [each.version for each in model.opset_import if not each.domain] == [opset]
    assert_agrees(fitted("two classes", activation="gelu", hidden="random"), opset=opset)
    assert_agrees(KARRegressorCV(random_state=0).fit(X, TARGETS["one output"]), opset=opset)


@pytest.mark.parametrize(
    "labels", [["b", "a"], [-1, 4], [True, False], np.array(["x", "y"], dtype=object)]
)
def test_labels_keep_their_kind(labels):
    y = np.asarray(labels)[(X[:, 0] > 0.5).astype(int)]
    net = KARClassifier((3,), random_state=0).fit(X, y)
    found = outputs(to_onnx(net), NEW.astype(np.float32))["label"]
    assert found.tolist() == net.predict(NEW.astype(np.float32)).tolist()


def test_networks_fitted_on_arrays_of_other_libraries():
    torch = pytest.importorskip("torch")
    for hidden in ((6,), (np.inf,)):
        net = KARRegressor(hidden, hidden="random", activation="relu", alpha=1e-3, random_state=0)
        with config_context(array_api_dispatch=True):
            net.fit(torch.asarray(X), torch.asarray(TARGETS["one output"]))
            expected = net.predict(torch.asarray(NEW)).numpy()
        found = outputs(to_onnx(net, NEW), NEW)["variable"][:, 0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


# Functions


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_accurate_to_the_last_digits(name):
    """A network of one unit and unit weights is its activation."""
    x = np.concatenate([np.linspace(-9, 9, 2001), np.logspace(-18, 300, 637), [0.0, 0.5, 1.0]])
    x = np.unique(np.concatenate([x, -x]))[:, None]
    if name == "gelu":
        x = x[np.abs(x[:, 0]) < 1e150]
    net = KARRegressor((1,), hidden="random", activation=name, init=[np.array([[0.0], [1.0]])])
    net.fit(np.array([[0.2], [0.7]]), np.array([0.1, 0.3]))
    net.coefs_[1], net.intercepts_[1] = np.ones((1, 1)), np.zeros(1)
    expected = ACTIVATIONS[name](x.copy())
    found = outputs(to_onnx(net, x), x)["variable"]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


def test_there_is_a_function_for_every_activation():
    assert list(FUNCTIONS) == list(ACTIVATIONS)


# Pipelines


BEFORE = {
    "standard": StandardScaler(),
    "robust": RobustScaler(),
    "min-max": MinMaxScaler(),
    "clipped": MinMaxScaler(clip=True),
    "filled": make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
    "often": SimpleImputer(strategy="most_frequent"),
    "columns": make_column_transformer(
        (make_pipeline(SimpleImputer(), RobustScaler()), [2, 0]), remainder="passthrough"
    ),
}


@every_task
@pytest.mark.parametrize("before", BEFORE)
def test_pipelines_of_arrays(task, before):
    rows, given = X.copy(), NEW.copy()
    if before in ("filled", "often", "columns"):
        rows[::7, 0] = given[::5, 0] = np.nan
    kind = KARClassifier if "classes" in task else KARRegressor
    net = make_pipeline(BEFORE[before], kind((6,), activation="tanh", alpha=1e-4, random_state=0))
    assert_agrees(net.fit(rows, TARGETS[task]), given)


@pytest.mark.parametrize("kind", [KARClassifierCV, KARRegressorCV])
def test_pipelines_that_select_hyper_parameters(kind):
    y = TARGETS["two classes" if kind is KARClassifierCV else "one output"]
    net = make_pipeline(StandardScaler(), kind(random_state=0, n_estimators=2))
    assert_agrees(net.fit(X, y))


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()], ids=str)
@pytest.mark.parametrize("hidden", [(3,), (np.inf,)], ids=["finite", "infinite"])
def test_nodes_that_onnxruntime_fuses_stay_in_double_precision(scaler, hidden):
    """A division by one number next to a product would be done in single precision."""
    net = KARRegressor(hidden, hidden="random", activation="relu", alpha=1e-3, random_state=0)
    pipeline = make_pipeline(scaler, net).fit(X[:, :1], TARGETS["one output"])
    found = outputs(to_onnx(pipeline, NEW[:, :1]), NEW[:, :1])["variable"][:, 0]
    np.testing.assert_allclose(found, pipeline.predict(NEW[:, :1]), rtol=0, atol=1e-12)


def test_columns_of_few_values_are_recognised_behind_a_scaler():
    """Columns of few values are compared by equality, which the scaler must preserve."""
    rows = np.column_stack([X, RNG.integers(0, 5, len(X))])
    y = TARGETS["one output"] + (rows[:, 3] == 2)
    net = make_pipeline(StandardScaler(), KARRegressorCV(random_state=0)).fit(rows, y)
    found = outputs(to_onnx(net, rows), rows)["variable"][:, 0]
    np.testing.assert_allclose(found, net.predict(rows), rtol=0, atol=1e-5)


def table(n):
    return pd.DataFrame(
        {
            "number": X[:n, 0],
            "gaps": np.where(X[:n, 1] < 0.3, np.nan, X[:n, 1]),
            "a whole": np.arange(n) * 2**25 + 1,
            "kind": np.array(["x", "y", "z"])[np.arange(n) % 3],
            "sort": np.array(["u", "v"])[np.arange(n) % 2],
            "code": np.arange(n) % 4,
            "flag": np.arange(n) % 5 < 2,
            "unused": np.arange(n),
        }
    )


def of_table(estimator):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer(
        [
            ("numbers", numbers, ["number", "gaps", "a whole"]),
            ("kinds", OneHotEncoder(handle_unknown="ignore"), ["kind"]),
            ("sorts", OneHotEncoder(drop="if_binary", sparse_output=False), ["sort"]),
            ("codes", OneHotEncoder(), ["code", "flag"]),
        ]
    )
    return make_pipeline(columns, estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        KARClassifier((6,), activation="tanh", alpha=1e-3, random_state=0),
        KARClassifierCV(random_state=0, n_estimators=2),
    ],
    ids=["plain", "cv"],
)
def test_tables(estimator):
    net = of_table(estimator).fit(table(40), TARGETS["two classes"])
    rows = table(20)[::-1].reset_index(drop=True)
    rows.loc[3, "kind"] = "unseen"
    model = to_onnx(net, rows)
    types = {each.name: each.type.tensor_type.elem_type for each in model.graph.input}
    assert types == {
        "number": 11,
        "gaps": 11,
        "a whole": 7,
        "kind": 8,
        "sort": 8,
        "code": 7,
        "flag": 9,
        "unused": 7,
    }
    found = outputs(model, rows)
    assert_equals_predictions(net, rows, found, tolerances_of(net)[np.float64], np.float64)


def test_tables_in_single_precision():
    single = {"number": np.float32, "gaps": np.float32}
    rows = table(40).astype(single)
    net = of_table(KARClassifier((6,), activation="tanh", alpha=1e-3, random_state=0))
    net.fit(rows, TARGETS["two classes"])
    found = outputs(to_onnx(net, rows), rows)
    assert_equals_predictions(net, rows, found, 1e-5, np.float32)


def test_columns_are_taken_by_name():
    net = KARClassifier((3,), random_state=0).fit(
        pd.DataFrame(X, columns=list("abc")), TARGETS["two classes"]
    )
    rows = pd.DataFrame(NEW[:, [2, 0, 1]], columns=list("cab")).assign(more=0.0)
    found = outputs(to_onnx(net, rows), rows)
    np.testing.assert_allclose(
        found["probabilities"], net.predict_proba(rows[list("abc")]), rtol=0, atol=1e-8
    )
    with pytest.raises(ValueError, match="lacks the column 'b'"):
        to_onnx(net, rows.drop(columns="b"))


# Refusals


def test_custom_activations_are_refused():
    def twice(x):
        return 2.0 * x

    def half(x):
        return 0.5 * x

    y = TARGETS["two classes"]
    for parameters in (
        {"activation": (twice, half)},
        {"activation": "tanh", "output_activation": (twice, half)},
        {"activation": Activation("tanh", twice, half)},
        {"hidden_layer_sizes": (), "activation": Activation("odd", np.sin)},
    ):
        net = KARClassifier(**{"hidden_layer_sizes": (3,), **parameters}, random_state=0).fit(X, y)
        with pytest.raises(ValueError, match="custom one, which cannot be exported"):
            to_onnx(net)


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (SimpleImputer(add_indicator=True), "add_indicator"),
        (KNNImputer(metric="nan_euclidean", weights=lambda d: d), "cannot be exported to ONNX"),
    ],
    ids=["indicator", "function"],
)
def test_other_transformers_are_refused(before, reason):
    rows = np.where(X < 0.2, np.nan, X)
    net = make_pipeline(before, KARClassifier((3,), random_state=0)).fit(
        rows, TARGETS["two classes"]
    )
    with pytest.raises(ValueError, match=reason) as refusal:
        to_onnx(net)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("opset", [3, 99])
def test_other_opsets_are_refused(opset):
    with pytest.raises(ValueError, match="must be from 15 to"):
        to_onnx(fitted("two classes"), opset=opset)


def test_unsupported_inputs_and_labels_are_refused():
    with pytest.raises(NotFittedError, match="fit it before"):
        to_onnx(KARClassifier())
    net = of_table(KARClassifier((3,), random_state=0)).fit(table(40), TARGETS["two classes"])
    dates = table(4).assign(kind=pd.date_range("2020-01-01", periods=4))
    with pytest.raises(ValueError, match="kind holds neither numbers nor text"):
        to_onnx(net, dates)
    odd = KARClassifier((3,), random_state=0).fit(X, (X[:, 0] > 0.5) + 0.0)
    with pytest.raises(ValueError, match="integers or text"):
        to_onnx(odd)
    text = make_pipeline(
        make_column_transformer((SimpleImputer(strategy="most_frequent"), ["kind"])),
        OneHotEncoder(),
    ).fit(table(9))
    with pytest.raises(ValueError, match="SimpleImputer of text"):
        to_onnx(text, table(9))


def test_no_converter_is_registered_globally():
    from skl2onnx import supported_converters

    before = supported_converters()
    to_onnx(fitted("two classes"))
    assert supported_converters() == before


def test_without_skl2onnx_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'karnet\[onnx\]'"):
        to_onnx(fitted("two classes"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (3.0, "two dimensions and 3 features"),
        (X[:, 0], "two dimensions and 3 features"),
        (np.hstack([X, X]), r"but its shape is \(40, 6\)"),
        ([[1.0], [1.0, 2.0]], "rows of equal length"),
        (pd.DataFrame(X, columns=["a", "a", "b"]), "must have different names"),
        (pd.DataFrame(X, columns=["a", "", "b"]), "none may be empty"),
        (pd.DataFrame(X[:, :2], columns=["a", "b"]), "has 2 columns, but the estimator expects 3"),
    ],
    ids=range(7),
)
def test_rows_of_other_shapes_are_refused(rows, message):
    net = KARRegressor((3,), random_state=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=message):
        to_onnx(net, rows)


@pytest.mark.parametrize("opset", ["18", 18.0, [18], np.array([18, 18])], ids=str)
def test_versions_that_are_no_integers_are_refused(opset):
    net = KARRegressor((3,), random_state=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="must be from 15 to"):
        to_onnx(net, opset=opset)
