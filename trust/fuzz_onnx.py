"""Networks, pipelines, inputs and versions, valid and invalid, for the ONNX exporter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
)

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV
from karnet.activations import ACTIVATIONS, Activation
from karnet.export import to_onnx
from trust.fuzz_arrays import networks
from trust.fuzz_case import Case
from trust.fuzz_parameters import ODD

RNG = np.random.default_rng(7)
X = RNG.uniform(0.1, 0.9, (8, 2))
CLASSES: dict[str, Any] = {
    "integers": np.arange(8) % 3,
    "two": np.arange(8) % 2,
    "words": np.array(["a", "b", "ü"])[np.arange(8) % 3],
    "truths": np.arange(8) % 2 == 0,
    "halves": (np.arange(8) % 2).astype(float),
    "objects": np.array(["a", "b"], dtype=object)[np.arange(8) % 2],
    "bytes": np.array([b"a", b"b"])[np.arange(8) % 2],
    "large": np.array([2**62, -(2**62)])[np.arange(8) % 2],
    "dates": np.array(["2020-01-01", "2021-01-01"], "M8[D]")[np.arange(8) % 2],
}
BEFORE: dict[str, Any] = {
    "nothing": None,
    "scaler": StandardScaler(),
    "imputer": SimpleImputer(),
    "imputer with indicator": SimpleImputer(add_indicator=True),
    "constant imputer": SimpleImputer(strategy="constant", missing_values=-1),
    "indicators": OneHotEncoder(handle_unknown="ignore"),
    "range": MinMaxScaler(clip=True),
    "function": FunctionTransformer(np.log1p),
    "bins": KBinsDiscretizer(2, encode="ordinal", strategy="uniform"),
}
INPUTS: dict[str, Any] = {
    "none": None,
    "array": X,
    "one row": X[:1],
    "no rows": X[:0],
    "float32": X.astype(np.float32),
    "integers": np.round(X).astype(int),
    "truths": X > 0.5,
    "words": np.where(X > 0.5, "a", "b"),
    "objects": X.astype(object),
    "complex": X + 1j,
    "dates": np.round(X).astype("M8[D]"),
    "one column more": np.hstack([X, X]),
    "1-d": X[:, 0],
    "3-d": X[..., None],
    "0-d": np.array(1.0),
    "list": X.tolist(),
    "frame": pd.DataFrame(X, columns=["a", "b"]),
    "frame, one name": pd.DataFrame(X, columns=["a", "a"]),
    "frame, others": pd.DataFrame(X, columns=["c", "d"]),
    "frame, numbers": pd.DataFrame(X),
    "frame, mixed": pd.DataFrame({"a": X[:, 0], "b": ["x"] * 8}),
    "frame, X": pd.DataFrame(X, columns=["label", "X"]),
    "frame, empty name": pd.DataFrame(X, columns=["", "X_as_double"]),
    **ODD,
}
DIFFERENTIABLE = [name for name, f in ACTIVATIONS.items() if f.derivative is not None]
OWN = Activation("own", np.tanh, np.arctanh, codomain=(-1.0, 1.0))
VERSIONS: dict[str, Any] = {"default": None, **{str(k): k for k in (14, 15, 18, 22, 23)}, **ODD}


@st.composite
def onnx_cases(draw: Any) -> Case:
    """Draw a model, rows that define its inputs, and a version."""
    name, before = draw(st.sampled_from(list(CLASSES))), draw(st.sampled_from(list(BEFORE)))
    network, of_classes = draw(networks()), draw(st.booleans())
    if network["hidden"] != "pullback" and np.isfinite(network["hidden_layer_sizes"]).all():
        network["activation"] = draw(st.sampled_from([*DIFFERENTIABLE, OWN]))
    kind = draw(st.sampled_from(["plain"] * 8 + ["cv", "not fitted"]))
    rows = draw(st.sampled_from([*list(INPUTS), *["array", "none", "frame"] * 60]))
    version = draw(st.sampled_from([*["default"] * 300, *VERSIONS]))
    framed = draw(st.booleans())

    def run() -> None:
        plain: Any = (KARClassifier if of_classes else KARRegressor)(**network)
        cv_estimator: Any = KARClassifierCV if of_classes else KARRegressorCV
        net = cv_estimator(n_estimators=1, random_state=0) if kind == "cv" else plain
        model = net if BEFORE[before] is None else make_pipeline(BEFORE[before], net)
        if kind != "not fitted":
            given = pd.DataFrame(X, columns=["a", "b"]) if framed else X
            model.fit(given, CLASSES[name] if of_classes else X[:, 0])
        made = to_onnx(model, INPUTS[rows], opset=VERSIONS[version])
        made.SerializeToString()

    about = f"{kind}, {before}, classes {name if of_classes else None}, X {rows}, opset {version}"
    return Case(f"{about}, framed {framed}, {network}", run)
