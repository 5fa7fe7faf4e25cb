"""Leaves of long tables: their kernel problems, and the scale and ridge selected for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._arrays import namespace as arrays
from .._network.infinite_width import DualSolution, KernelMap, RidgeTargets, downhill, nearest
from .._network.input_metric import MOST_INPUTS
from .._util.types import Array, Indices
from ..kernels import KERNELS, lower_geometry, lower_profile
from .views import stretch

# Scales that are tried, relative to the mean distance of rows.
SCALES = 2.0 ** np.arange(-5.0, 5.5, 0.5)
# Smallest ridge for which single precision keeps enough digits: the eigenvalues of a smooth kernel
# fall fast.
SINGLE_RIDGE = {"gaussian": 0.9e-3, "laplace": 0.9e-5, "laplace_l1": 0.9e-5}
# Smallest error, as a share of the variance of the targets, for which it does.
SINGLE_ERROR = 1e-3
# The error of a ridge that needs double precision, which takes twice the time, is multiplied by
# this factor before it is compared with others. Errors of classes are nearly flat for small ridges.
DOUBLE_FACTOR_OF_CLASSES = 1.01

# The operations of a kernel value besides those of a distance, as a number of inputs.
KERNEL_OPERATIONS = 30
# The search for scale and ridge ends at this share of the error that is small enough for a table.
ENOUGH_SHARE = 0.3


@dataclass
class LocalSizes:
    """The sizes of local members and of their search; tests change them."""

    # Rows of a leaf at most, unless the user says otherwise.
    width: int = 2000
    # Rows of a table up to which a single leaf has all of them.
    one_leaf: int = 4000
    # Rows from which views are made.
    view_rows: int = 20000
    # About the number of these rows that tell whether two views differ.
    compared_rows: int = 1000
    # Rows whose mean distance is the unit of scales.
    distance_rows: int = 500
    # Share of the rows that judge rounds and chains, and their largest number.
    judging_share: float = 0.2
    judging: int = 2000
    # The same number for a single output: a few rows have most of the sum of its squared errors.
    judging_of_one_output: int = 4000
    # Share of the rows that have no part in the search, and their smallest and largest number.
    scored_share: float = 0.1
    fewest_scored: int = 200
    scored: int = 5000
    # Rows that shape the metric in the first rounds.
    first_rows: int = 8000
    # For each of these rounds, the share by which the error of a view may then exceed the least.
    view_margins: tuple[float, ...] = (0.1, 0.0, 0.0)
    # Scores of an additive network are tried as further columns if the error is at least this share
    # of the variance of the targets, and they are taken if the error falls by at least this share.
    share_for_scores: float = 0.1
    gain_of_scores: float = 0.1
    # Rows that shape the metric in later rounds, which the best view takes.
    later_rows: int = 32000
    n_later_rounds: int = 4
    later_rounds_of_one_output: int = 6
    # Rounds of other kernels, as long as their errors fall.
    n_branch_rounds: int = 2
    # Rounds without a lower error after which a chain ends.
    patience: int = 1
    # The same for a single output, and for many rows that shape the metric. Then there are more
    # later rounds (for many rows twice as many), and twice as many rows select scale and ridge.
    patience_of_one_output: int = 2
    patience_of_many_rows: int = 4
    many_rows: int = 16000
    # Rows of a leaf in the search; those of a single output take less time.
    leaf: int = 1000
    leaf_of_one_output: int = 2000
    # The same for three or more classes, unless few rows shape the metric, or many.
    leaf_of_classes: int = 500
    few_rows: int = 2800
    # Columns beyond which the diagonal of the metric is tried too, if the error is at least this
    # share of the variance of the targets.
    columns_of_full: int = 10
    share_for_diagonal: float = 0.01
    # Leaves in which scale and ridge are selected, and the rows of each in the search.
    n_tuned_leaves: int = 2
    tuned_rows: int = 400
    # Rows over which outer products are summed: of all leaves, and of each leaf at least.
    metric_rows: int = 1000
    metric_rows_of_leaf: int = 60
    # Rows of a table up to which leaves have as many rows as they may have.
    rows_of_large_leaves: int = 5000
    # Least share of that number that leaves of longer tables have.
    least_share: float = 0.5
    # Least number of rows of a leaf from which scale and ridge are selected for a fit. The share of
    # the rows grows with the number of rows of a leaf, up to a share of 1 at `all_tuned_rows`, but
    # is not larger than `fit_tuned_share`.
    fit_tuned_rows: int = 1000
    fit_tuned_share: float = 0.4
    all_tuned_rows: int = 65_000
    # The fall of the error, as a share, for which those of longer tables have as many too; that for
    # a single output, whose leaves take less time.
    gain_of_large_leaves: float = 0.15
    gain_for_one_output: float = 0.05
    # The share of squared distances, times that of the error in the variance of the targets, which
    # the directions of the inputs contribute that are left out.
    short_share: float = 1e-3
    # Members whose error exceeds the least by more than this share are left out.
    margin: float = 0.25
    # Largest number of members, and the same where the operations of a prediction allow more trees
    # than each must have.
    n_members: int = 2
    most_members: int = 3
    # Members whose weight is at most this share of the largest are left out too.
    least_weight: float = 0.05
    # Trees of a member at least and at most, and about the operations that predict a row.
    fewest_trees: int = 2
    # Columns beyond which leaves have as many rows as they may have, and the least number of trees
    # of all members: the metric of so many columns is diagonal.
    wide: int = MOST_INPUTS
    trees_of_wide: int = 4
    # Principal directions that replace so many columns if they have at least this share of the
    # variance, and then the rows of a leaf at most, the largest number of members, and the least
    # number of trees.
    n_directions: int = 64
    share_of_directions: float = 0.85
    width_of_rotated: int = 4000
    n_members_of_rotated: int = 1
    trees_of_rotated: int = 3
    most_trees: int = 8
    operations: int = 340_000
    operations_of_one_output: int = 420_000

    def least_trees(self, n_members: int, d: int) -> int:
        """Return the least number of trees of a member, for a table of d columns."""
        wide = -(-self.trees_of_wide // n_members) if d > self.wide else 0
        return max(self.fewest_trees, wide)

    def trees_within(self, leaf: int, n_outputs: int, n_members: int, d: int) -> int:
        """Return the number of trees of each member that the operations of a prediction allow."""
        operations = self.operations_of_one_output if n_outputs == 1 else self.operations
        return operations // (leaf * (d + KERNEL_OPERATIONS) * n_members)

    def largest_leaf(self, n: int) -> int:
        """Return the largest number of rows of a leaf, for a table of n rows."""
        return max(self.width, n if n <= self.one_leaf else 0)


LOCAL_SIZES = LocalSizes()
# The same on a GPU, where many short computations take longer than few long ones.
DEVICE_SIZES = LocalSizes(
    width=60000,
    leaf=8000,
    leaf_of_one_output=12000,
    leaf_of_classes=8000,
    patience_of_one_output=1,
    patience_of_many_rows=2,
    tuned_rows=600,
    metric_rows=4000,
    rows_of_large_leaves=60000,
    most_trees=3,
    operations=10**8,
    operations_of_one_output=10**8,
    most_members=2,
    n_directions=0,
)


def sizes_for(device: str | None) -> LocalSizes:
    """Return the sizes for a device."""
    return LOCAL_SIZES if device is None or device.startswith("cpu") else DEVICE_SIZES


@dataclass(frozen=True)
class LocalTable:
    """Rows as a view shows them, in single precision, and their targets."""

    A: Array
    targets: RidgeTargets
    device: str | None = None  # where leaves are solved

    @property
    def sizes(self) -> LocalSizes:
        """The sizes for its device."""
        return sizes_for(self.device)

    def inputs(self, dtype: type[np.floating]) -> Array:
        """Return the rows in some precision, on the device."""
        A = self.A.astype(dtype, copy=False)
        return A if self.device is None else arrays.upload(A, self.device)

    def of(self, rows: Indices) -> LocalTable:
        """Return some of the rows."""
        return replace(self, A=self.A[rows], targets=self.targets.of(rows))

    def stretched(self, root: Array | None) -> LocalTable:
        """Return the rows multiplied by the root of a metric."""
        if root is None:
            return self
        return replace(self, A=stretch(self.A, root.astype(self.A.dtype)))


def mean_distance(kernel: str, A: Array, rng: np.random.RandomState) -> float:
    """Return the mean distance of a sample of rows."""
    some = A[rng.randint(len(A), size=min(LOCAL_SIZES.distance_rows, len(A)))]
    return float(KERNELS[kernel].geometry(some, some).mean(dtype=np.float64)) or 1.0


class Tuning(NamedTuple):
    """The scale and ridge selected for a kernel, and their leave-one-out error."""

    scale: float
    alpha: float
    error: float
    dtype: type[np.floating]  # the precision that keeps enough digits


def left_out_error(
    table: LocalTable, G: Array, kernel: KernelMap, alpha: float
) -> tuple[float, float]:
    """Return the sum of squared leave-one-out errors of half of the rows, and of their weights.

    G holds the distances of the rows. Half of the rows take much less time than all of them.
    """
    K, half = lower_profile(KERNELS[kernel.kernel], G, kernel.scale), -(-len(G) // 2)
    weight = table.targets.weight[-half:]
    left_out = DualSolution.of(K, table.targets, alpha).left_out(table.targets, last=half)
    total = float(weight @ np.sum((table.targets.Y[-half:] - left_out) ** 2, axis=1))
    return (total if np.isfinite(total) else np.inf), float(weight.sum())


def distances(kernel: str, table: LocalTable, dtype: type[np.floating]) -> Array:
    """Return the distances of rows in a precision, as `lower_geometry` does."""
    return lower_geometry(KERNELS[kernel], table.inputs(dtype))


def tuned(
    kernel: str, leaves: Sequence[LocalTable], unit: float, start: tuple[float, float]
) -> Tuning:
    """Return the scale and ridge with the least leave-one-out error in some leaves.

    The search descends from a start, in single precision as far as that keeps enough digits.
    """
    variance = np.mean([table.targets.Y.var(axis=0).sum() for table in leaves])
    found = _downhill(kernel, leaves, unit, start, SINGLE_RIDGE[kernel])
    if ENOUGH_SHARE * leaves[0].targets.enough < found.error < SINGLE_ERROR * variance:
        return _downhill(kernel, leaves, unit, (found.scale, found.alpha), np.inf)
    return found


def _downhill(
    kernel: str,
    leaves: Sequence[LocalTable],
    unit: float,
    start: tuple[float, float],
    single_ridge: float,
) -> Tuning:
    """Return the result of `tuned`, in single precision from some ridge on."""
    ridges, enough = leaves[0].targets.ridges, ENOUGH_SHARE * leaves[0].targets.enough
    kept: dict[tuple[int, type[np.floating]], Array] = {}
    one = leaves[0].targets.Y.shape[1] == 1
    factors = {np.float32: 1.0, np.float64: 1.0 if one else DOUBLE_FACTOR_OF_CLASSES}

    def precision(k: int) -> type[np.floating]:
        return np.float32 if ridges[k] >= single_ridge else np.float64

    def error(i: int, k: int) -> float:
        sums, dtype = np.zeros(2), precision(k)
        for number, table in enumerate(leaves):
            if (number, dtype) not in kept:
                kept[number, dtype] = distances(kernel, table, dtype)
            shape = KernelMap(kernel, float(SCALES[i]) * unit)
            sums += left_out_error(table, kept[number, dtype], shape, float(ridges[k]))
        return float(sums[0] / sums[1]) * factors[dtype]

    place = int(np.argmin(np.abs(SCALES - start[0]))), nearest(ridges, start[1])
    (i, k), least = downhill(error, place, (len(SCALES), len(ridges)), enough)
    return Tuning(float(SCALES[i]), float(ridges[k]), least, precision(k))


def telling(tables: list[LocalTable], n: int, rng: np.random.RandomState) -> list[LocalTable]:
    """Return n leaves, among them the leaf whose targets have the largest variance.

    The others are drawn from the half of larger variance: constant targets prefer no scale.
    """
    variance = [-table.targets.Y.var(axis=0).sum() for table in tables]
    first, *others = np.argsort(variance, kind="stable")[: max(len(tables) // 2, n)]
    return [tables[k] for k in (first, *rng.permutation(others)[: n - 1].astype(np.intp))]


def solve_leaf(
    kernel: KernelMap, table: LocalTable, tuning: Tuning, last: int = 0
) -> tuple[DualSolution, Array]:
    """Return the solution of a leaf, and the left-out predictions of its last rows."""
    G = distances(kernel.kernel, table, tuning.dtype)
    K = lower_profile(KERNELS[kernel.kernel], G, kernel.scale)
    found = DualSolution.of(K, table.targets, tuning.alpha)
    return found, found.left_out(table.targets, last=last) if last else np.empty((0, 1))
