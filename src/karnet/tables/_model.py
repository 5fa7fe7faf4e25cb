"""Models of tables: what turns columns into numbers, and the network behind it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import FitFailedWarning
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from skrub import StringEncoder, TableVectorizer

from .._arrays.namespace import check_device
from ..estimators import KARClassifier, KARRegressor
from ..paper.protocol import WIDTHS
from ..selection import KARClassifierCV, KARRegressorCV
from ._names import listed
from ._table import Table
from ._target import Target, find_target

__all__ = [
    "SEED",
    "WIDE",
    "TableFit",
    "columns_of",
    "device_of",
    "encoded",
    "fit_table",
    "predict_table",
    "seen_by_network",
    "target_of",
    "vectorizer",
]

# Above so many columns only numbers are taken, as they are.
WIDE = 10_000
# Folds that choose the width of the paper's network.
FOLDS = 10
# Kinds of columns that the vectoriser takes for text.
TEXT = ("low_cardinality", "high_cardinality")
SEED = 0


@dataclass(frozen=True)
class TableFit:
    """A model that was fitted on a table.

    Attributes
    ----------
    model : Pipeline
        Vectoriser, imputer and network; its `table_` says what it was fitted on.
    target : Target
        What it predicts.
    score : float
        The accuracy or R^2 of rows that were left out.
    judged_by : str
        How they were left out.
    left_out : tuple of Table and ndarray, optional
        Rows that had no part in the model, and their targets, if there are any.
    sample : Table, optional
        Some rows of a table that does not fit in memory.
    """

    model: Any
    target: Target
    score: float
    judged_by: str
    left_out: tuple[Table, NDArray[Any]] | None = None
    sample: Table | None = None


def fit_table(
    table: Table, target: str | Target, task: str = "auto", paper: bool = False, device: str = "cpu"
) -> TableFit:
    """Fit a model that predicts one column of a table from all others, taken as they are.

    Parameters
    ----------
    table : Table
        The table. Numbers, dates, categories, text and gaps are told by skrub's TableVectorizer;
        more than 10000 columns must be numbers.
    target : str or Target
        The name of the column to be predicted, or what `find_target` found.
    task : {"auto", "classification", "regression"}
        The task, or "auto" to infer it.
    paper : bool
        Whether to learn the paper's own network, its width chosen by 10 folds, and not the average
        that settles everything.
    device : str
        Where to learn: "cpu", or a device of torch such as "cuda".

    Returns
    -------
    TableFit
    """
    if isinstance(target, str):
        target = find_target(table, target, task)
    rows = table if target.known.all() else table.take(target.known)
    names = [name for name in table.names if name != target.name]
    if not names:
        raise ValueError(f"{table.name} has no column beside the target {target.name!r}.")
    network = _network(target.task, paper, device)
    encoder = () if len(names) > WIDE else (("vectorizer", vectorizer()),)
    V = encoded(dict(encoder).get("vectorizer"), rows, names, fit=True)
    steps = [("imputer", SimpleImputer(strategy="median", keep_empty_features=True))]
    if paper:
        scaled = [*steps, ("scaler", MinMaxScaler()), ("network", network)]
        learned, score, how = _chosen(Pipeline(scaled), V, target)
    else:
        learned = Pipeline([*steps, ("network", network)]).fit(V, target.y)
        score, how = float(learned[-1].best_score_), "leave-one-out"
    model = Pipeline([*encoder, *_at_home(learned).steps])
    about = {"target": target.name, "task": target.task, "columns": names, "rows": len(rows)}
    model.table_ = about | {"score": score, "judged_by": how}
    return TableFit(model, target, score, how)


def vectorizer() -> TableVectorizer:
    """Return what makes numbers of columns.

    A category that is not known has no indicator, so none of the known ones may have none either.
    """
    indicators = OneHotEncoder(dtype="float32", handle_unknown="ignore", sparse_output=False)
    return TableVectorizer(
        low_cardinality=indicators, high_cardinality=StringEncoder(random_state=SEED)
    )


def _network(task: str, paper: bool, device: str) -> Any:
    kinds: dict[tuple[str, bool], Any] = {
        ("classification", False): KARClassifierCV,
        ("regression", False): KARRegressorCV,
        ("classification", True): KARClassifier,
        ("regression", True): KARRegressor,
    }
    return kinds[task, paper](device=device_of(device), random_state=SEED)


def device_of(name: str) -> str | None:
    """Return what a network knows a device by, if it can be used here."""
    return None if name == "cpu" else str(check_device(name))


def _at_home(learned: Any) -> Any:
    """Return what was learned on a device, to be used wherever its file is read."""
    learned[-1].set_params(device=None)
    return learned


def _chosen(pipeline: Pipeline, V: Any, target: Target) -> tuple[Pipeline, float, str]:
    """Return the pipeline with the width of the best score over folds, fitted on all rows."""
    classes = target.task == "classification"
    most = np.unique(target.y, return_counts=True)[1].max() if classes else len(target.y)
    n_folds = int(min(FOLDS, most))
    if n_folds < 2:
        raise ValueError("the paper's network needs a class with two rows to choose its width by.")
    splits = (StratifiedKFold if classes else KFold)(n_folds, shuffle=True, random_state=SEED)
    sizes = {"network__hidden_layer_sizes": [(width,) for width in WIDTHS]}
    with warnings.catch_warnings():
        # Classes with fewer rows than there are folds are no reason not to choose a width.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        warnings.simplefilter("ignore", FitFailedWarning)
        search = GridSearchCV(pipeline, sizes, cv=splits, error_score=0.0).fit(V, target.y)
    return search.best_estimator_, float(search.best_score_), f"{n_folds} folds"


def encoded(transform: Any, table: Table, names: Sequence[str], fit: bool = False) -> Any:
    """Return the columns as numbers, gaps as NaN; infinite ones are refused by name."""
    if transform is None:
        V = pd.DataFrame(table.numbers(names), columns=list(names))
    else:
        text = () if fit else [n for n, kind in transform.column_to_kind_.items() if kind in TEXT]
        X = table.frame(names, text)
        try:
            V = transform.fit_transform(X) if fit else transform.transform(X)
        except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise ValueError(f"{table.name} cannot be made numbers of: {said[0][:200]}") from error
    if not V.shape[1]:
        raise ValueError(f"no column of {table.name} beside the target holds anything to learn.")
    infinite = np.isinf(V.to_numpy()).any(axis=0)
    if infinite.any():
        columns = list(np.asarray(V.columns)[infinite])
        raise ValueError(
            f"{table.name} holds infinite or too large numbers in {listed(columns)}: empty such "
            "cells, or give the column in another unit."
        )
    return V


def predict_table(model: Any, table: Table, proba: bool = False) -> NDArray[Any]:
    """Return what a model predicts for each row of a table, its columns found by name.

    Parameters
    ----------
    model : Pipeline or estimator
        A model of `fit_table`, or any that was fitted on named columns.
    table : Table
        The table. Other columns and another order do not matter.
    proba : bool
        Whether to return probabilities of classes.

    Returns
    -------
    ndarray of shape (n_rows,), or (n_rows, n_classes) for probabilities
    """
    if proba and not hasattr(model, "predict_proba"):
        raise ValueError("the model predicts numbers, which have no probabilities of classes.")
    network = model[-1] if hasattr(model, "steps") else model
    X = seen_by_network(model, table)
    return np.asarray(network.predict_proba(X) if proba else network.predict(X))


def seen_by_network(model: Any, table: Table) -> Any:
    """Return the rows of a table as the network at the end of a model sees them."""
    names = columns_of(model)
    steps = list(getattr(model, "steps", [("network", model)]))
    encodes = hasattr(steps[0][1], "column_to_kind_")
    X = encoded(steps.pop(0)[1] if encodes else None, table, names)
    for _, step in steps[:-1]:
        X = step.transform(X)
    return X


def columns_of(model: Any) -> list[str]:
    """Return the names of the columns that a model was fitted on."""
    about = getattr(model, "table_", None)
    names = about["columns"] if about else getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            "the model was fitted on an array without column names: fit it on a data frame or with "
            "'karnet fit' to use it on tables."
        )
    return [str(name) for name in names]


def target_of(model: Any) -> str | None:
    """Return the name of the column that a model predicts, if it is known."""
    about = getattr(model, "table_", None)
    return str(about["target"]) if about else None
