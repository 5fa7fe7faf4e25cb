"""Descriptions of a fitted model: the kinds of its columns, and their importances."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._model import columns_of

# The words of users for skrub's kinds of columns.
KINDS = {
    "numeric": "number",
    "datetime": "date",
    "low_cardinality": "category",
    "high_cardinality": "text",
}
# The description of a column that the vectoriser drops.
NOT_USED = "empty: not used"


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
    if vectorizer is None:
        return dict(zip(names, map(float, weights), strict=True))
    total = dict.fromkeys(names, 0.0)
    for output, weight in zip(vectorizer.all_outputs_, np.asarray(weights), strict=True):
        total[vectorizer.output_to_input_[output]] += float(weight)
    return total
