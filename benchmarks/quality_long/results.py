"""The result of one fit, and its key in the store."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import NamedTuple


class Key(NamedTuple):
    """The key of a fit: contender, table, and version of the contender's package."""

    contender: str
    dataset: str
    version: str


@dataclass(frozen=True)
class Result:
    """The result of a contender that was fitted to a table and scored on its held-out rows.

    Attributes
    ----------
    contender, dataset, version : str
        The method, the table, and the method's package with its version.
    kind : {"classification", "regression"}
        Kind of the target.
    n_train, n_test, n_columns : int
        Numbers of training rows, of held-out rows and of columns.
    accuracy, log_loss, brier : float
        Scores of a classifier on the held-out rows.
    rmse, r2 : float
        Scores of a regressor on the held-out rows.
    best_score : float
        The estimator's own `best_score_`; NaN if it has none.
    fit_wall, fit_cpu : float
        Seconds of the fit.
    predict_wall, predict_cpu : float
        Seconds of the predictions for all held-out rows.
    predict_one : float
        Seconds of the prediction for one row.
    memory : float
        Peak resident memory during the fit minus that before it, in bytes.
    machine, versions : str
        The machine, and the versions of Python and of all relevant packages.
    measured : str
        Time of the measurement in UTC.
    error : str
        The reason why there are no numbers; empty if there are.
    """

    contender: str
    dataset: str
    version: str
    kind: str
    n_train: int
    n_test: int
    n_columns: int
    accuracy: float = nan
    log_loss: float = nan
    brier: float = nan
    rmse: float = nan
    r2: float = nan
    best_score: float = nan
    fit_wall: float = nan
    fit_cpu: float = nan
    predict_wall: float = nan
    predict_cpu: float = nan
    predict_one: float = nan
    memory: float = nan
    machine: str = ""
    versions: str = ""
    measured: str = ""
    error: str = ""
