"""The fitted average of one table as a value.

An estimator checks its inputs and keeps a model, which everything else takes: predictions and
explanations, reports, model files and graphs. Rows X are features, as `KARNetworkCV` checks and
encodes them, and `device` is the device to compute on, None for the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

import numpy as np

from .._arrays.threads import ONE_THREAD
from .._columns.encoder import TableEncoder
from .._network.infinite_width import RidgeTargets
from .._network.local import LocalNetwork
from .._rows.memory import evenly_spaced
from .._search.average import Average
from .._search.member import Member
from .._util.checks import all_finite
from .._util.types import Array, Indices, Mask
from .calibration import prediction_sets
from .evidence import Evidence, FitRows, RowSample
from .importances import rises_of_error
from .influence import changes_without_rows, left_out_predictions
from .intervals import around
from .novelty import distances
from .output import ClassOutput, NumberOutput

# Number of other rows whose values replace those of a column.
N_REPLACED = 10
# The share of the rows of the fit whose novelty is below 1.
NOT_NOVEL = 0.95

Output = TypeVar("Output", bound=ClassOutput | NumberOutput)


@dataclass(frozen=True, eq=False, repr=False)
class FittedModel(Generic[Output]):
    """A weighted sum of members, the meaning of its scores, and what is known of its rows."""

    encoder: TableEncoder | None  # of a table with gaps, categories or dates
    members: tuple[Member, ...]
    weights: Array  # of the members
    offset: Array  # added to their sum
    output: Output
    evidence: Evidence

    @classmethod
    def of(
        cls,
        average: Average,
        targets: RidgeTargets,
        output: Output,
        fit: FitRows,
        device: str | None = None,
    ) -> FittedModel[Output]:
        """Return the model of an average that was fitted to the targets of the rows kept."""
        left_out = np.empty((len(fit.inputs), len(average.offset)))
        left_out[fit.kept] = average.left_out
        evidence = Evidence(
            left_out,
            average.honest,
            fit.targets,
            fit.weight,
            slice(None) if fit.is_kept.all() else fit.kept,
            RowSample.of(fit.inputs.of(fit.is_kept), targets.Y),
        )
        parts = tuple(average.members), average.weights, average.offset
        model = cls(fit.encoder, *parts, output, evidence)
        if not fit.is_kept.all():
            others = fit.inputs.of(~fit.is_kept)
            left_out[~fit.is_kept] = others.map(partial(model.scores, device=device))
        return model

    def __repr__(self) -> str:
        n_rows, n_networks = len(self.evidence.targets), len(self.members)
        return f"{type(self).__name__}({n_networks} networks, {n_rows} rows)"

    # Inputs

    @property
    def origins(self) -> Indices:
        """The column of the table of which each feature was made."""
        return np.arange(self.n_columns) if self.encoder is None else self.encoder.origins

    @property
    def n_columns(self) -> int:
        """The number of columns of the table."""
        encoder, X = self.encoder, self.evidence.sample.X
        return X.shape[1] if encoder is None else len(encoder.columns)

    def filled(self, X: Any) -> Any:
        """Return rows whose missing values are medians of the features of the rows of the fit."""
        if hasattr(X, "tocoo") or all_finite(X):
            return X
        return np.where(np.isnan(X), np.median(self.evidence.sample.X, axis=0).astype(X.dtype), X)

    # Predictions

    @property
    def networks(self) -> list[LocalNetwork]:
        """The networks of the members."""
        return [member.network for member in self.members]

    def scores(self, X: Any, device: str | None = None) -> Array:
        """Return the weighted sum of the members, of shape (k, q)."""
        with ONE_THREAD():
            return self.offset + sum(
                share * network.scores(X, device)
                for share, network in zip(self.weights, self.networks, strict=True)
            )

    def decision(self, X: Any, device: str | None = None) -> Array:
        """Return the decision function of classes, or predictions in the units of y."""
        return self.output.decision(self.scores(X, device))

    def intervals(
        self: FittedModel[NumberOutput], X: Any, coverage: float, device: str | None = None
    ) -> Array:
        """Return the ends of intervals that contain targets with about a given probability."""
        predictions, known = self.scores(X, device), self.evidence
        errors = known.targets - known.left_out[known.kept]
        return self.output.ends(around(predictions, errors, known.weight, coverage))

    def probabilities(self: FittedModel[ClassOutput], X: Any, device: str | None = None) -> Array:
        """Return the probability of each class."""
        return self.output.calibration.probabilities(self.scores(X, device))

    def sets(
        self: FittedModel[ClassOutput], X: Any, coverage: float, device: str | None = None
    ) -> Mask:
        """Return which classes are in a set that contains that of a row with a probability."""
        found, weight = self.probabilities(X, device), self.evidence.honest_weight
        return prediction_sets(found, self.true_probabilities, weight, coverage)

    @cached_property
    def true_probabilities(self: FittedModel[ClassOutput]) -> Array:
        """The left-out probabilities of the classes of honest rows."""
        codes = self.evidence.targets[self.evidence.honest]
        found = self.output.calibration.probabilities(self._honest_scores())
        return np.asarray(found[np.arange(len(codes)), codes])

    # Left-out predictions

    def left_out_score(self) -> float:
        """Return the accuracy or the R^2 of the left-out predictions of honest rows."""
        known, scores = self.evidence, self._honest_scores()
        Y: Any = known.targets[known.honest]
        return self.output.score(Y, scores, known.honest_weight)

    def _honest_scores(self) -> Array:
        return self.evidence.left_out[self.evidence.kept][self.evidence.honest]

    def left_out(
        self,
        removed: Mask | None = None,
        wanted: Mask | None = None,
        device: str | None = None,
    ) -> Array:
        """Return left-out scores of the rows kept, from members that forget the rows removed.

        The rows that are removed, and rows without a left-out prediction, have NaN. Other rows than
        those wanted may have NaN.
        """
        rows = self.target_scores, self.evidence.weights, removed, wanted, device
        with ONE_THREAD():
            return self.offset + sum(
                share * left_out_predictions(member, *rows)
                for share, member in zip(self.weights, self.members, strict=True)
            )

    @property
    def target_scores(self) -> Array:
        """The scores that the rows kept should have."""
        targets: Any = self.evidence.targets
        return self.output.columns(targets)

    # Explanations

    def importances(self, groups: Indices | None = None, device: str | None = None) -> Array:
        """Return the rises of the left-out error, and their standard errors, in two rows.

        Each is a share of the sum of the rises. `groups` are the numbers of the groups of columns
        whose values are shuffled together, by default each column alone.
        """
        origins = self.origins if groups is None else groups[self.origins]
        members = self.members, self.weights, self.offset
        known, of_rows = self.evidence, self.output.errors
        with ONE_THREAD():
            rises, errors = rises_of_error(
                *members, known.sample, origins, known.weights, device, of_rows
            )
        return np.array([rises, errors]) / (rises.sum() or 1.0)

    def influence(self, X: Array, device: str | None = None) -> tuple[Array, Array]:
        """Return changes of predictions without each row of the fit, and similarities to it.

        The changes have the shape (k, n) or (k, n, q), and the similarities the shape (k, n). A row
        of weight 0 changes nothing.
        """
        known, n = self.evidence, len(self.evidence.left_out)
        changes, alike = np.zeros((len(X), n, len(self.offset))), np.zeros((len(X), n))
        shares = self.weights / self.weights.sum()
        with ONE_THREAD():
            for member, w, share in zip(self.members, self.weights, shares, strict=True):
                found = changes_without_rows(member, member.view(X), known.weights, device)
                changes[:, known.kept] += w * found[0]
                alike[:, known.kept] += share * found[1]
        return self.output.difference(changes), alike

    def column_effects(
        self, X: Array, groups: Indices | None = None, device: str | None = None
    ) -> Array:
        """Return the scores of rows less their means over values of other rows in each column.

        `groups` are the numbers of the groups of columns whose values are replaced together, by
        default each column alone. The effects have the shape (k, n_groups, q).
        """
        origins = self.origins if groups is None else groups[self.origins]
        n_columns = self.n_columns if groups is None else int(groups.max(initial=-1)) + 1
        sample = self.evidence.sample.X
        some = evenly_spaced(len(sample), N_REPLACED)
        here = self.scores(X, device)
        effects = np.zeros((len(X), n_columns, here.shape[1]))
        for column in range(n_columns):
            features = origins == column
            changed = np.repeat(X, len(some), axis=0)
            changed[:, features] = np.tile(sample[np.ix_(some, features)], (len(X), 1))
            means = self.scores(changed, device).reshape(len(X), len(some), -1).mean(axis=1)
            effects[:, column] = here - means
        return effects

    def novelty(self, X: Array, numbers: Indices | None = None) -> Array:
        """Return how unlike all rows of the fit rows are, of which 95 % are at most 1.

        `numbers` are the numbers of rows that are rows kept themselves: they are compared with all
        others.
        """
        with ONE_THREAD():
            return distances(self.members, self.weights, X, numbers) / self.unit_of_novelty

    @cached_property
    def unit_of_novelty(self) -> float:
        """The distance of rows to all others that 95 % of the rows of the fit do not exceed."""
        sample = self.evidence.sample
        own = distances(self.members, self.weights, sample.X, sample.numbers)
        # Of equal rows, all distances are zero.
        return float(np.quantile(own, NOT_NOVEL)) or float(own.max()) or 1.0
