"""Local members: kernel networks in the leaves of trees, for tables of many rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from .._network.infinite_width import KernelMap, RidgeTargets
from .._network.local import LocalNetwork, Partition, grow_tree
from .._rows.memory import block_slices, in_order
from .._util.progress import Progress
from .._util.types import Array, Indices, Mask
from .local_search import (
    LOCAL_SIZES,
    Chain,
    LocalSearch,
    LocalTable,
    Round,
    distances,
    left_out_error,
    mean_distance,
    solve_leaf,
    tuned,
)
from .member import Member
from .views import View, distinct_views

# The views of long tables.
LOCAL_VIEWS = ("standard", "ranks")


class Parts(NamedTuple):
    """Disjoint sets of rows of a table."""

    shaping: Indices  # rows that shape metrics
    judging: Indices  # rows that judge metrics
    scored: Indices  # rows without a part in the search, whose left-out predictions are honest


def divide(n: int, rng: np.random.RandomState) -> Parts:
    """Divide n rows at random."""
    sizes, order = LOCAL_SIZES, rng.permutation(n)
    n_judging = max(min(int(sizes.judging_share * n), sizes.judging), 1)
    free = n - n_judging - sizes.later_rows
    fewest = max(int(sizes.scored_share * n), min(n // 4, sizes.fewest_scored))
    n_scored = min(max(fewest, free), sizes.scored)
    end = n_judging + n_scored
    return Parts(order[end:][: sizes.later_rows], order[:n_judging], order[n_judging:end])


def search_local(
    X: Array,
    targets: RidgeTargets,
    parts: Parts,
    leaf: int,
    rng: np.random.RandomState,
    has_time: Callable[[], bool],
    progress: Progress,
) -> list[Chain]:
    """Return the chains of the search, the best first.

    `leaf` is the largest number of rows of a leaf. Rounds end when there is no time for more.
    """
    some = np.sort(parts.shaping[: LOCAL_SIZES.view_rows])
    views: dict[str, View] = {
        name: view
        for name, (view, _) in distinct_views(X[some], targets.weight[some], LOCAL_VIEWS).items()
    }
    rows = parts.shaping, parts.judging
    return LocalSearch(X, targets, *rows, views, leaf, rng, has_time, progress).chains()


def near_best(chains: list[Chain], n_members: int) -> list[Round]:
    """Return the best rounds of chains whose error is near the least, at most `n_members`."""
    most = (1.0 + LOCAL_SIZES.margin) * chains[0].best.error
    near = [chain.best for chain in chains if chain.best.error <= most]
    return near[: min(n_members, LOCAL_SIZES.n_members)]


def fit_local(
    found: Round,
    n_trees: Callable[[int], int],
    X: Array,
    targets: RidgeTargets,
    scored: Indices,
    leaf: int,
    rng: np.random.RandomState,
    ended: Callable[[str], None] = lambda _: None,
) -> Member:
    """Return the member of a round, fitted to all rows, with left-out predictions of some rows.

    `leaf` is the largest number of rows of a leaf, and `n_trees` gives the number of trees for the
    number of rows that is selected. `ended` is called after each tree.
    """
    blocks = block_slices(len(X), X.shape[1])
    A = np.concatenate([found.view(X[rows]).astype(np.float32) for rows in blocks])
    name, table = found.shape.kernel, LocalTable(A, targets)
    unit = mean_distance(name, A, rng)
    is_scored = np.zeros(len(X), dtype=bool)
    is_scored[scored] = True
    scale, alpha, leaf = _sized(found, table, unit, leaf, rng)
    kernel = KernelMap(name, scale * unit, Z=A)
    trees = [grow_tree(A, leaf, rng) for _ in range(n_trees(leaf) if len(X) > leaf else 1)]
    partitions, left_out = [], np.zeros_like(targets.Y)
    for tree, leaves in trees:
        # The rows that are left out come last.
        leaves = [rows[np.argsort(is_scored[rows], kind="stable")] for rows in leaves]
        D, b, out = _solved(kernel, table, alpha, leaves, is_scored)
        for rows, predictions in zip(leaves, out, strict=True):
            left_out[rows[len(rows) - len(predictions) :]] += predictions / len(trees)
        starts = np.cumsum([0, *map(len, leaves)])
        parts = np.concatenate(leaves), starts, np.concatenate(D), np.array(b)
        partitions.append(Partition(tree, *parts))
        ended(f"tree {len(partitions)} of {len(trees)}")
    left_out[~is_scored] = np.nan
    shape = replace(found.shape, scale=scale)
    network = LocalNetwork(found.view, kernel, tuple(partitions))
    return Member(shape, network, alpha, targets.error(left_out), left_out)


def _sized(
    found: Round, table: LocalTable, unit: float, most: int, rng: np.random.RandomState
) -> tuple[float, float, int]:
    """Return the scale, the ridge and the largest number of rows of leaves.

    Leaves have half of `most` rows unless leaves of `most` rows have much smaller left-out errors.
    """
    name, few = found.shape.kernel, max(most // 2, 1)
    _, leaves = grow_tree(table.A, most, rng)
    some = rng.permutation(len(leaves))[: LOCAL_SIZES.n_tuned_leaves]
    large = [table.of(rng.permutation(leaves[k])) for k in some]
    small = [
        each.of(rng.permutation(rows)) for each in large for rows in grow_tree(each.A, few, rng)[1]
    ]
    half = max(len(small) // len(large), 1)
    scale, alpha = tuned(name, small[::half], unit, (found.shape.scale, found.alpha_))
    kernel = KernelMap(name, scale * unit)

    def error(tables: list[LocalTable]) -> float:
        sums = [
            left_out_error(each, distances(name, each.A, alpha), kernel, alpha) for each in tables
        ]
        total, weight = np.sum(sums, axis=0)
        return float(total / weight)

    if len(small) == len(large):
        return scale, alpha, few
    if error(large) > (1.0 - LOCAL_SIZES.gain_of_large_leaves) * error(small):
        return scale, alpha, few
    return *tuned(name, large, unit, (scale, alpha)), most


def _solved(
    kernel: KernelMap, table: LocalTable, alpha: float, leaves: list[Indices], is_scored: Array
) -> tuple[list[Array], list[Array], list[Array]]:
    """Return D, b and the left-out predictions of the last rows of each leaf."""

    def solved(leaf: Indices) -> tuple[Array, Array, Array]:
        found, out = solve_leaf(kernel, table.of(leaf), alpha, int(is_scored[leaf].sum()))
        return found.D, found.b, out

    with closing(in_order(solved, leaves)) as solutions:
        D, b, out = zip(*solutions, strict=True)
    return list(D), list(b), list(out)


def refitted_without(
    member: Member, X: Array, targets: RidgeTargets, fold: Indices, leaf: int, seed: int
) -> Array:
    """Return the predictions for the rows of a fold by a member fitted without them."""
    kept = np.setdiff1d(np.arange(len(X)), fold)
    found, nothing = Round(member.view, member.shape, member.alpha_), np.empty(0, dtype=np.intp)
    rng = np.random.RandomState(seed)
    again = fit_local(found, lambda _: 1, X[kept], targets.of(kept), nothing, leaf, rng)
    return again.network.scores(X[fold])


def combined(members: list[Member], targets: RidgeTargets, judged: Mask) -> tuple[Array, Array]:
    """Return weights of members, and the part of their sum that the mean of the targets takes.

    The weights are not negative and have the least error of left-out predictions. Those of members
    that predict nothing but noise are zero.
    """
    mean = np.average(targets.Y, axis=0, weights=targets.weight)
    if not judged.any():
        return np.full(len(members), 1.0 / len(members)), np.zeros_like(mean)
    root = np.sqrt(targets.weight[judged])[:, None]
    columns = [(root * (member.left_out[judged] - mean)).ravel() for member in members]
    weights, _ = nnls(np.stack(columns, axis=1), (root * (targets.Y[judged] - mean)).ravel())
    return weights, (1.0 - weights.sum()) * mean
