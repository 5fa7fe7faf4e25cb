"""An average of members, chosen and learned for one table: what the CV estimators share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from ._members import Member, Targets, fit_all, fit_some
from ._search import Search, learned_again
from ._sensitivity import input_metric
from ._views import Stretched
from .kernels import KERNELS

__all__ = ["Average", "Limits", "learn_average"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Members whose error is at most this much above the least are averaged.
MARGIN = 0.15
# Most rows that the search for members sees, and how many folds judge those that labels shaped.
SEARCHED, N_FOLDS = 500, 5
# Most members of a table with more rows than that.
FEW = 2
# Most rows that shape the hidden layers of longer tables; all others judge.
SHAPING = 2000
# Shares of the time there is after which no other step of the search is begun, if it sees all rows
# and if it sees a sample.
WHOLE, SAMPLE = 0.8, 0.4
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

    def __call__(self, X: Array) -> Array:
        """Return the mean answer of the members."""
        return np.asarray(sum(member(X) for member in self.members) / len(self.members))

    def importances(self, X: Array, weight: Array) -> Array:
        """Return the mean over members of the diagonal of the input metric, summing to one."""
        step, d = max(len(X) // SAMPLED, 1), X.shape[1]
        total = np.zeros(d)
        for member in self.members:
            squares = _squared_slopes(member, X[::step], weight[::step])
            of_feature = np.bincount(member.view.features, squares, minlength=d)
            total += of_feature / (of_feature.sum() or 1.0)
        return np.asarray(total / total.sum()) if total.any() else np.full(d, 1.0 / d)


def _squared_slopes(member: Member, X: Array, weight: Array) -> Array:
    """Return the diagonal of the metric in units of the view before it was stretched."""
    M = input_metric(member, member.view(X), weight)
    if not isinstance(member.view, Stretched):
        return M if M.ndim == 1 else M.diagonal()
    root = member.view.root
    if root.ndim == 1:
        return (M if M.ndim == 1 else M.diagonal()) * root**2
    return np.asarray(np.einsum("ij,jk,ik->i", root, M, root))


def learn_average(
    X: Array, targets: Targets, strata: Indices, limits: Limits, rng: np.random.RandomState
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

    Returns
    -------
    Average
    """
    start = perf_counter()
    rows = _sample(strata, min(SEARCHED, limits.width), rng)
    whole = len(rows) == len(X)
    seen = targets if whole else targets.of(rows)
    folds = seen.splits or _folds(strata[rows], N_FOLDS, rng)
    search_until = start + limits.seconds * (WHOLE if whole else SAMPLE)
    tried = _first(Search(X[rows], seen, folds).members(), search_until)
    good = [member for member in tried if member.error <= (1.0 + MARGIN) * tried[0].error]
    if not whole:
        good = _of_each_kernel(good)[:FEW]
    members = good[: limits.n_members]
    honest = np.ones(len(X), dtype=bool)
    if not whole:
        more = _sample(strata, max(len(rows), min(len(X) // 2, SHAPING)), rng)
        honest[rows] = honest[more] = False
        members = [_shaped_by(member, X[more], targets.of(more)) for member in members]
        members = list(_from_all_rows(members, X, targets, limits, start, rng))
    left_out = np.mean([member.left_out for member in members], axis=0)
    return Average(members, tried, left_out, honest)


def _first(steps: Iterator[list[Member]], until: float) -> list[Member]:
    """Return what the search found in the time there is, the best first."""
    found = next(steps)
    while perf_counter() < until:
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


def _from_all_rows(
    members: Sequence[Member],
    X: Array,
    targets: Targets,
    limits: Limits,
    start: float,
    rng: np.random.RandomState,
) -> Iterator[Member]:
    """Yield the members learned from all rows, at least one, as long as there is time."""
    some = rng.permutation(len(X))[: limits.width]
    before = perf_counter()
    for k, member in enumerate(members):
        now = perf_counter()
        if k and now + (now - before) / k > start + limits.seconds:
            return
        if len(X) <= limits.width:
            A = member.view(X)
            G = KERNELS[member.shape.kernel].geometry(A, A)
            yield fit_all(member.shape, member.view, A, G, targets)
        else:
            yield fit_some(replace(member, X_fit_=member.view(X[some]), path=None), X, targets)


def _sample(strata: Indices, n: int, rng: np.random.RandomState) -> Indices:
    """Return at most n row numbers, of every stratum its share, and of each at least two rows."""
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
