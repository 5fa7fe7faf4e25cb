"""Models of all kinds, and the bytes of their files."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV, save

RNG = np.random.default_rng(7)
X = RNG.uniform(0.1, 0.9, (24, 3)).round(3)
ROWS = RNG.uniform(0.0, 1.0, (6, 3)).round(3)
LABELS = np.array(["low", "middle", "top"])[np.digitize(X.sum(axis=1), [1.3, 1.7])]
MODELS = {
    "classifier": KARClassifier((5,), activation="tanh", alpha=1e-3, random_state=0),
    "regressor": KARRegressor((6,), hidden="random", activation="softplus", random_state=0),
    "cv": KARRegressorCV(random_state=0),
    "cv-classifier": KARClassifierCV(random_state=0),
    "deep": KARRegressor((4, 3), n_sweeps=2, direct_links=True, random_state=0),
    "exponential": KARRegressor((), output_activation="gelu"),
    "infinite": KARClassifier((np.inf,), hidden="random", activation="cos", alpha=0.1),
    "infinite-deep": KARRegressor(
        (np.inf, np.inf), hidden="random", activation="relu", alpha=0.1, direct_links=True
    ),
    "metric": KARClassifier((9,), hidden="metric", activation="relu", alpha=0.1, random_state=0),
    "pipeline": make_pipeline(MinMaxScaler(), KARClassifier((5,), random_state=0)),
    "updated": KARClassifier((5,), hidden="random", activation="tanh", alpha=0.1, random_state=0),
    "wide": KARRegressor((40,), hidden="random", activation="tanh", random_state=0),
}
CLASSES = ("classifier", "cv-classifier", "infinite", "metric", "pipeline", "updated")


@cache
def fitted(name: str) -> Any:
    """Return a fitted model."""
    model = MODELS[name]
    y = LABELS if name in CLASSES else np.sin(4 * X[:, 0]) + X[:, 1]
    if name == "updated":
        return model.partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    return model.fit(X, y)


@cache
def content(name: str) -> bytes:
    """Return the content of the file of a model."""
    with TemporaryDirectory() as folder:
        save(fitted(name), Path(folder) / "net.karnet")
        return (Path(folder) / "net.karnet").read_bytes()
