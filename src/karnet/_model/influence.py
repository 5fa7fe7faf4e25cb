"""Predictions of members without one of their training rows, from one factorisation.

A member predicts ``f(x) = b + K(x, X) a``. With M and m of its `RidgeSystem`, a fit without row i
predicts ``f(x) - (a_i / M_ii) (K(x, X) M_i + m_i)``, where M_i is a column of M. View, scale, ridge
and input metric stay, so that the prediction is that of a refit unless the row shaped the metric.
In the leaves of trees, a row has a part in the predictions of its own leaves only.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np

from .._arrays import namespace as arrays
from .._network.infinite_width import RidgeSystem
from .._network.local import Leaf
from .._rows.memory import in_order
from .._search.member import Member
from .._util.types import Array, Indices, Mask


def system_of(leaf: Leaf, weight: Array, alpha: float, device: str | None) -> RidgeSystem:
    """Return the system that the coefficients of a leaf solve, in their precision.

    `weight` holds the weights of all training rows.
    """
    Z = leaf.kernel.Z if device is None else arrays.upload(leaf.kernel.Z, device)
    return RidgeSystem.of(leaf.kernel.at(Z)(Z), weight[leaf.centres], alpha)


def _kernel_with(leaf: Leaf, A: Array) -> Array:
    """Return the kernel of the rows that a leaf predicts with its centres, in double precision."""
    Z, new = (each.astype(np.float64, copy=False) for each in (leaf.kernel.Z, A[leaf.rows]))
    return leaf.kernel.at(Z)(new)


def changes_without_rows(
    member: Member, A: Array, weight: Array, device: str | None = None
) -> tuple[Array, Array]:
    """Return the changes of predictions without each training row, and the similarity to it.

    A holds the rows to predict as the view of the member shows them, and `weight` the weights of
    the training rows. The changes have the shape (k, n, q), and the similarities, which are values
    of the kernel, the shape (k, n).
    """
    n, q = len(weight), member.network.n_outputs
    changes, alike = np.zeros((len(A), n, q)), np.zeros((len(A), n))
    for leaf in member.network.reached(A):
        system = system_of(leaf, weight, member.alpha_, device)
        K = _kernel_with(leaf, A)
        columns = arrays.to_numpy(system.times(arrays.like(system.u, np.ascontiguousarray(K.T))))
        slopes = _quotient(columns.T + arrays.to_numpy(system.m), system.diagonal())
        where = np.ix_(leaf.rows, leaf.centres)
        changes[where] -= leaf.share * slopes[:, :, None] * leaf.D
        alike[where] += leaf.share * K
    return changes, alike


def _quotient(values: Array, diagonal: Array) -> Array:
    """Return values over the diagonal of M, and 0 where a row has no effect on its part."""
    effective = diagonal > 0.0
    return np.where(effective, values / np.where(effective, diagonal, 1.0), 0.0)


@dataclass(frozen=True)
class LeftOutRows:
    """The map from changed copies of training rows to predictions without the original row."""

    member: Member
    # For each leaf the rows in it, which ascend, with rows of M, values of m, and ``a_i / M_ii``.
    own: dict[tuple[int, int], tuple[Indices, Array, Array, Array]]

    @classmethod
    def of(
        cls, member: Member, A: Array, numbers: Indices, weight: Array, device: str | None
    ) -> LeftOutRows:
        """Return the map for training rows of some numbers, which are A as the view shows them."""
        own = {}
        for leaf in member.network.reached(A):
            order = np.argsort(leaf.centres, kind="stable")
            centre, is_centre = _places(leaf.centres[order], numbers[leaf.rows])
            rows, centre = leaf.rows[is_centre], order[centre[is_centre]]
            system = system_of(leaf, weight, member.alpha_, device)
            M = _columns_of(system, centre)
            factor = _quotient(leaf.D[centre].T, M[centre, np.arange(len(rows))]).T
            own[leaf.place] = rows, M.T.copy(), arrays.to_numpy(system.m)[centre], factor
        return cls(member, own)

    def __call__(self, A: Array) -> Array:
        """Return the predictions for rows A of the view, copies of the rows in their order."""
        total = np.zeros((len(A), self.member.network.n_outputs))
        for leaf in self.member.network.reached(A):
            K = _kernel_with(leaf, A)
            scores = leaf.b + K @ leaf.D
            if leaf.place in self.own:
                scores -= self._effect(leaf, K)
            total[leaf.rows] += leaf.share * scores
        return total

    def _effect(self, leaf: Leaf, K: Array) -> Array:
        """Return the part of scores that is due to the original row of each copy."""
        rows, M, m, factor = self.own[leaf.place]
        place, known = _places(rows, leaf.rows)
        effect = np.zeros((len(leaf.rows), factor.shape[1]))
        own = place[known]
        slopes = np.einsum("ij,ij->i", K[known], M[own]) + m[own]
        effect[known] = slopes[:, None] * factor[own]
        return effect


def _places(ascending: Indices, wanted: Indices) -> tuple[Indices, Mask]:
    """Return the place of each wanted number among some that ascend, and which are there."""
    if not len(ascending):
        return np.zeros(len(wanted), dtype=np.intp), np.zeros(len(wanted), dtype=bool)
    place = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return place, ascending[place] == wanted


def left_out_predictions(
    member: Member,
    Y: Array,
    weight: Array,
    removed: Mask | None = None,
    wanted: Mask | None = None,
    device: str | None = None,
) -> Array:
    """Return the left-out predictions of all training rows, without the rows that are removed.

    Y are the targets of the training rows. Removed rows, and rows that are no centres, have NaN.
    Leaves without a row that is wanted have NaN too. A fit without the rows S has the coefficients
    ``a - M_S M_SS^-1 a_S``, and its M is ``M - M_S M_SS^-1 M_S'``.
    """
    errors, count = np.zeros(Y.shape), np.zeros(len(Y))
    leaves = [
        leaf for leaf in member.network.leaves() if wanted is None or wanted[leaf.centres].any()
    ]
    with closing(in_order(partial(_of_leaf, member, weight, removed, device), leaves)) as found:
        for centres, quotients in found:
            errors[centres] += quotients
            count[centres] += 1.0
    with np.errstate(invalid="ignore"):
        return np.asarray(Y - errors / count[:, None])


def _of_leaf(
    member: Member, weight: Array, removed: Mask | None, device: str | None, leaf: Leaf
) -> tuple[Indices, Array]:
    """Return the centres of a leaf, and their coefficients over the diagonal of M."""
    system = system_of(leaf, weight, member.alpha_, device)
    a, diagonal = leaf.D.astype(np.float64), system.diagonal().astype(np.float64)
    gone = np.arange(0) if removed is None else np.flatnonzero(removed[leaf.centres])
    if len(gone):
        M = _columns_of(system, gone)
        solved = np.linalg.lstsq(M[gone], M.T, rcond=None)[0]
        diagonal = diagonal - np.sum(M * solved.T, axis=1)
        a = a - solved.T @ a[gone]
        diagonal[gone] = np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        return leaf.centres, a / diagonal[:, None]


def _columns_of(system: RidgeSystem, rows: Indices) -> Array:
    """Return the columns of M of some rows."""
    units = np.zeros((len(system.u), len(rows)))
    units[rows, np.arange(len(rows))] = 1.0
    return np.asarray(arrays.to_numpy(system.times(arrays.like(system.u, units))))
