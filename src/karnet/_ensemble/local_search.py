"""The search for local members: views, kernels, metrics, scales and ridges for a long table.

The input metric of a view is computed round by round, with a smooth kernel. In a round, a tree
divides the rows that shape the metric, and the leaves are solved. They predict the rows that judge,
and the outer products of their input sensitivities add up to the metric of the next round. The
metric with the least error of the judging rows is kept, and the other kernels are tried with it.
Scores of an additive network join the columns of the view if that makes the error much smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TypeVar

import numpy as np
from scipy.linalg import block_diag

from .._arrays import namespace as arrays
from .._network.infinite_width import (
    KernelMap,
    RidgeTargets,
    kernel_network,
)
from .._network.input_metric import metric_is_diagonal, metric_root, outer_products, scaled_metric
from .._network.local import Tree, grow_tree
from .._rows.memory import in_order
from .._util.progress import Progress
from .._util.types import Array, Indices
from .leaves import (
    LOCAL_SIZES,
    LocalSizes,
    LocalTable,
    Tuning,
    mean_distance,
    sizes_for,
    solve_leaf,
    telling,
    tuned,
)
from .member import Shape, activation
from .search import ERROR, LEAST_STRETCH
from .views import Stretched, View, WithScores, stretch, stretched, total_variance

T = TypeVar("T")
U = TypeVar("U")
# The order of chains, the best first.
BEST = attrgetter("best.error")
# The kernel whose networks shape metrics: the sensitivities of a smooth kernel are the least noisy.
SMOOTH = "gaussian"
# The kernels, with the scale and the ridge that are tried first.
STARTS = {"gaussian": (0.5, 0.05), "laplace": (1.0, 0.05), "laplace_l1": (0.5, 0.05)}
# About the number of scales and ridges that are tried in a round.
N_TUNED = 10
# Largest number of columns of more than two values for which city-block distances are tried.
MOST_COLUMNS_OF_L1 = 100


@dataclass(frozen=True)
class Round:
    """A metric, with the scale and ridge selected for it, and its error on the judging rows."""

    view: View
    shape: Shape
    alpha_: float
    error: float = np.nan
    unit: float = 1.0  # the mean distance of rows
    dtype: type[np.floating] = np.float64  # the precision that keeps enough digits
    root: Array | None = None  # of the metric, for the view of its chain

    @property
    def is_wide(self) -> bool:
        """Whether there are many columns."""
        return len(self.view.features) > LOCAL_SIZES.wide

    @property
    def is_rotated(self) -> bool:
        """Whether principal directions replace many columns."""
        return self.is_wide and isinstance(self.view, Stretched) and self.view.root.ndim == 2

    @property
    def scale(self) -> float:
        """The scale of the kernel in units of the view."""
        return self.shape.scale * self.unit

    @property
    def activation(self) -> str:
        """The activation of the hidden units of its networks."""
        return activation(self.shape.kernel)


@dataclass(eq=False)
class Chain:
    """A view and a kernel, and the rounds of their metric so far."""

    name: str
    view: View
    kernel: str
    rng: np.random.RandomState
    leaf: int  # the largest number of rows of a leaf
    tuned_rows: int  # the largest number of rows of a leaf that select scale and ridge
    start: tuple[float, float]  # the scale and ridge that are tried first
    root: Array | None = None
    depth: int = 0  # the rounds in which the root was computed
    diagonal: bool = False  # whether only the diagonal of the metric is formed
    rounds: list[Round] = field(default_factory=list)
    # The rounds that count: later ones have more rows than first ones.
    counted: int = 0

    @property
    def best(self) -> Round:
        """The round with the least error."""
        return min(self.rounds[self.counted :], key=ERROR)

    def goes_on(self, patience: int) -> bool:
        """Return whether another round is worth its time."""
        errors = [each.error for each in self.rounds[self.counted :]]
        return not errors or len(errors) - 1 - int(np.argmin(errors)) < patience

    def advance(self, shaping: LocalTable, judging: LocalTable) -> None:
        """Add a round, with rows as the view shows them before it is stretched."""
        table, judged = shaping.stretched(self.root), judging.stretched(self.root)
        unit = mean_distance(self.kernel, table.A, self.rng)
        tree, leaves = grow_tree(table.A, self.leaf, self.rng)
        leaves = [self.rng.permutation(leaf) for leaf in leaves]
        parts = [table.of(leaf[: self.tuned_rows]) for leaf in leaves]
        some = telling(parts, table.sizes.n_tuned_leaves, self.rng)
        tuning = tuned(self.kernel, some, unit, self.start)
        self.start = tuning.scale, tuning.alpha
        kernel = KernelMap(self.kernel, tuning.scale * unit)
        diagonal = self.diagonal or metric_is_diagonal(kernel, table.A.shape[1])
        error, M = _solved_leaves(kernel, tuning, table, judged, tree, leaves, diagonal)
        root, self.root = self.root, _next_root(self.root, M)
        view = self.view if root is None else stretched(self.view, root)
        shape = Shape(self.name, self.kernel, tuning.scale, rounds=self.depth + len(self.rounds))
        self.rounds.append(Round(view, shape, tuning.alpha, error, unit, tuning.dtype, root))

    def branch(self, kernel: str) -> Chain:
        """Return a chain of another kernel that begins with the best metric."""
        root = self.best.root
        if root is not None and metric_is_diagonal(KernelMap(kernel), 0):
            root = _diagonal_root(root)
        rng = np.random.RandomState(self.rng.randint(2**31 - 1))
        return self._begun_with(self.name, self.view, kernel, rng, STARTS[kernel], root)

    def with_diagonal(self) -> Chain:
        """Return a chain with the same rounds that goes on with the diagonal of the metric.

        The same random numbers make both chains comparable.
        """
        root = None if self.root is None else _diagonal_root(self.root)
        rounds, rng = list(self.rounds), deepcopy(self.rng)
        return replace(self, rng=rng, root=root, rounds=rounds, diagonal=True)

    def joined(self, view: WithScores, A: Array, weight: Array) -> Chain:
        """Return a chain of the view with scores, which shows rows as A, of some weights.

        It begins with the best metric, and with scores of the same variance as the stretched rows.
        """
        n_scores = view.network.n_outputs
        own = A[:, : A.shape[1] - n_scores]
        root = np.ones(own.shape[1]) if self.best.root is None else self.best.root
        growth = total_variance(stretch(own, root), weight) / total_variance(own, weight)
        of_scores = np.full(n_scores, np.sqrt(growth))
        if root.ndim == 1:
            root = np.concatenate([root, of_scores])
        else:
            root = block_diag(root, np.diag(of_scores))
        name = f"{self.name} and scores"
        # The random numbers of the next round of the chain: whether scores are tried or not, the
        # chain has the same rounds.
        return self._begun_with(name, view, self.kernel, deepcopy(self.rng), self.start, root)

    def _begun_with(
        self,
        name: str,
        view: View,
        kernel: str,
        rng: np.random.RandomState,
        start: tuple[float, float],
        root: Array | None,
    ) -> Chain:
        """Return a chain that begins with the root of a metric."""
        depth = self.best.shape.rounds
        rows = self.leaf, self.tuned_rows
        return Chain(name, view, kernel, rng, *rows, start, root, depth, self.diagonal)


def _solved_leaves(
    kernel: KernelMap,
    tuning: Tuning,
    table: LocalTable,
    judged: LocalTable,
    tree: Tree,
    leaves: list[Indices],
    diagonal: bool,
) -> tuple[float, Array]:
    """Return the error of the leaves for the judging rows, and the sum of outer products."""
    reached = dict(tree.route(judged.A))
    predictions, total = np.zeros_like(judged.targets.Y), np.zeros(())
    sizes = table.sizes
    n_metric_rows = max(sizes.metric_rows // len(leaves), sizes.metric_rows_of_leaf)
    for k, leaf in enumerate(leaves):
        rows = table.of(leaf)
        found, _ = solve_leaf(kernel, rows, tuning)
        A = rows.inputs(tuning.dtype)
        network = kernel_network(found.D, found.b, kernel.at(A), None)
        if k in reached:
            new = judged.of(reached[k]).inputs(tuning.dtype)
            predicted = network.layers[0].linear(kernel.at(A)(new))
            predictions[reached[k]] = arrays.to_numpy(predicted)
        few = slice(0, n_metric_rows)
        weight = arrays.like(A, rows.targets.weight[few])
        total = total + arrays.to_numpy(outer_products(network, A[few], weight, diagonal))
    return judged.targets.error(predictions), total.astype(np.float64)


def _diagonal_root(root: Array) -> Array:
    """Return the root of the diagonal of the metric with a symmetric root, or with a diagonal."""
    return root if root.ndim == 1 else np.asarray(np.sqrt(np.sum(root**2, axis=1)))


def _next_root(root: Array | None, M: Array) -> Array:
    """Return the root of the mean of two metrics.

    One has a root. The other, M, was computed after rows were multiplied by the root.
    """
    if root is None:
        return metric_root(scaled_metric(M), LEAST_STRETCH)
    if root.ndim == 1:
        return metric_root(scaled_metric(root**2) + scaled_metric(M * root**2), LEAST_STRETCH)
    return metric_root(scaled_metric(root @ root) + scaled_metric(root @ M @ root), LEAST_STRETCH)


@dataclass(frozen=True)
class LocalSearch:
    """The search for metrics and kernels in the rows of a long table."""

    X: Array
    targets: RidgeTargets
    shaping: Indices  # rows that shape metrics, in random order
    judging: Indices  # rows that judge rounds
    views: dict[str, View]
    leaf: int  # the largest number of rows of a leaf
    rng: np.random.RandomState
    has_time: Callable[[], bool]  # whether there is time for another round
    device: str | None = None  # where leaves are solved
    progress: Progress = field(default_factory=Progress)

    @property
    def sizes(self) -> LocalSizes:
        """The sizes for the device."""
        return sizes_for(self.device)

    @property
    def _search_leaf(self) -> int:
        """The largest number of rows of a leaf in the search."""
        sizes, n_outputs = self.sizes, self.targets.Y.shape[1]
        leaf = sizes.leaf_of_one_output if n_outputs == 1 else sizes.leaf
        if n_outputs > 2 and sizes.few_rows < len(self.shaping) < sizes.many_rows:
            leaf = sizes.leaf_of_classes
        return min(leaf, self.leaf)

    @property
    def _patience(self) -> int:
        """The number of rounds without a lower error after which a chain ends."""
        if self._has_many_rows:
            return self.sizes.patience_of_many_rows
        one_output = self.targets.Y.shape[1] == 1
        return self.sizes.patience_of_one_output if one_output else self.sizes.patience

    @property
    def _n_later_rounds(self) -> int:
        """The largest number of later rounds."""
        patience, n = self._patience, self.sizes.n_later_rounds
        if patience == self.sizes.patience:
            return n
        return 2 * n if self._has_many_rows else self.sizes.later_rounds_of_one_output

    @property
    def _tuned_rows(self) -> int:
        """The largest number of rows of a leaf that select scale and ridge."""
        return (1 + (self._patience > self.sizes.patience)) * self.sizes.tuned_rows

    @property
    def _has_many_rows(self) -> bool:
        """Whether many rows shape the metric."""
        return len(self.shaping) >= self.sizes.many_rows

    def rounds(self) -> list[Round]:
        """Return the best round with each kernel, and then all other rounds, each the best first.

        There are as many rounds as there is time for.
        """
        chains = self._begun()
        self._plan(len(chains))
        chain = self._with_scores(self._first_rounds(chains))
        tables = self._tables(self.shaping[: self.sizes.later_rows], chain.view)
        self._later_rounds(chain, tables)
        branches = self._branches(chain, tables) if self._goes_on(chain) else []
        best = [each.best for each in (chain, *branches)]
        chains += [] if chain in chains else [chain]
        every = [found for each in (*chains, *branches) for found in each.rounds]
        rest = [found for found in every if not any(found is each for each in best)]
        return sorted(best, key=ERROR) + sorted(rest, key=ERROR)

    def _plan(self, n_views: int) -> None:
        """Plan the work of all rounds; after the first round, one view is likely to be left.

        It has another round with scores.
        """
        first = n_views + len(self.sizes.view_margins)
        later = self._n_later_rounds + 2 * (len(STARTS) - 1)
        work = first * self._work(self.sizes.first_rows) + later * self._work(len(self.shaping))
        self.progress.plan(search=work)

    def _work(self, n_rows: int) -> float:
        """Return the work of a round of one chain, in pairs of rows that share a leaf."""
        solved = min(n_rows, len(self.shaping)) * self._search_leaf
        tuned_rows = min(self._tuned_rows, self._search_leaf)
        return float(solved + N_TUNED * self.sizes.n_tuned_leaves * tuned_rows**2)

    def _advance(
        self, chains: list[Chain], tables: dict[Chain, tuple[LocalTable, LocalTable]]
    ) -> None:
        """Add a round to each chain, in parallel."""
        _each(lambda chain: chain.advance(*tables[chain]), chains)
        n_rows, n = len(tables[chains[0]][0].A), chains[0].depth + len(chains[0].rounds)
        work, best = len(chains) * self._work(n_rows), min(map(BEST, chains))
        self.progress.step("search", f"round {n}", n_rows, work, best)

    def _begun(self) -> list[Chain]:
        rngs = map(np.random.RandomState, self.rng.randint(2**31 - 1, size=len(self.views)))
        rows = self._search_leaf, self._tuned_rows
        return [
            Chain(name, view, SMOOTH, rng, *rows, STARTS[SMOOTH])
            for (name, view), rng in zip(self.views.items(), rngs, strict=True)
        ]

    def _first_rounds(self, chains: list[Chain]) -> Chain:
        """Return the chain of the best view, after rounds with some of the rows."""
        rows = self.shaping[: self.sizes.first_rows]
        tables = {chain: self._tables(rows, chain.view) for chain in chains}
        going = chains
        for number, margin in enumerate(self.sizes.view_margins):
            if not number or self._goes_on(going[0]):
                self._advance(going, tables)
            going.sort(key=BEST)
            going = [chain for chain in going if BEST(chain) <= (1.0 + margin) * BEST(going[0])]
            if not number:
                many = [chain for chain in going if self._has_many_entries(chain)]
                diagonal = {chain.with_diagonal(): tables[chain] for chain in many}
                tables |= diagonal
                going += diagonal
        return going[0]

    def _has_many_entries(self, chain: Chain) -> bool:
        """Whether the metric of a chain may have so many entries that they are mostly noise."""
        root, least = chain.root, self._share(self.sizes.share_for_diagonal)
        if root is None or root.ndim == 1 or BEST(chain) <= least:
            return False
        return len(root) > self.sizes.columns_of_full

    def _share(self, share: float) -> float:
        """Return a share of the variance of the targets in the first rounds."""
        Y = self.targets.Y[self.shaping[: self.sizes.first_rows]]
        return float(share * Y.var(axis=0).sum())

    def _with_scores(self, chain: Chain) -> Chain:
        """Return a chain that also sees the scores of an additive network, if it is much better.

        Its first metric is the best one of the chain, joined by the scores.
        """
        rows = self.shaping[: self.sizes.first_rows]
        targets = self.targets.of(rows)
        if not (self._goes_on(chain) and BEST(chain) > self._share(self.sizes.share_for_scores)):
            return chain
        view = WithScores.of(chain.view, self.X[rows], targets)
        if view is None:
            return chain
        scored = chain.joined(view, view(self.X[rows]), targets.weight)
        self._advance([scored], {scored: self._tables(rows, view)})
        if BEST(scored) > (1.0 - self.sizes.gain_of_scores) * BEST(chain):
            return chain
        if len(rows) < len(self.shaping):  # later rounds are of more rows
            of_all = self.X[self.shaping], self.targets.of(self.shaping)
            scored.view = WithScores.of(chain.view, *of_all) or view
        return scored

    def _later_rounds(self, chain: Chain, tables: tuple[LocalTable, LocalTable]) -> None:
        """Add rounds with more rows to a chain."""
        if not self._goes_on(chain):
            return
        more = len(self.shaping) > self.sizes.first_rows
        # Leaves of rotated rows are larger than those of the search, and need less of a metric.
        patience = self.sizes.patience if chain.best.is_rotated else self._patience
        chain.counted = len(chain.rounds) if more else 0
        for number in range(self._n_later_rounds):
            counts = number or not more  # whether there is a round that counts
            if counts and not (chain.goes_on(patience) and self._goes_on(chain)):
                break
            self._advance([chain], {chain: tables})

    def _goes_on(self, chain: Chain) -> bool:
        """Return whether there is time for more rounds, and a smaller error would matter."""
        return self.has_time() and BEST(chain) > self.targets.enough

    def _branches(self, chain: Chain, tables: tuple[LocalTable, LocalTable]) -> list[Chain]:
        """Return chains of the other kernels, after rounds in which their errors fall."""
        kernels = set(STARTS) - {SMOOTH}
        if chain.best.is_rotated or self._n_many_valued(chain.view) > MOST_COLUMNS_OF_L1:
            kernels -= {"laplace_l1"}
        branches = [chain.branch(kernel) for kernel in sorted(kernels)]
        going = branches
        for _ in range(self.sizes.n_branch_rounds):
            self._advance(going, dict.fromkeys(going, tables))
            least = min(BEST(each) for each in (chain, *branches))
            most = (1.0 + self.sizes.margin) * least
            going = [e for e in going if e.best is e.rounds[-1] and BEST(e) <= most]
            if not going or not self.has_time():
                break
        return branches

    def _n_many_valued(self, view: View) -> int:
        A = view(self.X[self.shaping[:200]])
        return int(np.sum([len(np.unique(A[:, j])) > 2 for j in range(A.shape[1])]))

    def _tables(self, shaping: Indices, view: View) -> tuple[LocalTable, LocalTable]:
        """Return the rows that shape and those that judge, as a view shows them."""
        shaping_rows, judging_rows = (
            LocalTable(view(self.X[rows]).astype(np.float32), self.targets.of(rows), self.device)
            for rows in (shaping, self.judging)
        )
        return shaping_rows, judging_rows


def _each(function: Callable[[T], U], items: list[T]) -> list[U]:
    """Return the function of each item, computed in parallel."""
    with closing(in_order(function, items)) as done:
        return list(done)
