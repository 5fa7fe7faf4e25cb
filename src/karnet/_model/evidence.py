"""The rows of a fit, and what a fitted model keeps of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._columns.encoder import TableEncoder
from .._rows.inputs import Inputs
from .._rows.memory import evenly_spaced
from .._util.types import Array, Indices, Mask

# Largest number of training rows in a sample, and of their values.
MOST_ROWS = 2000
MOST_VALUES = 2**20


@dataclass(frozen=True)
class FitRows:
    """The rows of a fit, encoded as numbers."""

    encoder: TableEncoder | None  # of a table with gaps, categories or dates
    inputs: Inputs  # of all rows
    kept: Indices  # the rows of a positive weight
    targets: Array | Indices  # of the rows kept: numbers, or codes of classes
    weight: Array | None  # of the rows kept

    @cached_property
    def is_kept(self) -> Mask:
        """Which rows have a positive weight."""
        is_kept = np.zeros(len(self.inputs), dtype=bool)
        is_kept[self.kept] = True
        return is_kept


@dataclass(frozen=True)
class RowSample:
    """Some rows of a fit, as they were before any view."""

    numbers: Indices  # their numbers among the rows kept
    X: Array
    Y: Array

    @classmethod
    def of(cls, inputs: Inputs, Y: Array) -> RowSample:
        """Return evenly spaced rows."""
        n, n_features = inputs.shape
        numbers = evenly_spaced(n, min(MOST_ROWS, MOST_VALUES // max(n_features, 1)))
        return cls(numbers, inputs.take(numbers), Y[numbers])

    def first(self, n: int) -> RowSample:
        """Return about n evenly spaced rows of the sample."""
        some = evenly_spaced(len(self.numbers), n)
        return RowSample(self.numbers[some], self.X[some], self.Y[some])


@dataclass(frozen=True)
class Evidence:
    """What is known of the rows of a fit."""

    left_out: Array  # for every row the scores of members fitted without it, or NaN
    honest: Mask  # which of the rows kept have left-out scores that are not optimistic
    targets: Array | Indices  # of the rows kept, in units of the scores, or codes of classes
    weight: Array | None  # of the rows kept
    kept: Indices | slice  # the rows of a positive weight; the others are predicted
    sample: RowSample

    @property
    def weights(self) -> Array:
        """The weights of the rows kept, of which each is one if there are none."""
        return np.ones(len(self.targets)) if self.weight is None else self.weight

    @property
    def honest_weight(self) -> Array | None:
        """The weights of the rows whose left-out scores are not optimistic."""
        return None if self.weight is None else self.weight[self.honest]
