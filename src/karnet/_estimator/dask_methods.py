"""Methods of estimators on Dask collections: passes over them, scores and lazy predictions.

Dask is imported only if a collection is given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from .._rows.memory import S
from .._rows.streamed import AsInputs, Passes, column_names

# Rows that are scored at a time.
SCORED_ROWS = 2**16


def is_dask(*tables: Any) -> bool:
    """Return whether one of the tables is a Dask collection, which NumPy would load into memory."""
    dask = sys.modules.get("dask")  # there are no collections before it is imported
    return dask is not None and any(map(dask.is_dask_collection, tables))


def passes_over(as_inputs: AsInputs, X: Any, y: Any, sample_weight: Any = None) -> Passes:
    """Return passes over Dask collections; `as_inputs` converts a block of X to an array."""
    from .._rows.dask import DaskPasses

    return DaskPasses.over(as_inputs, X, y, sample_weight)


def over_blocks(estimator: Any, of_block: Callable[..., S], as_inputs: AsInputs, *tables: Any) -> S:
    """Return the merged results of ``of_block(estimator, X, y, weight)`` for all blocks."""
    from .._rows.dask import check_kind, row_of_zeros

    check_kind("X", tables[0])
    estimator.predict(row_of_zeros(tables[0]))  # raises an error if the columns of X do not fit
    passes = passes_over(as_inputs, *tables)
    return passes.reduce(partial(of_block, _for_blocks(estimator)), repeat(SCORED_ROWS))


def lazily(estimator: Any, method: str, X: Any, *args: Any, **options: Any) -> Any:
    """Return the predictions of a method for a Dask collection as a Dask array, yet to be computed.

    One row of zeros shows their dtype and number of columns, and whether the columns of X fit. If
    the estimator is fitted again before they are computed, they are still those of the first fit.
    """
    from .._rows.dask import check_kind, map_rows, row_of_zeros

    check_kind("X", X)
    like = getattr(estimator, method)(row_of_zeros(X), *args, **options)[:0]
    predict = partial(_predict, method, args, options)
    return map_rows(predict, X, _for_blocks(estimator, column_names(X)), like)


def _for_blocks(estimator: Any, names: tuple[str, ...] | None = None) -> Any:
    """Return a copy of the estimator for blocks with inputs of the given names, checked before."""
    copied = copy(estimator)
    copied.__dict__.pop("feature_names_in_", None)
    if names is not None:
        copied.feature_names_in_ = np.asarray(names, dtype=object)
    return copied


def _predict(method: str, args: Any, options: Any, X: Any, estimator: Any) -> Any:
    return getattr(estimator, method)(X, *args, **options)
