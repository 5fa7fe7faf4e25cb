"""What a model of a table is made of: the kinds of its columns, and how much each matters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._model import columns_of

__all__ = ["importances_of", "kinds_of", "vectorizer_of"]

KINDS = {
    "numeric": "number",
    "datetime": "date",
    "low_cardinality": "category",
    "high_cardinality": "text",
}
NOT_USED = "empty: not used"


def vectorizer_of(model: Any) -> Any:
    """Return the vectoriser that a model begins with, or None."""
    first = model.steps[0][1] if hasattr(model, "steps") else None
    return first if hasattr(first, "column_to_kind_") else None


def kinds_of(model: Any) -> dict[str, str]:
    """Return what each column of a model was taken as: number, date, category or text."""
    vectorizer = vectorizer_of(model)
    if vectorizer is None:
        return dict.fromkeys(columns_of(model), "number")
    kinds = vectorizer.column_to_kind_
    return {name: KINDS.get(kinds.get(name, ""), NOT_USED) for name in columns_of(model)}


def importances_of(model: Any) -> dict[str, float]:
    """Return how much each column of a model matters to its network, summing to one.

    That is the diagonal of the input metric, summed over what a column was made into; nothing for
    networks that have none.
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
