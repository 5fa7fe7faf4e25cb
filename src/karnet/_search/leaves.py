"""Leaves: their kernel problems, and the scale and ridge that are selected for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._arrays import namespace as arrays
from .._network.infinite_width import DualSolution, RidgeTargets, downhill, nearest
from .._network.kernel_map import KernelMap
from .._util.types import Array, Indices
from ..kernels import KERNELS, lower_geometry, lower_profile

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
# The descent to scale and ridge ends at this share of the error that is small enough for a table.
ENOUGH_SHARE = 0.3
# Fewer rows are solved in double precision, which takes no time to speak of.
SINGLE_ROWS = 100
# Rows whose mean distance is the unit of scales.
DISTANCE_ROWS = 500


@dataclass(frozen=True)
class LeafTable:
    """Rows as a view shows them, and their targets."""

    A: Array
    targets: RidgeTargets
    unit: float = 1.0  # the mean distance of rows
    device: str | None = None  # where leaves are solved

    def inputs(self, dtype: type[np.floating]) -> Array:
        """Return the rows in some precision, on the device."""
        A = self.A.astype(dtype, copy=False)
        return A if self.device is None else arrays.upload(A, self.device)

    def of(self, rows: Indices) -> LeafTable:
        """Return some of the rows."""
        return replace(self, A=self.A[rows], targets=self.targets.of(rows))


class Tuning(NamedTuple):
    """The scale and ridge selected for a kernel, and their left-out error."""

    scale: float
    alpha: float
    error: float = np.inf
    dtype: type[np.floating] = np.float64  # the precision that keeps enough digits


def mean_distance(kernel: str, A: Array, weight: Array, rng: np.random.RandomState) -> float:
    """Return the mean distance of rows, or of a sample of many; weights count as repeats."""
    if len(A) > DISTANCE_ROWS:
        some = rng.randint(len(A), size=DISTANCE_ROWS)
        A, weight = A[some], weight[some]
    A, share = A.astype(np.float64), weight / weight.sum()
    return float(share @ KERNELS[kernel].geometry(A, A) @ share) or 1.0


def solve_leaf(
    kernel: KernelMap, table: LeafTable, tuning: Tuning, last: int = 0
) -> tuple[DualSolution, Array]:
    """Return the solution of a leaf, and the left-out predictions of its last rows."""
    G = lower_geometry(KERNELS[kernel.kernel], table.inputs(tuning.dtype))
    K = lower_profile(KERNELS[kernel.kernel], G, kernel.scale)
    found = DualSolution.of(K, table.targets, tuning.alpha)
    return found, found.left_out(table.targets, last) if last else np.empty((0, 1))


def telling(tables: list[LeafTable], n: int, rng: np.random.RandomState) -> list[LeafTable]:
    """Return n leaves, among them the leaf whose targets have the largest variance.

    The others are drawn from the half of larger variance: constant targets prefer no scale.
    """
    n = min(n, len(tables))
    variance = [-table.targets.variance for table in tables]
    first, *others = np.argsort(variance, kind="stable")[: max(len(tables) // 2, n)]
    return [tables[k] for k in (first, *rng.permutation(others)[: n - 1].astype(np.intp))]


def tuned(kernel: str, leaves: Sequence[LeafTable], start: Tuning) -> Tuning:
    """Return the scale and ridge with the least left-out error in some leaves.

    The search descends from a start, in single precision as far as that keeps enough digits.
    """
    variance = np.mean([table.targets.variance for table in leaves])
    found = _downhill(kernel, leaves, start, SINGLE_RIDGE[kernel])
    if ENOUGH_SHARE * leaves[0].targets.enough < found.error < SINGLE_ERROR * variance:
        return _downhill(kernel, leaves, found, np.inf)
    return found


def _downhill(
    kernel: str, leaves: Sequence[LeafTable], start: Tuning, single_ridge: float
) -> Tuning:
    """Return the result of `tuned`, in single precision from some ridge on."""
    ridges, enough = leaves[0].targets.ridges, ENOUGH_SHARE * leaves[0].targets.enough
    kept: dict[tuple[int, type[np.floating]], Array] = {}
    one = leaves[0].targets.Y.shape[1] == 1
    if max(len(table.A) for table in leaves) < SINGLE_ROWS:
        single_ridge = np.inf
    factors = {np.float32: 1.0, np.float64: 1.0 if one else DOUBLE_FACTOR_OF_CLASSES}

    def precision(k: int) -> type[np.floating]:
        return np.float32 if ridges[k] >= single_ridge else np.float64

    def error(i: int, k: int) -> float:
        sums, dtype = np.zeros(2), precision(k)
        for number, table in enumerate(leaves):
            if (number, dtype) not in kept:
                kept[number, dtype] = lower_geometry(KERNELS[kernel], table.inputs(dtype))
            scale = float(SCALES[i]) * table.unit
            sums += _left_out_error(kernel, table, kept[number, dtype], scale, float(ridges[k]))
        return float(sums[0] / sums[1] if sums[1] else np.inf) * factors[dtype]

    place = int(np.argmin(np.abs(SCALES - start.scale))), nearest(ridges, start.alpha)
    (i, k), least = downhill(error, place, (len(SCALES), len(ridges)), enough)
    return Tuning(float(SCALES[i]), float(ridges[k]), least, precision(k))


def _left_out_error(
    kernel: str, table: LeafTable, G: Array, scale: float, alpha: float
) -> tuple[float, float]:
    """Return the sum of squared left-out errors of half of the rows, and of their weights.

    G holds the distances of the rows. Half of the rows take much less time than all of them, unless
    rows are left out together: then all are judged.
    """
    K = lower_profile(KERNELS[kernel], G, scale)
    some = len(G) if table.targets.splits is not None else -(-len(G) // 2)
    left_out = DualSolution.of(K, table.targets, alpha).left_out(table.targets, some)
    judged = ~np.isnan(left_out[:, 0])
    weight = table.targets.weight[-some:][judged]
    squares = np.sum((table.targets.Y[-some:] - left_out)[judged] ** 2, axis=1)
    total = float(weight @ squares)
    return (total if np.isfinite(total) else np.inf), float(weight.sum())
