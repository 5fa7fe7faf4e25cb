"""Fit networks with the core dependencies only: `python tests/laws/alone.py`.

nox runs it in an environment with only the wheel, and the tests run it with all other libraries
hidden.
"""

from __future__ import annotations

import importlib
from importlib.resources import files

import numpy as np

OPTIONAL = (
    *("array_api_compat", "autogluon", "cupy", "dask", "distributed", "matplotlib", "onnx"),
    "onnxruntime",
    *("pandas", "polars", "pyarrow", "rich", "skl2onnx", "skops", "skrub", "torch", "typer"),
)
MODULES = ("accumulate", "activations", "blocks", "datasets", "kernels", "loo")


def is_here(name: str) -> bool:
    """Return whether a module can be imported."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return False
    return True


def main() -> None:
    """Import the public modules, and fit every estimator."""
    here = [name for name in OPTIONAL if is_here(name)]
    assert not here, f"Run this without {', '.join(here)}."
    karnet = importlib.import_module("karnet")
    assert files("karnet").joinpath("py.typed").is_file()
    for name in MODULES:
        importlib.import_module(f"karnet.{name}")
    X = np.random.default_rng(0).standard_normal((60, 3))
    y = X[:, 0] > 0.0
    for name in ("KARClassifier", "KARRegressor", "KARClassifierCV", "KARRegressorCV"):
        net = getattr(karnet, name)(random_state=0)
        assert net.fit(X, y).score(X, y) > 0.5, name


if __name__ == "__main__":
    main()
