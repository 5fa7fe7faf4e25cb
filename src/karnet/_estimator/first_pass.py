"""The first pass over blocks of rows: it checks them, and finds out what learning must know."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._lstsq.statistics import Moments
from .._rows.memory import Rows, merged, read_only
from .._rows.streamed import Passes, Sample, Streamed
from ..activations import Activation, Array
from . import validation

__all__ = ["AsCodes", "AsTargets", "Labels", "Scan", "moments_of"]

# Rows that are checked at a time: a power of 2, for a sample to be spread evenly.
HEIGHT = 2**13

Prepared = tuple[Any, NDArray[Any], Array | None]


@dataclass(frozen=True)
class Labels:
    """The distinct labels, sorted, how many rows there are of each, and their weights."""

    values: NDArray[Any]
    counts: NDArray[Any]
    totals: Array

    @classmethod
    def of(cls, y: NDArray[Any], weight: Array | None) -> Labels:
        """Return the labels of some rows."""
        values, codes = np.unique(y, return_inverse=True)
        totals = np.bincount(codes, weight).astype(np.float64)
        return cls(values, np.bincount(codes), totals)

    def merge(self, other: Labels, /) -> Labels:
        """Return the labels of both."""
        parts = [self.values, other.values]
        if len({part.dtype.kind in "biuf" for part in parts}) > 1:
            # NumPy would take numbers beside words for words.
            parts = [part.astype(object) for part in parts]
        try:
            values, codes = np.unique(np.concatenate(parts), return_inverse=True)
        except TypeError as error:
            raise ValueError(
                f"y holds labels that cannot be sorted ({error}): give all of them one type."
            ) from error
        counts, totals = np.zeros(len(values), dtype=int), np.zeros(len(values))
        np.add.at(counts, codes, np.concatenate([self.counts, other.counts]))
        np.add.at(totals, codes, np.concatenate([self.totals, other.totals]))
        return Labels(values, counts, totals)


@dataclass(frozen=True)
class Scan:
    """What one pass tells about all rows of a weight above 0.

    Attributes
    ----------
    n_rows, n_features : int
        How many rows and inputs there are.
    target_shape : tuple of int
        The shape of the target of a row: () or (q,).
    labels : Labels or None
        The labels; None for numbers.
    moments : Moments or None
        Of the targets of the output layer before its activation; None for labels.
    weighted : bool
        Whether rows have weights.
    sample : Sample
        Some of the rows as they were read, with weights of 1 if they have none.
    """

    n_rows: int
    n_features: int
    target_shape: tuple[int, ...]
    labels: Labels | None
    moments: Moments | None
    weighted: bool
    sample: Sample

    @classmethod
    def through(cls, passes: Passes, output: Activation | None) -> Scan:
        """Return what a pass tells; `output` is the activation for numbers, None for labels."""
        of_block = partial(_Scanned.of, output, passes.names, passes.n_rows)
        found = passes.reduce(of_block, repeat(HEIGHT)).scan
        if found is None:
            raise ValueError("the blocks hold no rows of a weight above 0.")
        return found

    @classmethod
    def of(
        cls,
        output: Activation | None,
        names: Any,
        n_rows: int | None,
        X: Any,
        y: Any,
        sample_weight: Any,
    ) -> Self | None:
        """Check one block, and return what it tells; None if it has no rows."""
        X = validation.plain_inputs(X)
        validation.refuse_infinite(X, names)
        check = validation.check_labels if output is None else validation.check_real_targets
        if not X.shape[0]:
            return None
        y = check(y, X.shape[0])
        weight = validation.check_weight(sample_weight, len(y), some_positive=False)
        X, y, weight = validation.without_zeros(X, y, weight)
        if not len(y):
            return None
        return cls(
            len(y),
            X.shape[1],
            y.shape[1:],
            Labels.of(y, weight) if output is None else None,
            None if output is None else moments_of(output, y, weight),
            weight is not None,
            Sample.of(X, y, np.ones(len(y)) if weight is None else weight, n_rows),
        )

    def merge(self, other: Scan, /) -> Scan:
        """Return what both tell."""
        self._refuse_others(other)
        labels, moments = self.labels, self.moments
        if labels is not None and other.labels is not None:
            labels = labels.merge(other.labels)
        if moments is not None and other.moments is not None:
            moments = moments.merge(other.moments)
        return Scan(
            self.n_rows + other.n_rows,
            self.n_features,
            self.target_shape,
            labels,
            moments,
            self.weighted or other.weighted,
            self.sample.merge(other.sample),
        )

    def _refuse_others(self, other: Scan) -> None:
        for what, mine, theirs in (
            ("columns of X", self.n_features, other.n_features),
            ("outputs in y", self.target_shape, other.target_shape),
        ):
            if mine != theirs:
                raise ValueError(
                    f"blocks differ in the {what}, {mine} and {theirs}: all must have the same."
                )

    def table(self, passes: Passes, prepare: AsCodes | AsTargets) -> Streamed:
        """Return the rows as `prepare` makes them."""
        rows = self.sample.rows
        sample = Sample(Rows(*prepare(rows.X, rows.y, rows.weight)), self.sample.step)
        n_rows, total = prepare.size(self)
        n_targets = int(np.prod(self.target_shape))
        return Streamed(passes, prepare, n_rows, self.n_features, n_targets, total, sample)


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


def moments_of(output: Activation, y: NDArray[Any], weight: Array | None) -> Moments:
    """Return the moments of what the output layer should give before its activation."""

    def of_rows(start: int) -> Moments:
        rows = slice(start, start + HEIGHT)
        B = read_only(output.phi(y[rows, None] if y.ndim == 1 else y[rows]))
        return Moments.of(B, B[:, :0], None if weight is None else weight[rows], bias=True)

    # As many at a time as in a scan: it should not matter where the rows are.
    return merged(map(of_rows, range(0, len(y), HEIGHT)))


@dataclass(frozen=True)
class AsCodes:
    """Labels as indices into the classes, and the weights of these as part of the rows'.

    Attributes
    ----------
    labels : Labels
        All that were seen.
    per_label : array
        The weight of each; labels of weight 0 are no classes.
    weighted : bool
        Whether rows have weights.
    """

    labels: Labels
    per_label: Array
    weighted: bool

    @property
    def classes(self) -> NDArray[Any]:
        """The labels of a weight above 0."""
        return self.labels.values[self.per_label > 0.0]

    def size(self, _: Scan) -> tuple[int, float]:
        """Return how many rows there are of a weight above 0, and their weight."""
        n_rows = int(self.labels.counts[self.per_label > 0.0].sum())
        return n_rows, float(self.labels.totals @ self.per_label)

    def __call__(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        """Return inputs, codes and weights of the rows of a weight above 0."""
        X, y, weight = _of_weight(
            X, validation.one_column(np.asarray(y).reshape(-1)), sample_weight
        )
        known = self.labels.values
        found = np.minimum(np.searchsorted(known, y), len(known) - 1)
        if not (known[found] == y).all():
            new = y[known[found] != y].tolist()[0]
            raise ValueError(f"the blocks hold the label {new!r}, but did not when read first.")
        weight = np.ones(len(y)) if weight is None else weight
        weight = weight * self.per_label[found]
        codes = (np.cumsum(self.per_label > 0.0) - 1)[found]
        X, codes, weight = validation.without_zeros(X, codes, weight)
        return X, codes, weight if self.weighted else None


@dataclass(frozen=True)
class AsTargets:
    """Targets as columns of numbers."""

    weighted: bool

    def size(self, scan: Scan) -> tuple[int, float]:
        """Return how many rows there are of a weight above 0, and their weight."""
        assert scan.moments is not None
        return scan.n_rows, scan.moments.centre.weight

    def __call__(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        """Return inputs, targets and weights of the rows of a weight above 0."""
        X, y, weight = _of_weight(X, np.asarray(y, np.float64, order="C"), sample_weight)
        if self.weighted and weight is None:
            weight = np.ones(len(y))
        return X, y[:, None] if y.ndim == 1 else y, weight


def _of_weight(X: Any, y: NDArray[Any], sample_weight: Any) -> Prepared:
    weight = validation.check_weight(sample_weight, len(y), some_positive=False)
    return validation.without_zeros(validation.plain_inputs(X), y, weight)
