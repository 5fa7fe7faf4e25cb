"""The contenders, all with default parameters: those of the small tables and a few more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from ..quality import peers, tuned
from ..quality.peers import FOREST, Contender

Array = NDArray[Any]

OURS = "karnet"
N_TREES = 200


def _forest_classifier(_: Array, seed: int) -> Any:
    return RandomForestClassifier(N_TREES, n_jobs=1, random_state=seed)


def _forest_regressor(_: Array, seed: int) -> Any:
    return RandomForestRegressor(N_TREES, n_jobs=1, random_state=seed)


def _xgboost_classifier(_: Array, seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1, random_state=seed)


def _xgboost_regressor(_: Array, seed: int) -> Any:
    from xgboost import XGBRegressor

    return XGBRegressor(n_jobs=1, random_state=seed)


def _catboost_classifier(_: Array, seed: int) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(**_quiet(seed))


def _catboost_regressor(_: Array, seed: int) -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(**_quiet(seed))


def _quiet(seed: int) -> dict[str, Any]:
    return {
        "thread_count": 1,
        "random_seed": seed,
        "verbose": False,
        "allow_writing_files": False,
    }


class _DefaultXRFMClassifier(tuned.XRFMClassifier):
    grid = MappingProxyType({})


class _DefaultXRFMRegressor(tuned.XRFMRegressor):
    grid = MappingProxyType({})


def _xrfm_classifier(_: Array, seed: int) -> Any:
    import xrfm  # noqa: F401 - fails early if it is not installed

    return _DefaultXRFMClassifier(seed)


def _xrfm_regressor(_: Array, seed: int) -> Any:
    import xrfm  # noqa: F401

    return _DefaultXRFMRegressor(seed)


_SMALL = peers.CONTENDERS
_DEFAULT = "default parameters"
TABLE = (
    replace(
        _SMALL["KARCV"],
        name=OURS,
        about="`KARClassifierCV` and `KARRegressorCV` with default parameters",
    ),
    _SMALL["LightGBM"],
    Contender("XGBoost", _xgboost_classifier, _xgboost_regressor, _DEFAULT, package="xgboost"),
    Contender("CatBoost", _catboost_classifier, _catboost_regressor, _DEFAULT, package="catboost"),
    _SMALL["HistGradientBoosting"],
    replace(
        _SMALL[FOREST],
        classifier=_forest_classifier,
        regressor=_forest_regressor,
        about=f"{N_TREES} trees",
    ),
    replace(
        _SMALL["xRFM"],
        classifier=_xrfm_classifier,
        regressor=_xrfm_regressor,
        about="default parameters; standardised numbers, a held-out fifth of the training rows "
        "for its own validation",
    ),
)
CONTENDERS: Mapping[str, Contender] = MappingProxyType({each.name: each for each in TABLE})
