"""What-if questions to a model: its prediction for a row whose cells a page changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._columns.encoder import Dates, Labels
from .._rows.memory import evenly_spaced
from .._util.checks import check_share
from .._util.messages import shown
from .._util.types import Array
from ..inspection import row_influence
from ..tables import (
    Table,
    Target,
    columns_of,
    inputs_of,
    kinds_of,
    network_of,
    prediction_columns,
    target_of,
)
from ._plane import Answer
from ._request import whole

# Values of a column on its curve, and rows over which the curve is averaged.
CURVE_VALUES, CURVE_ROWS = 41, 40
# The number of influential rows that are listed, and of their cells.
LISTED_ROWS, LISTED_CELLS = 8, 4
# The format of dates if the model has none.
ISO = "%Y-%m-%d"
# The longest text of a cell.
LONGEST_CELL = 1000


class WhatIf:
    """Answers to the messages of a page about one model.

    Parameters
    ----------
    model : estimator or Pipeline
        A model of `karnet fit` that keeps its training rows.
    name : str
        The name of the model or its table.
    rows : Table, optional
        The training rows, all of which have a target.
    target : Target, optional
        Their targets.
    """

    def __init__(
        self, model: Any, name: str, rows: Table | None = None, target: Target | None = None
    ) -> None:
        self.model, self.name, self.rows, self.target = model, name, rows, target
        self.network = network_of(model)
        if not hasattr(self.network, "model_"):
            raise ValueError(
                f"{name} keeps no training rows: 'karnet fit' without --paper fits models that do."
            )
        self.classes = getattr(self.network, "classes_", None)
        self.columns = [self._column(each, kind) for each, kind in kinds_of(model).items()]

    def answer(self, message: dict[str, Any]) -> Answer:
        """Return the answer to a message, or raise an error of one sentence."""
        match message.get("kind"):
            case "start":
                return self._about(), {}
            case "cells":
                return {"cells": self._cells_of(message.get("row"))}, {}
            case "row":
                return self._prediction(message), {}
            case "influence":
                return self._influence(message), {}
        raise ValueError("a message must have the kind start, cells, row or influence.")

    def _about(self) -> dict[str, Any]:
        """Return the columns, the target and the score of the model."""
        about = getattr(self.model, "table_", {})
        return {
            "name": self.name,
            "target": target_of(self.model) or "the target",
            "classes": None if self.classes is None else self.classes.astype(str).tolist(),
            "score": about.get("score", getattr(self.network, "best_score_", None)),
            "columns": self.columns,
            "rows": 0 if self.rows is None else len(self.rows),
        }

    def _column(self, name: str, kind: str) -> dict[str, Any]:
        """Return the range or the labels of a column, and a typical value."""
        column: dict[str, Any] = {"name": name, "kind": kind, "value": ""}
        seen = list(map(str, getattr(self.network, "feature_names_in_", ())))
        if name not in seen:  # text, which is encoded before the network, or an empty column
            return column
        place, average = seen.index(name), self.network.model_
        encoding = None if average.encoder is None else average.encoder.columns[place]
        values = average.evidence.sample.X[:, average.origins == place]
        if isinstance(encoding, Labels):
            labels = encoding.labels.astype(str).tolist()
            common = int(values[:, : len(labels)].sum(axis=0).argmax())
            return column | {"labels": labels, "value": labels[common]}
        first = np.sort(values[:, 0])
        low, middle, high = (float(each) for each in first[[0, len(first) // 2, -1]])
        if isinstance(encoding, Dates):
            form = getattr(self.model, "table_", {}).get("date_formats", {}).get(name, "")
            return column | {"value": _date(middle, form)}
        whole_numbers = bool(np.all(first == np.floor(first)))
        step = 1.0 if whole_numbers else 10.0 ** (np.floor(np.log10((high - low) or 1.0)) - 3.0)
        return column | {"low": low, "high": high, "step": step, "value": f"{middle:.6g}"}

    def _cells_of(self, row: Any) -> dict[str, str]:
        if self.rows is None:
            raise ValueError("the model file has no table: give 'karnet play' the table instead.")
        k = whole("row", row, 1, len(self.rows)) - 1
        return {name: each[0] for name, each in self._text([k]).items()}

    def _text(self, rows: Sequence[int]) -> dict[str, list[str]]:
        assert self.rows is not None
        return self.rows.take(np.array(rows)).text(columns_of(self.model))

    def _cells(self, message: dict[str, Any]) -> dict[str, str]:
        """Return the cells of a message, one for each column; further columns are refused."""
        given = message.get("cells")
        names = columns_of(self.model)
        if not isinstance(given, dict) or not set(given) <= set(names):
            raise ValueError(f"cells must be an object of columns, but is {shown(given)}.")
        if not all(isinstance(each, str) and len(each) <= LONGEST_CELL for each in given.values()):
            raise ValueError(f"cells must be texts of at most {LONGEST_CELL} characters.")
        return {name: given.get(name, "") for name in names}

    def _class(self, message: dict[str, Any]) -> int:
        n = 1 if self.classes is None else len(self.classes)
        return whole("class", message.get("class", n - 1), 0, n - 1)

    def _prediction(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the prediction for the cells of a message, and the curve of a column."""
        cells = self._cells(message)
        coverage = check_share("coverage", message.get("coverage", 0.9))
        table = Table.of_text("the row", {name: [each] for name, each in cells.items()})
        found = prediction_columns(self.model, table, self.classes is not None)
        first, *others = found.values()
        answer: dict[str, Any] = {"prediction": first[0], "curve": self._curve(message, cells)}
        X = inputs_of(self.model, table)
        if self.classes is None:
            return answer | {"interval": self.network.predict_interval(X, coverage)[0]}
        inside = self.network.predict_set(X, coverage)[0]
        return answer | {
            "probabilities": [float(each[0]) for each in others],
            "set": self.classes[inside].astype(str).tolist(),
        }

    def _curve(self, message: dict[str, Any], cells: dict[str, str]) -> dict[str, Any] | None:
        """Return predictions over the values of a column, for this row and the mean of others."""
        moved = next((c for c in self.columns if c["name"] == message.get("moved")), None)
        if moved is None or not ("low" in moved or "labels" in moved):
            return None
        values = moved.get("labels") or [
            f"{each:.6g}" for each in np.linspace(moved["low"], moved["high"], CURVE_VALUES)
        ]
        k = self._class(message)
        own = self._over(values, moved["name"], {name: [each] for name, each in cells.items()}, k)
        curve = {"column": moved["name"], "values": values, "own": own, "mean": None}
        if self.rows is not None:
            some = evenly_spaced(len(self.rows), CURVE_ROWS)
            curve["mean"] = self._over(values, moved["name"], self._text(some.tolist()), k)
        return curve

    def _over(
        self, values: Sequence[str], name: str, cells: dict[str, list[str]], k: int
    ) -> list[float]:
        """Return the mean prediction of some rows, with each of the values in one column."""
        n = len(cells[name])
        repeated = {key: each * len(values) for key, each in cells.items()}
        repeated[name] = [value for value in values for _ in range(n)]
        X = inputs_of(self.model, Table.of_text("the curve", repeated))
        if self.classes is None:
            predictions = self.network.predict(X)
        else:
            predictions = self.network.predict_proba(X)[:, k]
        return [float(each) for each in predictions.reshape(len(values), n).mean(axis=1)]

    def _influence(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the training rows without which the prediction would change most.

        The prediction without a row is that of the model plus the change: no network is fitted
        again. Of a classifier, it is the score of one class.
        """
        cells, k = self._cells(message), self._class(message)
        table = Table.of_text("the row", {name: [each] for name, each in cells.items()})
        X = inputs_of(self.model, table)
        found = row_influence(self.network, X)
        now = self._score(X, k)
        changes = self._of_class(found.changes[0], k)
        rows = found.most_influential(LISTED_ROWS)[0]
        return {
            "now": now,
            "exact": found.exact,
            "influential": [
                {
                    "row": self._number(int(i)),
                    "change": float(changes[i]),
                    "without": now + float(changes[i]),
                    "similarity": float(found.similarities[0, i]),
                    "target": None if self.target is None else str(self.target.y[i]),
                    "cells": self._some_cells(int(i)),
                }
                for i in rows
            ],
        }

    def _score(self, X: Any, k: int) -> float:
        """Return the prediction, or the score of one class."""
        if self.classes is None:
            return float(self.network.predict(X)[0])
        return float(self._of_class(self.network.decision_function(X), k)[0])

    def _of_class(self, scores: Array, k: int) -> Array:
        """Return the scores of one class; of two classes there is one score, for the second."""
        if self.classes is None or scores.ndim == 2:
            return scores if self.classes is None else scores[:, k]
        return scores if k == 1 else -scores

    def _number(self, i: int) -> int:
        """Return the number of a training row in the table, from 1."""
        return 1 + (i if self.target is None else int(np.flatnonzero(self.target.known)[i]))

    def _some_cells(self, i: int) -> str:
        if self.rows is None:
            return ""
        cells = [f"{name} {each[0]}" for name, each in self._text([i]).items() if each[0]]
        return ", ".join(cells[:LISTED_CELLS])


def _date(days: float, form: str) -> str:
    """Return days since 1970 as text in a format."""
    day = np.datetime64(0, "D") + np.timedelta64(round(days), "D")
    return str(day.item().strftime(form if "%" in form else ISO))
