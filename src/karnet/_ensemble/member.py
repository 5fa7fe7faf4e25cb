"""One member of an average: a layer of units around given rows, its ridge chosen by leave-one-out.

A member answers ``b + K(x, Z) D``, K the kernel of an infinitely wide layer. With all rows as
centres Z it is that layer itself, solved in the dual. With some of them it is a layer of finite
width, which `karnet._network.nystroem` learns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from .._arrays import namespace as arrays
from .._lstsq.lapack import EPS
from .._rows.device import on_device
from .._rows.memory import Rows, Table, power_of_2
from .._rows.streamed import Raw, Sample
from ..kernels import KERNELS, Kernel
from ..loo import RidgePath, squared_error
from .views import View

__all__ = [
    "N_SAMPLED",
    "Answers",
    "Member",
    "Shape",
    "SplitMean",
    "Splits",
    "Targets",
    "fit_all",
    "left_out_error",
    "mean_answer",
    "smoothest",
    "solved",
    "typical_distance",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
# The rows left out together, one array after the other; None leaves out one row at a time.
Splits = Sequence[Indices] | None

# Ridges of a kernel matrix as a share of its largest eigenvalue: below there are no digits left.
LEAST = 1e-9
# Rows, about, of which some can be had at once wherever rows are.
N_SAMPLED = 600


@dataclass(frozen=True)
class Answers:
    """What is answered for rows, block after block."""

    parts: tuple[Array, ...]

    @classmethod
    def of(cls, answers: Array) -> Answers:
        """Keep the answers for one block, here."""
        return cls((arrays.to_numpy(answers),))

    def merge(self, other: Answers, /) -> Answers:
        """Return the answers for both."""
        return Answers((*self.parts, *other.parts))

    def joined(self) -> Array:
        """Return all answers as one array."""
        return np.concatenate(self.parts)


@dataclass(frozen=True)
class Shape:
    """What is to be chosen: a view of the inputs, a kernel, and its scale or depth.

    The scale is in units of the typical distance between rows. `rounds` tells how often the view
    was stretched by the metric of a member learned before.
    """

    view: str
    kernel: str
    scale: float = 1.0
    depth: int = 1
    rounds: int = 0


@dataclass(frozen=True)
class Member:
    """A fitted member.

    Attributes
    ----------
    shape : Shape
        What it is made of.
    view : View
        What inputs go through first.
    scale : float
        The scale of the kernel in units of the view.
    X_fit_ : ndarray of shape (h, p)
        The centres Z, as the view shows them.
    dual_coef_ : ndarray of shape (h, q)
        D.
    intercept_ : ndarray of shape (q,)
        b.
    alpha_ : float
        The ridge.
    error : float
        The squared error of `left_out`.
    left_out : ndarray of shape (m, q)
        For every row what the member answers that was learned without it.
    path : RidgePath or None
        All ridge solutions, if all rows are centres.
    before : Member or None
        The member whose metric stretched the view.
    width : float
        The number of hidden units: infinite if all rows are centres.
    """

    shape: Shape
    view: View
    scale: float
    X_fit_: Array
    dual_coef_: Array
    intercept_: Array
    alpha_: float
    error: float
    left_out: Array
    path: RidgePath | None = None
    before: Member | None = None
    width: float = np.inf

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return KERNELS[self.shape.kernel]

    @property
    def activation(self) -> str:
        """The activation of the hidden units."""
        return "cos" if self.kernel.scaled else "relu"

    @property
    def hidden_layer_sizes(self) -> tuple[float, ...]:
        """The number of units of each hidden layer."""
        return (self.width,) * (self.shape.depth if np.isinf(self.width) else 1)

    @property
    def rounds(self) -> list[Member]:
        """The member and those before it, the first one first."""
        return [*(self.before.rounds if self.before else []), self]

    def trimmed(self, path: bool) -> Member:
        """Return the member without what only its making needed, and its path if not wanted."""
        nothing = np.empty((0, len(self.intercept_)))
        return replace(self, before=None, left_out=nothing, path=self.path if path else None)

    def hidden(self, X: Array) -> Array:
        """Return K(x, Z)."""
        return self.products(self.view(X))

    def products(self, A: Array) -> Array:
        """Return K(x, Z) for rows as the view shows them, where these lie."""
        return self.kernel(A, arrays.like(A, self.X_fit_), self.scale, self.shape.depth)

    def shown(self, rows: Rows, device: str | None = None) -> Table:
        """Return rows as the hidden layer shows them, all but the view computed on a device."""
        if device is None:
            return rows.map(self.hidden, len(self.X_fit_))
        step = max(len(rows) // N_SAMPLED, 1)
        some = rows.every(step)
        sample = Sample(Rows(*self._viewed(some.X, some.y, some.weight)), power_of_2(step))
        there = on_device(rows, device, self._viewed, sample)
        return there.map(self.products, len(self.X_fit_))

    def _viewed(self, X: Array, y: NDArray[Any], weight: Array | None) -> Raw:
        return self.view(X), y, weight

    def __call__(self, X: Array, device: str | None = None) -> Array:
        """Return what the member answers, block by block, computed on a device if one is given."""

        def of_block(k: Array, *_: Any) -> Answers:
            D, b = arrays.like(k, self.dual_coef_), arrays.like(k, self.intercept_)
            return Answers.of(k @ D + b)

        rows = Rows(X, np.zeros(len(X), dtype=np.int8))  # no targets are asked for
        return self.shown(rows, device).reduce(of_block).joined()


def mean_answer(members: Sequence[Member], X: Array, device: str | None = None) -> Array:
    """Return the mean of what the members answer."""
    return np.asarray(sum(member(X, device) for member in members) / len(members))


def typical_distance(D: Array, weight: Array) -> float:
    """Return the mean distance between two rows, of all copies; 1 if all rows are equal."""
    return float(weight @ D @ weight / weight.sum() ** 2) or 1.0


@dataclass(frozen=True)
class Targets:
    """What members are to answer, and how they are judged.

    Attributes
    ----------
    Y : ndarray of shape (m, q)
        The targets.
    weight : ndarray of shape (m,)
        The weights of the rows.
    ridges : ndarray
        The ridges to choose from, as shares of the mean eigenvalue.
    splits : list of ndarray of int, or None
        The rows left out together; None leaves out one row at a time.
    """

    Y: Array
    weight: Array
    ridges: Array
    splits: Splits = None

    def of(self, rows: Indices) -> Targets:
        """Return those of some rows, which are judged one at a time."""
        return Targets(self.Y[rows], self.weight[rows], self.ridges)


def fit_all(shape: Shape, view: View, A: Array, G: Array, targets: Targets) -> Member:
    """Return the member with all rows as centres.

    Parameters
    ----------
    shape, view
        What it is made of.
    A : ndarray of shape (m, p)
        The rows as the view shows them.
    G : ndarray of shape (m, m)
        Distances or products of these, as the kernel's `geometry` gives them.
    targets : Targets
        The targets.

    Returns
    -------
    Member
        With the ridge of the least error.
    """
    Y, weight = targets.Y, targets.weight
    K, scale = _kernel_matrix(shape, G, weight)
    path = RidgePath.of_kernel(K, Y, weight)
    eigenvalues = path.eigenvalues if len(path.eigenvalues) else np.ones(1)
    alphas = np.maximum(targets.ridges * eigenvalues.mean(), LEAST * eigenvalues.max())
    tried = list(_left_out(path, alphas, targets.splits))
    errors = [left_out_error(Y, left_out, weight) for left_out in tried]
    best = smoothest(errors)
    error, alpha, left_out = errors[best], float(alphas[best]), tried[best]
    b, D = path.dual_coef(alpha)
    return Member(shape, view, scale, A, D, b, alpha, error, left_out, path)


def _kernel_matrix(shape: Shape, G: Array, weight: Array) -> tuple[Array, float]:
    """Return K and the scale of the kernel from distances or products G of all rows."""
    kernel = KERNELS[shape.kernel]
    scale = shape.scale * typical_distance(G, weight) if kernel.scaled else 1.0
    return kernel.profile(G, scale, shape.depth), scale


def smoothest(errors: Sequence[float]) -> int:
    """Return the place of the last of rising ridges that have the least error."""
    return int(np.flatnonzero(errors == np.nanmin(errors))[-1])


def solved(shape: Shape, view: View, A: Array, targets: Targets, alpha: float) -> Member:
    """Return the member with all rows as centres and a given ridge, not judged."""
    weight = targets.weight
    K, scale = _kernel_matrix(shape, KERNELS[shape.kernel].geometry(A, A), weight)
    C = _ridge_solution(K, alpha / weight, np.hstack([np.ones((len(K), 1)), targets.Y]))
    # With a bias, the coefficients of the rows sum to zero.
    b = C[:, 1:].sum(axis=0) / C[:, 0].sum()
    D = C[:, 1:] - np.outer(C[:, 0], b)
    return Member(shape, view, scale, A, D, b, alpha, np.nan, np.empty((0, len(b))))


def _ridge_solution(K: Array, ridge: Array, B: Array) -> Array:
    """Return the solution of ``(K + ridge) C = B``, with more of a ridge if K is not definite."""
    while True:
        A = K.copy()
        A[np.diag_indices(len(A))] += ridge
        L, info = lapack.dpotrf(A.T, clean=0, overwrite_a=1)
        if info == 0:
            return np.asarray(lapack.dpotrs(L, B)[0])
        ridge = np.maximum(10.0 * ridge, EPS * len(K))


def _left_out(path: RidgePath, alphas: Array, splits: Splits) -> Iterator[Array]:
    if splits is None:
        return path.loo_path(alphas)
    mean = SplitMean((len(alphas), *path.B.shape))
    for rows, found in zip(splits, path.kfold_path(alphas, splits), strict=True):
        mean.add(rows, found)
    return iter(mean.value)


class SplitMean:
    """The mean of what several splits say of a row; NaN for a row that none leaves out."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._total, self._count = np.zeros(shape), np.zeros(shape[-2])

    def add(self, rows: Indices, found: Array) -> None:
        """Add what is said of some rows."""
        self._total[..., rows, :] += found
        self._count[rows] += 1.0

    @property
    def value(self) -> Array:
        """The mean."""
        with np.errstate(invalid="ignore"):
            return self._total / self._count[:, None]


def left_out_error(Y: Array, left_out: Array, weight: Array) -> float:
    """Return the squared error over all rows that were left out at some time."""
    seen = ~np.isnan(left_out[:, 0])
    if not seen.any():
        return np.inf
    return squared_error(Y[seen], left_out[seen], weight[seen])
