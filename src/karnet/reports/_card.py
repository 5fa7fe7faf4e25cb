"""The model card: the first chapters of the report, for readers who want to use the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._pages import html as page
from .._util.text_table import TextTable
from ..tables import Score, Table, TableFit, network_of
from ._groups import MIN_ROWS, Group, RowErrors, row_errors, worst_groups
from ._held_out import COVERAGE, HeldOut
from ._importances import Importances

# The labels of the scores on the page.
LABELS = {"accuracy": "accuracy", "log_loss": "log-loss", "r2": "R²", "rmse": "RMSE", "mae": "MAE"}


@dataclass(frozen=True)
class Card:
    """What a model card tells of a model and of the groups of rows with large errors."""

    table: Table
    fitted: TableFit
    other: HeldOut | None
    importances: Importances
    errors: RowErrors | None
    groups: list[Group]
    n_groups: int

    @classmethod
    def of(
        cls, table: Table, fitted: TableFit, other: HeldOut | None, importances: Importances
    ) -> Card:
        """Compute the errors of groups of rows."""
        errors = row_errors(table, fitted, other)
        groups, n = ([], 0) if errors is None else worst_groups(fitted.model, errors)
        return cls(table, fitted, other, importances, errors, groups, n)

    def summary(self, scores: Sequence[tuple[Score, str]]) -> list[str]:
        """Return the summary; a score has the rows that it was computed from."""
        rows = [
            ("predicts", self._target()),
            ("was trained on", f"{self._rows()} and {self._columns()} of {self.table.name}"),
            ("has the score", "; ".join(_sentence(*each) for each in scores)),
            ("is calibrated", self._calibration()),
            ("is wrong most for", self._worst()),
            ("depends most on", self._first_columns()),
            ("must not be used for", self._limits()),
        ]
        known = tuple((question, answer) for question, answer in rows if answer)
        return [page.table(TextTable("Summary", ("the model", ""), known, ""))]

    def _target(self) -> str:
        target = self.fitted.target
        if target.task == "regression":
            return f"{target.name}, a number"
        return f"{target.name}, one of {len(np.unique(target.y))} classes"

    def _rows(self) -> str:
        rows = self.fitted.model.table_rows_
        return f"{self.fitted.model.table_['rows'] if rows is None else len(rows)} rows"

    def _columns(self) -> str:
        n = len(self.fitted.model.table_["columns"])
        return f"{n} columns" if n > 1 else "1 column"

    def _calibration(self) -> str:
        if self.other is None:
            return ""
        if self.other.classes is not None:
            said = 100 * self.other.predictions.max(axis=1).mean()
            return (
                f"of the predictions for held-out rows, {100 * self.other.correct.mean():.1f} % "
                f"are correct, and their mean probability is {said:.1f} %"
            )
        if self.other.intervals is None:
            return ""
        inside = 100 * self.other.intervals.inside
        return f"{100 * COVERAGE:.0f} % intervals contain {inside:.0f} % of held-out values"

    def _worst(self) -> str:
        if not self.groups or self.groups[0].excess < 2.0:  # may well be chance
            return ""
        worst = self.groups[0]
        error = self._error(worst.error)
        overall = self._error(self._overall())
        rows = f"rows with {worst.column} {worst.values}"
        return f"{rows}: {self._error_name()} {error}, beside {overall} for all rows"

    def _overall(self) -> float:
        return np.nan if self.errors is None else float(self.errors.errors.mean())

    def _first_columns(self) -> str:
        words = self.importances.words
        return ", ".join(f"{name} {words[name]}" for name in list(words)[:5])

    def _limits(self) -> str:
        return "rows unlike the training rows: novelty above 1" if self._has_novelty() else ""

    def _has_novelty(self) -> bool:
        return hasattr(network_of(self.fitted.model), "novelty")

    def _error_name(self) -> str:
        return "mean absolute error" if self._is_regression() else "share of wrong predictions"

    def _error(self, value: float) -> str:
        return f"{value:.4g}" if self._is_regression() else f"{100 * value:.1f} %"

    def _is_regression(self) -> bool:
        return self.fitted.target.task == "regression"

    def wrong_most(self) -> list[str]:
        """Return the chapter on groups of rows with large errors."""
        if self.errors is None or not self.groups:
            return [
                page.paragraph(
                    f"There is no group of at least {MIN_ROWS} rows, by the categories of a column "
                    "or the quarters of its numbers, whose error is larger than that of all rows."
                )
            ]
        rows = [
            (g.column, g.values, str(g.n), self._error(g.error), f"{g.excess:.1f}")
            for g in self.groups
        ]
        overall = self._error(self._overall())
        header = ("column", "values", "rows", self._error_name(), "standard errors above all rows")
        return [
            page.paragraph(
                f"The {self._error_name()} is {overall} for all rows ({self.errors.words}). It is "
                "larger in these groups of rows: categories of a column, or quarters of its "
                "numbers."
            ),
            page.table(TextTable("Groups of rows with large errors", header, tuple(rows), "")),
            page.note(
                f"These are the worst of {self.n_groups} groups of at least {MIN_ROWS} rows. Some "
                "of many groups are worst by chance: about one in 40 is two standard errors above "
                "all rows even if the columns make no difference."
            ),
        ]

    def limits(self) -> list[str]:
        """Return the chapter on rows that the model must not be used for."""
        texts = [
            "Do not use the model for rows unlike those of the table. A change of the relation "
            "between the columns and the target, as it comes with time or another place, cannot be "
            "seen in the columns: score the model on new rows from time to time."
        ]
        if self._has_novelty():
            texts.append(
                "net.novelty(X) of the network is above 1 for rows that are farther from every "
                "training row than 95 % of the training rows are from all others."
            )
        return [page.paragraph(text) for text in texts]


def _sentence(score: Score, evaluated_on: str) -> str:
    return f"{LABELS[score.name]} {' '.join(score_words(score))} {evaluated_on}"


def score_words(score: Score) -> tuple[str, str]:
    """Return a score and its interval as text."""
    if score.name == "accuracy":
        low, high = 100 * score.low, 100 * score.high
        return f"{100 * score.value:.1f} %", f"({low:.1f} to {high:.1f} %)"
    ends = "" if np.isnan(score.low) else f"({score.low:.4g} to {score.high:.4g})"
    return f"{score.value:.4g}", ends
