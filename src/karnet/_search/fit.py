"""The fit of the networks that a search selected, to all rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from .._arrays import namespace as arrays
from .._arrays.devices import is_out_of_memory
from .._network.infinite_width import RidgeTargets
from .._network.kernel_map import KernelMap
from .._network.local import LocalNetwork, Partition, Tree, grow_tree
from .._rows.inputs import Inputs
from .._util.types import Array, Indices, Mask
from .leaves import LeafTable, Tuning, mean_distance, solve_leaf, telling, tuned
from .member import Member
from .settings import Settings
from .trial import Lens, Trial
from .views import View, stretched

# The operations of a kernel value besides those of a distance, as a number of inputs.
KERNEL_OPERATIONS = 30


@dataclass(frozen=True)
class Sizes:
    """How many networks a fit has, and of what size."""

    kernels: int  # the number of trials that are fitted
    starts: int  # the number of starts of each, which have a network each
    trees: int  # of each network
    leaf: int  # the largest number of rows of a leaf

    @property
    def networks(self) -> int:
        """The number of networks."""
        return self.kernels * self.starts

    @property
    def operations(self) -> float:
        """The operations that fit a row, up to a factor."""
        return float(self.networks * self.trees * self.leaf**2)

    @classmethod
    def of(
        cls, n_trials: int, n_starts: int, shape: tuple[int, int], leaf: int, settings: Settings
    ) -> Sizes:
        """Return the sizes for which a prediction takes about the operations of the settings.

        `shape` is that of the rows as the networks see them, and `leaf` the largest number of rows
        of a leaf in the search.
        """
        n, d = shape
        n_rows = settings.operations / (d + KERNEL_OPERATIONS)  # of the leaves of all trees
        least = min(settings.smallest_leaf, n)
        starts = _clipped(n_rows / (least * n_trials), n_starts)
        kernels = _clipped(n_rows / (least * starts), n_trials)
        rows = n_rows / (starts * kernels)
        most = settings.most_rows_of_leaf
        # The longer a table, the smaller are its leaves, so that its time grows slowly.
        most = int(np.clip(most * np.sqrt(most / n), min(leaf, most), most))
        rows_of_leaf = max(min(int(rows), most), least, 1)
        trees = _clipped(rows / rows_of_leaf, settings.most_trees if n > rows_of_leaf else 1)
        return cls(kernels, starts, trees, rows_of_leaf)

    def limited(self, n_networks: int, most: float) -> Sizes:
        """Return sizes of at most some networks, and of at most some operations for a row."""
        sizes = self
        while sizes.networks > n_networks or sizes.operations > most:
            smaller = sizes._smaller(n_networks, most)
            if smaller == sizes:
                break
            sizes = smaller
        return sizes

    def _smaller(self, n_networks: int, most: float) -> Sizes:
        if self.trees > 1:
            return replace(self, trees=self.trees - 1)
        if self.starts > 1:
            return replace(self, starts=self.starts - 1)
        if self.kernels > 1:
            return replace(self, kernels=self.kernels - 1)
        return replace(self, leaf=max(self.leaf // 2, min(self.leaf, FEWEST)))


# Smallest number of rows of a leaf that a short time allows.
FEWEST = 20


def _clipped(number: float, most: int) -> int:
    return int(np.clip(number, 1, most))


@dataclass(frozen=True)
class FamilyFit:
    """All rows, in which the networks of trials are fitted."""

    inputs: Inputs
    targets: RidgeTargets
    settings: Settings
    sizes: Sizes
    rng: np.random.RandomState
    device: str | None = None
    # Called after each network, with the number of planned networks that it stands for.
    ended: Callable[[str, float], None] = lambda *_: None
    _shown: dict[int, Array] = field(default_factory=dict)

    def family(self, trial: Trial, shaped: list[Indices]) -> tuple[list[Member], Array]:
        """Return the networks of a trial and their mean left-out predictions.

        Each start has a network, and `shaped` are the rows that shaped its metric: they have no
        left-out predictions by this network, which would be optimistic.
        """
        leaf = self.sizes.leaf
        while True:
            try:
                return self._family(trial, shaped, leaf)
            except Exception as error:
                if leaf < 2 or not is_out_of_memory(error):
                    raise
            leaf //= 2

    def _family(self, trial: Trial, shaped: list[Indices], leaf: int) -> tuple[list[Member], Array]:
        """Return the same with leaves of at most `leaf` rows."""
        lenses = self._lenses(trial, leaf)
        tables = [self._table(trial.kernel, lens) for lens in lenses]
        trees = [
            [grow_tree(table.A, leaf, self.rng) for _ in range(self.sizes.trees)]
            for table in tables
        ]
        tuning = self._tuned(trial, tables, [grown[0][1] for grown in trees])
        left_out = LeftOut.none(self.targets)
        members = []
        for k, (lens, table) in enumerate(zip(lenses, tables, strict=True)):
            honest = np.ones(len(table.A), dtype=bool)
            if lens.is_shaped:
                honest[shaped[k]] = False
            network = self._network(trial.kernel, lens, table, tuning, trees[k], honest, left_out)
            shape = replace(trial.shape, view=lens.name, scale=tuning.scale)
            members.append(Member(shape, network, tuning.alpha, trial.error))
            which = f"{trial.kernel}, network {k + 1} of {len(lenses)}"
            self.ended(which, self.sizes.starts / len(lenses))
        return members, left_out.mean

    def _lenses(self, trial: Trial, leaf: int) -> list[Lens]:
        """Return the lenses of a trial, without the metric of directions that matter little.

        Lenses without a metric, through which a single leaf would see the same rows, count once.
        """
        share = self.settings.short_share / (self.targets.variance or 1.0)
        lenses = list(trial.lenses[: self.sizes.starts])
        if len(self.targets.Y) <= leaf and not any(lens.is_shaped for lens in lenses):
            lenses = list({lens.name: lens for lens in lenses}.values())
        return [lens.shortened(share * trial.error) for lens in lenses]

    def _table(self, kernel: str, lens: Lens) -> LeafTable:
        """Return all rows as a lens shows them, in single precision."""
        key = id(lens.view)
        if key not in self._shown:
            self._shown[key] = self.inputs.map(partial(_in_single, lens.view))
        A = lens.of(self._shown[key])
        unit = mean_distance(kernel, A, self.targets.weight, self.rng)
        return LeafTable(A, self.targets, unit, self.device)

    def _tuned(self, trial: Trial, tables: list[LeafTable], leaves: list[list[Indices]]) -> Tuning:
        """Return the scale and ridge that some leaves select."""
        if trial.error <= self.targets.enough:  # others would change nothing
            return trial.tuning
        n_rows = self.settings.fit_tuned_rows
        some = [
            table.of(self.rng.permutation(rows)[:n_rows])
            for table, of_tree in zip(tables, leaves, strict=True)
            for rows in of_tree
        ]
        few = telling(some, self.settings.n_tuned_leaves, self.rng)
        return tuned(trial.kernel, few, trial.tuning)

    def _network(
        self,
        kernel: str,
        lens: Lens,
        table: LeafTable,
        tuning: Tuning,
        trees: list[tuple[Tree, list[Indices]]],
        honest: Mask,
        left_out: LeftOut,
    ) -> LocalNetwork:
        """Return the network of a lens, and add the left-out predictions of honest rows."""
        shape = KernelMap(kernel, tuning.scale * table.unit, Z=table.A)
        partitions, seen = [], LeftOut.none(self.targets)
        for tree, leaves in trees:
            # The rows that are left out come last.
            rows = [leaf[np.argsort(honest[leaf], kind="stable")] for leaf in leaves]
            D, b, out = self._solved(shape, tuning, table, rows, honest)
            for each, predictions in zip(rows, out, strict=True):
                seen.add(each[len(each) - len(predictions) :], predictions)
            starts = np.cumsum([0, *map(len, rows)])
            partitions.append(
                Partition(tree, np.concatenate(rows), starts, np.concatenate(D), np.array(b))
            )
        view = lens.view if lens.root is None else stretched(lens.view, lens.root)
        network = LocalNetwork(view, shape, tuple(partitions))
        if self.targets.splits is None:  # leaves leave out some of many equal rows
            unseen = np.flatnonzero(honest & (seen.count == 0.0))
            seen.add(unseen, network.scores_of_viewed(table.A[unseen], self.device))
        left_out.join(seen)
        return network

    def _solved(
        self,
        kernel: KernelMap,
        tuning: Tuning,
        table: LeafTable,
        leaves: list[Indices],
        honest: Mask,
    ) -> tuple[list[Array], list[Array], list[Array]]:
        """Return D, b and the left-out predictions of the last rows of each leaf."""

        def arguments(leaf: Indices) -> tuple[LeafTable, Tuning, int]:
            return table.of(leaf), tuning, int(honest[leaf].sum())

        # The centres of a leaf are its own rows.
        solve = partial(_solved_leaf, replace(kernel, Z=np.empty((0, 0))))
        with closing(self.inputs.passes.compute(solve, arguments, leaves)) as solutions:
            D, b, out = zip(*solutions, strict=True)
        return list(D), list(b), list(out)


def _in_single(view: View, X: Array) -> Array:
    return view(X).astype(np.float32)


def _solved_leaf(
    kernel: KernelMap, table: LeafTable, tuning: Tuning, last: int
) -> tuple[Array, Array, Array]:
    found, out = solve_leaf(kernel, table, tuning, last)
    return arrays.to_numpy(found.D), arrays.to_numpy(found.b), out


@dataclass(frozen=True)
class LeftOut:
    """Sums of left-out predictions, and their numbers, for each row."""

    total: Array
    count: Array

    @classmethod
    def none(cls, targets: RidgeTargets) -> LeftOut:
        """Return sums of no predictions."""
        return cls(np.zeros_like(targets.Y), np.zeros(len(targets.Y)))

    def add(self, rows: Indices, predictions: Array) -> None:
        """Add predictions for some rows; those that are NaN do not count."""
        known = ~np.isnan(predictions[:, 0])
        self.total[rows[known]] += predictions[known]
        self.count[rows[known]] += 1.0

    def join(self, other: LeftOut) -> None:
        """Add the means of other predictions, each of which counts once."""
        known = np.flatnonzero(other.count)
        self.add(known, other.mean[known])

    @property
    def mean(self) -> Array:
        """The mean predictions, NaN for rows without one."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.total / self.count[:, None])
