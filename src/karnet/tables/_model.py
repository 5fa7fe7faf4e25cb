"""Models of tables: estimators that are fitted on data frames, and steps before them.

The averaged networks take columns of numbers, dates and categories as they are. Text is encoded
before them, and all columns before networks that need numbers.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import FitFailedWarning
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler
from skrub import ApplyToCols, StringEncoder

from .._arrays.namespace import check_device
from .._columns.encoder import Dates, Labels, Numbers
from .._estimator.ensemble_base import (
    ColumnEncoder,
    KARNetworkCV,
    encoder_of,
    fit_and_report,
    rows_of,
    shares_of_error,
)
from .._util.messages import shown
from .._util.progress import Report
from ..estimators import KARClassifier, KARRegressor
from ..selection import KARClassifierCV, KARRegressorCV
from ._columns import CATEGORY, DATE, EMPTY, NUMBER, TEXT, Columns
from ._names import input_names, listed
from ._sizes import SIZES
from ._table import Table
from ._target import Target, find_target

# The kind of a column by the type of its encoding.
ENCODED = {Numbers: NUMBER, Labels: CATEGORY, Dates: DATE}
# What separates the classes of a prediction set.
SEPARATOR = "|"
# The seed of everything that is drawn when a table is fitted.
SEED = 0


@dataclass(frozen=True)
class TableFit:
    """A model fitted on a table.

    Attributes
    ----------
    model : estimator or Pipeline
        The estimator, which is in a pipeline if some columns are encoded before it. Its attribute
        `table_` describes the table.
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
        The table. Its cells are read as numbers, dates, categories, text and gaps; a table of
        more than 10000 columns must hold numbers only.
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
    columns = Columns.of(rows, names)
    steps, X = fitted_steps(columns, columns.frame(rows), only_numbers=paper)
    if paper:
        scaled = Pipeline([("scaler", MinMaxScaler()), ("network", network)])
        best, score, how = _with_best_width(scaled, X, target)
        steps += best.steps
    else:
        fit_and_report(network, X, target.y, tell)
        steps.append(("network", network))
        score, how = float(network.best_score_), "leave-one-out"
    return table_fit(steps, columns, target, score, how)


def fitted_steps(columns: Columns, X: Any, only_numbers: bool) -> tuple[list[Any], Any]:
    """Return the steps before a network, fitted on rows, and these rows after them.

    skrub's StringEncoder replaces text by numbers. With `only_numbers`, all other columns are
    encoded too, as the averaged networks encode them. Very many columns have their gaps filled.
    """
    steps: list[Any] = []
    if texts := columns.named(TEXT):
        text = StringEncoder(random_state=SEED)
        steps.append(("text", ApplyToCols(text, cols=texts)))
    if len(columns.kinds) > SIZES.max_encoded_columns:
        steps.append(("imputer", SimpleImputer(strategy="median", keep_empty_features=True)))
    elif only_numbers:
        steps.append(("encoder", ColumnEncoder()))
    for _, step in steps:
        X = step.fit_transform(X)
    return steps, X


def device_of(name: str) -> str | None:
    """Return the `device` parameter of a network for a device that is available here."""
    return None if name == "cpu" else str(check_device(name))


def table_fit(
    steps: list[Any],
    columns: Columns,
    target: Target,
    score: float,
    how: str,
    fitted: NDArray[np.bool_] | None = None,
) -> TableFit:
    """Return the complete model, with a description of its table.

    `fitted` says which of the rows with a target the model was fitted on, if not on all.
    """
    network = steps[-1][1]
    # The model file must load on machines without the device.
    network.set_params(device=None)
    model = Pipeline(steps) if len(steps) > 1 else network
    model.table_ = {
        "target": target.name,
        "task": target.task,
        "columns": columns.kinds,
        "date_formats": columns.formats,
        "rows": len(target.y),
        "score": score,
        "judged_by": how,
    }
    places = np.flatnonzero(target.known)
    model.table_rows_ = places if fitted is None else places[fitted]
    if len(model.table_rows_) == len(target.known):  # no row was left out
        model.table_rows_ = None
    return TableFit(model, target, score, how)


def _with_best_width(pipeline: Pipeline, X: Any, target: Target) -> tuple[Pipeline, float, str]:
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
        search = GridSearchCV(pipeline, sizes, cv=splits, error_score=0.0).fit(X, target.y)
    return search.best_estimator_, float(search.best_score_), f"{n_folds} folds"


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
    return _predicted(network_of(model), inputs_of(model, table), proba)


def _predicted(network: Any, X: Any, proba: bool) -> NDArray[Any]:
    if proba and not hasattr(network, "predict_proba"):
        raise ValueError("the model predicts numbers, which have no class probabilities.")
    return np.asarray(network.predict_proba(X) if proba else network.predict(X))


def prediction_columns(
    model: Any, table: Table, proba: bool = False, coverage: float | None = None
) -> dict[str, NDArray[Any]]:
    """Return the predictions of a model for all rows of a table, as columns with names.

    Parameters
    ----------
    model : Pipeline or estimator
        A model of `fit_table`, or any estimator fitted on named columns.
    table : Table
        The table, as in `predict_table`.
    proba : bool
        Whether to add a column with the probability of each class.
    coverage : float, optional
        The probability with which prediction intervals or sets contain the target. The ends of
        intervals are two further columns, and the classes of a set are in one, separated by "|".

    Returns
    -------
    dict of str to ndarray
        The columns; the first is named after the target.
    """
    network, X = network_of(model), inputs_of(model, table)
    name, predictions = target_of(model) or "prediction", _predicted(network, X, proba)
    columns = {name: predictions}
    if proba:
        columns[name] = network.classes_[predictions.argmax(axis=1)]
        pairs = zip(network.classes_, predictions.T, strict=True)
        columns |= {f"p({each})": column for each, column in pairs}
    if coverage is None:
        return columns
    if hasattr(network, "predict_interval"):
        low, high = network.predict_interval(X, coverage).T
        return columns | {f"{name}_low": low, f"{name}_high": high}
    if not hasattr(network, "predict_set"):
        raise ValueError(
            f"a {type(network).__name__} has no prediction intervals or sets: only the averaged "
            "networks that 'karnet fit' fits by default have them."
        )
    sets = network.predict_set(X, coverage)
    return columns | {f"{name}_set": _joined(sets, network.classes_.astype(str))}


def _joined(sets: NDArray[np.bool_], classes: NDArray[Any]) -> NDArray[Any]:
    """Return sets of classes as text."""
    unclear = [str(each) for each in classes if SEPARATOR in each]
    if unclear:
        raise ValueError(
            f"the class {shown(unclear[0])} contains {SEPARATOR!r}, which separates the classes of "
            "a prediction set: rename it."
        )
    return np.array([SEPARATOR.join(classes[row]) for row in sets])


def frame_of(model: Any, table: Table) -> Any:
    """Return the columns of a table as the data frame that a model takes."""
    return _columns(model).frame(table)


def inputs_of(model: Any, table: Table) -> Any:
    """Return the inputs of the network at the end of a model, for all rows of a table."""
    X = _columns(model).frame(table)
    for step in _steps(model):
        X = step.transform(X)
    return X


def seen_by_network(model: Any, table: Table) -> Any:
    """Return the numbers that the network at the end of a model receives, for rows of a table."""
    network, X = network_of(model), inputs_of(model, table)
    return X if encoder_of(network) is None else rows_of(network, X)


def network_of(model: Any) -> Any:
    """Return the estimator of a model, which may be the last step of a pipeline."""
    return model[-1] if hasattr(model, "steps") else model


def _steps(model: Any) -> list[Any]:
    """Return the steps of a model before its network."""
    return [step for _, step in getattr(model, "steps", [])[:-1]]


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


def _columns(model: Any) -> Columns:
    """Return how the columns of a model are read."""
    names, about = columns_of(model), getattr(model, "table_", None)
    if about:
        return Columns(about["columns"], about["date_formats"])
    encoder = None if _steps(model) else encoder_of(model)
    if encoder is None:
        return Columns(dict.fromkeys(names, NUMBER), {})
    kinds = [ENCODED[type(each)] for each in encoder.columns]
    return Columns(dict(zip(names, kinds, strict=True)), {})


def row_numbers(model: Any, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the numbers in the table of some rows that a model was fitted on, from 1 on.

    Rows of the table that the model was not fitted on are counted, unless the model does not know
    them because it was not fitted on a table.
    """
    places = getattr(model, "table_rows_", None)
    return (rows if places is None else np.asarray(places)[rows]) + 1


def kinds_of(model: Any) -> dict[str, str]:
    """Return the kind of each column of a model: number, date, category or text."""
    return _columns(model).kinds


def origins_of(model: Any) -> list[str]:
    """Return the column of the table of which each input of the network was made."""
    kinds = kinds_of(model)
    origins = [name for name in kinds if kinds[name] != EMPTY]
    for step in _steps(model):
        if isinstance(step, ColumnEncoder):
            origins = [origins[k] for k in step.encoder_.origins]
        elif hasattr(step, "output_to_input_"):
            origins = [step.output_to_input_.get(each, each) for each in step.all_outputs_]
    return origins


def importances_of(model: Any) -> dict[str, float]:
    """Return the importance of each column of a model; they sum to one unless all are 0.

    All features that a column was encoded as are shuffled together. The result is empty if the
    network has no importances.
    """
    return importances_with_errors(model)[0]


def importances_with_errors(model: Any) -> tuple[dict[str, float], dict[str, float]]:
    """Return the importance of each column of a model, and their standard errors.

    Both are empty if the network has no importances because it is a single network.
    """
    network = network_of(model)
    if not isinstance(network, KARNetworkCV):
        return {}, {}
    names, groups = np.unique(origins_of(model), return_inverse=True)
    none, shares = dict.fromkeys(kinds_of(model), 0.0), shares_of_error(network, groups)
    importances, errors = (dict(zip(names.tolist(), each.tolist(), strict=True)) for each in shares)
    return none | importances, none | errors


def portable(model: Any) -> tuple[Any, Any]:
    """Return the model and an example row for its export, with numbers in single precision.

    Columns of dates and text are refused by name. The row is None if a model encodes no columns.
    """
    kinds = kinds_of(model)
    other = [name for name, kind in kinds.items() if kind in (DATE, TEXT)]
    if other:
        raise ValueError(
            f"dates and text cannot be exported, and the model uses {listed(other)}: fit a model "
            "without them."
        )
    parts = [*_steps(model), network_of(model)]
    if all(encoder_of(part) is None for part in parts):
        return model, None
    examples = {NUMBER: np.zeros(1, dtype=np.float32), CATEGORY: np.array([""], dtype=object)}
    return model, pd.DataFrame({n: examples[kind] for n, kind in kinds.items() if kind != EMPTY})
