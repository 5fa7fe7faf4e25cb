"""An average of members, chosen and learned for one table: what the CV estimators share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from .._network.input_metric import squared_slopes
from .._network.nystroem import fit_some
from .budget import Budget
from .member import Member, Targets
from .search import Search, learned_again
from .views import Stretched

__all__ = ["Average", "Limits", "learn_average"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Members whose error is at most this much above the least are averaged.
MARGIN = 0.15
# Most rows that the search for members sees, and how many folds judge those that labels shaped.
SEARCHED, N_FOLDS = 500, 5
# Most members of a table with more rows than that.
FEW = 2
# Most rows that shape the hidden layers of longer tables, over those that the search sees; all
# others judge.
SHAPING = 4
# Rows over which importances are taken.
SAMPLED = 300


@dataclass(frozen=True)
class Limits:
    """How much may be spent.

    Attributes
    ----------
    n_members : int
        Most members in the average.
    width : int
        Rows up to which hidden layers are infinitely wide, and units of those of longer tables.
    seconds : float
        How long learning may take.
    """

    n_members: int
    width: int
    seconds: float = np.inf


@dataclass(frozen=True)
class Average:
    """Members, what all of them say together, and what was tried.

    Attributes
    ----------
    members : list of Member
        Those that are averaged.
    tried : list of Member
        All that the search found, the best first.
    left_out : ndarray of shape (m, q)
        For every row the mean answer of members learned without it.
    honest : ndarray of bool of shape (m,)
        The rows whose labels had no part in the search, or all if it is judged without them.
    """

    members: list[Member]
    tried: list[Member]
    left_out: Array
    honest: NDArray[np.bool_]

    def importances(self, X: Array, weight: Array) -> Array:
        """Return the mean over members of the diagonal of the input metric, summing to one."""
        step, d = max(len(X) // SAMPLED, 1), X.shape[1]
        total = np.zeros(d)
        for member in self.members:
            squares = squared_slopes(member, X[::step], weight[::step])
            of_feature = np.bincount(member.view.features, squares, minlength=d)
            total += of_feature / (of_feature.sum() or 1.0)
        return np.asarray(total / total.sum()) if total.any() else np.full(d, 1.0 / d)


def learn_average(
    X: Array,
    targets: Targets,
    strata: Indices,
    limits: Limits,
    rng: np.random.RandomState,
    device: str | None = None,
) -> Average:
    """Search for members and learn the best of them from all rows.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        The rows.
    targets : Targets
        What is to be answered for them, and how members are judged.
    strata : ndarray of int of shape (m,)
        Kinds of rows of which samples and folds have equal shares.
    limits : Limits
        How much may be spent.
    rng : RandomState
        What samples and folds are drawn with.
    device : str, optional
        Where layers of finite width are learned.

    Returns
    -------
    Average
    """
    budget = Budget(limits.seconds, perf_counter())
    most = budget.rows_to_search(min(SEARCHED, limits.width))
    shaping = _sample(strata, max(most, min(len(X) // 3, SHAPING * most)), rng)
    rows = shaping[_sample(strata[shaping], most, rng)]
    whole = len(rows) == len(X)
    seen = targets if whole else targets.of(rows)
    folds = seen.splits or _folds(strata[rows], N_FOLDS, rng)
    tried = _found(Search(X[rows], seen, folds).members(), budget, whole)
    good = [member for member in tried if member.error <= (1.0 + MARGIN) * tried[0].error]
    honest = np.ones(len(X), dtype=bool)
    if whole:
        members = good[: limits.n_members]
    else:
        few = _of_each_kernel(good)[: min(FEW, limits.n_members)]
        h = budget.units(X.shape, limits.width, len(few))
        if len(X) <= h:
            folds = targets.splits or _folds(strata, N_FOLDS, rng)
            members = [Search(X, targets, folds).like(member) for member in few]
        else:
            honest[shaping] = False
            few = [_shaped_by(member, X[shaping], targets.of(shaping)) for member in few]
            centres = X[_sample(strata, h, rng)]
            members = [_of_centres(member, centres, X, targets, device) for member in few]
    left_out = np.mean([member.left_out for member in members], axis=0)
    return Average(members, tried, left_out, honest)


def _found(steps: Iterator[list[Member]], budget: Budget, whole: bool) -> list[Member]:
    """Return what the search finds in the time there is, the best first."""
    found = next(steps)
    while budget.searches(whole):
        more = next(steps, None)
        if more is None:
            break
        found = more
    return sorted(found, key=lambda member: member.error)


def _shaped_by(member: Member, X: Array, targets: Targets) -> Member:
    """Return a member whose metric, if it has one, is learned from the given rows."""
    if member.before is None:
        return member
    view = member.view.view if isinstance(member.view, Stretched) else member.view
    return learned_again(member, view(X), targets)[-1]


def _of_each_kernel(members: list[Member]) -> list[Member]:
    """Return the first member of each kernel: others of the same hardly differ."""
    first = {member.shape.kernel: member for member in reversed(members)}
    return [member for member in members if member is first[member.shape.kernel]]


def _of_centres(
    member: Member, centres: Array, X: Array, targets: Targets, device: str | None
) -> Member:
    """Return a member with given rows as centres, those that differ, learned from all rows."""
    Z = np.unique(member.view(centres), axis=0)
    blank = replace(member, X_fit_=Z, path=None, before=None, width=len(Z))
    return fit_some(blank, X, targets, device)


def _sample(strata: Indices, n: int, rng: np.random.RandomState) -> Indices:
    """Return at most n row numbers, of every stratum its share, and two at least if n allows."""
    if len(strata) <= n:
        return np.arange(len(strata))
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    sizes = np.bincount(strata)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.arange(len(order)) - np.repeat(first, sizes)
    # The rank of a row within its stratum, as a share of it: the lowest shares are taken.
    share = np.where(place < 2, 0.0, place / np.repeat(np.maximum(sizes, 1), sizes))
    return np.sort(order[np.argsort(share, kind="stable")[:n]])


def _folds(strata: Indices, n: int, rng: np.random.RandomState) -> list[Indices]:
    """Return disjoint folds with equal shares of every stratum."""
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    folds = [np.sort(order[k::n]) for k in range(min(n, len(order)))]
    return [fold for fold in folds if 0 < len(fold) < len(order)]
