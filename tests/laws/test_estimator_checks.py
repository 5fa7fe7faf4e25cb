"""scikit-learn's own checks, none of them expected to fail."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV

INFINITE = {"hidden_layer_sizes": (float("inf"),), "hidden": "random", "activation": "relu"}

ESTIMATORS = [
    KARClassifier(),
    KARRegressor(),
    KARClassifier((10,), hidden="random"),
    KARRegressor((10,), hidden="random"),
    KARClassifier((20, 10), alpha=1e-3, direct_links=True),
    KARRegressor((20,), activation="tanh", direct_links=True, n_sweeps=2),
    KARRegressor((50,), hidden="random", direct_links=True, activation="relu", alpha=1e-3),
    KARClassifier((10,), hidden="metric"),
    KARRegressor((20,), hidden="metric", activation="tanh", alpha=1e-3),
    # Without a ridge it fits every row, whatever the weight of its class.
    KARClassifier(**INFINITE, alpha=1e-2),
    KARRegressor(**INFINITE),
    # With less, rows of hardly any weight rule where there are no others.
    KARClassifierCV(alphas=[1e-3, 1e-2, 0.1, 1.0, 10.0], random_state=0),
    KARRegressorCV(random_state=0),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_s_checks(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.importorskip("scipy", "1.14", reason="scikit-learn's dispatch needs SciPy 1.14")
    check(estimator)
