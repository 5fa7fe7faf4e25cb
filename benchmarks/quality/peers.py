"""The contenders: functions that construct them, and a table of all at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from karnet import KARRegressor
from karnet.paper.protocol import WIDTHS

from . import tuned

Array = NDArray[Any]
# Returns an unfitted estimator for the training targets and a seed.
Make = Callable[[Array, int], Any]

N_TREES, N_FEATURES = 500, 500
RIDGES = np.logspace(-3, 3, 13)
GFDL_RIDGES = (1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


@dataclass(frozen=True)
class Contender:
    """A method in the comparison.

    Parameters
    ----------
    name : str
        Name on the command line and in the tables.
    classifier, regressor : callable
        Returns an unfitted estimator for the training targets and a seed.
    about : str
        Description of its settings.
    environment : {"main", "gfdl", "xrfm"}
        Environment in which it is installed.
    package : str
        Package whose version is reported.
    """

    name: str
    classifier: Make
    regressor: Make
    about: str
    environment: str = "main"
    package: str = "scikit-learn"


def _paper_classifier(_: Array, seed: int) -> Any:
    return tuned.PaperClassifier(seed)


def _paper_regressor(y: Array, seed: int) -> Any:
    network = make_pipeline(MinMaxScaler(), KARRegressor(random_state=seed))
    sizes = {"karregressor__hidden_layer_sizes": [(width,) for width in WIDTHS]}
    return GridSearchCV(network, sizes, cv=tuned.folds(y, classes=False))


def _cv_classifier(_: Array, seed: int) -> Any:
    from karnet import KARClassifierCV

    return _seeded(KARClassifierCV(), seed)


def _cv_regressor(_: Array, seed: int) -> Any:
    from karnet import KARRegressorCV

    return _seeded(KARRegressorCV(), seed)


def _seeded(estimator: Any, seed: int) -> Any:
    drawn = "random_state" in estimator.get_params()
    return estimator.set_params(random_state=seed) if drawn else estimator


def _forest_classifier(_: Array, seed: int) -> Any:
    return RandomForestClassifier(N_TREES, n_jobs=1, random_state=seed)


def _forest_regressor(_: Array, seed: int) -> Any:
    return RandomForestRegressor(N_TREES, n_jobs=1, random_state=seed)


def _boosting_classifier(_: Array, seed: int) -> Any:
    return HistGradientBoostingClassifier(random_state=seed)


def _boosting_regressor(_: Array, seed: int) -> Any:
    return HistGradientBoostingRegressor(random_state=seed)


def _lightgbm_classifier(_: Array, seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=seed, verbosity=-1)


def _lightgbm_regressor(_: Array, seed: int) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_jobs=1, random_state=seed, verbosity=-1)


def _svm_classifier(_: Array, seed: int) -> Any:
    return tuned.SVMClassifier(seed)


def _svm_regressor(_: Array, seed: int) -> Any:
    return tuned.SVMRegressor(seed)


def _mlp_classifier(y: Array, seed: int) -> Any:
    # Early stopping holds out rows of each class, which is impossible for a class with one row.
    rare = np.unique(y, return_counts=True)[1].min() < 2
    return make_pipeline(
        StandardScaler(), MLPClassifier(early_stopping=not rare, random_state=seed)
    )


def _mlp_regressor(_: Array, seed: int) -> Any:
    network = make_pipeline(StandardScaler(), MLPRegressor(early_stopping=True, random_state=seed))
    return TransformedTargetRegressor(network, transformer=StandardScaler())


def _ridge_classifier(*_: Any) -> Any:
    return make_pipeline(StandardScaler(), RidgeClassifierCV(RIDGES))


def _ridge_regressor(*_: Any) -> Any:
    return make_pipeline(StandardScaler(), RidgeCV(RIDGES))


def _features(seed: int) -> RBFSampler:
    return RBFSampler(gamma="scale", n_components=N_FEATURES, random_state=seed)


def _features_classifier(_: Array, seed: int) -> Any:
    return make_pipeline(StandardScaler(), _features(seed), RidgeClassifierCV(RIDGES))


def _features_regressor(_: Array, seed: int) -> Any:
    return make_pipeline(StandardScaler(), _features(seed), RidgeCV(RIDGES))


def _nystroem_classifier(y: Array, seed: int) -> Any:
    return make_pipeline(StandardScaler(), _nystroem(y, seed), RidgeClassifierCV(RIDGES))


def _nystroem_regressor(y: Array, seed: int) -> Any:
    return make_pipeline(StandardScaler(), _nystroem(y, seed), RidgeCV(RIDGES))


def _nystroem(y: Array, seed: int) -> Nystroem:
    return Nystroem(n_components=min(N_FEATURES, len(y)), random_state=seed)


def _gfdl(network: Any, y: Array, classes: bool) -> GridSearchCV:
    scaled = Pipeline([("scaler", StandardScaler()), ("network", network)])
    return GridSearchCV(scaled, {"network__reg_alpha": GFDL_RIDGES}, cv=tuned.folds(y, classes))


def _gfdl_classifier(y: Array, seed: int) -> Any:
    from gfdl.model import GFDLClassifier

    network = GFDLClassifier((N_FEATURES,), "relu", "normal", seed=seed, reg_alpha=1.0)
    return _gfdl(network, y, classes=True)


def _gfdl_regressor(y: Array, seed: int) -> Any:
    from gfdl.model import GFDLRegressor

    network = GFDLRegressor((N_FEATURES,), "relu", "normal", seed=seed, reg_alpha=1.0)
    search = _gfdl(network, y, classes=False)
    return TransformedTargetRegressor(search, transformer=StandardScaler())


def _xrfm_classifier(_: Array, seed: int) -> Any:
    import xrfm  # noqa: F401 - fails early if it is not installed

    return tuned.XRFMClassifier(seed)


def _xrfm_regressor(_: Array, seed: int) -> Any:
    import xrfm  # noqa: F401

    return tuned.XRFMRegressor(seed)


TABLE = (
    Contender(
        "KAR",
        _paper_classifier,
        _paper_regressor,
        "the paper's network, inputs in [0, 1], width by inner cross-validation",
        package="karnet",
    ),
    Contender("KARCV", _cv_classifier, _cv_regressor, "as it is by default", package="karnet"),
    Contender("RandomForest", _forest_classifier, _forest_regressor, f"{N_TREES} trees"),
    Contender(
        "HistGradientBoosting", _boosting_classifier, _boosting_regressor, "as it is by default"
    ),
    Contender(
        "LightGBM",
        _lightgbm_classifier,
        _lightgbm_regressor,
        "as it is by default",
        package="lightgbm",
    ),
    Contender(
        "SVM",
        _svm_classifier,
        _svm_regressor,
        "RBF, standardised inputs, penalty and width by inner 5-fold cross-validation",
    ),
    Contender("MLP", _mlp_classifier, _mlp_regressor, "standardised inputs, early stopping"),
    Contender(
        "Ridge",
        _ridge_classifier,
        _ridge_regressor,
        "standardised inputs, ridge by leave-one-out; no probabilities",
    ),
    Contender(
        "RBFSampler+Ridge",
        _features_classifier,
        _features_regressor,
        f"standardised inputs, {N_FEATURES} features, ridge by leave-one-out; no probabilities",
    ),
    Contender(
        "Nystroem+Ridge",
        _nystroem_classifier,
        _nystroem_regressor,
        f"the same with {N_FEATURES} rows as centres of a Gaussian kernel, its width the default",
    ),
    Contender(
        "gfdl",
        _gfdl_classifier,
        _gfdl_regressor,
        f"standardised inputs, {N_FEATURES} ReLU units, direct links, ridge by inner 5-fold "
        "cross-validation",
        "gfdl",
        "gfdl",
    ),
    Contender(
        "xRFM",
        _xrfm_classifier,
        _xrfm_regressor,
        "standardised numbers, bandwidth and ridge on a held-out fifth",
        "xrfm",
        "xrfm",
    ),
)
CONTENDERS: Mapping[str, Contender] = MappingProxyType({each.name: each for each in TABLE})
FOREST, OURS = "RandomForest", "KARCV"
