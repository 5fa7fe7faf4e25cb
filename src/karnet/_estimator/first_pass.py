"""The first pass over blocks of rows: it checks them, and counts rows, labels and weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, Self

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
    n_features: int
    target_shape: tuple[int, ...]
    statistic: Any
    weighted: bool
    sample: Sample

    @classmethod
    def through(cls, passes: Passes, targets: AnyTargets) -> Scan:
        """Return the result of a pass."""
        of_block = partial(_Scanned.of, targets, passes.names, passes.n_rows)
        scan = passes.reduce(of_block, repeat(SCAN.rows)).scan
        if scan is None:
            raise ValueError("the blocks hold no rows of a weight above 0.")
        return scan

    @classmethod
    def of(
        cls,
        targets: AnyTargets,
        names: Any,
        n_rows: int | None,
        X: Any,
        y: Any,
        sample_weight: Any,
    ) -> Self | None:
        """Check one block, and return its scan; None if it has no rows."""
        X = validation.plain_inputs(X)
        validation.refuse_infinite(X, names)
        if not X.shape[0]:
            return None
        X, y, weight = weighted_rows(targets.check, X, y, sample_weight, some_positive=False)
        if not len(y):
            return None
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


@dataclass(frozen=True)
class _Scanned:
    scan: Scan | None

    @classmethod
    def of(cls, *block: Any) -> _Scanned:
        return cls(Scan.of(*block))

    def merge(self, other: _Scanned, /) -> _Scanned:
        if self.scan is None or other.scan is None:
            return other if self.scan is None else self
        return _Scanned(self.scan.merge(other.scan))


def scanned(passes: Passes, targets: AnyTargets) -> tuple[AnyTargets, Streamed]:
    """Return the targets after a first pass, and the rows for the following passes."""
    scan = Scan.through(passes, targets)
    seen, prepare, n_rows, total = targets.in_blocks(scan)
    rows = scan.sample.rows
    sample = Sample(Rows(*prepare(rows.X, rows.y, rows.weight)), scan.sample.step)
    n_targets = int(np.prod(scan.target_shape))
    return seen, Streamed(passes, prepare, n_rows, scan.n_features, n_targets, total, sample)
