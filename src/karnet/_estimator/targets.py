"""The targets of a network: labels as codes of classes, and numbers as columns in their units.

`ClassTargets` and `NumberTargets` serve every way to fit: from rows in memory, from blocks, from
batches of rows that are added or removed, and by cross-validation. Rows of weight 0 are left out.
Blocks are read once before the fit, by `scanned`, which checks them and finds their targets.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._arrays import namespace as arrays
from .._lstsq.statistics import Moments
from .._network.layers import Layer
from .._rows.memory import Rows, merged, read_only
from .._rows.streamed import Passes, Prepare, Sample, Streamed, unnumbered
from ..accumulate import Accumulator
from ..activations import Activation, Array
from ..learner import Plan
from . import validation

# From targets and the number of rows to checked targets.
Check = Callable[[Any, int], NDArray[Any]]
# From the numbers of inputs and outputs to the initial layers.
Draw = Callable[[int, int], list[Layer]]
# Inputs, targets and weights of rows that all have a weight above 0.
Prepared = tuple[Any, NDArray[Any], Array | None]

# The error if blocks hold nothing to fit.
NO_ROWS = "the blocks hold no rows of a weight above 0."
# Distance of the class targets 0 and 1 from the ends of the interval of the inverse activation.
CLASS_MARGIN = 0.05


@dataclass
class ScanSizes:
    """Sizes of the first pass over the rows."""

    rows: int = 2**13  # checked at a time: a power of 2, so that a sample is spread evenly


SCAN = ScanSizes()


def weighted_rows(
    check: Check, X: Any, y: Any, sample_weight: Any, some_positive: bool = True
) -> Prepared:
    """Return checked targets and weights with their inputs, for rows of a weight above 0."""
    y = check(y, X.shape[0])
    weight = validation.check_weight(sample_weight, len(y), some_positive)
    return validation.without_zeros(X, y, weight)


def class_outputs(f: Activation, q: int) -> Array:
    """Return the target output of each class: one column for two classes, else an indicator."""
    Y = np.array([[0.0], [1.0]]) if q == 2 else np.eye(q)
    return f.inside(Y, CLASS_MARGIN)


@dataclass(frozen=True)
class Labels:
    """The distinct labels, sorted, with the number of rows and the total weight of each."""

    values: NDArray[Any]
    counts: NDArray[Any]
    totals: Array

    @classmethod
    def of(cls, y: NDArray[Any], weight: Array | None) -> tuple[Labels, NDArray[Any]]:
        """Return the labels of some rows, and the index of each row's label among them."""
        values, places = arrays.unique(y)
        counts = np.bincount(places)
        totals = counts if weight is None else np.bincount(places, weight)
        return cls(values, counts, totals.astype(np.float64)), places

    def merge(self, other: Labels, /) -> Labels:
        """Return the labels of both."""
        values, places = arrays.unique(_joined(self.values, other.values))
        counts = np.bincount(places, np.concatenate([self.counts, other.counts]))
        totals = np.bincount(places, np.concatenate([self.totals, other.totals]))
        return Labels(values, counts.astype(int), totals.astype(np.float64))


def _joined(*parts: NDArray[Any]) -> NDArray[Any]:
    """Return labels in one array that can be sorted."""
    if len({part.dtype.kind in "biuf" for part in parts}) > 1:
        # NumPy would convert numbers to text if some labels are text.
        parts = tuple(part.astype(object) for part in parts)
    labels = np.concatenate(parts)
    if labels.dtype == object:
        validation.check_sortable(labels)
    return labels


@dataclass(frozen=True)
class Codes:
    """The labels of rows as indices into the classes, and class weights as part of row weights."""

    labels: Labels
    per_label: Array  # the weight of each label; labels of weight 0 are not classes
    weighted: bool  # whether rows have weights

    @property
    def classes(self) -> NDArray[Any]:
        """The labels of a weight above 0."""
        return self.labels.values[self.per_label > 0.0]

    def __call__(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        """Return inputs, codes and weights of a block of rows."""
        X, y = validation.plain_inputs(X), validation.one_column(np.ravel(y))
        X, y, weight = weighted_rows(lambda y, _: y, X, y, sample_weight, some_positive=False)
        labels = self.labels.values
        places = np.minimum(np.searchsorted(labels, y), len(labels) - 1)
        if not (labels[places] == y).all():
            new = y[labels[places] != y].tolist()[0]
            raise ValueError(f"the blocks hold the label {new!r}, but did not when read first.")
        return self.of(X, places, weight)

    def of(self, X: Any, places: NDArray[Any], weight: Array | None) -> Prepared:
        """Return inputs, codes and weights of rows whose labels have the given places."""
        if not self.weighted:
            return X, places, None
        per_row = self.per_label[places]
        codes = (np.cumsum(self.per_label > 0.0) - 1)[places]
        return validation.without_zeros(X, codes, per_row if weight is None else weight * per_row)


@dataclass(frozen=True)
class ClassTargets:
    """Targets that are labels: the solver sees the indicator of each row's class.

    So one more class is one more column, which is zero for all earlier rows.
    """

    class_weight: Any
    classes: Any = None  # sorted; None as long as no rows have been seen

    check = staticmethod(validation.check_labels)

    @staticmethod
    def statistic(y: NDArray[Any], weight: Array | None) -> Labels:
        """Return the labels of some rows."""
        return Labels.of(y, weight)[0]

    def in_memory(self, X: Any, y: Any, sample_weight: Any) -> tuple[Self, Rows]:
        """Return the classes of all rows, and the rows with codes."""
        unweighted = sample_weight is None and self.class_weight is None
        if arrays.is_foreign(X) and arrays.is_foreign(y) and unweighted:
            classes, codes = arrays.unique(arrays.namespace(X).reshape(arrays.like(X, y), (-1,)))
            validation.check_labels(arrays.to_numpy(classes), classes.shape[0])
            validation.check_rows(codes, X.shape[0])
            return replace(self, classes=classes), Rows(X, codes)
        coding, *rows = self.coded(X, y, sample_weight)
        return self._rows(coding.classes, *rows)

    def in_blocks(self, scan: Scan) -> tuple[Self, Prepare, int, float]:
        """Return the classes, the coding of blocks, and the number and total weight of the rows."""
        codes = self._codes(scan.statistic, scan.weighted)
        counts, totals = scan.statistic.counts, scan.statistic.totals
        n_rows = int(counts[codes.per_label > 0.0].sum())
        return replace(self, classes=codes.classes), codes, n_rows, float(totals @ codes.per_label)

    def in_batch(
        self, X: Any, y: Any, sample_weight: Any, more: Any = None, known_only: bool = False
    ) -> tuple[Self, Rows]:
        """Return all classes seen so far, and the rows of a batch with codes.

        Labels in `more` are classes too. With `known_only` a new class is an error.
        """
        codes, X, places, weight = self.coded(X, y, sample_weight, batch=True)
        more = [] if more is None else [validation.check_labels(more, np.size(more))]
        known = [] if self.classes is None else [arrays.to_numpy(self.classes)]
        classes = np.unique(_joined(*known, codes.classes, *more))
        if known_only and len(classes) > len(known[0]):
            unknown = np.setdiff1d(codes.classes, known[0]).tolist()[0]
            raise ValueError(f"y holds {unknown!r}, a class that the network was not fitted to.")
        return self._rows(classes, X, np.searchsorted(classes, codes.classes)[places], weight)

    def coded(
        self, X: Any, y: Any, sample_weight: Any, batch: bool = False
    ) -> tuple[Codes, Any, NDArray[Any], Array | None]:
        """Return the coding of checked labels, and inputs, codes and weights of the rows."""
        X, y, weight = weighted_rows(self.check, X, y, sample_weight)
        labels, places = Labels.of(y, weight)
        codes = self._codes(labels, weight is not None, batch)
        return codes, *codes.of(X, places, weight)

    def _codes(self, labels: Labels, weighted: bool, batch: bool = False) -> Codes:
        given = self.class_weight
        per_label = validation.weights_of_classes(given, labels.values, labels.totals, batch)
        return Codes(labels, per_label, weighted or given is not None)

    def _rows(
        self, classes: NDArray[Any], X: Any, codes: NDArray[Any], weight: Array | None
    ) -> tuple[Self, Rows]:
        if arrays.is_foreign(X):
            classes = arrays.like(X, classes) if classes.dtype.kind in "biuf" else classes
            codes, weight = arrays.like(X, codes), arrays.like(X, weight)
        return replace(self, classes=classes), Rows(X, codes, weight)

    def outputs(self, plan: Plan) -> Array:
        """Return the target output of each class."""
        return class_outputs(plan.activations[-1], self.classes.shape[0])

    def start(self, plan: Plan, draw: Draw, d: int) -> tuple[Plan, list[Layer], Array]:
        """Return the plan, the initial layers for d inputs, and the class outputs."""
        check_two_classes(self.classes)
        Y = self.outputs(plan)
        return plan, draw(d, Y.shape[1]), Y

    def union(self, other: Any) -> Self:
        """Return the targets of both, as an array of the kind that the classes are."""
        both = np.unique(_joined(*(arrays.to_numpy(each.classes) for each in (self, other))))
        numbers = both.dtype.kind in "biuf"
        return replace(self, classes=arrays.like(self.classes, both) if numbers else both)

    def aligned(self, statistics: Accumulator, known: Any) -> Accumulator:
        """Return the statistics of rows of the known classes with a column for each class here."""
        classes, before = arrays.to_numpy(self.classes), arrays.to_numpy(known.classes)
        return statistics.spread(np.searchsorted(classes, before), len(classes))


def check_two_classes(classes: Any) -> None:
    """Raise an error if there is only one class."""
    if classes.shape[0] < 2:
        raise ValueError(
            "y must hold at least two classes, but holds one class only: "
            f"{arrays.to_numpy(classes).tolist()[0]!r}."
        )


def in_columns(y: NDArray[Any]) -> NDArray[Any]:
    """Return targets of one or two dimensions as columns."""
    return y[:, None] if y.ndim == 1 else y


def _column_block(weighted: bool, X: Any, y: Any, sample_weight: Any) -> Prepared:
    """Return inputs, columns and weights of a block of rows."""
    X, y = validation.plain_inputs(X), np.asarray(y, np.float64, order="C")
    X, y, weight = weighted_rows(lambda y, _: y, X, y, sample_weight, some_positive=False)
    return X, in_columns(y), np.ones(len(y)) if weighted and weight is None else weight


def _number_rows(X: Any, y: NDArray[Any], weight: Array | None) -> Rows:
    return Rows(X, arrays.like(X, in_columns(y)), arrays.like(X, weight))


@dataclass(frozen=True)
class NumberTargets:
    """Targets that are numbers: the solver sees them through the inverse output activation."""

    output: Activation
    n_outputs: int = 0  # 0 as long as no rows have been seen
    one_output: bool = True  # whether targets have one dimension, as predictions then have
    moments: Moments | None = None  # of the targets before the output activation

    check = staticmethod(validation.check_real_targets)

    def statistic(self, y: NDArray[Any], weight: Array | None) -> Moments:
        """Return the moments of the targets before the output activation."""

        def of_rows(start: int) -> Moments:
            rows = slice(start, start + SCAN.rows)
            B = read_only(self.output.phi(in_columns(y[rows])))
            return Moments.of(B, B[:, :0], None if weight is None else weight[rows], bias=True)

        # In chunks of the length of a first pass: results must not depend on where the rows are.
        return merged(map(of_rows, range(0, len(y), SCAN.rows)))

    def in_memory(self, X: Any, y: Any, sample_weight: Any) -> tuple[Self, Rows]:
        """Return the units of the targets, and the rows with targets as columns."""
        X, y, weight = weighted_rows(self.check, X, y, sample_weight)
        units = self._seen(y.shape[1:], self.statistic(y, weight))
        return units, _number_rows(X, y, weight)

    def in_blocks(self, scan: Scan) -> tuple[Self, Prepare, int, float]:
        """Return the units, the columns of blocks, and the number and total weight of the rows."""
        units, total = self._seen(scan.target_shape, scan.statistic), scan.statistic.centre.weight
        return units, partial(_column_block, scan.weighted), scan.n_rows, total

    def _seen(self, shape: tuple[int, ...], moments: Moments) -> Self:
        return replace(self, n_outputs=int(np.prod(shape)), one_output=not shape, moments=moments)

    def in_batch(
        self, X: Any, y: Any, sample_weight: Any, more: None = None, known_only: bool = False
    ) -> tuple[Self, Rows]:
        """Return the units of the first rows, and the rows of a batch with targets as columns."""
        if not self.n_outputs:
            return self.in_memory(X, y, sample_weight)
        rows = _number_rows(*weighted_rows(self.check, X, y, sample_weight))
        if rows.n_targets != self.n_outputs:
            raise ValueError(
                f"y must have {self.n_outputs} outputs, as before, but has {rows.n_targets}."
            )
        return self, rows

    def outputs(self, plan: Plan) -> None:
        """Return None: there are no classes."""

    def start(self, plan: Plan, draw: Draw, d: int) -> tuple[Plan, list[Layer], None]:
        """Return the plan and the initial layers for d inputs, in the units of the targets.

        Weights are drawn for standardised targets, since inverse activations saturate otherwise.
        """
        drawn, moments = draw(d, self.n_outputs), self.moments
        if not drawn or plan.hidden != "pullback" or moments is None:
            return plan, drawn, None
        mean, variance = moments.centre.mean, moments.squares / moments.centre.weight
        if not plan.fit_intercept:
            mean, variance = np.zeros_like(mean), variance + mean**2
        scale = np.sqrt(variance)
        scale[scale == 0.0] = 1.0
        last = drawn[-1]
        drawn[-1] = Layer(last.V * scale, last.w * scale + mean, last.f)
        return replace(plan, centre=mean), drawn, None

    def union(self, other: Any) -> Self:
        """Return these targets: outputs cannot be added."""
        return self

    def aligned(self, statistics: Accumulator, known: Any) -> Accumulator:
        """Return the statistics as they are."""
        return statistics


AnyTargets = ClassTargets | NumberTargets


@dataclass(frozen=True)
class Scan:
    """The result of a pass over all rows of a weight above 0."""

    n_rows: int
    n_features: int = 0
    target_shape: tuple[int, ...] = ()  # of one row: () or (q,)
    statistic: Any = None  # Labels, or Moments of numbers before the output activation
    weighted: bool = False  # whether rows have weights
    sample: Any = None  # some rows as they were read, with weights of 1 if they have none

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
        _check_alike("columns of X", self.n_features, other.n_features)
        _check_alike("outputs in y", self.target_shape, other.target_shape)
        return Scan(
            self.n_rows + other.n_rows,
            self.n_features,
            self.target_shape,
            self.statistic.merge(other.statistic),
            self.weighted or other.weighted,
            self.sample.merge(other.sample),
        )


def _check_alike(name: str, mine: Any, theirs: Any) -> None:
    """Raise an error if two blocks differ."""
    if mine != theirs:
        raise ValueError(
            f"blocks differ in the {name}, {mine} and {theirs}: all must have the same."
        )


def gathered(passes: Passes, check: Check) -> tuple[tuple[int, int], NDArray[Any], Array | None]:
    """Return the shape of the inputs, and targets and weights of all rows, after a first pass."""
    of_block = unnumbered(partial(_targets_of_block, check, passes.names))
    with closing(passes.gather(of_block, repeat(SCAN.rows))) as parts:
        found = [part for part in parts if len(part[1])]
    weighted = any(weight is not None for *_, weight in found)
    weights = [np.ones(len(y)) if weight is None else weight for _, y, weight in found]
    if not any(weight.any() for weight in weights):
        raise ValueError(NO_ROWS)
    for n_features, y, _ in found:
        _check_alike("columns of X", found[0][0], n_features)
        _check_alike("outputs in y", found[0][1].shape[1:], y.shape[1:])
    y = _joined(*(y for _, y, _ in found))
    return (len(y), found[0][0]), y, np.concatenate(weights) if weighted else None


def _targets_of_block(
    check: Check, names: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[int, NDArray[Any], Array | None]:
    """Check one block, and return the number of its inputs, its targets and its weights."""
    X = validation.plain_inputs(X)
    validation.refuse_infinite(X, names)
    n_rows = X.shape[0]
    weight = validation.check_weight(sample_weight, n_rows, some_positive=False)
    return X.shape[1], check(y, n_rows) if n_rows else np.empty(0), weight


def scanned(passes: Passes, targets: AnyTargets) -> tuple[AnyTargets, Streamed]:
    """Return the targets after a first pass, and the rows for the following passes."""
    of_block = partial(Scan.of, targets, passes.names, passes.n_rows)
    scan = passes.reduce(unnumbered(of_block), repeat(SCAN.rows))
    if not scan.n_rows:
        raise ValueError(NO_ROWS)
    targets, prepare, n_rows, total = targets.in_blocks(scan)
    rows = scan.sample.rows
    weight = rows.weight if scan.weighted else None
    sample = Sample(Rows(*prepare(rows.X, rows.y, weight)), scan.sample.step)
    n_targets = int(np.prod(scan.target_shape))
    return targets, Streamed(passes, prepare, n_rows, scan.n_features, n_targets, total, sample)
