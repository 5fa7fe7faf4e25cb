"""Averages fitted without each fold of the rows, for prediction intervals of short tables.

The rows that are left out have no part in the scales, ridges and metrics of these averages, which
are selected again. The views and kernels are those of the average of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._network.infinite_width import RidgeTargets
from .._network.layers import Network, weighted_scores
from .._rows.memory import in_order
from .._util.types import Array, Indices
from .member import Member
from .search import selected_again

# Least number of rows that may be divided into folds: fewer cannot select a ridge.
FEWEST_ROWS = 10
# Largest number of folds.
MOST_FOLDS = 10
# Largest number of values of a member's rows: each member of each fold keeps about as many.
MOST_VALUES = 2**16


@dataclass(frozen=True)
class Folds:
    """The networks of averages without each fold, and their errors on the rows of the fold."""

    networks: list[list[Network]]  # those of each fold
    shares: Array  # of the networks in an average
    fold: Indices  # that of each error
    errors: Array  # targets less predictions without the fold, of shape (m, q)
    weight: Array  # of each error

    def predictions(self, X: Any, device: str | None) -> Array:
        """Return the predictions without each fold, of shape (n_folds, k, q)."""
        return np.stack([weighted_scores(each, self.shares, X, device) for each in self.networks])


def can_be_folded(members: Sequence[Member], folds: Sequence[Indices], n: int) -> bool:
    """Return whether members of n rows may be fitted without each fold: few, and of enough rows."""
    few = 1 < len(folds) <= MOST_FOLDS and all(each.X_fit_.size <= MOST_VALUES for each in members)
    return few and min(n - len(fold) for fold in folds) >= FEWEST_ROWS // 2 and n >= FEWEST_ROWS


def without_folds(
    X: Array, members: Sequence[Member], targets: RidgeTargets, folds: Sequence[Indices]
) -> Folds:
    """Fit members of equal shares without each fold.

    X holds the rows to which the members were fitted. A row may be in several folds.
    """
    shares = np.full(len(members), 1.0 / len(members))
    with closing(in_order(partial(_without, members, targets), list(folds))) as found:
        networks = list(found)
    pairs = zip(networks, folds, strict=True)
    predictions = [weighted_scores(each, shares, X[fold]) for each, fold in pairs]
    rows = np.concatenate(folds)
    weight = targets.weight[rows] / np.bincount(rows)[rows]
    place = np.repeat(np.arange(len(folds)), [len(fold) for fold in folds])
    errors = targets.Y[rows] - np.concatenate(predictions)
    return Folds(networks, shares, place, errors, weight)


def _without(members: Sequence[Member], targets: RidgeTargets, fold: Indices) -> list[Network]:
    kept = np.setdiff1d(np.arange(len(targets.Y)), fold)
    networks = [each.network for each in selected_again(members, kept, targets.of(kept))]
    assert all(isinstance(network, Network) for network in networks)
    return networks  # type: ignore[return-value]
