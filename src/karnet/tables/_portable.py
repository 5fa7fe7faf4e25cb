"""Models of tables rebuilt from parts that other programs know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from ._about import kinds_of, vectorizer_of
from ._names import listed

__all__ = ["portable"]


def portable(model: Any) -> tuple[Any, Any]:
    """Return a model with a ColumnTransformer instead of its vectoriser, and rows for its types.

    Numbers pass through, in single precision as in the vectoriser; categories become indicators,
    and a gap among them is an empty text. Columns of dates and text are refused by name.

    Parameters
    ----------
    model : Pipeline
        A model of `fit_table`.

    Returns
    -------
    model : Pipeline
        The same model for a data frame of these columns.
    X : pandas.DataFrame or None
        A row with the types of its columns; None if the model has no vectoriser.
    """
    first = vectorizer_of(model)
    if first is None:
        return model, None
    kinds = kinds_of(model)
    other = [name for name, kind in kinds.items() if kind in ("date", "text")]
    if other:
        raise ValueError(
            f"dates and text cannot be exported, and the model uses {listed(other)}: fit one "
            "without them."
        )
    used = list(dict.fromkeys(first.output_to_input_[output] for output in first.all_outputs_))
    steps, row = [], {}
    for name in used:
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
    """Return an encoder of the same categories, a gap as empty text."""
    names = ["" if name is None or name != name else str(name) for name in fitted.categories_[0]]
    return OneHotEncoder(
        categories=[np.array(names, dtype=object)],
        dtype=np.float32,
        handle_unknown="ignore",
        sparse_output=False,
    )
