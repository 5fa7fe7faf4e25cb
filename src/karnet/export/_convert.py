"""The conversion of estimators and pipelines to ONNX graphs.

All nodes compute in double precision, also for inputs in single precision: a wide network sums
large numbers of both signs, and in single precision most digits of the sum would be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer

from .._arrays.namespace import on_host
from .._estimator.ensemble_base import ColumnEncoder, KARNetworkCV, encoder_of
from .._estimator.notebook import networks_of
from .._estimator.targets import class_outputs
from .._model.calibration import LEAST_SCORE
from .._network.kernel_map import KernelMap
from .._network.layers import Network
from .._network.local import LocalNetwork, Tree
from .._util.extras import require
from .._util.messages import shown
from ..activations import EXP_LIMIT, ExpOf
from ..estimators import KARClassifier, KARRegressor
from ..selection import KARClassifierCV, KARRegressorCV
from ._columns import encoded
from ._functions import activated, kernel_of, known, seen_through
from ._graph import Graph

# The oldest version of ONNX's operators that has all operators used here.
OLDEST_OPSET = 15
# The newest version of ONNX's operators that the graphs are tested with.
NEWEST_OPSET = 22
# The ONNX type of an input, by the kind of its NumPy type.
ONNX_TYPES = {"f": "DOUBLE", "i": "INT64", "u": "INT64", "b": "BOOL"}
# The temperature of a classifier's probabilities, if it does not calibrate its own.
TEMPERATURE = 0.25
# The name, the ONNX type and the number of columns of an input.
Input = tuple[str, str, int]
# A function that adds an estimator to a graph and returns the names of its outputs.
Builder = Callable[[Graph, Any, str], tuple[str, ...]]


def to_onnx(estimator: Any, X: Any = None, *, opset: int | None = None) -> Any:
    """Return the ONNX graph of a fitted estimator or pipeline.

    The graph of a classifier has the outputs ``label`` and ``probabilities``, with one column per
    class. The graph of a regressor has the output ``variable``, with one column per target.

    Parameters
    ----------
    estimator : estimator
        A fitted karnet estimator, or a pipeline that ends in one, with transformers that skl2onnx
        converts: StandardScaler, RobustScaler, MinMaxScaler, SimpleImputer without indicator,
        OneHotEncoder, ColumnTransformer and others.
    X : array or data frame, optional
        One or more rows, from which the types of the inputs are taken. An array is a single input
        ``X``; a data frame has one input per column, named as the column. Without rows there is a
        single input ``X`` in single precision.
    opset : int, optional
        The version of ONNX's operators, from 15 to 22; by default the newest that skl2onnx
        supports.

    Returns
    -------
    onnx.ModelProto
        The graph. Its outputs are in single precision if its floating-point inputs are.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from karnet import KARClassifier
    >>> from karnet.export import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = to_onnx(KARClassifier((10,), random_state=0).fit(X, y))
    >>> [output.name for output in model.graph.output]
    ['label', 'probabilities']
    """
    require("exporting", "onnx", "skl2onnx")
    import skl2onnx
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    name = type(estimator).__name__
    if not hasattr(estimator, "n_features_in_"):
        raise NotFittedError(f"{name} is not fitted: fit it before exporting.")
    newest = min(NEWEST_OPSET, skl2onnx.get_latest_tested_opset_version())
    if opset is not None and (not isinstance(opset, int) or not OLDEST_OPSET <= opset <= newest):
        raise ValueError(f"opset={shown(opset)} must be from {OLDEST_OPSET} to {newest}.")
    inputs = _inputs(estimator, X)
    types = {kind for _, kind, _ in inputs}
    single = "FLOAT" in types and "DOUBLE" not in types
    try:
        model = skl2onnx.convert_sklearn(
            estimator,
            name=name,
            initial_types=[
                (each, (StringTensorType if kind == "STRING" else DoubleTensorType)([None, n]))
                for each, kind, n in inputs
            ],
            target_opset=newest if opset is None else opset,
            custom_shape_calculators=dict.fromkeys(BUILDERS, _set_output_types),
            custom_conversion_functions={
                kind: partial(_convert, build, single) for kind, build in BUILDERS.items()
            },
        )
    except (ValueError, Warning):
        raise
    except Exception as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise ValueError(f"{name} cannot be exported to ONNX: {reason}.") from error
    _retype(model.graph, inputs, single)
    return model


# Inputs and outputs


def _inputs(estimator: Any, X: Any) -> list[Input]:
    n_features = int(estimator.n_features_in_)
    if X is None:
        return [("X", "FLOAT", n_features)]
    if not hasattr(X, "columns"):
        try:
            rows = np.asarray(on_host(X))
        except (OverflowError, TypeError, ValueError) as error:
            raise ValueError("X must have rows of equal length.") from error
        if rows.shape[1:] != (n_features,):
            raise ValueError(
                f"X must have two dimensions and {n_features} features, as in fit, but its shape "
                f"is {rows.shape}."
            )
        return [("X", _onnx_type("X", rows), n_features)]
    names = list(getattr(estimator, "feature_names_in_", X.columns))
    if len(set(X.columns)) < len(X.columns) or not all(map(str, names)):
        raise ValueError("the columns of X must have different names, and none may be empty.")
    if len(names) != n_features:
        raise ValueError(f"X has {len(names)} columns, but the estimator expects {n_features}.")
    missing = [name for name in names if name not in X.columns]
    if missing:
        raise ValueError(f"X lacks the column {missing[0]!r}, which the estimator was fitted with.")
    return [(str(name), _onnx_type(name, np.asarray(X[name])), 1) for name in names]


def _onnx_type(name: str, values: NDArray[Any]) -> str:
    """Return the ONNX type of some values."""
    if values.dtype.kind in ONNX_TYPES:
        return "FLOAT" if values.dtype == np.float32 else ONNX_TYPES[values.dtype.kind]
    if values.dtype.kind in "OUT" and all(
        isinstance(each, str) or each is None or each != each for each in values.ravel()
    ):
        return "STRING"
    raise ValueError(f"{name} holds neither numbers nor text, and cannot be an input of ONNX.")


def _retype(graph: Any, inputs: list[Input], single: bool) -> None:
    """Give the inputs their own types, and the outputs single precision if that is wanted."""
    from onnx import TensorProto, helper

    def rename(old: str, new: str) -> None:
        for node in graph.node:
            for names in (node.input, node.output):
                names[:] = [new if name == old else name for name in names]

    for (name, kind, _), given in zip(inputs, graph.input, strict=True):
        double = name if kind in ("STRING", "DOUBLE") else f"{name}_as_double"
        rename(given.name, double)
        given.name = name
        if double != name:
            given.type.tensor_type.elem_type = getattr(TensorProto, kind)
            cast = helper.make_node("Cast", [name], [double], double, to=TensorProto.DOUBLE)
            graph.node.insert(0, cast)
    for output in graph.output:
        name, kind = output.name, output.type.tensor_type
        if single and kind.elem_type == TensorProto.DOUBLE:
            kind.elem_type, double = TensorProto.FLOAT, f"{name}_as_double"
            rename(name, double)
            cast = helper.make_node("Cast", [double], [name], double, to=TensorProto.FLOAT)
            graph.node.append(cast)


def _convert(build: Builder, single: bool, scope: Any, operator: Any, container: Any) -> None:
    """Add an estimator to the graph that skl2onnx is building."""
    g = Graph(scope, container, single)
    encoder = encoder_of(operator.raw_operator)
    if encoder is None:
        double = [g.cast(each.full_name, "DOUBLE") for each in operator.inputs]
        x = double[0] if len(double) == 1 else g.op("Concat", *double, axis=1)
    else:
        x = encoded(g, encoder, operator.inputs)
    for result, output in zip(build(g, operator.raw_operator, x), operator.outputs, strict=True):
        name = scope.get_unique_operator_name("kar_output")
        container.add_node("Identity", [result], [output.full_name], name=name)


def _set_output_types(operator: Any) -> None:
    """Set the types of an estimator's outputs: of the labels if it has classes, and of doubles."""
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    estimator = operator.raw_operator
    if isinstance(estimator, SimpleImputer):
        if any(isinstance(each.type, StringTensorType) for each in operator.inputs):
            raise ValueError("a SimpleImputer of text cannot be exported: ONNX text has no gaps.")
        if estimator.add_indicator:
            raise ValueError("SimpleImputer(add_indicator=True) cannot be exported to ONNX.")
        n_columns = len(_kept_columns(estimator))
    elif isinstance(estimator, ColumnEncoder):
        n_columns = len(estimator.encoder_.origins)
    elif hasattr(estimator, "classes_"):
        classes = _classes(estimator)
        label = StringTensorType if classes.dtype.kind == "O" else Int64TensorType
        operator.outputs[0].type, n_columns = label([None]), len(classes)
    else:
        n_columns = networks_of(estimator)[0].n_outputs
    operator.outputs[-1].type = DoubleTensorType([None, n_columns])


def _classes(estimator: Any) -> NDArray[Any]:
    """Return the classes in a type that ONNX has: 64-bit integers, or text as objects."""
    classes = np.asarray(on_host(estimator.classes_))
    if classes.dtype.kind in "biu":
        return classes.astype(np.int64)
    if all(isinstance(each, str) for each in classes):
        return classes.astype(object)
    raise ValueError(f"classes such as {classes[0]!r} cannot be exported: use integers or text.")


# Predictions


def _outputs(g: Graph, estimator: Any, x: str, activate: bool = True) -> str:
    """Return the output of an estimator, with or without the activation of the last layer."""
    if not isinstance(estimator, KARNetworkCV):
        (network,) = networks_of(estimator)
        return _output(g, network, x, activate)
    total, model, known_views = "", estimator.model_, dict[int, str]()
    for member, weight in zip(model.members, model.weights, strict=True):
        outputs = _mean_of_trees(g, member.network, seen_through(g, member.view, x, known_views))
        outputs = g.op("Mul", outputs, float(weight))
        total = g.op("Add", total, outputs) if total else outputs
    return g.op("Add", total, model.offset)


def _mean_of_trees(g: Graph, network: LocalNetwork, x: str) -> str:
    """Return the mean over trees of the output of the leaf that each row reaches."""
    if network.kernel.Z.dtype == np.float32:
        x = g.cast(g.cast(x, "FLOAT"), "DOUBLE")
    n_trees, total = len(network.partitions), ""
    for number in range(n_trees):
        outputs = _output_of_tree(g, network, number, x)
        total = g.op("Add", total, outputs) if total else outputs
    return g.op("Div", total, float(n_trees)) if n_trees > 1 else total


def _output_of_tree(g: Graph, network: LocalNetwork, number: int, x: str) -> str:
    tree = network.partitions[number].tree
    first, *others = (
        network.leaf(number, k).doubled.network for k in range(len(tree.thresholds) + 1)
    )
    if not others:
        return _output(g, first, x, activate=False)
    n_rows = g.op("Gather", g.op("Shape", x), np.array([0]))
    shape = g.op("Concat", n_rows, np.array([network.n_outputs]), axis=0)
    reached, outputs = _leaf_numbers(g, tree, x), g.op("Expand", np.zeros((1, 1)), shape)
    for k, leaf in enumerate((first, *others)):
        rows = g.op("Squeeze", g.op("NonZero", g.op("Equal", reached, np.array(k))), np.array([0]))
        of_leaf = _output(g, leaf, g.op("Gather", x, rows), activate=False)
        outputs = g.op("ScatterND", outputs, g.op("Unsqueeze", rows, np.array([1])), of_leaf)
    return outputs


def _leaf_numbers(g: Graph, tree: Tree, x: str) -> str:
    """Return the number of the leaf that each row reaches."""
    n = len(tree.thresholds)
    n_rows = g.op("Gather", g.op("Shape", x), np.array([0]))
    node = g.op("Expand", np.zeros(1, dtype=np.int64), n_rows)
    # Leaves come after inner nodes, and lead to themselves.
    inner = np.where(tree.children >= 0, tree.children, n - 1 - tree.children)
    leaves = np.arange(n, 2 * n + 1)
    children = np.concatenate([inner, np.column_stack([leaves, leaves])]).ravel()
    sums = g.product(x, tree.directions.T.astype(np.float64))
    right = g.cast(g.op("Greater", sums, tree.thresholds.astype(np.float64)), "INT64")
    for _ in range(_depth(tree)):
        place = g.op("Unsqueeze", g.op("Min", node, np.array(n - 1)), np.array([1]))
        side = g.op("Squeeze", g.op("GatherElements", right, place, axis=1), np.array([1]))
        place = g.op("Add", g.op("Mul", node, np.array(2)), side)
        node = g.op("Gather", children, place)
    return g.op("Sub", node, np.array(n))


def _depth(tree: Tree) -> int:
    """Return the number of inner nodes on the longest way through a tree."""
    depth = np.ones(len(tree.thresholds), dtype=np.intp)
    for node, children in enumerate(tree.children):
        depth[children[children >= 0]] = depth[node] + 1
    return int(depth.max(initial=0))


def _output(g: Graph, network: Network, x: str, activate: bool) -> str:
    match on_host(network.input_map):
        case ExpOf(f=f):
            x = g.op("Exp", g.op("Clip", activated(g, f, x), -EXP_LIMIT, EXP_LIMIT))
        case KernelMap(kernel, scale, depth, direct_links, Z):
            K = kernel_of(g, kernel, x, Z, scale, depth)
            x = g.product(x, Z.T, K) if direct_links else K
        case input_map if input_map is not None:
            raise ValueError(f"an input map {input_map!r} cannot be exported to ONNX.")
    *below, last = map(on_host, network.layers)
    A = x
    for layer in below:
        A = activated(g, layer.f, g.product(A, layer.V, layer.w))
    if network.direct_links and below:
        A = g.op("Concat", A, x, axis=1)
    A = g.product(A, last.V, last.w)
    return activated(g, last.f, A) if activate else A


def _classifier(g: Graph, estimator: Any, x: str) -> tuple[str, str]:
    network, classes = networks_of(estimator)[0], _classes(estimator)
    if network.n_outputs == 1:
        last = network.layers[-1]
        low, high = known(last.f).phi(class_outputs(last.f, 2))[:, 0]
        Z = _outputs(g, estimator, x, activate=False)
        decision = g.op("Mul", g.op("Sub", Z, (low + high) / 2.0), 2.0 / (high - low))
        codes = g.cast(g.op("Greater", g.op("Squeeze", decision, np.array([1])), 0.0), "INT64")
        probabilities = g.op("Sigmoid", g.op("Mul", decision, np.array([[-2.0, 2.0]])))
    else:
        scores, doubt = _outputs(g, estimator, x), getattr(estimator, "doubt_", 0.0)
        codes = g.op("ArgMax", scores, axis=1, keepdims=0)
        scores = _bent(g, scores, getattr(estimator, "knee_", np.inf))
        scores = g.op("Div", scores, getattr(estimator, "temperature_", TEMPERATURE))
        certain = g.op("Mul", g.op("Softmax", scores, axis=1), 1.0 - doubt)
        probabilities = g.op("Add", certain, doubt / len(classes))
    return g.op("Gather", classes, codes), probabilities


def _bent(g: Graph, scores: str, knee: float) -> str:
    """Add ``log(softplus(f / knee))``, as `karnet._model.calibration.bent` computes it."""
    if np.isinf(knee):
        return scores
    x = g.op("Max", g.op("Div", scores, knee), LEAST_SCORE)
    tail = g.op("Log", g.op("Add", g.op("Exp", g.op("Neg", g.op("Abs", x))), 1.0))
    return g.op("Log", g.op("Add", g.op("Max", x, 0.0), tail))


def _regressor(g: Graph, estimator: Any, x: str) -> tuple[str]:
    outputs = _outputs(g, estimator, x)
    if isinstance(estimator, KARRegressorCV):
        units = estimator.model_.output
        outputs = g.op("Add", g.op("Mul", outputs, units.scale), units.mean)
    return (outputs,)


def _kept_columns(imputer: SimpleImputer) -> NDArray[np.int64]:
    """Return the indices of the columns that an imputer keeps."""
    empty = np.isnan(np.asarray(imputer.statistics_, dtype=np.float64))
    if imputer.strategy == "constant" or imputer.keep_empty_features:
        empty[:] = False
    return np.flatnonzero(~empty).astype(np.int64)


def _imputer(g: Graph, imputer: SimpleImputer, x: str) -> tuple[str]:
    """Fill gaps in doubles, for which onnxruntime's own operator has no kernel."""
    kept = _kept_columns(imputer)
    statistics = np.asarray(imputer.statistics_, dtype=np.float64)[kept]
    x = g.op("Gather", x, kept, axis=1)
    value = float(imputer.missing_values)
    gaps = g.op("IsNaN", x) if np.isnan(value) else g.op("Equal", x, value)
    return (g.op("Where", gaps, statistics, x),)


def _encoded(g: Graph, estimator: ColumnEncoder, x: str) -> tuple[str]:
    """Return the columns, which are encoded already."""
    return (x,)


# The estimators that are converted here, with the functions that add them to a graph.
BUILDERS: dict[type, Builder] = {
    KARClassifier: _classifier,
    KARRegressor: _regressor,
    KARClassifierCV: _classifier,
    KARRegressorCV: _regressor,
    SimpleImputer: _imputer,
    ColumnEncoder: _encoded,
}
