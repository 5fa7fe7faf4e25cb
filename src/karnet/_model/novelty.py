"""Novelty: how unlike all training rows a row is, by the kernels of the members.

The distance of a row is ``-log K(x, z)`` for the training row z that is most alike, averaged over
the members. It is divided by a quantile of the distances of training rows to all others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._rows.memory import block_slices
from .._search.member import Member
from .._util.types import Array, Indices

# The least kernel value whose logarithm is used.
LEAST = 1e-300


def distances(
    members: Sequence[Member], weights: Array, X: Array, numbers: Indices | None = None
) -> Array:
    """Return the distances of rows to the training row that is most alike.

    `numbers` are the numbers of rows that are training rows themselves: their distances are those
    to all other rows. Rows are looked for in the leaves that a row reaches.
    """
    total = np.zeros(len(X))
    for rows in block_slices(*X.shape):
        own = None if numbers is None else numbers[rows]
        for member, weight in zip(members, weights / weights.sum(), strict=True):
            total[rows] += weight * _distances(member, member.view(X[rows]), own)
    return total


def _distances(member: Member, A: Array, own: Indices | None) -> Array:
    alike = np.zeros(len(A))
    for leaf in member.network.reached(A):
        for chunk in block_slices(len(leaf.rows), len(leaf.centres)):
            rows = leaf.rows[chunk]
            K = leaf.kernel(A[rows])
            if own is not None:
                K[leaf.centres == own[rows][:, None]] = 0.0
            alike[rows] = np.maximum(alike[rows], K.max(axis=1, initial=0.0))
    return np.asarray(-np.log(np.maximum(alike, LEAST)))
