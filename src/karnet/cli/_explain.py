"""Explanations of predictions as columns: influential training rows, and effects of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..inspection._influence import average_of, explained, row_influence
from ..tables import inputs_of, network_of, origins_of, row_numbers, target_of

# The number of training rows, and of columns, that are named for each prediction.
N_NAMED = 3
# The largest number of influences that are held in memory at a time.
MAX_INFLUENCES = 2**23
# The largest number of values of rows whose columns are changed at a time.
MAX_VALUES = 2**17

Columns = dict[str, NDArray[Any]]


def explanation_columns(model: Any, table: Any) -> Columns:
    """Return the training rows and the columns that matter most for each prediction of a table.

    The result has the numbers of three training rows, counted from 1, and the names and the signed
    effects of three columns. Effects are in units of the target or, for classes, on the score of
    the predicted class, which is 1 for rows of the class and 0 for all others in the fit.
    """
    network, name = average_of(network_of(model)), target_of(model) or "prediction"
    X = inputs_of(model, table)
    rows = _influential_rows(network, X)
    columns = {f"{name}_row_{k + 1}": row_numbers(model, each) for k, each in enumerate(rows.T)}
    return columns | _effects(network, X, name, origins_of(model))


def _influential_rows(network: Any, X: Any) -> NDArray[np.intp]:
    """Return the training rows with the largest influence on each prediction."""
    n = max(MAX_INFLUENCES // network.loo_decision_function_.size, 1)
    return np.vstack(
        [row_influence(network, part).most_influential(N_NAMED) for part in _parts(X, n)]
    )


def _effects(network: Any, X: Any, name: str, origins: list[str]) -> Columns:
    """Return the names and the effects of the columns with the largest effects."""
    names, groups = np.unique(origins, return_inverse=True)
    parts = []
    for part in _parts(X, max(MAX_VALUES // len(network.model_.origins), 1)):
        average, rows, device = explained(network, part)
        effects = average.column_effects(rows, groups, device)
        if hasattr(network, "classes_"):
            codes = average.scores(rows, device).argmax(axis=1)
            parts.append(effects[np.arange(len(rows)), :, codes])
        else:
            parts.append(average.output.difference(effects))
    effects = np.vstack(parts)
    order = np.argsort(-np.abs(effects), axis=1, kind="stable")[:, :N_NAMED]
    columns: Columns = {}
    for k, column in enumerate(order.T):
        columns[f"{name}_column_{k + 1}"] = names[column]
        columns[f"{name}_effect_{k + 1}"] = effects[np.arange(len(effects)), column]
    return columns


def _parts(X: Any, n: int) -> list[Any]:
    """Return the rows of a data frame or an array, n at a time."""
    rows = X.iloc if hasattr(X, "iloc") else X
    return [rows[start : start + n] for start in range(0, len(X), n)]
