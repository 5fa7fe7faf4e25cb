"""Contenders whose `fit` selects their parameters on the training rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, KFold, ParameterGrid, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR

from karnet import KARClassifier
from karnet.paper.protocol import Coding, MixedRows, choose_width, one_hot

Array = NDArray[Any]

N_INNER_FOLDS = 5
# Number of rows above which parameters are selected on a sample of this size.
MANY_ROWS, SAMPLE = 4000, 3000
# Grids of support vector machines: the penalty, and the inverse width times the columns.
PENALTIES, INVERSE_WIDTHS = (0.5, 2.0, 8.0, 32.0, 128.0), (1 / 16, 1 / 4, 1.0, 4.0)
# Grids of xRFM; all other parameters are its defaults.
XRFM_GRID = {"bandwidth": (3.0, 10.0, 30.0), "reg": (1e-3, 1e-1)}
XRFM_ITERATIONS, XRFM_VALIDATION = 5, 0.2


def folds(y: Array, classes: bool = True) -> list[tuple[Array, Array]]:
    """Return folds of the training rows; a class may have fewer rows than folds."""
    if not classes:
        return list(KFold(N_INNER_FOLDS, shuffle=True, random_state=0).split(y))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splitter = StratifiedKFold(N_INNER_FOLDS, shuffle=True, random_state=0)
        return list(splitter.split(np.zeros(len(y)), y))


def spread(y: Array, n: int, seed: int) -> Array:
    """Return n random rows whose targets have the same distribution as y."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    return np.asarray(order[((np.arange(n) + 0.5) * len(y) / n).astype(int)])


def for_choosing(y: Array, seed: int) -> Array:
    """Return the rows on which parameters are selected: all, or a sample if there are many."""
    return spread(y, SAMPLE, seed) if len(y) > MANY_ROWS else np.arange(len(y))


class Seeded(BaseEstimator):
    """An estimator whose only parameter is the seed of its samples, splits and weights."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state


class PaperClassifier(ClassifierMixin, Seeded):
    """The paper's network: inputs in [0, 1], width by 10-fold cross-validation."""

    def fit(self, X: Array, y: Array) -> Self:
        """Select the width, then fit the network."""

        def make(width: int) -> KARClassifier:
            return KARClassifier((width,), random_state=self.random_state)

        rows = MixedRows(np.zeros((len(X), 0), dtype=np.intp), X)
        width = choose_width(make, rows, y, self.random_state, Coding(one_hot))
        self.model_ = make_pipeline(MinMaxScaler(), make(width)).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Array) -> Array:
        """Return the class of each row."""
        return np.asarray(self.model_.predict(X))

    def predict_proba(self, X: Array) -> Array:
        """Return the probability of each class."""
        return np.asarray(self.model_.predict_proba(X))


def _gammas(X: Array) -> list[float]:
    """Return inverse widths for standardised inputs; constant columns are not counted."""
    return [factor / max(1, np.sum(np.ptp(X, axis=0) > 0.0)) for factor in INVERSE_WIDTHS]


class SVMClassifier(ClassifierMixin, Seeded):
    """RBF machine on standardised inputs; only its probabilities are calibrated."""

    def fit(self, X: Array, y: Array) -> Self:
        """Select penalty and width by 5-fold cross-validation, then fit and calibrate on all."""
        rows = for_choosing(y, self.random_state)
        machine = make_pipeline(StandardScaler(), SVC(cache_size=500))
        grid = {"svc__C": PENALTIES, "svc__gamma": _gammas(X)}
        search = GridSearchCV(machine, grid, cv=folds(y[rows]), refit=False)
        search.fit(X[rows], y[rows])
        self.best_score_, self.best_params_ = search.best_score_, search.best_params_
        machine.set_params(**search.best_params_)
        self.model_ = CalibratedClassifierCV(machine, cv=folds(y), ensemble=False).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Array) -> Array:
        """Return the class of each row, without calibration."""
        return np.asarray(self.model_.calibrated_classifiers_[0].estimator.predict(X))

    def predict_proba(self, X: Array) -> Array:
        """Return the calibrated probability of each class."""
        return np.asarray(self.model_.predict_proba(X))


class SVMRegressor(RegressorMixin, Seeded):
    """RBF machine on standardised inputs and targets."""

    def fit(self, X: Array, y: Array) -> Self:
        """Select penalty and width by 5-fold cross-validation, then fit on all rows."""
        rows = for_choosing(y, self.random_state)
        machine = make_pipeline(StandardScaler(), SVR(cache_size=500))
        scaled = TransformedTargetRegressor(machine, transformer=StandardScaler())
        grid = {"regressor__svr__C": PENALTIES, "regressor__svr__gamma": _gammas(X)}
        search = GridSearchCV(scaled, grid, cv=folds(y[rows], classes=False), refit=False)
        search.fit(X[rows], y[rows])
        self.best_score_, self.best_params_ = search.best_score_, search.best_params_
        self.model_ = scaled.set_params(**search.best_params_).fit(X, y)
        return self

    def predict(self, X: Array) -> Array:
        """Return the prediction for each row."""
        return np.asarray(self.model_.predict(X))


class _XRFM(Seeded):
    """xRFM with bandwidth and ridge selected on the fifth of the rows on which it validates.

    Numbers are standardised, but not columns of 0 and 1, as its authors advise. With an empty grid,
    all parameters are xRFM's defaults.
    """

    metric: str
    grid: Mapping[str, Any] = XRFM_GRID

    def _learn(self, X: Array, y: Array) -> None:
        numbers = np.flatnonzero(~np.isin(X, (0.0, 1.0)).all(axis=0))
        self.scaler_ = ColumnTransformer(
            [("numbers", StandardScaler(), numbers)], remainder="passthrough"
        ).fit(X)
        X = self.scaler_.transform(X)
        points = list(ParameterGrid(dict(self.grid)))
        rows = for_choosing(y, self.random_state) if len(points) > 1 else np.arange(len(y))
        tried = [self._fitted(X[rows], y[rows], point) for point in points]
        loss, point, model = min(tried, key=lambda each: each[0])
        self.model_ = model if len(rows) == len(y) else self._fitted(X, y, point)[2]
        self.best_params_, self.best_loss_ = point, loss

    def _fitted(self, X: Array, y: Array, point: dict[str, float]) -> tuple[float, Any, Any]:
        """Return the loss on the held-out fifth, the parameters and the model."""
        held = np.isin(np.arange(len(y)), spread(y, self._n_held(y), self.random_state))
        model = _xrfm(self.metric, self.random_state, **point)
        model.fit(X[~held], y[~held], X[held], y[held])
        return self._loss(model, X[held], y[held]), point, model

    @staticmethod
    def _n_held(y: Array) -> int:
        return max(1, round(XRFM_VALIDATION * len(y)))

    def _loss(self, model: Any, X: Array, y: Array) -> float:
        raise NotImplementedError


def _xrfm(metric: str, seed: int, **point: float) -> Any:
    import torch
    from xrfm import xRFM

    torch.set_num_threads(1)
    return xRFM(
        _xrfm_parameters(**point) if point else None,
        device=torch.device("cpu"),
        tuning_metric=metric,
        n_threads=1,
        random_state=seed,
        verbose=False,
    )


def _xrfm_parameters(bandwidth: float, reg: float) -> dict[str, Any]:
    return {
        "model": {
            "kernel": "l2",
            "exponent": 1.0,
            "bandwidth": bandwidth,
            "diag": False,
            "bandwidth_mode": "constant",
        },
        "fit": {
            "reg": reg,
            "iters": XRFM_ITERATIONS,
            "return_best_params": True,
            "early_stop_rfm": True,
        },
    }


class XRFMClassifier(ClassifierMixin, _XRFM):
    """xRFM for classes 0, 1, 2, ..."""

    metric = "brier"

    def fit(self, X: Array, y: Array) -> Self:
        """Select the parameters and fit the model."""
        self.classes_ = np.arange(y.max() + 1)
        self._learn(X, y)
        return self

    def _loss(self, model: Any, X: Array, y: Array) -> float:
        return float(np.mean((model.predict_proba(X) - np.eye(len(self.classes_))[y]) ** 2))

    def predict(self, X: Array) -> Array:
        """Return the class of each row."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def predict_proba(self, X: Array) -> Array:
        """Return the probability of each class."""
        return np.asarray(self.model_.predict_proba(self.scaler_.transform(X)))


class XRFMRegressor(RegressorMixin, _XRFM):
    """xRFM for standardised targets."""

    metric = "mse"

    def fit(self, X: Array, y: Array) -> Self:
        """Select the parameters and fit the model."""
        self.mean_, self.scale_ = y.mean(), y.std()
        self._learn(X, (y - self.mean_) / self.scale_)
        return self

    def _loss(self, model: Any, X: Array, y: Array) -> float:
        return float(np.mean((np.ravel(model.predict(X)) - y) ** 2))

    def predict(self, X: Array) -> Array:
        """Return the prediction for each row."""
        found = np.ravel(self.model_.predict(self.scaler_.transform(X)))
        return np.asarray(self.mean_ + self.scale_ * found)
