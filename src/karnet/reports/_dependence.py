"""Partial dependence of predictions on the most important columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import tables
from .._rows.memory import evenly_spaced
from ..tables import Table, TableFit


@dataclass(frozen=True)
class Response:
    """A model, some rows, and the number that it predicts for them: a target or a probability."""

    model: Any
    frame: Any  # the columns as the model takes them
    label: str
    code: int | None  # the class whose probability is predicted, by its number

    @classmethod
    def of(cls, table: Table, fitted: TableFit) -> Response:
        """Return the response of a model for 100 evenly spaced rows that have a target."""
        model, complete = fitted.model, fitted.left_out is None
        places = np.flatnonzero(fitted.target.known) if complete else np.arange(len(table))
        some = places[evenly_spaced(len(places), 100)]
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


def _shown_class(classes: NDArray[Any], y: NDArray[Any]) -> int:
    """Return the second of two classes, as scikit-learn does, and otherwise the most frequent."""
    if len(classes) == 2:
        return 1
    return int(np.argmax([np.count_nonzero(y == each) for each in classes]))


def drawable_columns(
    frame: Any, kinds: Mapping[str, str], importances: Mapping[str, float]
) -> list[str]:
    """Return the four most important columns of numbers and categories that vary, best first."""
    order = sorted(importances, key=lambda name: -importances[name])
    drawable = [n for n in order if kinds[n] in ("number", "category") and importances[n] > 0.0]
    return [name for name in drawable if frame[name].nunique() > 1][:4]
