"""Predictions of members without one of their training rows, from one factorisation.

A member predicts ``f(x) = b + K(x, X) a``. With M and m of its `RidgeSystem`, a fit without row i
predicts ``f(x) - (a_i / M_ii) (K(x, X) M_i + m_i)``, where M_i is a column of M. View, scale, ridge
and input metric stay, so that the prediction is that of a refit unless the row shaped the metric.
In the leaves of trees, a row has a part in the predictions of its own leaves only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from .._arrays import namespace as arrays
from .._network.infinite_width import KernelMap, RidgeSystem
from .._network.layers import Network
from .._network.local import LocalNetwork
from .._rows.memory import in_order
from .._search.member import Member
from .._util.types import Array, Indices, Mask


class Part(NamedTuple):
    """A part of a member that predicts some rows: all of it, or a leaf of a tree."""

    place: tuple[int, int]  # the numbers of the tree and of the leaf
    share: float  # of the part in the prediction of the member
    network: Network  # for rows as the view shows them
    centres: Indices  # the training rows of the part
    rows: Indices  # the rows that it predicts

    @property
    def kernel(self) -> KernelMap:
        """The map to the kernel with the centres, in double precision."""
        kernel = self.network.input_map
        assert isinstance(kernel, KernelMap)
        return kernel.at(kernel.Z.astype(np.float64, copy=False))

    @property
    def D(self) -> Array:
        """The coefficients of the centres."""
        return self.network.layers[-1].V.astype(np.float64, copy=False)

    @property
    def b(self) -> Array:
        """The bias."""
        return self.network.layers[-1].w

    def system(self, weight: Array, alpha: float, device: str | None) -> RidgeSystem:
        """Return the system that the coefficients solve, for the weights of all training rows.

        It has the precision of the coefficients.
        """
        kernel = self.network.input_map
        assert isinstance(kernel, KernelMap)
        Z = kernel.Z if device is None else arrays.upload(kernel.Z, device)
        return RidgeSystem.of(kernel.at(Z)(Z), weight[self.centres], alpha)


def parts_of(member: Member, A: Array, n_trees: int | None = None) -> Iterator[Part]:
    """Yield the parts of a member that predict rows A of its view.

    Only the first `n_trees` trees are used if it is given.
    """
    network = member.network
    if not isinstance(network, LocalNetwork):
        whole = Network(network.layers, input_map=network.input_map)
        yield Part((0, 0), 1.0, whole, np.arange(len(member.X_fit_)), np.arange(len(A)))
        return
    partitions = network.partitions[:n_trees]
    routed = A.astype(network.kernel.Z.dtype, copy=False)
    for number, partition in enumerate(partitions):
        for k, rows in partition.tree.route(routed):
            centres = partition.rows[partition.starts[k] : partition.starts[k + 1]]
            leaf = network.leaf(partition, k)
            yield Part((number, k), 1.0 / len(partitions), leaf, centres, rows)


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
    for part in parts_of(member, A):
        system = part.system(weight, member.alpha_, device)
        K = part.kernel(A[part.rows].astype(np.float64, copy=False))
        columns = arrays.to_numpy(system.times(arrays.like(system.u, np.ascontiguousarray(K.T))))
        slopes = _quotient(columns.T + arrays.to_numpy(system.m), system.diagonal())
        where = np.ix_(part.rows, part.centres)
        changes[where] -= part.share * slopes[:, :, None] * part.D
        alike[where] += part.share * K
    return changes, alike


def _quotient(values: Array, diagonal: Array) -> Array:
    """Return values over the diagonal of M, and 0 where a row has no effect on its part."""
    effective = diagonal > 0.0
    return np.where(effective, values / np.where(effective, diagonal, 1.0), 0.0)


@dataclass(frozen=True)
class LeftOutRows:
    """The map from changed copies of training rows to predictions without the original row."""

    member: Member
    n_trees: int
    own: dict[tuple[int, int], tuple[Indices, Array, Array]]

    @classmethod
    def of(
        cls,
        member: Member,
        A: Array,
        numbers: Indices,
        weight: Array,
        device: str | None,
        n_trees: int = 1,
    ) -> LeftOutRows:
        """Return the map for training rows of some numbers, which are A as the view shows them."""
        own = {}
        for part in parts_of(member, A, n_trees):
            order = np.argsort(part.centres, kind="stable")
            rank = np.searchsorted(part.centres, numbers[part.rows], sorter=order)
            centre = order[np.minimum(rank, len(order) - 1)]
            is_centre = part.centres[centre] == numbers[part.rows]
            rows, centre = part.rows[is_centre], centre[is_centre]
            system = part.system(weight, member.alpha_, device)
            units = np.zeros((len(part.centres), len(rows)))
            units[centre, np.arange(len(rows))] = 1.0
            M = arrays.to_numpy(system.times(arrays.like(system.u, units)))
            # The last row is for the constant of the kernel expansion.
            M = np.vstack([M, arrays.to_numpy(system.m)[centre]])
            diagonal = M[centre, np.arange(len(rows))]
            own[part.place] = rows, M, _quotient(part.D[centre].T, diagonal).T
        return cls(member, n_trees, own)

    def __call__(self, A: Array) -> Array:
        """Return the predictions for rows A of the view, copies of the rows in their order."""
        total = np.zeros((len(A), self.member.network.n_outputs))
        for part in parts_of(self.member, A, self.n_trees):
            K = part.kernel(A[part.rows].astype(np.float64, copy=False))
            scores = part.b + K @ part.D
            if part.place in self.own:
                scores -= self._effect(part, K)
            total[part.rows] += part.share * scores
        return total

    def _effect(self, part: Part, K: Array) -> Array:
        """Return the part of scores that is due to the original row of each copy."""
        rows, M, factor = self.own[part.place]
        place = {int(row): k for k, row in enumerate(rows)}
        column = np.array([place.get(int(row), -1) for row in part.rows])
        known = column >= 0
        effect = np.zeros((len(part.rows), factor.shape[1]))
        columns = column[known]
        slopes = np.einsum("ij,ji->i", K[known], M[:-1, columns]) + M[-1, columns]
        effect[known] = slopes[:, None] * factor[columns]
        return effect


def left_out_predictions(
    member: Member,
    Y: Array,
    weight: Array,
    removed: Mask | None = None,
    wanted: Mask | None = None,
    device: str | None = None,
) -> Array:
    """Return the left-out predictions of all training rows, without the rows that are removed.

    Y are the targets of the training rows. Removed rows, and rows that are not centres of the first
    tree, have NaN. Leaves without a row that is wanted have NaN too. A fit without the rows S has
    the coefficients ``a - M_S M_SS^-1 a_S``, and its M is ``M - M_S M_SS^-1 M_S'``.
    """
    out = np.full(Y.shape, np.nan)
    with closing(
        in_order(partial(_of_part, member, weight, removed, device), _leaves(member))
    ) as f:
        for centres, quotients in f:
            out[centres] = Y[centres] - quotients
    return out


def _leaves(member: Member) -> list[Part]:
    """Return all parts of the first tree of a member, without rows that they predict."""
    network, nothing = member.network, np.arange(0)
    if not isinstance(network, LocalNetwork):
        return list(parts_of(member, member.X_fit_[:0]))
    partition = network.partitions[0]
    ends = zip(partition.starts[:-1], partition.starts[1:], strict=True)
    return [
        Part((0, k), 1.0, network.leaf(partition, k), partition.rows[start:end], nothing)
        for k, (start, end) in enumerate(ends)
    ]


def _of_part(
    member: Member, weight: Array, removed: Mask | None, device: str | None, part: Part
) -> tuple[Indices, Array]:
    """Return the centres of a part, and their coefficients over the diagonal of M."""
    system = part.system(weight, member.alpha_, device)
    a, diagonal = part.D.copy(), system.diagonal().astype(np.float64)
    gone = np.arange(0) if removed is None else np.flatnonzero(removed[part.centres])
    if len(gone):
        units = np.zeros((len(a), len(gone)))
        units[gone, np.arange(len(gone))] = 1.0
        M = arrays.to_numpy(system.times(arrays.like(system.u, units)))
        solved = np.linalg.lstsq(M[gone], M.T, rcond=None)[0]
        diagonal = diagonal - np.sum(M * solved.T, axis=1)
        a = a - solved.T @ a[gone]
        diagonal[gone] = np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        return part.centres, a / diagonal[:, None]
