"""scikit-learn's own checks, none of them expected to fail."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from karnet import KARClassifier, KARRegressor

ESTIMATORS = [
    KARClassifier(),
    KARRegressor(),
    KARClassifier((10,), hidden="random"),
    KARRegressor((10,), hidden="random"),
    KARClassifier((20, 10), alpha=1e-3, direct_links=True),
    KARRegressor((20,), activation="tanh", direct_links=True, n_sweeps=2),
    KARRegressor((50,), hidden="random", direct_links=True, activation="relu", alpha=1e-3),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_s_checks(estimator, check):
    check(estimator)
