"""Models of tables without skrub, for export to other programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from ._about import kinds_of, vectorizer_of
from ._names import listed


def portable(model: Any) -> tuple[Any, Any]:
    """Return the model with a ColumnTransformer in place of its vectoriser, and an example row.

    Numbers pass through in single precision, as in the vectoriser; categories become indicators,
    with empty text for a gap. Columns of dates and text are refused by name.

    Parameters
    ----------
    model : Pipeline
        A model of `fit_table`.

    Returns
    -------
    model : Pipeline
        A model with the same predictions, for a data frame of these columns.
    X : pandas.DataFrame or None
        A row that has the columns' types; None if the model has no vectoriser.
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
    """Return an encoder of the same categories, with empty text for a gap."""
    names = ["" if name is None or name != name else str(name) for name in fitted.categories_[0]]
    return OneHotEncoder(
        categories=[np.array(names, dtype=object)],
        dtype=np.float32,
        handle_unknown="ignore",
        sparse_output=False,
    )
