"""The search for local members: views, kernels, metrics, scales and ridges for a long table.

A chain is a view and a kernel whose input metric is computed round by round. In a round, a tree
divides the rows that shape the metric, and the leaves are solved. They predict the rows that judge,
and the outer products of their input sensitivities add up to the metric of the next round. The
round with the least error of the judging rows is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

import numpy as np

from .._network.infinite_width import (
    DualSolution,
    KernelMap,
    RidgeTargets,
    downhill,
    kernel_network,
    nearest,
)
from .._network.input_metric import metric_is_diagonal, metric_root, outer_products
from .._network.local import Tree, grow_tree
from .._rows.memory import in_order
from .._util.progress import Progress
from .._util.types import Array, Indices
from ..kernels import KERNELS
from .member import Shape, activation
from .search import ERROR, LEAST_STRETCH
from .views import Stretched, View, stretch

# The order of chains, the best first.
BEST = attrgetter("best.error")
# Scales that are tried, relative to the mean distance of rows.
SCALES = 2.0 ** np.arange(-5.0, 5.5, 0.5)
# The kernels of chains, with the scale and the ridge that are tried first.
STARTS = {"laplace_l1": (1.0, 0.05), "laplace": (1.0, 0.05), "gaussian": (0.5, 0.05)}
# Smallest ridge for which single precision keeps enough digits.
SINGLE_RIDGE = 3e-3
# About the number of scales and ridges that are tried in a round.
N_TUNED = 20
# Largest number of columns of more than two values for which city-block distances are tried.
MOST_COLUMNS_OF_L1 = 100


@dataclass
class LocalSizes:
    """The sizes of local members and of their search; tests change them."""

    # Rows from which views are made.
    view_rows: int = 20000
    # Rows whose mean distance is the unit of scales.
    distance_rows: int = 500
    # Share of the rows that judge rounds and chains, and their largest number.
    judging_share: float = 0.1
    judging: int = 2000
    # Share of the rows that have no part in the search, and their smallest and largest number.
    scored_share: float = 0.1
    fewest_scored: int = 200
    scored: int = 5000
    # Rows that shape the metric in the first rounds, which all chains take.
    first_rows: int = 8000
    n_first_rounds: int = 3
    # Rows that shape the metric in later rounds, which the best chains take.
    later_rows: int = 32000
    n_later_rounds: int = 4
    # Rounds without a lower error after which a chain ends.
    patience: int = 2
    # The fall of the error in a round, as a share, with which a chain far from the best goes on.
    least_fall: float = 0.1
    # Rows of a leaf in the search.
    leaf: int = 1000
    # Leaves in which scale and ridge are selected, and the rows of each in the search.
    n_tuned_leaves: int = 2
    tuned_rows: int = 600
    # Rows over which outer products are summed: of all leaves, and of each leaf at least.
    metric_rows: int = 3000
    metric_rows_of_leaf: int = 150
    # The fall of the error, as a share, for which leaves have twice as many rows.
    gain_of_large_leaves: float = 0.15
    # Members whose error exceeds the least by more than this share are left out.
    margin: float = 0.25
    # Largest number of members.
    n_members: int = 2
    # Trees of a member at least and at most, and about the operations that predict a row.
    fewest_trees: int = 2
    most_trees: int = 8
    operations: int = 340_000


LOCAL_SIZES = LocalSizes()


@dataclass(frozen=True)
class Round:
    """A metric, with the scale and ridge selected for it, and its error on the judging rows."""

    view: View
    shape: Shape
    alpha_: float
    error: float = np.nan
    unit: float = 1.0  # the mean distance of rows

    @property
    def scale(self) -> float:
        """The scale of the kernel in units of the view."""
        return self.shape.scale * self.unit

    @property
    def activation(self) -> str:
        """The activation of the hidden units of its networks."""
        return activation(self.shape.kernel)


@dataclass(frozen=True)
class LocalTable:
    """Rows as a view shows them, in single precision, and their targets."""

    A: Array
    targets: RidgeTargets

    def of(self, rows: Indices) -> LocalTable:
        """Return some of the rows."""
        return LocalTable(self.A[rows], self.targets.of(rows))

    def stretched(self, root: Array | None) -> LocalTable:
        """Return the rows multiplied by the root of a metric."""
        if root is None:
            return self
        return LocalTable(stretch(self.A, root.astype(self.A.dtype)), self.targets)


def mean_distance(kernel: str, A: Array, rng: np.random.RandomState) -> float:
    """Return the mean distance of a sample of rows."""
    some = A[rng.randint(len(A), size=min(LOCAL_SIZES.distance_rows, len(A)))]
    return float(KERNELS[kernel].geometry(some, some).mean(dtype=np.float64)) or 1.0


def precision(alpha: float) -> type[np.floating]:
    """Return the precision in which a leaf is solved with a ridge."""
    return np.float32 if alpha >= SINGLE_RIDGE else np.float64


def left_out_error(
    table: LocalTable, G: Array, kernel: KernelMap, alpha: float
) -> tuple[float, float]:
    """Return the sum of squared leave-one-out errors of half of the rows, and of their weights.

    G holds the distances of the rows. Half of the rows take much less time than all of them.
    """
    K, half = KERNELS[kernel.kernel].profile(G, kernel.scale, 1), -(-len(G) // 2)
    weight = table.targets.weight[-half:]
    left_out = DualSolution.of(K, table.targets, alpha).left_out(table.targets, last=half)
    total = float(weight @ np.sum((table.targets.Y[-half:] - left_out) ** 2, axis=1))
    return (total if np.isfinite(total) else np.inf), float(weight.sum())


def distances(kernel: str, A: Array, alpha: float) -> Array:
    """Return the distances of rows, in the precision in which a ridge is solved."""
    A = A.astype(precision(alpha), copy=False)
    return KERNELS[kernel].geometry(A, A)


def tuned(
    kernel: str, leaves: Sequence[LocalTable], unit: float, start: tuple[float, float]
) -> tuple[float, float]:
    """Return the scale and ridge with the least leave-one-out error in some leaves.

    The way goes downhill from a start.
    """
    ridges = leaves[0].targets.ridges
    kept: dict[tuple[int, type[np.floating]], Array] = {}

    def error(i: int, k: int) -> float:
        total, alpha = 0.0, float(ridges[k])
        for number, table in enumerate(leaves):
            key = number, precision(alpha)
            if key not in kept:
                kept[key] = distances(kernel, table.A, alpha)
            shape = KernelMap(kernel, float(SCALES[i]) * unit)
            total += left_out_error(table, kept[key], shape, alpha)[0]
        return total

    place = int(np.argmin(np.abs(SCALES - start[0]))), nearest(ridges, start[1])
    i, k = downhill(error, place, (len(SCALES), len(ridges)))
    return float(SCALES[i]), float(ridges[k])


def solve_leaf(
    kernel: KernelMap, table: LocalTable, alpha: float, last: int = 0
) -> tuple[DualSolution, Array]:
    """Return the solution of a leaf, and the left-out predictions of its last rows."""
    G = distances(kernel.kernel, table.A, alpha)
    K = KERNELS[kernel.kernel].profile(G, kernel.scale, 1)
    found = DualSolution.of(K, table.targets, alpha)
    return found, found.left_out(table.targets, last=last) if last else np.empty((0, 1))


@dataclass(eq=False)
class Chain:
    """A view and a kernel, and the rounds of its metric so far."""

    name: str
    view: View
    kernel: str
    rng: np.random.RandomState
    start: tuple[float, float]  # the scale and ridge that are tried first
    leaf: int  # the largest number of rows of a leaf
    root: Array | None = None
    rounds: list[Round] = field(default_factory=list)
    # The rounds that count: later ones have more rows than first ones.
    counted: int = 0

    @property
    def best(self) -> Round:
        """The round with the least error."""
        return min(self.rounds[self.counted :], key=ERROR)

    def goes_on(self, most: float) -> bool:
        """Return whether another round is worth its time, for an error of at most `most`."""
        errors = [each.error for each in self.rounds[self.counted :]]
        if len(errors) - 1 - int(np.argmin(errors)) >= LOCAL_SIZES.patience:
            return False
        falls = len(errors) < 2 or errors[-1] <= (1.0 - LOCAL_SIZES.least_fall) * errors[-2]
        return falls or min(errors) <= most

    def advance(self, shaping: LocalTable, judging: LocalTable) -> None:
        """Add a round, with rows as the view shows them before it is stretched."""
        table, judged = shaping.stretched(self.root), judging.stretched(self.root)
        unit = mean_distance(self.kernel, table.A, self.rng)
        tree, leaves = grow_tree(table.A, self.leaf, self.rng)
        leaves = [self.rng.permutation(leaf) for leaf in leaves]
        some = self.rng.permutation(len(leaves))[: LOCAL_SIZES.n_tuned_leaves]
        tables = [table.of(leaves[k][: LOCAL_SIZES.tuned_rows]) for k in some]
        scale, alpha = self.start = tuned(self.kernel, tables, unit, self.start)
        kernel = KernelMap(self.kernel, scale * unit)
        error, M = _solved_leaves(kernel, alpha, table, judged, tree, leaves)
        view = self.view if self.root is None else Stretched(self.view, self.root)
        self.root = _next_root(self.root, M)
        shape = Shape(self.name, self.kernel, scale, rounds=len(self.rounds))
        self.rounds.append(Round(view, shape, alpha, error, unit))


def _solved_leaves(
    kernel: KernelMap,
    alpha: float,
    table: LocalTable,
    judged: LocalTable,
    tree: Tree,
    leaves: list[Indices],
) -> tuple[float, Array]:
    """Return the error of the leaves for the judging rows, and the sum of outer products."""
    reached = dict(tree.route(judged.A))
    predictions, total = np.zeros_like(judged.targets.Y), np.zeros(())
    n_metric_rows = max(LOCAL_SIZES.metric_rows // len(leaves), LOCAL_SIZES.metric_rows_of_leaf)
    diagonal = metric_is_diagonal(kernel, table.A.shape[1])
    for k, leaf in enumerate(leaves):
        rows = table.of(leaf)
        found, _ = solve_leaf(kernel, rows, alpha)
        A = rows.A.astype(found.D.dtype, copy=False)
        network = kernel_network(found.D, found.b, kernel.at(A), None)
        if k in reached:
            new = judged.A[reached[k]].astype(A.dtype, copy=False)
            predictions[reached[k]] = network.layers[0].linear(kernel.at(A)(new))
        few = slice(0, n_metric_rows)
        total = total + outer_products(network, A[few], rows.targets.weight[few], diagonal)
    return judged.targets.error(predictions), total.astype(np.float64)


def _next_root(root: Array | None, M: Array) -> Array:
    """Return the root of a metric M that was computed after rows were multiplied by a root."""
    if root is not None:
        M = M * root**2 if root.ndim == 1 else root @ M @ root.T
    trace = M.sum() if M.ndim == 1 else np.trace(M)
    return metric_root(M / (trace / len(M) or 1.0), LEAST_STRETCH)


def advance_all(
    chains: Sequence[Chain], tables: Callable[[str], tuple[LocalTable, LocalTable]]
) -> None:
    """Add a round to each chain, in parallel."""

    def advance(chain: Chain) -> None:
        chain.advance(*tables(chain.name))

    with closing(in_order(advance, list(chains))) as done:
        for _ in done:
            pass


@dataclass(frozen=True)
class LocalSearch:
    """The search for chains in the rows of a long table."""

    X: Array
    targets: RidgeTargets
    shaping: Indices  # rows that shape metrics, in random order
    judging: Indices  # rows that judge rounds and chains
    views: dict[str, View]
    leaf: int  # the largest number of rows of a leaf
    rng: np.random.RandomState
    has_time: Callable[[], bool]  # whether there is time for another round
    progress: Progress = field(default_factory=Progress)

    def chains(self) -> list[Chain]:
        """Return all chains, after rounds for which there is time, the best first."""
        sizes = LOCAL_SIZES
        chains = self._begun()
        self._plan(len(chains))
        tables = partial(self._tables, self.shaping[: sizes.first_rows], {})
        going = chains
        for number in range(sizes.n_first_rounds):
            if not number or self.has_time():
                self._advance(going, tables, sizes.first_rows)
            going = self._promising(going, sizes.margin)
        chains.sort(key=BEST)
        going, more = self._promising(going), len(self.shaping) > sizes.first_rows
        tables = partial(self._tables, self.shaping[: sizes.later_rows], {})
        later: list[Chain] = []
        for number in range(sizes.n_later_rounds):
            going = self._hopeful(going, number)
            if not going or not self.has_time():
                break
            for chain in going:
                chain.counted = chain.counted if number or not more else len(chain.rounds)
            later = later or going
            self._advance(going, tables, sizes.later_rows)
        others = [chain for chain in chains if chain not in later]
        return sorted(later, key=BEST) + others

    def _plan(self, n_chains: int) -> None:
        """Plan the work of all rounds: the first of all chains, the later ones of members only."""
        sizes = LOCAL_SIZES
        first = sizes.n_first_rounds * n_chains * self._work(sizes.first_rows)
        later = sizes.n_later_rounds * sizes.n_members * self._work(sizes.later_rows)
        self.progress.plan(search=first + later)

    def _work(self, n_rows: int) -> float:
        """Return the work of a round of one chain, in pairs of rows that share a leaf."""
        solved = min(n_rows, len(self.shaping)) * min(LOCAL_SIZES.leaf, self.leaf)
        tuned_rows = min(LOCAL_SIZES.tuned_rows, self.leaf)
        return float(solved + N_TUNED * LOCAL_SIZES.n_tuned_leaves * tuned_rows**2)

    def _advance(
        self,
        chains: list[Chain],
        tables: Callable[[str], tuple[LocalTable, LocalTable]],
        n_rows: int,
    ) -> None:
        advance_all(chains, tables)
        which, best = f"round {len(chains[0].rounds)}", min(map(BEST, chains))
        n_rows, work = min(n_rows, len(self.shaping)), len(chains) * self._work(n_rows)
        self.progress.step("search", which, n_rows, work, best)

    def _begun(self) -> list[Chain]:
        chains = []
        for kernel, start in STARTS.items():
            for name, view in self.views.items():
                if kernel == "laplace_l1" and self._n_many_valued(view) > MOST_COLUMNS_OF_L1:
                    continue
                rng = np.random.RandomState(self.rng.randint(2**31 - 1))
                leaf = min(LOCAL_SIZES.leaf, self.leaf)
                chains.append(Chain(name, view, kernel, rng, start, leaf))
        return chains

    def _n_many_valued(self, view: View) -> int:
        A = view(self.X[self.shaping[:200]])
        return int(np.sum([len(np.unique(A[:, j])) > 2 for j in range(A.shape[1])]))

    @staticmethod
    def _hopeful(chains: list[Chain], number: int) -> list[Chain]:
        """Return the chains that go on after a number of later rounds."""
        order = sorted(chains, key=BEST)
        # After two rounds, only chains that are members at present or become better fast.
        most = np.inf if number < 2 else BEST(order[: LOCAL_SIZES.n_members][-1])
        most = min(most, (1.0 + LOCAL_SIZES.margin) * BEST(order[0]))
        return [chain for chain in order if chain.goes_on(most)]

    @staticmethod
    def _promising(chains: list[Chain], margin: float = 0.0) -> list[Chain]:
        """Return, for each kernel, the chains of views with errors near the least."""
        order = sorted(chains, key=BEST)
        least = {chain.kernel: BEST(chain) for chain in reversed(order)}
        return [chain for chain in order if BEST(chain) <= (1.0 + margin) * least[chain.kernel]]

    def _tables(
        self, shaping: Indices, shown: dict[str, tuple[LocalTable, LocalTable]], name: str
    ) -> tuple[LocalTable, LocalTable]:
        if name not in shown:
            view = self.views[name]
            shaping_rows, judging_rows = (
                LocalTable(view(self.X[rows]).astype(np.float32), self.targets.of(rows))
                for rows in (shaping, self.judging)
            )
            shown[name] = shaping_rows, judging_rows
        return shown[name]
