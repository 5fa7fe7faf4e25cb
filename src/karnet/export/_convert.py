"""Networks, alone or at the end of a pipeline, as ONNX graphs.

Everything numeric is done in double precision from the first node to the last, whatever the inputs
are: a wide network adds up large numbers of both signs, of which single precision leaves little.
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
from .._estimator.targets import class_outputs
from .._network.infinite_width import KernelMap
from .._network.layers import Network
from .._util.messages import shown
from ..activations import Array, ExpOf
from ..estimators import KARClassifier, KARRegressor
from ..selection import KARClassifierCV, KARRegressorCV
from ._functions import activated, check_known, exp_of, kernel_of, seen_through
from ._graph import Graph

__all__ = ["to_onnx"]

# The versions of ONNX's operators that graphs can be made of.
OLDEST, NEWEST = 15, 22
# The type of an input, by the kind of a NumPy type.
KINDS = {"f": "DOUBLE", "i": "INT64", "u": "INT64", "b": "BOOL"}
# The name, the type and the number of columns of an input.
Input = tuple[str, str, int]


def to_onnx(estimator: Any, X: Any = None, *, opset: int | None = None) -> Any:
    """Return the ONNX graph of a fitted estimator or pipeline.

    Classifiers have the outputs ``label`` and ``probabilities``, one column per class, regressors
    ``variable``, one column per output.

    Parameters
    ----------
    estimator : estimator
        A karnet estimator, or a pipeline that ends in one, with transformers that skl2onnx
        converts: StandardScaler, RobustScaler, MinMaxScaler, SimpleImputer without indicator,
        OneHotEncoder, ColumnTransformer and others.
    X : array or data frame, optional
        Some rows, one will do, for the types of inputs: an array is one input ``X``, a data frame
        has an input for each column, with its name. Without rows there is one input ``X`` in
        single precision.
    opset : int, optional
        The version of ONNX's operators, 15 to 22; the newest that skl2onnx knows if None.

    Returns
    -------
    onnx.ModelProto
        Outputs are in single precision if inputs are, those that are integers aside.

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
    try:
        import skl2onnx
    except ModuleNotFoundError as error:
        raise ImportError("exporting needs skl2onnx: pip install 'karnet[onnx]'.") from error
    name = type(estimator).__name__
    if not hasattr(estimator, "n_features_in_"):
        raise NotFittedError(f"{name} is not fitted: fit it before exporting.")
    inputs = _inputs(estimator, X)
    kinds = {kind for _, kind, _ in inputs}
    narrow = "FLOAT" in kinds and "DOUBLE" not in kinds
    parts = _parts(narrow)
    try:
        model = skl2onnx.convert_sklearn(
            estimator,
            name=name,
            initial_types=[_in_double(each) for each in inputs],
            target_opset=_checked_opset(opset),
            custom_shape_calculators={kind: shapes for kind, (shapes, _) in parts.items()},
            custom_conversion_functions={kind: convert for kind, (_, convert) in parts.items()},
        )
    except (ValueError, Warning):
        raise
    except Exception as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise ValueError(f"{name} cannot be exported to ONNX: {reason}.") from error
    _retype(model.graph, inputs, narrow)
    return model


def _checked_opset(opset: int | None) -> int:
    from skl2onnx import get_latest_tested_opset_version

    newest: int = min(NEWEST, get_latest_tested_opset_version())
    if opset is None:
        return newest
    if not isinstance(opset, int) or not OLDEST <= opset <= newest:
        raise ValueError(f"opset={shown(opset)} must lie between {OLDEST} and {newest}.")
    return opset


# Inputs and outputs


def _inputs(estimator: Any, X: Any) -> list[Input]:
    if X is None:
        return [("X", "FLOAT", int(estimator.n_features_in_))]
    n_features = int(estimator.n_features_in_)
    if not hasattr(X, "columns"):
        return [("X", _kind("X", _table_of(X, n_features)), n_features)]
    names = list(getattr(estimator, "feature_names_in_", X.columns))
    if len(set(X.columns)) < len(X.columns) or not all(map(str, names)):
        raise ValueError("X must have columns of different names, none of them empty.")
    if len(names) != n_features:
        raise ValueError(f"X has {len(names)} columns, but the estimator expects {n_features}.")
    missing = [name for name in names if name not in X.columns]
    if missing:
        raise ValueError(f"X lacks the column {missing[0]!r}, which the estimator was fitted with.")
    return [(str(name), _kind(name, np.asarray(X[name])), 1) for name in names]


def _table_of(X: Any, n_features: int) -> NDArray[Any]:
    """Return rows as an array, if they have as many features as they should."""
    try:
        table = np.asarray(X)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError("X must have rows of equal length.") from error
    if table.shape[1:] != (n_features,):
        raise ValueError(
            f"X must have two dimensions and {n_features} features, as the estimator was fitted "
            f"with, but its shape is {table.shape}."
        )
    return table


def _kind(name: str, values: NDArray[Any]) -> str:
    """Return the type of ONNX for some values."""
    if values.dtype == np.float32:
        return "FLOAT"
    if values.dtype.kind in KINDS:
        return KINDS[values.dtype.kind]
    text = [each for each in values.ravel() if isinstance(each, str)]
    gaps = [each for each in values.ravel() if each is None or each != each]
    if values.dtype.kind not in "OUT" or len(text) + len(gaps) < values.size:
        raise ValueError(f"{name} holds neither numbers nor text, and cannot be an input of ONNX.")
    return "STRING"


def _in_double(given: Input) -> tuple[str, Any]:
    """Return an input as skl2onnx is told: everything but text as doubles."""
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    name, kind, n_columns = given
    made = StringTensorType if kind == "STRING" else DoubleTensorType
    return name, made([None, n_columns])


def _retype(graph: Any, inputs: list[Input], narrow: bool) -> None:
    """Give inputs the types they have, and outputs single precision if that is wanted."""
    from onnx import TensorProto, helper

    for (name, kind, _), given in zip(inputs, graph.input, strict=True):
        wide = name if kind in ("STRING", "DOUBLE") else f"{name}_as_double"
        for node in graph.node:
            node.input[:] = [wide if each == given.name else each for each in node.input]
        given.name = name
        if wide != name:
            given.type.tensor_type.elem_type = getattr(TensorProto, kind)
            cast = helper.make_node("Cast", [name], [wide], wide, to=TensorProto.DOUBLE)
            graph.node.insert(0, cast)
    for output in graph.output:
        kind = output.type.tensor_type
        if narrow and kind.elem_type == TensorProto.DOUBLE:
            wide = f"{output.name}_as_double"
            for node in graph.node:
                node.output[:] = [wide if each == output.name else each for each in node.output]
                node.input[:] = [wide if each == output.name else each for each in node.input]
            kind.elem_type = TensorProto.FLOAT
            graph.node.append(
                helper.make_node("Cast", [wide], [output.name], wide, to=TensorProto.FLOAT)
            )


# Converters


def _parts(narrow: bool) -> dict[type, tuple[Callable[..., None], Callable[..., None]]]:
    """Return, for all that is converted here, how its outputs are shaped and how it is made."""

    def made(answer: Callable[[Graph, Any, str], tuple[str, ...]]) -> Callable[..., None]:
        return partial(_convert, answer)

    return {
        KARClassifier: (_of_classes, made(_classifier)),
        KARRegressor: (_of_numbers, made(_regressor)),
        KARClassifierCV: (_of_classes, made(partial(_classifier_cv, narrow=narrow))),
        KARRegressorCV: (_of_numbers, made(partial(_regressor_cv, narrow=narrow))),
        SimpleImputer: (_of_imputer, made(_imputer)),
    }


def _convert(
    answer: Callable[[Graph, Any, str], tuple[str, ...]], scope: Any, operator: Any, container: Any
) -> None:
    g = Graph(scope, container)
    wide = [g.cast(each.full_name, "DOUBLE") for each in operator.inputs]
    x = wide[0] if len(wide) == 1 else g.op("Concat", *wide, axis=1)
    for found, output in zip(answer(g, operator.raw_operator, x), operator.outputs, strict=True):
        name = scope.get_unique_operator_name("kar_output")
        container.add_node("Identity", [found], [output.full_name], name=name)


def _of_classes(operator: Any) -> None:
    from skl2onnx.common import data_types as types

    classes = _classes(operator.raw_operator)
    labels = types.StringTensorType if classes.dtype.kind == "O" else types.Int64TensorType
    label, probabilities = operator.outputs
    label.type = labels([None])
    probabilities.type = types.DoubleTensorType([None, len(classes)])


def _of_numbers(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType

    operator.outputs[0].type = DoubleTensorType([None, _n_outputs(operator.raw_operator)])


def _n_outputs(estimator: Any) -> int:
    if isinstance(estimator, KARRegressorCV):
        return len(estimator._mean)
    return len(estimator._network().layers[-1].w)


def _of_imputer(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    imputer = operator.raw_operator
    if any(isinstance(each.type, StringTensorType) for each in operator.inputs):
        raise ValueError("a SimpleImputer of text cannot be exported to ONNX: there are no gaps.")
    if imputer.add_indicator:
        raise ValueError("SimpleImputer(add_indicator=True) cannot be exported to ONNX.")
    operator.outputs[0].type = DoubleTensorType([None, len(_imputed(imputer))])


def _classes(estimator: Any) -> NDArray[Any]:
    """Return the classes as ONNX can hold them: integers, or text as objects."""
    classes = np.asarray(estimator.classes_)
    if classes.dtype.kind in "biu":
        return classes.astype(np.int64)
    if all(isinstance(each, str) for each in classes):
        return classes.astype(object)
    raise ValueError(
        f"classes such as {classes[0]!r} cannot be exported to ONNX: name them by integers or text."
    )


# What estimators answer


def _network(g: Graph, network: Network, x: str, activate: bool) -> str:
    """Return the outputs of a network, or its scores if the last layer is not to be activated."""
    for layer in network.layers:
        check_known(layer.f)
    x = A = x if network.input_map is None else _input_map(g, on_host(network.input_map), x)
    *below, last = map(on_host, network.layers)
    for layer in below:
        A = activated(g, layer.f, g.product(A, layer.V, layer.w))
    if network.direct_links and below:
        A = g.op("Concat", A, x, axis=1)
    Z = g.product(A, last.V, last.w)
    return activated(g, last.f, Z) if activate else Z


def _input_map(g: Graph, input_map: Any, x: str) -> str:
    match input_map:
        case ExpOf(f=f):
            check_known(f)
            return exp_of(g, activated(g, f, x))
        case KernelMap(kernel, scale, depth, direct_links, Z):
            K = kernel_of(g, kernel, x, Z, scale, depth)
            return g.product(x, Z.T, K) if direct_links else K
    raise ValueError(f"an input map {type(input_map).__name__} cannot be exported to ONNX.")


def _labels(g: Graph, estimator: Any, codes: str) -> str:
    return g.op("Gather", _classes(estimator), codes)


def _largest(g: Graph, answers: str) -> str:
    return g.op("ArgMax", answers, axis=1, keepdims=0)


def _classifier(g: Graph, estimator: KARClassifier, x: str) -> tuple[str, str]:
    network = estimator._network()
    if len(estimator.classes_) > 2:
        answers = _network(g, network, x, activate=True)
        probabilities = g.op("Softmax", g.op("Mul", answers, 4.0), axis=1)
        return _labels(g, estimator, _largest(g, answers)), probabilities
    f = network.layers[-1].f
    low, high = f.phi(class_outputs(f, 2))[:, 0]
    Z = _network(g, network, x, activate=False)
    decision = g.op("Mul", g.op("Sub", Z, (low + high) / 2.0), 2.0 / (high - low))
    codes = g.cast(g.op("Greater", g.op("Squeeze", decision, np.array([1])), 0.0), "INT64")
    both = g.op("Mul", decision, np.array([[-2.0, 2.0]]))
    return _labels(g, estimator, codes), g.op("Sigmoid", both)


def _regressor(g: Graph, estimator: KARRegressor, x: str) -> tuple[str]:
    return (_network(g, estimator._network(), x, activate=True),)


def _mean_answer(g: Graph, networks: list[Network], x: str, narrow: bool) -> str:
    shown: dict[int, str] = {}
    total = ""
    for network in networks:
        view: Any = network.view
        if id(view) not in shown:
            shown[id(view)] = seen_through(g, view, x, narrow)
        answer = _network(g, network, shown[id(view)], activate=True)
        total = g.op("Add", total, answer) if total else answer
    return g.op("Div", total, float(len(networks)))


def _classifier_cv(g: Graph, estimator: KARClassifierCV, x: str, narrow: bool) -> tuple[str, str]:
    answers = _mean_answer(g, estimator._networks(), x, narrow)
    certain = g.op("Softmax", g.op("Div", answers, estimator.temperature_), axis=1)
    doubt = estimator.doubt_
    scaled = g.op("Mul", certain, 1.0 - doubt)
    probabilities = g.op("Add", scaled, doubt / len(estimator.classes_))
    return _labels(g, estimator, _largest(g, answers)), probabilities


def _regressor_cv(g: Graph, estimator: KARRegressorCV, x: str, narrow: bool) -> tuple[str]:
    answers = _mean_answer(g, estimator._networks(), x, narrow)
    return (g.op("Add", g.op("Mul", answers, estimator._scale), estimator._mean),)


def _imputed(imputer: SimpleImputer) -> NDArray[np.int64]:
    """Return which columns are kept: those with any value, or all if empty ones are kept."""
    statistics = np.asarray(imputer.statistics_, dtype=np.float64)
    kept = np.ones(len(statistics), dtype=bool)
    if imputer.strategy != "constant" and not imputer.keep_empty_features:
        kept = ~np.isnan(statistics)
    return np.flatnonzero(kept).astype(np.int64)


def _imputer(g: Graph, imputer: SimpleImputer, x: str) -> tuple[str]:
    """Fill gaps in doubles, for which onnxruntime's own operator has no kernel."""
    kept = _imputed(imputer)
    statistics: Array = np.asarray(imputer.statistics_, dtype=np.float64)[kept]
    x = g.op("Gather", x, kept, axis=1)
    value = float(imputer.missing_values)
    gaps = g.op("IsNaN", x) if np.isnan(value) else g.op("Equal", x, value)
    return (g.op("Where", gaps, statistics, x),)
