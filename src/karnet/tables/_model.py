"""Models of tables: pipelines that encode columns as numbers for a network.

Further functions describe the columns of a model, and replace skrub's vectoriser for export.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import FitFailedWarning
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from skrub import StringEncoder, TableVectorizer

from .._arrays.namespace import check_device
from .._util.progress import Report
from ..estimators import KARClassifier, KARRegressor
from ..selection import KARClassifierCV, KARRegressorCV
from ._names import input_names, listed
from ._sizes import SIZES
from ._table import Table
from ._target import Target, find_target

# Kinds of columns that the vectoriser encodes from text.
TEXT_KINDS = ("low_cardinality", "high_cardinality")
# The words of users for skrub's kinds of columns.
KINDS = {
    "numeric": "number",
    "datetime": "date",
    "low_cardinality": "category",
    "high_cardinality": "text",
}
# The description of a column that the vectoriser drops.
NOT_USED = "empty: not used"
# The seed of everything that is drawn when a table is fitted.
SEED = 0


@dataclass(frozen=True)
class TableFit:
    """A model fitted on a table.

    Attributes
    ----------
    model : Pipeline
        Vectoriser, imputer and network; its attribute `table_` describes the table.
    target : Target
        The column that the model predicts.
    score : float
        The accuracy or R^2 on left-out rows.
    judged_by : str
        How these rows were left out.
    left_out : tuple of Table and ndarray, optional
        Rows that the model was not fitted on, and their targets.
    sample : Table, optional
        A sample of the rows of a table that does not fit in memory.
    """

    model: Any
    target: Target
    score: float
    judged_by: str
    left_out: tuple[Table, NDArray[Any]] | None = None
    sample: Table | None = None


def fit_table(
    table: Table,
    target: str | Target,
    task: str = "auto",
    paper: bool = False,
    device: str = "cpu",
    tell: Report | None = None,
) -> TableFit:
    """Fit a model that predicts one column of a table from all other columns.

    Parameters
    ----------
    table : Table
        The table. skrub's TableVectorizer tells numbers, dates, categories, text and gaps apart;
        a table of more than 10000 columns must hold numbers only.
    target : str or Target
        The name of the column to predict, or the result of `find_target`.
    task : {"auto", "classification", "regression"}
        The task, or "auto" to infer it.
    paper : bool
        Whether to fit the paper's network, its width chosen by 10-fold cross-validation, instead of
        the averaged networks that select all hyper-parameters by leave-one-out.
    device : str
        Where to fit: "cpu", or a device such as "cuda".
    tell : callable, optional
        A function that is called after each step of the fit. Its argument describes the step as
        text if it is printed. The paper's network has no such steps.

    Returns
    -------
    TableFit
    """
    if isinstance(target, str):
        target = find_target(table, target, task)
    rows = table if target.known.all() else table.take(target.known)
    names = input_names(table.names, target.name, table.name)
    classes = (KARClassifier, KARRegressor) if paper else (KARClassifierCV, KARRegressorCV)
    kind: Any = classes[target.task == "regression"]
    network = kind(device=device_of(device), random_state=SEED)
    vectorizer = vectorizer_for(names)
    V = encoded(vectorizer, rows, names, fit=True)
    if paper:
        scaled = [("imputer", imputer()), ("scaler", MinMaxScaler()), ("network", network)]
        fitted, score, how = _with_best_width(Pipeline(scaled), V, target)
    else:
        filled = (gaps := imputer()).fit_transform(V)
        network._fit((filled, target.y, None), tell)
        fitted = Pipeline([("imputer", gaps), ("network", network)])
        score, how = float(fitted[-1].best_score_), "leave-one-out"
    # The model file must load on machines without the device.
    fitted[-1].set_params(device=None)
    return table_fit(vectorizer, fitted.steps, names, target, score, how)


def vectorizer_for(names: Sequence[str]) -> TableVectorizer | None:
    """Return the encoder of these columns; None for very many columns."""
    if len(names) > SIZES.max_vectorized_columns:
        return None
    # A new category has all indicators zero, so each known category keeps an indicator of its own.
    indicators = OneHotEncoder(dtype="float32", handle_unknown="ignore", sparse_output=False)
    text = StringEncoder(random_state=SEED)
    return TableVectorizer(low_cardinality=indicators, high_cardinality=text)


def imputer() -> SimpleImputer:
    """Return the pipeline step that fills gaps."""
    return SimpleImputer(strategy="median", keep_empty_features=True)


def device_of(name: str) -> str | None:
    """Return the `device` parameter of a network for a device that is available here."""
    return None if name == "cpu" else str(check_device(name))


def table_fit(
    vectorizer: Any, steps: list[Any], names: list[str], target: Target, score: float, how: str
) -> TableFit:
    """Return the complete model, with a description of its table."""
    encoder = [] if vectorizer is None else [("vectorizer", vectorizer)]
    model = Pipeline([*encoder, *steps])
    about = {"target": target.name, "task": target.task, "columns": names, "rows": len(target.y)}
    model.table_ = about | {"score": score, "judged_by": how}
    return TableFit(model, target, score, how)


def _with_best_width(pipeline: Pipeline, V: Any, target: Target) -> tuple[Pipeline, float, str]:
    """Return the pipeline of the best cross-validated width, fitted on all rows."""
    classes = target.task == "classification"
    largest = np.unique(target.y, return_counts=True)[1].max() if classes else len(target.y)
    n_folds = int(min(SIZES.paper_folds, largest))
    if n_folds < 2:
        raise ValueError("the paper's network needs a class with two rows to choose its width by.")
    splits = (StratifiedKFold if classes else KFold)(n_folds, shuffle=True, random_state=SEED)
    sizes = {"network__hidden_layer_sizes": [(width,) for width in SIZES.paper_widths]}
    with warnings.catch_warnings():
        # A width can be chosen although some classes have fewer rows than there are folds.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        warnings.simplefilter("ignore", FitFailedWarning)
        search = GridSearchCV(pipeline, sizes, cv=splits, error_score=0.0).fit(V, target.y)
    return search.best_estimator_, float(search.best_score_), f"{n_folds} folds"


def encoded(transform: Any, table: Table, names: Sequence[str], fit: bool = False) -> Any:
    """Return the columns as numbers, gaps as NaN; refuse infinite numbers by column name."""
    if transform is None:
        V = pd.DataFrame(table.numbers(names), columns=list(names))
    else:
        kinds = {} if fit else transform.column_to_kind_
        X = table.frame(names, [name for name, kind in kinds.items() if kind in TEXT_KINDS])
        try:
            V = transform.fit_transform(X) if fit else transform.transform(X)
        except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ValueError(f"{table.name} cannot be encoded: {lines[0][:200]}") from error
    if not V.shape[1]:
        raise ValueError(f"all columns of {table.name} other than the target are empty.")
    infinite = np.isinf(V.to_numpy()).any(axis=0)
    if infinite.any():
        columns = list(np.asarray(V.columns)[infinite])
        raise ValueError(
            f"{table.name} holds infinite or too large numbers in {listed(columns)}: empty such "
            "cells, or give the column in another unit."
        )
    return V


def predict_table(model: Any, table: Table, proba: bool = False) -> NDArray[Any]:
    """Return the predictions of a model for all rows of a table.

    Parameters
    ----------
    model : Pipeline or estimator
        A model of `fit_table`, or any estimator fitted on named columns.
    table : Table
        The table. Columns are found by name; their order and further columns do not matter.
    proba : bool
        Whether to return class probabilities.

    Returns
    -------
    ndarray of shape (n_rows,), or (n_rows, n_classes) for probabilities
    """
    if proba and not hasattr(model, "predict_proba"):
        raise ValueError("the model predicts numbers, which have no class probabilities.")
    network = model[-1] if hasattr(model, "steps") else model
    X = seen_by_network(model, table)
    return np.asarray(network.predict_proba(X) if proba else network.predict(X))


def seen_by_network(model: Any, table: Table) -> Any:
    """Return the inputs of the network at the end of a model, for all rows of a table."""
    vectorizer = vectorizer_of(model)
    X = encoded(vectorizer, table, columns_of(model))
    for _, step in getattr(model, "steps", [])[vectorizer is not None : -1]:
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
    """Return the name of the column that a model predicts, or None if the model lacks it."""
    about = getattr(model, "table_", None)
    return str(about["target"]) if about else None


def vectorizer_of(model: Any) -> Any:
    """Return the vectoriser at the start of a model, or None."""
    first = model.steps[0][1] if hasattr(model, "steps") else None
    return first if hasattr(first, "column_to_kind_") else None


def kinds_of(model: Any) -> dict[str, str]:
    """Return the kind of each column of a model: number, date, category or text."""
    vectorizer = vectorizer_of(model)
    if vectorizer is None:
        return dict.fromkeys(columns_of(model), "number")
    kinds = vectorizer.column_to_kind_
    return {name: KINDS.get(kinds.get(name, ""), NOT_USED) for name in columns_of(model)}


def importances_of(model: Any) -> dict[str, float]:
    """Return the importance of each column of a model; importances sum to one.

    The importance of a column is the sum of the network's feature importances over all features
    that the column was encoded as. The result is empty if the network has no importances.
    """
    network = model[-1] if hasattr(model, "steps") else model
    weights = getattr(network, "feature_importances_", None)
    if weights is None:
        return {}
    names, vectorizer = columns_of(model), vectorizer_of(model)
    total, inputs = dict.fromkeys(names, 0.0), names
    if vectorizer is not None:
        inputs = [vectorizer.output_to_input_[output] for output in vectorizer.all_outputs_]
    for name, weight in zip(inputs, weights, strict=True):
        total[name] += float(weight)
    return total


def portable(model: Any) -> tuple[Any, Any]:
    """Return the model with a ColumnTransformer in place of its vectoriser, and an example row.

    Numbers pass through in single precision, as in the vectoriser; categories become indicators,
    with empty text for a gap. Columns of dates and text are refused by name. A model without a
    vectoriser is returned as it is, with None.
    """
    first = vectorizer_of(model)
    if first is None:
        return model, None
    kinds = kinds_of(model)
    other = [name for name, kind in kinds.items() if kind in ("date", "text")]
    if other:
        raise ValueError(
            f"dates and text cannot be exported, and the model uses {listed(other)}: fit a model "
            "without them."
        )
    steps, row = [], {}
    for name in dict.fromkeys(first.output_to_input_[output] for output in first.all_outputs_):
        if kinds[name] == "category":
            encoder = _encoder(first.transformers_[name])
            steps.append((name, encoder, [name]))
            row[name] = np.array([encoder.categories[0][0]], dtype=object)
        else:
            steps.append((name, "passthrough", [name]))
            row[name] = np.zeros(1, dtype=np.float32)
    X = pd.DataFrame(row)
    columns = ColumnTransformer(steps).fit(X)
    return Pipeline([("columns", columns), *model.steps[1:]]), X


def _encoder(fitted: OneHotEncoder) -> OneHotEncoder:
    """Return an encoder of the same categories, with empty text for a gap."""
    names = ["" if name is None or name != name else str(name) for name in fitted.categories_[0]]
    return OneHotEncoder(
        categories=[np.array(names, dtype=object)],
        dtype=np.float32,
        handle_unknown="ignore",
        sparse_output=False,
    )
