"""Model files that are kept, with what the networks in them answer.

``python -m tests.files.kept`` writes those of a new format; files of earlier ones stay.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV, save

FOLDER = Path(__file__).parent / "model_files"
FORMAT = 1
RNG = np.random.default_rng(7)
X = RNG.uniform(0.1, 0.9, (24, 3)).round(3)
ROWS = RNG.uniform(0.0, 1.0, (6, 3)).round(3)
LABELS = np.array(["low", "middle", "top"])[np.digitize(X.sum(axis=1), [1.3, 1.7])]
MODELS = {
    "classifier": KARClassifier((5,), activation="tanh", alpha=1e-3, random_state=0),
    "regressor": KARRegressor((6,), hidden="random", activation="softplus", random_state=0),
    "cv": KARRegressorCV(n_estimators=2, random_state=0),
    "cv-classifier": KARClassifierCV(random_state=0),
    "cv-finite": KARRegressorCV(n_estimators=8, width=8, random_state=0),
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


def path(name: str) -> Path:
    return FOLDER / f"{name}-{FORMAT}.karnet"


def answers() -> dict[str, dict[str, list[object]]]:
    return dict(json.loads((FOLDER / f"answers-{FORMAT}.json").read_text()))


def write() -> None:
    found = {}
    for name, model in MODELS.items():
        y = LABELS if name in CLASSES else np.sin(4 * X[:, 0]) + X[:, 1]
        if name == "updated":
            model.partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
        else:
            model.fit(X, y)
        save(model, path(name))
        methods = ("predict", "predict_proba", "predict_interval")
        found[name] = {
            method: getattr(model, method)(ROWS).tolist()
            for method in methods
            if hasattr(model, method)
        }
    (FOLDER / f"answers-{FORMAT}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    write()
