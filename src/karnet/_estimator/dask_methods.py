"""Methods of estimators on Dask collections: passes over them, scores and lazy predictions.

Dask is imported only if a collection is given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from functools import partial, wraps
from itertools import repeat
from typing import Any, TypeVar, cast

import numpy as np

from .._rows.memory import S
from .._rows.streamed import Passes, column_names, unnumbered

Method = TypeVar("Method", bound=Callable[..., Any])

# Rows that are scored at a time.
SCORED_ROWS = 2**16


def is_dask(*tables: Any) -> bool:
    """Return whether one of the tables is a Dask collection, which NumPy would load into memory."""
    dask = sys.modules.get("dask")  # there are no collections before it is imported
    return dask is not None and any(map(dask.is_dask_collection, tables))


def passes_over(X: Any, y: Any, sample_weight: Any) -> Passes | None:
    """Return passes over the blocks of Dask collections; None for rows in memory."""
    if not is_dask(X, y, sample_weight):
        return None
    from .._rows.dask import DaskPasses
    from .validation import plain_inputs

    return DaskPasses.over(plain_inputs, X, y, sample_weight)


def over_blocks(estimator: Any, of_block: Callable[..., S], *tables: Any) -> S:
    """Return the merged results of ``of_block(estimator, X, y, weight)`` for all blocks."""
    from .._rows.dask import check_kind, row_of_zeros

    check_kind("X", tables[0])
    estimator.predict(row_of_zeros(tables[0]))  # raises an error if the columns of X do not fit
    passes = passes_over(*tables)
    assert passes is not None
    of_rows = unnumbered(partial(of_block, _for_blocks(estimator)))
    return passes.reduce(of_rows, repeat(SCORED_ROWS))


def lazy_for_dask(method: Method) -> Method:
    """Return a method that predicts lazily for a Dask collection, and as before for other rows."""

    @wraps(method)
    def predict(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **options)
        return lazily(self, method.__name__, X, *args, **options)

    return cast(Method, predict)


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
