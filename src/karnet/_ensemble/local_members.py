"""Local members: kernel networks in the leaves of trees, for tables of many rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from .._arrays import namespace as arrays
from .._arrays.devices import is_out_of_memory
from .._network.infinite_width import KernelMap, RidgeTargets
from .._network.local import LocalNetwork, Partition, grow_tree
from .._rows.streamed import Passes
from .._util.progress import Progress
from .._util.types import Array, Indices, Mask
from .leaves import (
    LOCAL_SIZES,
    LocalTable,
    Tuning,
    distances,
    left_out_error,
    mean_distance,
    sizes_for,
    solve_leaf,
    telling,
    tuned,
)
from .local_search import LocalSearch, Round
from .member import Member
from .views import View, distinct_views, rotated, shortened

# The views of long tables.
LOCAL_VIEWS = (
    "standard",
    "one unit",
    "ranks",
    "standard, small indicators",
    "ranks, small indicators",
)


class Parts(NamedTuple):
    """Disjoint sets of rows of a table."""

    shaping: Indices  # rows that shape metrics
    judging: Indices  # rows that judge metrics
    scored: Indices  # rows without a part in the search, whose left-out predictions are honest


def divide(n: int, n_outputs: int, rng: np.random.RandomState) -> Parts:
    """Divide n rows at random."""
    sizes, order = LOCAL_SIZES, rng.permutation(n)
    most = sizes.judging_of_one_output if n_outputs == 1 else sizes.judging
    n_judging = max(min(int(sizes.judging_share * n), most), 1)
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
    device: str | None,
    progress: Progress,
) -> list[Round]:
    """Return the best round with each kernel, and then all other rounds, each the best first.

    `leaf` is the largest number of rows of a leaf. Rounds end when there is no time for more.
    """
    some = np.sort(parts.shaping[: LOCAL_SIZES.view_rows])
    weight, sizes = targets.weight[some], sizes_for(device)
    step = max(len(some) // sizes.compared_rows, 1)
    views: dict[str, View] = {}
    for name, (view, A) in distinct_views(X[some], weight, LOCAL_VIEWS, step).items():
        is_wide = A.shape[1] > sizes.wide and sizes.n_directions
        directions = sizes.n_directions, sizes.share_of_directions
        views[name] = rotated(view, view(X[some]), weight, *directions) if is_wide else view
    rows = parts.shaping, parts.judging
    return LocalSearch(X, targets, *rows, views, leaf, rng, has_time, device, progress).rounds()


def near_best(found: list[Round], n_members: int, Y: Array) -> list[Round]:
    """Return the best round of each kernel whose error is near the least, at most `n_members`.

    Directions of the inputs that matter little compared with the error of the targets Y are left
    out of their views.
    """
    best = {each.shape.kernel: each for each in reversed(found)}
    most = (1.0 + LOCAL_SIZES.margin) * found[0].error
    near = [each for each in found if each is best[each.shape.kernel] and each.error <= most]
    share = LOCAL_SIZES.short_share / (float(Y.var(axis=0).sum()) or 1.0)
    if found[0].is_rotated:
        n_members = min(n_members, LOCAL_SIZES.n_members_of_rotated)
    few = near[:n_members]
    return [replace(each, view=shortened(each.view, share * each.error)) for each in few]


def fit_local(
    found: Round,
    n_trees: Callable[[int], int],
    A: Array,
    targets: RidgeTargets,
    scored: Indices,
    leaf: int,
    rng: np.random.RandomState,
    passes: Passes,
    device: str | None = None,
    ended: Callable[[str], None] = lambda _: None,
) -> Member:
    """Return the member of a round, fitted to all rows, with left-out predictions of some rows.

    A holds the rows as the view of the round shows them, in single precision. `leaf` is the largest
    number of rows of a leaf, and `n_trees` gives the number of trees for the number of rows that is
    selected. The leaves are solved where the passes compute, on a device if one is given, and have
    half as many rows if the device runs out of memory. `ended` is called after each tree.
    """
    table = LocalTable(A, targets, device)
    while True:
        try:
            return _fitted(found, n_trees, table, scored, leaf, rng, passes, ended)
        except Exception as error:
            if leaf < 2 or not is_out_of_memory(error):
                raise
        leaf //= 2


def _fitted(
    found: Round,
    n_trees: Callable[[int], int],
    table: LocalTable,
    scored: Indices,
    leaf: int,
    rng: np.random.RandomState,
    passes: Passes,
    ended: Callable[[str], None],
) -> Member:
    """Return the member with leaves of at most `leaf` rows."""
    name, A, targets = found.shape.kernel, table.A, table.targets
    unit = mean_distance(name, A, rng)
    is_scored = np.zeros(len(A), dtype=bool)
    is_scored[scored] = True
    tuning, leaf = _sized(found, table, unit, leaf, rng)
    kernel = KernelMap(name, tuning.scale * unit, Z=A)
    most_trees = n_trees(leaf) if len(A) > leaf else 1
    partitions: list[Partition] = []
    total, count, error = np.zeros_like(targets.Y), np.zeros((len(A), 1)), np.inf
    while len(partitions) < most_trees and error > targets.enough:
        tree, leaves = grow_tree(A, leaf, rng)
        # The rows that are left out come last.
        leaves = [rows[np.argsort(is_scored[rows], kind="stable")] for rows in leaves]
        D, b, out = _solved(kernel, tuning, table, leaves, is_scored, passes)
        for rows, predictions in zip(leaves, out, strict=True):
            last = rows[len(rows) - len(predictions) :]
            total[last] += predictions
            count[last] += 1.0
        starts = np.cumsum([0, *map(len, leaves)])
        parts = np.concatenate(leaves), starts, np.concatenate(D), np.array(b)
        partitions.append(Partition(tree, *parts))
        with np.errstate(invalid="ignore"):  # leaves leave out some of many equal rows
            left_out = total / count
        error = targets.error(left_out)
        ended(f"tree {len(partitions)} of {most_trees}")
    shape = replace(found.shape, scale=tuning.scale)
    network = LocalNetwork(found.view, kernel, tuple(partitions))
    unseen = is_scored & ~count[:, 0].astype(bool)  # rows that all leaves leave out
    left_out[unseen] = network.scores_of_viewed(A[unseen], table.device)
    return Member(shape, network, tuning.alpha, error, left_out)


def _sized(
    found: Round, table: LocalTable, unit: float, most: int, rng: np.random.RandomState
) -> tuple[Tuning, int]:
    """Return the scale and ridge, and the largest number of rows of leaves.

    The longer a table, the smaller are its leaves: half of `most` rows, unless leaves of `most`
    rows have much smaller left-out errors, or there are many columns.
    """
    name, sizes, start = found.shape.kernel, table.sizes, (found.shape.scale, found.alpha_)
    share = np.sqrt(sizes.rows_of_large_leaves / len(table.A))
    few = max(int(most * np.clip(share, sizes.least_share, 1.0)), 1)
    few = most if found.is_wide else few
    if found.error <= table.targets.enough:  # another scale or ridge would change nothing
        return Tuning(*start, found.error, found.dtype), most
    _, leaves = grow_tree(table.A, most, rng)
    parts = [table.of(rng.permutation(leaf)) for leaf in leaves]
    large = telling(parts, sizes.n_tuned_leaves, rng)
    small = [
        each.of(rng.permutation(rows)) for each in large for rows in grow_tree(each.A, few, rng)[1]
    ]
    # About the same number of rows, whatever their number in a leaf.
    n = max(len(large) * sizes.leaf // few, sizes.n_tuned_leaves if found.is_wide else 1)
    n_rows = min(few, len(table.A))
    share = min(sizes.fit_tuned_share, n_rows / sizes.all_tuned_rows)
    n_rows = max(sizes.fit_tuned_rows, int(share * n_rows))
    some = [each.of(np.arange(min(len(each.A), n_rows))) for each in telling(small, n, rng)]
    best = tuned(name, some, unit, start)
    kernel = KernelMap(name, best.scale * unit)

    def error(tables: list[LocalTable]) -> float:
        sums = [
            left_out_error(each, distances(name, each, best.dtype), kernel, best.alpha)
            for each in tables
        ]
        total, weight = np.sum(sums, axis=0)
        return float(total / weight)

    if len(small) == len(large):
        return best, few
    one = table.targets.Y.shape[1] == 1
    gain = sizes.gain_for_one_output if one else sizes.gain_of_large_leaves
    if error(large) > (1.0 - gain) * error(small):
        return best, few
    return tuned(name, large, unit, (best.scale, best.alpha)), most


def _solved(
    kernel: KernelMap,
    tuning: Tuning,
    table: LocalTable,
    leaves: list[Indices],
    is_scored: Array,
    passes: Passes,
) -> tuple[list[Array], list[Array], list[Array]]:
    """Return D, b and the left-out predictions of the last rows of each leaf."""

    def arguments(leaf: Indices) -> tuple[LocalTable, Tuning, int]:
        return table.of(leaf), tuning, int(is_scored[leaf].sum())

    # The centres of a leaf are its own rows.
    solve = partial(_solved_leaf, replace(kernel, Z=np.empty((0, 0))))
    with closing(passes.compute(solve, arguments, leaves)) as solutions:
        D, b, out = zip(*solutions, strict=True)
    return list(D), list(b), list(out)


def _solved_leaf(
    kernel: KernelMap, table: LocalTable, tuning: Tuning, last: int
) -> tuple[Array, Array, Array]:
    found, out = solve_leaf(kernel, table, tuning, last)
    return arrays.to_numpy(found.D), arrays.to_numpy(found.b), out


def refitted_without(
    member: Member,
    targets: RidgeTargets,
    fold: Indices,
    seed: int,
    leaf: int,
    passes: Passes,
    device: str | None,
) -> Array:
    """Return the predictions for the rows of a fold by a member fitted without them."""
    A = member.X_fit_
    kept = np.setdiff1d(np.arange(len(A)), fold)
    found, nothing = Round(member.view, member.shape, member.alpha_), np.empty(0, dtype=np.intp)
    rng = np.random.RandomState(seed)
    rows = A[kept], targets.of(kept), nothing
    again = fit_local(found, lambda _: 1, *rows, leaf, rng, passes, device)
    assert isinstance(again.network, LocalNetwork)
    return again.network.scores_of_viewed(A[fold], device)


def weighted(
    members: list[Member], targets: RidgeTargets, judged: Mask
) -> tuple[list[Member], Array, Array]:
    """Return the members with a weight that counts, their weights, and the part of the mean."""
    weights, offset = combined(members, targets, judged)
    least = LOCAL_SIZES.least_weight * weights.max()
    kept = [member for member, w in zip(members, weights, strict=True) if w > least]
    if len(kept) == len(members):
        return members, weights, offset
    kept = kept or members[:1]
    return kept, *combined(kept, targets, judged)


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
