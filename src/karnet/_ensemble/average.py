"""An average of members selected for one table, and the time it may take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from time import perf_counter

import numpy as np

from .._network.infinite_width import RidgeTargets
from .._network.input_metric import kernel_metric
from .._network.nystroem import fit_nystroem
from .._util.types import Array, Indices, Mask
from .member import Member, kernel_of_rows
from .search import ERROR, Search, renewed
from .views import Stretched


@dataclass
class SearchSizes:
    """The sizes of a search; tests change them."""

    # Largest number of rows of a table that the search for members uses as a whole.
    rows: int = 500
    # The share of this number that is sampled from a longer table.
    sampled: float = 0.8
    # About the number of rows that rank candidates.
    ranking: int = 120
    # The number of folds that judge members with a hidden layer that labels shaped.
    n_folds: int = 5
    # The number of these folds for a table with more rows than the search uses.
    n_folds_of_long_tables: int = 3
    # Members whose error exceeds the least by at most this share are averaged.
    margin: float = 0.15
    # The same for a table with more rows than the search uses.
    margin_of_long_tables: float = 0.05
    # Largest number of members for a table with more rows than the search uses.
    n_members_of_long_tables: int = 2
    # Rows that shape hidden layers of long tables, as a multiple of `rows`; all others judge.
    shaping: int = 3
    # About the number of rows that judge the sizes of layers of long tables.
    judging: int = 3000
    # About the number of rows over which importances are averaged.
    importance_rows: int = 300


SEARCH_SIZES = SearchSizes()
# Candidates are ranked on a sample if there are at least so many times as many rows.
HARDLY_MORE = 1.5
# More centres are used if twice as many reduced the error to less than this share.
LEAST_GAIN = 0.99
# Fewest centres of which a part is tried before all of them.
FEWEST_GROWN = 400


@dataclass(frozen=True)
class Average:
    """Members that are averaged, and all candidates of the search."""

    members: list[Member]
    tried: list[Member]  # all members of the search, the best first
    left_out: Array  # for every row the mean prediction of members fitted without it
    # The rows that judge the average: all rows, or those whose labels had no part in the search.
    honest: Mask

    def importances(self, X: Array, weight: Array) -> Array:
        """Return the mean over members of the diagonal of the input metric, summing to one."""
        step, d = max(len(X) // SEARCH_SIZES.importance_rows, 1), X.shape[1]
        total = np.zeros(d)
        for member in self.members:
            M = kernel_metric(member.network, member.view(X[::step]), weight[::step])
            root = member.view.root if isinstance(member.view, Stretched) else np.ones(1)
            # The diagonal of the metric in units of the view before it was stretched.
            if root.ndim == 1:
                squares = (M if M.ndim == 1 else M.diagonal()) * root**2
            else:
                squares = np.einsum("ij,jk,ik->i", root, M, root)
            of_feature = np.bincount(member.view.features, squares, minlength=d)
            total += of_feature / (of_feature.sum() or 1.0)
        return np.asarray(total / total.sum()) if total.any() else np.full(d, 1.0 / d)


def fit_average(
    X: Array,
    targets: RidgeTargets,
    strata: Indices,
    rng: np.random.RandomState,
    *,
    n_members: int,
    width: int,
    seconds: float = np.inf,
    device: str | None = None,
) -> Average:
    """Search for members, and fit at most `n_members` of the best of them to all rows.

    The targets hold the rule that judges members. `strata` are groups of rows with equal shares in
    samples and folds. `width` is the largest number of rows for infinitely wide layers, and the
    largest number of units for longer tables, whose layers are fitted on the device.
    """
    budget = Budget(seconds, perf_counter())
    n_rows = budget.rows_to_search(min(SEARCH_SIZES.rows, width))
    if n_rows < len(X):
        n_rows = max(int(SEARCH_SIZES.sampled * n_rows), min(FEWEST, n_rows))
    shaping = _sample(strata, max(n_rows, min(len(X) // 3, SEARCH_SIZES.shaping * n_rows)), rng)
    rows = shaping[_sample(strata[shaping], n_rows, rng)]
    whole = len(rows) == len(X)
    search = _search(X[rows], targets if whole else targets.of(rows), strata[rows], whole, rng)
    for found in search.members():
        tried = sorted(found, key=ERROR)
        if not budget.searches(whole):
            break
    good = _within(SEARCH_SIZES.margin, tried)
    honest = np.ones(len(X), dtype=bool)
    if whole:
        members = good[:n_members]
    else:
        # The best of each kernel: further members of a kernel differ little.
        best = {member.shape.kernel: member for member in reversed(good)}
        few = [member for member in good if member is best[member.shape.kernel]]
        few = few[: min(SEARCH_SIZES.n_members_of_long_tables, n_members)]
        h = budget.units(X.shape, width, len(few))
        if len(X) <= h:
            folds = targets.splits or _folds(strata, SEARCH_SIZES.n_folds, rng)
            few = _within(SEARCH_SIZES.margin_of_long_tables, few)
            members = [Search(X, targets, folds).like(member) for member in few]
        else:
            honest[shaping] = False
            some = np.flatnonzero(honest)[:: max(honest.sum() // SEARCH_SIZES.judging, 1)]
            sized = _sized(few, X[_sample(strata, h, rng)], X[some], targets.of(some), device)
            shape = partial(_shaped_by, X=X[shaping], targets=targets.of(shaping))
            members = [
                with_centres(shape(member), Z, X, targets, device, near)
                for member, Z, near in sized
            ]
    left_out = np.mean([member.left_out for member in members], axis=0)
    return Average(members, tried, left_out, honest)


def _search(
    X: Array, targets: RidgeTargets, strata: Indices, whole: bool, rng: np.random.RandomState
) -> Search:
    """Return the search for members in these rows, the whole table or not."""
    folds = targets.splits or _folds(strata, SEARCH_SIZES.n_folds, rng)
    if not whole:  # only the sizes of errors are needed, not the predictions for all rows
        folds = folds[: SEARCH_SIZES.n_folds_of_long_tables]
    if targets.splits is not None or len(X) < HARDLY_MORE * SEARCH_SIZES.ranking:
        return Search(X, targets, folds)
    return Search(X, targets, folds, _sample(strata, SEARCH_SIZES.ranking, rng))


def _within(margin: float, members: list[Member]) -> list[Member]:
    """Return the members whose error exceeds the least by at most this share."""
    most = (1.0 + margin) * min(member.error for member in members)
    return [member for member in members if member.error <= most]


def _shaped_by(member: Member, X: Array, targets: RidgeTargets) -> Member:
    """Return a member whose metric, if it has one, is that of the given rows; it is not solved."""
    if member.before is None:
        return member
    view, A, _ = renewed(member, member.rounds[0].view(X), targets)
    kernel = kernel_of_rows(member.shape, A, targets.weight)
    return replace(member, network=replace(member.network, view=view, input_map=kernel))


def _sized(
    members: list[Member], centres: Array, X: Array, targets: RidgeTargets, device: str | None
) -> list[tuple[Member, Array, float | None]]:
    """Return the best members for layers of finite width, with centres and a ridge for each.

    Layers with a quarter of the centres, fitted to the given rows, rank the members. A quarter is
    enough if it hardly reduces the error of an eighth; otherwise all are used.
    """
    if len(centres) < FEWEST_GROWN:
        return [(member, centres, None) for member in members]
    small = [with_centres(member, centres[::8], X, targets, device) for member in members]
    large = [with_centres(each, centres[::4], X, targets, device, each.alpha_) for each in small]
    most = (1.0 + SEARCH_SIZES.margin_of_long_tables) * min(each.error for each in large)
    return [
        (member, centres[:: 1 if after.error < LEAST_GAIN * before.error else 4], after.alpha_)
        for member, before, after in zip(members, small, large, strict=True)
        if after.error <= most
    ]


def with_centres(
    member: Member,
    centres: Array,
    X: Array,
    targets: RidgeTargets,
    device: str | None = None,
    near: float | None = None,
) -> Member:
    """Return a member with the distinct rows of `centres` as centres, fitted to all rows.

    The ridge may be known to be near another.
    """
    Z = np.unique(member.view(centres), axis=0)
    kernel = member.kernel_map.at(Z)
    fit = fit_nystroem(kernel, member.view, X, targets, device, near=near)
    return Member(member.shape, *fit, width=len(Z))


def _sample(strata: Indices, n: int, rng: np.random.RandomState) -> Indices:
    """Return at most n row numbers: a share of every stratum, and at least two if n allows."""
    if len(strata) <= n:
        return np.arange(len(strata))
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    sizes = np.bincount(strata)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.arange(len(order)) - np.repeat(first, sizes)
    # The rank of a row within its stratum, as a share of the stratum: the lowest shares are taken.
    share = np.where(place < 2, 0.0, place / np.repeat(np.maximum(sizes, 1), sizes))
    return np.sort(order[np.argsort(share, kind="stable")[:n]])


def _folds(strata: Indices, n: int, rng: np.random.RandomState) -> list[Indices]:
    """Return disjoint folds with equal shares of every stratum."""
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    folds = [np.sort(order[k::n]) for k in range(min(n, len(order)))]
    return [fold for fold in folds if 0 < len(fold) < len(order)]


# The side of the matrix whose eigenvalue problem is timed.
TIMED_SIDE = 200
# The time of a search over that of an eigenvalue problem of all its rows.
N_PROBLEMS = 25.0
# The cost of a layer of h units for m rows, over m h^2 + h^3, in units of an eigenvalue problem.
LAYER_COST = 1.8
# Seconds per distance and input, in all passes over the rows.
DISTANCE_SECONDS = 4e-9
# The share of the time for a search that uses all rows.
WHOLE_SHARE = 0.8
# The share of the time for a search that uses a sample, after which layers are fitted.
SAMPLE_SHARE = 0.3
# Smallest number of rows in a search, and of units of a layer.
FEWEST = 20


@dataclass(frozen=True)
class Budget:
    """A time limit in seconds, possibly infinite, from a start, and the sizes that it allows."""

    seconds: float
    start: float

    def searches(self, whole: bool) -> bool:
        """Return whether there is time for another step of the search."""
        spent = perf_counter() - self.start
        return spent < (WHOLE_SHARE if whole else SAMPLE_SHARE) * self.seconds

    @cached_property
    def _seconds_per_cube(self) -> float:
        """The time of an eigenvalue problem over the cube of its side, the best of three."""
        A = np.random.RandomState(0).standard_normal((TIMED_SIDE, TIMED_SIDE))
        A += A.T
        times = []
        for _ in range(3):
            before = perf_counter()
            np.linalg.eigh(A)
            times.append(perf_counter() - before)
        return min(times) / TIMED_SIDE**3

    def rows_to_search(self, most: int) -> int:
        """Return the number of rows that a search may use, at most `most`."""
        if np.isinf(self.seconds):
            return most
        cube = SAMPLE_SHARE * self.seconds / (N_PROBLEMS * self._seconds_per_cube)
        return int(np.clip(np.cbrt(cube), min(FEWEST, most), most))

    def units(self, shape: tuple[int, ...], most: int, n_members: int) -> int:
        """Return the number of units per layer, at most `most`, for a table of the given shape."""
        if np.isinf(self.seconds):
            return most
        (m, d), left = shape, self.start + self.seconds - perf_counter()
        # Seconds of products, which grow as m h^2 (and h^3, for h below m), and of distances.
        square = LAYER_COST * self._seconds_per_cube * (m + np.sqrt(m))
        linear = DISTANCE_SECONDS * m * d
        h = np.sqrt(linear**2 + 4.0 * square * max(left, 0.0) / n_members) - linear
        return int(np.clip(h / (2.0 * square), min(FEWEST, most), most))
