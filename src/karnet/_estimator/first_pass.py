"""The first pass over blocks of rows: it checks them, and counts rows, labels and weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from .._rows.memory import Rows
from .._rows.streamed import Passes, Sample, Streamed
from . import validation
from .targets import SCAN, AnyTargets, weighted_rows


@dataclass(frozen=True)
class Scan:
    """The result of a pass over all rows of a weight above 0.

    Attributes
    ----------
    n_rows, n_features : int
        The number of rows and of inputs.
    target_shape : tuple of int
        The shape of the target of a row: () or (q,).
    statistic : Labels or Moments
        The labels, or the moments of numbers before the output activation.
    weighted : bool
        Whether rows have weights.
    sample : Sample
        Some of the rows as they were read, with weights of 1 if they have none.
    """

    n_rows: int
    n_features: int = 0
    target_shape: tuple[int, ...] = ()
    statistic: Any = None
    weighted: bool = False
    sample: Any = None

    @classmethod
    def through(cls, passes: Passes, targets: AnyTargets) -> Scan:
        """Return the result of a pass."""
        of_block = partial(cls.of, targets, passes.names, passes.n_rows)
        scan = passes.reduce(of_block, repeat(SCAN.rows))
        if not scan.n_rows:
            raise ValueError("the blocks hold no rows of a weight above 0.")
        return scan

    @classmethod
    def of(
        cls, targets: AnyTargets, names: Any, n_rows: int | None, X: Any, y: Any, sample_weight: Any
    ) -> Scan:
        """Check one block, and return its scan; it is empty if no row has a weight above 0."""
        X = validation.plain_inputs(X)
        validation.refuse_infinite(X, names)
        if X.shape[0]:
            X, y, weight = weighted_rows(targets.check, X, y, sample_weight, some_positive=False)
        if not X.shape[0]:
            return cls(0)
        return cls(
            len(y),
            X.shape[1],
            y.shape[1:],
            targets.statistic(y, weight),
            weight is not None,
            Sample.of(X, y, np.ones(len(y)) if weight is None else weight, n_rows),
        )

    def merge(self, other: Scan, /) -> Scan:
        """Return the scan of both."""
        if not self.n_rows or not other.n_rows:
            return self if self.n_rows else other
        for name, mine, theirs in (
            ("columns of X", self.n_features, other.n_features),
            ("outputs in y", self.target_shape, other.target_shape),
        ):
            if mine != theirs:
                raise ValueError(
                    f"blocks differ in the {name}, {mine} and {theirs}: all must have the same."
                )
        return Scan(
            self.n_rows + other.n_rows,
            self.n_features,
            self.target_shape,
            self.statistic.merge(other.statistic),
            self.weighted or other.weighted,
            self.sample.merge(other.sample),
        )


def scanned(passes: Passes, targets: AnyTargets) -> tuple[AnyTargets, Streamed]:
    """Return the targets after a first pass, and the rows for the following passes."""
    scan = Scan.through(passes, targets)
    seen, prepare, n_rows, total = targets.in_blocks(scan)
    rows = scan.sample.rows
    sample = Sample(Rows(*prepare(rows.X, rows.y, rows.weight)), scan.sample.step)
    n_targets = int(np.prod(scan.target_shape))
    return seen, Streamed(passes, prepare, n_rows, scan.n_features, n_targets, total, sample)
