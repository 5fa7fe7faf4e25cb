"""Importances of the columns of a table, and what they are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .. import tables
from .._util.messages import in_per_cent
from ..tables import Table, TableFit
from ._held_out import HeldOut

# What importances are, for each kind of network.
RISES = (
    "The rise of the error of left-out rows when a column is shuffled, as a share of all rises. "
    "Rises of less than two standard errors, which may be chance, are 0. "
    "Lines are one standard error long to either side."
)
LOSSES = "The loss of score on held-out rows when a column is shuffled."
CORRELATED = (
    "Columns that say the same share their importance: a column may be replaced by another one, "
    "and its importance is small although the target depends on it. An importance is of the "
    "model, not a cause of the target."
)


@dataclass(frozen=True)
class Importances:
    """The importances of columns, the most important first."""

    weights: dict[str, float]
    errors: dict[str, float] = field(default_factory=dict)  # standard errors, if known
    label: str = "rise of the error, % of all rises"
    caption: str = RISES

    @classmethod
    def of(cls, fitted: TableFit, other: HeldOut | None) -> Importances:
        """Return the importances of a model, or else those of columns of held-out rows."""
        weights, errors = tables.importances_with_errors(fitted.model)
        found = cls(weights, errors)
        if not weights and other is not None:
            found = cls(_losses_by_shuffling(other), {}, "loss of score, points", LOSSES)
        order = sorted(found.weights, key=lambda name: -found.weights[name])
        ordered = {name: found.weights[name] for name in order}
        return cls(ordered, found.errors, found.label, found.caption)

    @property
    def words(self) -> dict[str, str]:
        """The importances of the columns that have one, as text."""
        points = self.caption == LOSSES
        return {
            name: f"{100 * weight:.1f} points"
            if points
            else in_per_cent(weight, self.errors.get(name))
            for name, weight in self.weights.items()
            if weight > 0.0
        }


def _losses_by_shuffling(other: HeldOut) -> dict[str, float]:
    """Return the loss of score on 1000 held-out rows when one of the first 100 columns is shuffled.

    scikit-learn's `permutation_importance` needs a data frame, and models take columns as they are
    in the table.
    """
    rng = np.random.RandomState(0)
    rows = rng.permutation(len(other.y))[:1000]
    table, y = other.table.take(rows), other.y[rows]

    def score(shuffled: Table) -> float:
        predictions = tables.predict_table(other.model, shuffled, proba=other.classes is not None)
        return tables.scores(y, predictions, other.classes)[0].value

    complete = score(table)
    return {
        name: complete - score(table.shuffled(name, rng.permutation(len(y))))
        for name in list(other.model.table_["columns"])[:100]
    }
