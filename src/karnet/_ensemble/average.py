"""An average of members selected for one table, and the time it may take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from time import perf_counter
from typing import Any

import numpy as np

from .._network.infinite_width import RidgeTargets
from .._network.input_metric import kernel_metric, metric_is_diagonal
from .._network.local import LocalNetwork, local_metric
from .._rows.inputs import Inputs
from .._util.progress import Progress, Report
from .._util.types import Array, Indices, Mask
from .folds import Folds, can_be_folded, without_folds
from .leaves import LocalSizes, sizes_for
from .local_members import (
    Parts,
    divide,
    fit_local,
    near_best,
    refitted_without,
    search_local,
    weighted,
)
from .local_search import Round
from .member import Member
from .search import ERROR, N_STEPS, Search
from .views import Stretched, View, squares_of_features


@dataclass
class SearchSizes:
    """The sizes of a search; tests change them."""

    # Largest number of rows of a table that the search for members uses as a whole.
    rows: int = 500
    # Largest number of rows of a table that is not divided by trees.
    undivided: int = 1500
    # The share of `rows` that is sampled from a longer table.
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
    # Largest number of rows of a table whose average is also fitted without each fold.
    folded: int = 400
    # About the number of rows over which the input metric is averaged.
    metric_rows: int = 300


SEARCH_SIZES = SearchSizes()
# Candidates are ranked on a sample if there are at least so many times as many rows.
HARDLY_MORE = 1.5


@dataclass(frozen=True)
class Average:
    """A weighted sum of members, and all candidates of the search."""

    members: list[Member]
    weights: Array  # of the members
    offset: Array  # added to their sum
    tried: list[Member] | list[Round]  # all candidates of the search, the best first
    left_out: Array  # for every row the prediction of members fitted without it, or NaN
    # The rows that judge the average: all rows, or those whose labels had no part in the search.
    honest: Mask
    folds: Folds | None = None  # averages fitted without each fold, of a short table

    def metric(self, d: int, weight: Array, device: str | None = None) -> Array:
        """Return the mean over members of the diagonal of the metric of d inputs, of sum one."""
        step = max(len(weight) // SEARCH_SIZES.metric_rows, 1)
        total = np.zeros(d)
        for member in self.members:
            squares = _metric_diagonal(member, member.X_fit_[::step], weight[::step], device)
            view = member.view.view if isinstance(member.view, Stretched) else member.view
            of_feature = squares_of_features(view, squares, d)
            total += of_feature / (of_feature.sum() or 1.0)
        return np.asarray(total / total.sum()) if total.any() else np.full(d, 1.0 / d)


def _metric_diagonal(member: Member, A: Array, weight: Array, device: str | None) -> Array:
    """Return the diagonal of the metric of a member, in units of its view before the stretch."""
    if isinstance(member.network, LocalNetwork):
        diagonal = metric_is_diagonal(member.network.kernel, A.shape[1])
        M = local_metric(member.network, A, weight, diagonal, device)
    else:
        M = kernel_metric(member.network, A, weight)
    root = member.view.root if isinstance(member.view, Stretched) else np.ones(1)
    if root.ndim == 1:
        return np.asarray((M if M.ndim == 1 else M.diagonal()) * root**2)
    return np.asarray(np.einsum("ij,jk,ik->i", root, M, root))


def _mean_of(members: list[Member], tried: list[Member], honest: Mask) -> Average:
    """Return the average of members with equal weights."""
    left_out = np.mean([member.left_out for member in members], axis=0)
    weights = np.full(len(members), 1.0 / len(members))
    return Average(members, weights, np.zeros(left_out.shape[1]), tried, left_out, honest)


def fit_average(
    inputs: Inputs,
    targets: RidgeTargets,
    strata: Indices,
    rng: np.random.RandomState,
    *,
    n_members: int,
    width: int | None = None,
    seconds: float = np.inf,
    device: str | None = None,
    report: Report | None = None,
    folded: bool = False,
) -> Average:
    """Search for members, and fit at most `n_members` of the best of them to all rows.

    The targets hold the rule that judges members. `strata` are groups of rows with equal shares in
    samples and folds. `width` is the largest number of rows that are fitted as a whole, and the
    largest number of rows of the leaves into which trees divide longer tables. Leaves are solved on
    the device. `report` is called after each step. If `folded`, members of a short table are also
    fitted without each fold.
    """
    budget, progress = Budget(seconds, perf_counter(), device), Progress(report, seconds)
    most = budget.sizes.largest_leaf(len(inputs)) if width is None else width
    if len(inputs) > budget.rows_of_kernel(min(SEARCH_SIZES.undivided, most)):
        return _local_average(inputs, targets, rng, n_members, width, budget, progress)
    X = inputs.map(np.asarray)
    options = n_members, most, folded, budget, progress
    return _whole_average(X, targets, strata, rng, *options)


def _whole_average(
    X: Array,
    targets: RidgeTargets,
    strata: Indices,
    rng: np.random.RandomState,
    n_members: int,
    width: int,
    folded: bool,
    budget: Budget,
    progress: Progress,
) -> Average:
    """Return the mean of members whose kernel matrices hold all rows."""
    n_rows = budget.rows_to_search(min(SEARCH_SIZES.rows, width))
    if n_rows < len(X):
        n_rows = max(int(SEARCH_SIZES.sampled * n_rows), min(FEWEST, n_rows))
    rows = _sample(strata, n_rows, rng)
    whole = len(rows) == len(X)
    search = _search(X[rows], targets if whole else targets.of(rows), strata[rows], whole, rng)
    fit_work = 0.0 if whole else FIT_COST * (len(X) / len(rows)) ** 3
    progress.plan(search=N_STEPS, fit=SEARCH_SIZES.n_members_of_long_tables * fit_work)
    for number, found in enumerate(search.members(), 1):
        tried = sorted(found, key=ERROR)
        progress.step("search", f"step {number} of {N_STEPS}", len(rows), error=tried[0].error)
        if not budget.searches(whole):
            break
    members = _within(SEARCH_SIZES.margin, tried)
    if not whole:
        # The best of each kernel: further members of a kernel differ little.
        best = {member.shape.kernel: member for member in reversed(members)}
        few = [member for member in members if member is best[member.shape.kernel]]
        few = few[: min(SEARCH_SIZES.n_members_of_long_tables, n_members)]
        folds = targets.splits or _folds(strata, SEARCH_SIZES.n_folds, rng)
        few = _within(SEARCH_SIZES.margin_of_long_tables, few)
        progress.plan(search=0.0, fit=len(few) * fit_work)
        members = []
        for member in few:
            members.append(Search(X, targets, folds).like(member))
            which = f"network {len(members)} of {len(few)}"
            progress.step("fit", which, len(X), fit_work, members[-1].error)
    average = _mean_of(members[:n_members], tried, np.ones(len(X), dtype=bool))
    folded = folded and whole and len(X) <= SEARCH_SIZES.folded and budget.searches(whole)
    if not folded or not can_be_folded(average.members, search.folds, len(X)):
        return average
    return replace(average, folds=without_folds(X, average.members, targets, search.folds))


def _local_average(
    inputs: Inputs,
    targets: RidgeTargets,
    rng: np.random.RandomState,
    n_members: int,
    width: int | None,
    budget: Budget,
    progress: Progress,
) -> Average:
    """Return the weighted sum of local members, judged by rows without a part in the search."""
    n, n_outputs, passes = len(inputs), targets.Y.shape[1], inputs.passes
    parts = divide(n, n_outputs, rng)
    sizes = budget.sizes
    leaf = budget.rows_of_leaf(inputs.shape, width or sizes.largest_leaf(n))
    half = max(leaf // 2, 1)  # the rows of leaves in most fits
    work_of_tree = float(n * half)

    def fit_work(n_networks: int) -> float:
        n_trees = budget.trees(half, n_outputs, n_networks, inputs.shape[1])
        return n_networks * (n_trees + len(targets.splits or ())) * work_of_tree

    def ended(k: int, which: str) -> None:
        progress.step("fit", f"network {k} of {len(found)}, {which}", n, work_of_tree)

    n_members = min(n_members, budget.members(half, n_outputs, inputs.shape[1]))
    progress.plan(fit=fit_work(n_members))
    some = np.sort(np.concatenate([parts.shaping, parts.judging]))
    shaping, judging = (np.searchsorted(some, rows) for rows in (parts.shaping, parts.judging))
    places, has_time = Parts(shaping, judging, parts.scored[:0]), partial(budget.searches, False)
    X, of_some = inputs.take(some), targets.of(some)
    tried = search_local(X, of_some, places, leaf, rng, has_time, budget.device, progress)
    found = near_best(tried, n_members, targets.Y)
    if found[0].is_rotated and width is None:
        leaf = budget.rows_of_leaf(inputs.shape, sizes.width_of_rotated)
    progress.plan(search=0.0, fit=fit_work(len(found)))
    d = sizes.n_directions if found[0].is_rotated else inputs.shape[1]
    least = sizes.trees_of_rotated if found[0].is_rotated else 0
    n_trees = partial(budget.trees, n_outputs=n_outputs, n_members=len(found), d=d, least=least)
    options: dict[str, Any] = {"leaf": leaf, "passes": passes, "device": budget.device}
    members = []
    for k, each in enumerate(found, 1):
        A = inputs.map(partial(_shown, each.view))
        report = partial(ended, k)
        rows = targets, np.concatenate([parts.judging, parts.scored])
        members.append(fit_local(each, n_trees, A, *rows, rng=rng, ended=report, **options))
    if targets.splits is not None:
        members = [
            _judged_by_splits(member, targets, options, partial(ended, k))
            for k, member in enumerate(members, 1)
        ]
    return _weighted_average(members, tried, targets, parts.scored)


def _weighted_average(
    members: list[Member], tried: list[Round], targets: RidgeTargets, scored: Indices
) -> Average:
    """Return the average of local members with weights of least error for their left-out rows."""
    honest = np.zeros(len(targets.Y), dtype=bool)
    honest[scored] = True
    judged = np.isfinite(np.sum([member.left_out for member in members], axis=0)).all(axis=1)
    honest = judged & honest if (judged & honest).any() else judged
    members, weights, offset = weighted(members, targets, judged)
    total = sum(w * member.left_out for w, member in zip(weights, members, strict=True))
    if targets.splits is None:
        total[~honest] = np.nan
    return Average(members, weights, offset, sorted(tried, key=ERROR), offset + total, honest)


def _shown(view: View, X: Array) -> Array:
    return view(X).astype(np.float32)


def _judged_by_splits(
    member: Member,
    targets: RidgeTargets,
    options: dict[str, Any],
    ended: Callable[[str], None],
) -> Member:
    """Return a local member with the left-out predictions of the splits."""
    splits = targets.splits or ()

    def folds() -> Iterator[tuple[Indices, Array]]:
        for seed, fold in enumerate(splits):
            yield fold, refitted_without(member, targets, fold, seed, **options)[None]
            ended(f"fold {seed + 1} of {len(splits)}")

    left_out = targets.left_out(1, folds())[0]
    return replace(member, left_out=left_out, error=targets.error(left_out))


def _search(
    X: Array, targets: RidgeTargets, strata: Indices, whole: bool, rng: np.random.RandomState
) -> Search:
    """Return the search for members in these rows, the whole table or not."""
    folds = targets.splits or _folds(strata, SEARCH_SIZES.n_folds, rng)
    if not whole:  # only the sizes of errors are needed, not the predictions for all rows
        folds = folds[: SEARCH_SIZES.n_folds_of_long_tables]
    ranks_all = targets.splits is not None or len(X) < HARDLY_MORE * SEARCH_SIZES.ranking
    sample = None if ranks_all else _sample(strata, SEARCH_SIZES.ranking, rng)
    return Search(X, targets, folds, sample, SEARCH_SIZES.margin)


def _within(margin: float, members: list[Member]) -> list[Member]:
    """Return the members whose error exceeds the least by at most this share."""
    most = (1.0 + margin) * min(member.error for member in members)
    return [member for member in members if member.error <= most]


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
# The time of a factorisation of a leaf over that of an eigenvalue problem of all its rows.
LEAF_COST = 0.02
# The time of the fit of an average as a whole over that of an eigenvalue problem of all its rows.
WHOLE_COST = 10.0
# The time of the fit of a network to all rows, over that of a step of a search in as many rows.
FIT_COST = 0.3
# Seconds per distance and input.
DISTANCE_SECONDS = 1e-9
# About the number of times that a row is in a leaf that is solved, in search and fit.
N_SOLVED = 20.0
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
    device: str | None = None  # where leaves are solved

    @property
    def sizes(self) -> LocalSizes:
        """The sizes for the device."""
        return sizes_for(self.device)

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

    def rows_of_kernel(self, most: int) -> int:
        """Return the number of rows, at most `most`, that may be fitted as a whole."""
        if np.isinf(self.seconds):
            return most
        cube = self.seconds / (WHOLE_COST * self._seconds_per_cube)
        return int(np.clip(np.cbrt(cube), min(FEWEST, most), most))

    def rows_of_leaf(self, shape: tuple[int, ...], most: int) -> int:
        """Return the number of rows of a leaf, at most `most`, for a table of the given shape."""
        if np.isinf(self.seconds):
            return most
        # Seconds per row: the square of the rows of its leaf, and their distances.
        square = N_SOLVED * LEAF_COST * self._seconds_per_cube
        linear = N_SOLVED * DISTANCE_SECONDS * shape[1]
        left = max(self.start + self.seconds - perf_counter(), 0.0) / shape[0]
        h = (np.sqrt(linear**2 + 4.0 * square * left) - linear) / (2.0 * square)
        return int(np.clip(h, min(FEWEST, most), most))

    def members(self, leaf: int, n_outputs: int, d: int) -> int:
        """Return the largest number of members, for leaves of some rows of d inputs."""
        most, sizes = self.sizes.most_members, self.sizes
        enough = sizes.trees_within(leaf, n_outputs, most, d) >= sizes.fewest_trees
        return most if enough else sizes.n_members

    def trees(self, leaf: int, n_outputs: int, n_members: int, d: int, least: int = 0) -> int:
        """Return the number of trees of a member, for leaves of some rows of d inputs."""
        if not perf_counter() - self.start < SAMPLE_SHARE * self.seconds:
            return 1
        n = self.sizes.trees_within(leaf, n_outputs, n_members, d)
        least = max(least, self.sizes.least_trees(n_members, d))
        return int(np.clip(n, least, self.sizes.most_trees))
