"""Partial dependence of predictions on the first columns, and pairs of columns that interact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .. import tables
from .._rows.memory import evenly_spaced
from ..tables import Table, TableFit

Array = NDArray[np.float64]
# The largest number of columns whose partial dependence is shown.
MAX_COLUMNS = 4
# The largest number of pairs of them that are shown.
MAX_PAIRS = 2
# The largest number of rows over which predictions are averaged.
MAX_ROWS = 100
# The largest number of values of a column in a pair.
MAX_VALUES = 6
# Pairs with a smaller share of the interaction are not shown.
MIN_SHARE = 0.01


@dataclass(frozen=True)
class Response:
    """A model, some rows, and the number that it predicts for them: a target or a probability."""

    model: Any
    frame: Any  # the columns as the model takes them
    label: str
    code: int | None  # the class whose probability is predicted, by its number

    @classmethod
    def of(cls, table: Table, fitted: TableFit) -> Response:
        """Return the response of a model for evenly spaced rows that have a target."""
        model, complete = fitted.model, fitted.left_out is None
        places = np.flatnonzero(fitted.target.known) if complete else np.arange(len(table))
        some = places[evenly_spaced(len(places), MAX_ROWS)]
        frame = tables.frame_of(model, table.take(some))
        numbers = [name for name, kind in tables.kinds_of(model).items() if kind == "number"]
        frame = frame.astype(dict.fromkeys(numbers, np.float64))
        name = fitted.target.name
        if fitted.target.task == "regression":
            return cls(model, frame, f"predicted {name}", None)
        code = _shown_class(model.classes_, fitted.target.y)
        return cls(model, frame, f"probability of {model.classes_[code]}", code)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of scikit-learn's functions for this prediction."""
        if self.code is None:
            return {"response_method": "auto"}
        return {"response_method": "predict_proba", "target": self.model.classes_[self.code]}

    def __call__(self, frame: Any) -> Array:
        """Return the predictions for rows."""
        if self.code is None:
            return np.asarray(self.model.predict(frame))
        return np.asarray(self.model.predict_proba(frame)[:, self.code])


def _shown_class(classes: NDArray[Any], y: NDArray[Any]) -> int:
    """Return the second of two classes, as scikit-learn does, and otherwise the most frequent."""
    if len(classes) == 2:
        return 1
    return int(np.argmax([np.count_nonzero(y == each) for each in classes]))


def drawable_columns(
    frame: Any, kinds: Mapping[str, str], importances: Mapping[str, float]
) -> list[str]:
    """Return the most important columns of numbers and categories that vary, best first."""
    order = sorted(importances, key=lambda name: -importances[name])
    drawable = [n for n in order if kinds[n] in ("number", "category") and importances[n] > 0.0]
    return [name for name in drawable if frame[name].nunique() > 1][:MAX_COLUMNS]


@dataclass(frozen=True)
class Pair:
    """The mean prediction over the values of two columns, and how far these act together."""

    names: tuple[str, str]
    values: tuple[NDArray[Any], NDArray[Any]]
    means: Array  # of shape (n_values of the first, n_values of the second)
    variance: float  # of the interaction
    share: float  # of the interaction in the variance of the means: Friedman's H squared


def strongest_pairs(response: Response, names: Sequence[str]) -> list[Pair]:
    """Return the pairs of columns that interact most, the strongest first."""
    grids = {name: _frequent_values(response.frame[name]) for name in names}
    pairs = [_pair(response, each, grids) for each in combinations(names, 2)]
    strong = [pair for pair in pairs if pair.share >= MIN_SHARE]
    return sorted(strong, key=lambda pair: -pair.variance)[:MAX_PAIRS]


def _frequent_values(column: Any) -> tuple[NDArray[Any], Array]:
    """Return some values of a column with their weights: quantiles, or frequent categories."""
    known = column.dropna()
    if column.dtype.kind == "f":
        levels = (np.arange(MAX_VALUES) + 0.5) / MAX_VALUES
        middle = known.quantile(levels, interpolation="nearest") if len(known) else known
        values, counts = np.unique(middle.to_numpy(), return_counts=True)
    else:
        frequent = known.astype(object).value_counts().head(MAX_VALUES)
        values, counts = frequent.index.to_numpy(), frequent.to_numpy()
    return values, counts / max(counts.sum(), 1)


def _pair(response: Response, names: tuple[str, str], grids: dict[str, Any]) -> Pair:
    """Return the interaction of two columns.

    The mean prediction over a grid of values is divided into its mean, the effects of either column
    and the rest, which is the interaction.
    """
    (first, p), (second, q) = (grids[name] for name in names)
    n = len(response.frame)
    repeated = response.frame.iloc[np.tile(np.arange(n), len(first) * len(second))]
    places = np.repeat(np.arange(len(first) * len(second)), n)
    changed = {
        name: pd.array(values[index], dtype=response.frame[name].dtype)
        for name, values, index in zip(
            names, (first, second), np.divmod(places, len(second)), strict=True
        )
    }
    means = response(repeated.assign(**changed)).reshape(len(first), len(second), n).mean(axis=2)
    mean = p @ means @ q
    rest = means - (means @ q)[:, None] - p @ means + mean
    variance, total = float(p @ rest**2 @ q), float(p @ (means - mean) ** 2 @ q)
    return Pair(names, (first, second), means, variance, variance / total if total else 0.0)
