"""What the search tries: kernels and rounds of the input metric, at several starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from .._network.input_metric import metric_is_diagonal, metric_root, scaled_metric
from .._network.kernel_map import KernelMap
from .._util.types import Array, Indices
from .leaves import Tuning
from .member import Shape, activation
from .views import View, WithScores, shortened, stretch

# The smallest factor by which an input or a direction is stretched, as a share of the largest.
LEAST_STRETCH = 1e-3
# The scale and the ridge that are tried first with each kernel.
FIRST_TUNING = {
    "gaussian": Tuning(0.5, 0.05),
    "laplace": Tuning(1.0, 0.05),
    "laplace_l1": Tuning(0.5, 0.05),
}


@dataclass(frozen=True)
class Start:
    """Rows that shape metrics, and other rows that judge them."""

    shaping: Indices
    judging: Indices

    @property
    def all(self) -> tuple[Indices, Indices]:
        """All rows."""
        return self.shaping, self.judging

    def within(self, rows: Indices) -> Start:
        """Return the places of the rows among others, which ascend."""
        return Start(*(np.searchsorted(rows, each) for each in self.all))


@dataclass(frozen=True, eq=False)
class Lens:
    """How a start sees the rows: a view, multiplied by the root of a metric."""

    name: str
    view: View
    diagonal: bool = False  # whether only the diagonal of the metric is formed
    root: Array | None = None

    def of(self, A: Array) -> Array:
        """Return rows that the view shows as the lens shows them."""
        return A if self.root is None else stretch(A, self.root.astype(A.dtype))

    def next(self, M: Array) -> Lens:
        """Return the lens after another round, whose metric is M.

        Its metric is the mean of both. M was computed after rows were multiplied by the root.
        """
        root = self.root
        if self.diagonal or M.ndim == 1:
            root, M = _diagonal_root(root), M if M.ndim == 1 else M.diagonal()
        if root is None:
            total = scaled_metric(M)
        elif root.ndim == 1:
            total = scaled_metric(root**2) + scaled_metric(M * root**2)
        else:
            total = scaled_metric(root @ root) + scaled_metric(root @ M @ root)
        return replace(self, root=metric_root(total, LEAST_STRETCH))

    @property
    def is_shaped(self) -> bool:
        """Whether targets shaped it."""
        return self.root is not None or isinstance(self.view, WithScores)

    def shortened(self, share: float) -> Lens:
        """Return the lens without directions that contribute less to squared distances."""
        root = None if self.root is None else shortened(self.root, share)
        return replace(self, root=root)

    def for_kernel(self, kernel: str) -> Lens:
        """Return the lens with the diagonal of its metric, if the kernel needs it."""
        diagonal = metric_is_diagonal(KernelMap(kernel), 0)
        return replace(self, root=_diagonal_root(self.root)) if diagonal else self


def _diagonal_root(root: Array | None) -> Array | None:
    """Return the root of the diagonal of the metric with a symmetric root, or with a diagonal."""
    if root is None or root.ndim == 1:
        return root
    return np.asarray(np.sqrt(np.sum(root**2, axis=1)))


@dataclass(frozen=True, eq=False)
class Trial:
    """A kernel and a round of the metric, and what was found with them at some starts."""

    kernel: str
    lenses: tuple[Lens, ...]  # of all starts
    leaf: int  # the largest number of rows of a leaf
    tuning: Tuning  # the scale and ridge selected, or to begin with
    rounds: int = 0
    is_tuned: bool = False  # whether the tuning was selected, at an earlier start or round
    is_settled: bool = False  # whether the tuning that was selected is the one to begin with
    # For each start at which it was judged, the squared error of the judging rows times their
    # weight, this weight, and the metric of its networks.
    errors: Mapping[int, float] = field(default_factory=dict)
    weights: Mapping[int, float] = field(default_factory=dict)
    metrics: Mapping[int, Array] = field(default_factory=dict)
    n_rows: int = 0  # the rows that shaped it

    @property
    def error(self) -> float:
        """The mean squared error of all judging rows so far."""
        return self.error_at(self.errors)

    def error_at(self, starts: Iterable[int]) -> float:
        """Return the mean squared error of the judging rows of some starts."""
        total, weight = np.sum([(self.errors[k], self.weights[k]) for k in starts], axis=0)
        return float(total / weight)

    @property
    def is_complete(self) -> bool:
        """Whether it was judged at all starts."""
        return len(self.errors) == len(self.lenses)

    def begun_with(self, **changes: object) -> Trial:
        """Return another trial, which is not judged yet."""
        new = replace(self, errors={}, weights={}, metrics={}, n_rows=0, is_tuned=False)
        return replace(new, **changes)  # type: ignore[arg-type]

    def next_round(self) -> Trial:
        """Return the trial of another round of the metric.

        After a round that kept the scale and the ridge of the one before, they stay.
        """
        lenses = tuple(
            lens.next(self.metrics[k]) if k in self.metrics else lens
            for k, lens in enumerate(self.lenses)
        )
        is_tuned = self.is_settled and self.rounds > 0
        return self.begun_with(lenses=lenses, rounds=self.rounds + 1, is_tuned=is_tuned)

    def with_kernel(self, kernel: str) -> Trial:
        """Return the trial of another kernel that begins with the same metrics."""
        lenses = tuple(lens.for_kernel(kernel) for lens in self.lenses)
        return self.begun_with(kernel=kernel, lenses=lenses, tuning=FIRST_TUNING[kernel])

    def without_metric(self) -> Trial:
        """Return the trial without a metric."""
        lenses = tuple(replace(lens, root=None) for lens in self.lenses)
        return self.begun_with(lenses=lenses, rounds=0)

    @property
    def shape(self) -> Shape:
        """The hyper-parameters of its networks."""
        names = dict.fromkeys(lens.name for lens in self.lenses)
        return Shape(", ".join(names), self.kernel, self.tuning.scale, self.rounds)

    @property
    def activation(self) -> str:
        """The activation of the hidden units."""
        return activation(self.kernel)
