"""The model card: the first chapters of the report, for readers who want to use the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import tables
from .._pages import html as page
from .._util.messages import in_per_cent
from .._util.text_table import TextTable
from ..tables import Score, Table, TableFit
from ._groups import MIN_ROWS, Group, RowErrors, row_errors, worst_groups
from ._held_out import COVERAGE, HeldOut
from ._importances import Importances
from ._limits import FOREIGN, MeasuredNovelty, measured_novelty

# The labels of the scores on the page.
LABELS = {"accuracy": "accuracy", "log_loss": "log-loss", "r2": "R²", "rmse": "RMSE", "mae": "MAE"}
# The largest number of columns that the card names.
MAX_NAMED_COLUMNS = 5
# The share of groups whose excess is above two standard errors by chance.
CHANCE = 0.023
# The numbers of the novelty of rows that are not to be predicted.
ABOVE_ONE = "net.novelty(X) > 1"


@dataclass(frozen=True)
class Card:
    """What a model card tells: errors of groups of rows, and the novelty of rows."""

    table: Table
    fitted: TableFit
    other: HeldOut | None
    importances: Importances
    errors: RowErrors | None
    groups: list[Group]
    n_groups: int
    novelty: MeasuredNovelty | None

    @classmethod
    def of(
        cls, table: Table, fitted: TableFit, other: HeldOut | None, importances: Importances
    ) -> Card:
        """Compute the errors of groups of rows and the novelty of rows."""
        errors = row_errors(table, fitted, other)
        groups, n = ([], 0) if errors is None else worst_groups(fitted.model, errors)
        return cls(table, fitted, other, importances, errors, groups, n, measured_novelty(other))

    def summary(self, score: Score, evaluated_on: str) -> list[str]:
        """Return the summary, a table of questions and answers."""
        about = self.fitted.model.table_
        value, interval = score_words(score)
        rows = [
            ("predicts", self._target()),
            ("was trained on", f"{about['rows']} rows, {self._columns()} of {self.table.name}"),
            ("has the score", f"{LABELS[score.name]} {value}{interval}, {evaluated_on}"),
            ("knows how sure it is", self._calibration()),
            ("is wrong most for", self._worst()),
            ("depends most on", self._first_columns()),
            ("must not be used for", self._limits()),
        ]
        known = tuple((question, answer) for question, answer in rows if answer)
        return [page.table(TextTable("The model", ("the model", ""), known, ""))]

    def _target(self) -> str:
        target = self.fitted.target
        if target.task == "regression":
            return f"{target.name}, a number"
        return f"{target.name}, one of {len(np.unique(target.y))} classes"

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
        if not self.groups:
            return ""
        worst = self.groups[0]
        error = self._error(worst.error)
        return f"rows with {worst.column} {worst.values}: {self._error_name()} {error}"

    def _first_columns(self) -> str:
        words = self.importances.words
        return ", ".join(f"{name} {words[name]}" for name in list(words)[:MAX_NAMED_COLUMNS])

    def _limits(self) -> str:
        return "" if self.novelty is None else f"rows unlike the training rows: {ABOVE_ONE}"

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
        overall = self._error(float(self.errors.errors.mean()))
        header = ("column", "values", "rows", self._error_name(), "standard errors above all rows")
        chance = CHANCE * self.n_groups
        return [
            page.paragraph(
                f"The {self._error_name()} is {overall} for all rows ({self.errors.words}). It is "
                "larger in these groups of rows: categories of a column, or quarters of its "
                "numbers."
            ),
            page.table(TextTable("Groups of rows with large errors", header, tuple(rows), "")),
            page.note(
                f"These are the worst of {self.n_groups} groups of at least {MIN_ROWS} rows. Some "
                f"of many groups are worst by chance: about {chance:.1f} of {self.n_groups} would "
                "be two standard errors above all rows if the columns made no difference."
            ),
        ]

    def limits(self) -> list[str]:
        """Return the chapter on rows that the model must not be used for."""
        where = page.paragraph(
            "Do not use the model for rows unlike those of the table. A change of the relation "
            "between the columns and the target, as it comes with time or another place, cannot be "
            "seen in the columns: score the model on new rows from time to time."
        )
        if self.novelty is None:
            none = "The novelty of rows was not measured: it needs held-out rows, and networks "
            return [where, page.note(none + "that keep their training rows.")]
        found = self.novelty
        rows = (
            ("held-out rows", str(found.n), in_per_cent(found.held_out)),
            ("foreign rows", str(found.n), in_per_cent(found.foreign)),
        )
        header = ("rows", "number", "novelty above 1")
        return [
            where,
            page.paragraph(
                f"{ABOVE_ONE} finds rows that are farther from every training row than 95 % of the "
                f"training rows are from all others. {FOREIGN} A foreign row has a larger novelty "
                f"than a held-out row with a probability of {found.auroc:.2f} (AUROC), where 1 is "
                "perfect and 0.5 is chance. If the columns are unrelated, or hardly matter for the "
                "predictions, foreign rows are not unlike the others."
            ),
            page.table(TextTable("Novelty", header, rows, "")),
        ]


def score_words(score: Score) -> tuple[str, str]:
    """Return a score and its interval as text."""
    if score.name == "accuracy":
        value, ends = f"{100 * score.value:.1f} %", f"{100 * score.low:.1f} to {100 * score.high:.1f} %"
    else:
        value, ends = f"{score.value:.4g}", f"{score.low:.4g} to {score.high:.4g}"
    return value, "" if np.isnan(score.low) else f" ({ends})"
