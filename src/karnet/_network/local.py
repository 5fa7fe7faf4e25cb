"""Local kernel networks: trees divide the rows, and each leaf has a network of its own.

A leaf predicts ``b + K(x, Z) D`` from its own rows Z, and its solution is that of a kernel problem
with few rows. The cost therefore grows linearly with the number of rows. Several trees are
averaged, since predictions near a border between leaves see only one side of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._arrays import namespace as arrays
from .._rows.memory import SIZES, block_slices, dense
from .._util.types import Array, Indices, Mask
from ..activations import Function
from .infinite_width import kernel_network
from .input_metric import outer_products
from .kernel_map import KernelMap
from .layers import Layer, Network

# Rows of a node whose random combination is the direction in which the node is cut.
DIRECTION_ROWS = 400
# Directions that are tried for a cut.
N_DIRECTIONS = 10
# Cuts of a tree that are computed at once for all rows.
FEW_CUTS = 64
# Rows that are routed one by one.
FEW_ROWS = 4
# Least share of the rows of a node on either side of a cut.
LEAST_SHARE = 0.25
NO_ROWS = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Tree:
    """Cuts of the space of inputs by hyperplanes; a row goes left where ``x d <= t``."""

    directions: Array  # d of each inner node, in rows
    thresholds: Array  # t of each inner node
    children: Indices  # left and right: an inner node, or -1 - k for leaf k

    def route(self, A: Array) -> Iterator[tuple[int, Indices]]:
        """Yield each leaf that rows of A reach, and the numbers of these rows."""
        if len(A) <= FEW_ROWS:
            yield from self._routed_one_by_one(A)
            return
        few = len(self.thresholds) <= FEW_CUTS
        sides = self.thresholds < A @ self.directions.T if few else np.zeros((0, 0), dtype=bool)
        waiting = [(0 if len(self.thresholds) else -1, np.arange(len(A)))]
        while waiting:
            node, rows = waiting.pop()
            if node < 0:
                yield -1 - node, rows
                continue
            if few:
                right = sides[rows, node]
            else:
                right = A[rows] @ self.directions[node] > self.thresholds[node]
            for child, some in zip(self.children[node], (rows[~right], rows[right]), strict=True):
                if len(some):
                    waiting.append((int(child), some))

    def _routed_one_by_one(self, A: Array) -> Iterator[tuple[int, Indices]]:
        """Yield the same for few rows, which are compared with all cuts at once."""
        right = self.thresholds < A @ self.directions.T
        rows: dict[int, list[int]] = {}
        for row in range(len(A)):
            node = 0 if len(self.thresholds) else -1
            while node >= 0:
                node = int(self.children[node, int(right[row, node])])
            rows.setdefault(-1 - node, []).append(row)
        for leaf, some in rows.items():
            yield leaf, np.array(some)


def grow_tree(A: Array, most: int, rng: np.random.RandomState) -> tuple[Tree, list[Indices]]:
    """Return a tree whose leaves have at most `most` rows of A, and the rows of each leaf.

    A node is cut along a random combination of its centred rows, so that all leaves have about the
    same number of rows. Of equal rows, which no cut divides, a leaf has `most`.
    """
    directions: list[Array] = []
    thresholds: list[float] = []
    children: list[list[int]] = []
    leaves: list[Indices] = []
    waiting = [(np.arange(len(A)), -1, 0)]
    while waiting:
        rows, parent, side = waiting.pop()
        n_leaves = -(-len(rows) // most)
        cut = _cut(A, rows, n_leaves // 2 / n_leaves, rng) if n_leaves > 1 else None
        if cut is None:
            leaves.append(rows[:: max(n_leaves, 1)])
            place = -len(leaves)
        else:
            direction, threshold, right = cut
            place = len(directions)
            directions.append(direction)
            thresholds.append(threshold)
            children.append([0, 0])
            waiting += [(rows[right], place, 1), (rows[~right], place, 0)]
        if parent >= 0:
            children[parent][side] = place
    tree = Tree(
        np.array(directions, dtype=A.dtype).reshape(len(directions), A.shape[1]),
        np.array(thresholds, dtype=A.dtype),
        np.array(children, dtype=np.intp).reshape(-1, 2),
    )
    return tree, leaves


def _cut(
    A: Array, rows: Indices, share: float, rng: np.random.RandomState
) -> tuple[Array, float, Mask] | None:
    """Return the direction and threshold of a cut, and which rows are on its right.

    About the given share of the rows is on its left. None is returned if all rows are equal.
    """
    best, found = 0, None
    for _ in range(N_DIRECTIONS):
        some = A[rows[rng.randint(len(rows), size=DIRECTION_ROWS)]]
        direction = (some - some.mean(axis=0)).T @ rng.standard_normal(len(some)).astype(A.dtype)
        length = np.linalg.norm(direction)
        if not length > 0.0:
            continue
        direction /= length
        x = A[rows] @ direction
        threshold = _between(x, max(round(share * len(rows)), 1))
        right = x > threshold
        smaller = min(int(right.sum()), len(rows) - int(right.sum()))
        if smaller > best:
            best, found = smaller, (direction, threshold, right)
        if best >= LEAST_SHARE * len(rows):
            break
    return found


def _between(x: Array, n: int) -> float:
    """Return a number between two values of x, such that about n values are smaller."""
    last = np.partition(x, n - 1)[n - 1]
    below, above = x[x < last], x[x > last]
    # Either all values that equal the last one are on the left, or none is.
    surplus = len(x) - len(above) - n
    if len(above) and (surplus <= n - len(below) or not len(below)):
        pair = last, above.min()
    elif len(below):
        pair = below.max(), last
    else:
        pair = last, last
    return float(x.dtype.type(0.5 * (float(pair[0]) + float(pair[1]))))


@dataclass(frozen=True)
class Partition:
    """A tree, and the solutions of its leaves."""

    tree: Tree
    rows: Indices  # the centres of all leaves, leaf by leaf
    starts: Indices  # the place in `rows` where each leaf begins, and the end
    D: Array  # the coefficients of the centres, in the order of `rows`
    b: Array  # the bias of each leaf


@dataclass(frozen=True)
class Leaf:
    """A leaf of a tree: a kernel network of its own rows, and the rows that it predicts."""

    place: tuple[int, int]  # the numbers of the tree and of the leaf
    share: float  # of the leaf in the prediction of the network
    centres: Indices  # the numbers of its own rows
    kernel: KernelMap  # with these rows as centres
    D: Array
    b: Array
    rows: Indices  # the numbers of the rows that it predicts

    @property
    def network(self) -> Network:
        """The network, for rows as the view shows them."""
        return kernel_network(self.D, self.b, self.kernel)

    @property
    def doubled(self) -> Leaf:
        """The leaf in double precision."""
        kernel = self.kernel.at(self.kernel.Z.astype(np.float64, copy=False))
        D, b = (each.astype(np.float64, copy=False) for each in (self.D, self.b))
        return replace(self, kernel=kernel, D=D, b=b)


@dataclass(frozen=True)
class LocalNetwork:
    """The mean of several partitions of the same rows."""

    view: Function
    kernel: KernelMap  # with all rows as centres
    partitions: tuple[Partition, ...]

    @property
    def n_outputs(self) -> int:
        """The number of outputs."""
        return int(self.partitions[0].b.shape[1])

    def leaf(self, number: int, k: int, rows: Indices = NO_ROWS) -> Leaf:
        """Return a leaf of a tree, which predicts some rows."""
        partition = self.partitions[number]
        part = slice(partition.starts[k], partition.starts[k + 1])
        centres, D = partition.rows[part], partition.D[part]
        kernel = self.kernel.at(np.take(self.kernel.Z, centres, axis=0).astype(D.dtype, copy=False))
        share = 1.0 / len(self.partitions)
        return Leaf((number, k), share, centres, kernel, D, partition.b[k], rows)

    def leaves(self) -> Iterator[Leaf]:
        """Yield all leaves of all trees."""
        for number, partition in enumerate(self.partitions):
            for k in range(len(partition.b)):
                yield self.leaf(number, k)

    def reached(self, A: Array) -> Iterator[Leaf]:
        """Yield the leaves that predict rows A of the view."""
        A = A.astype(self.kernel.Z.dtype, copy=False)
        for number, partition in enumerate(self.partitions):
            for k, rows in partition.tree.route(A):
                yield self.leaf(number, k, rows)

    def scores(self, X: Any, device: str | None = None) -> Array:
        """Return the mean of the scores of the leaves that each row reaches."""
        total = np.zeros((X.shape[0], self.n_outputs))
        for rows in block_slices(len(total), X.shape[1]):
            A = self.view(dense(X[rows])).astype(self.kernel.Z.dtype, copy=False)
            self._add(A, total[rows], device)
        return total

    def scores_of_viewed(self, A: Array, device: str | None = None) -> Array:
        """Return the scores of rows as the view shows them."""
        total = np.zeros((len(A), self.n_outputs))
        self._add(A, total, device)
        return total

    def _add(self, A: Array, total: Array, device: str | None) -> None:
        """Add the scores of viewed rows A to a total."""
        for leaf in self.reached(A):
            (layer,) = leaf.network.layers
            for chunk in _chunks(len(leaf.rows), len(layer.V), device):
                some = leaf.rows[chunk]
                new = _placed(A[some].astype(layer.V.dtype, copy=False), device)
                for part, K in leaf.kernel.blocks(new):
                    total[some[part]] += leaf.share * _scores_of_kernel(layer, K)


def _scores_of_kernel(layer: Layer, K: Array) -> Array:
    """Return the scores of rows from their kernel with the centres of a leaf."""
    # Sums in double precision do not depend on the rows that are predicted together.
    K = arrays.float64(K) if arrays.is_host(K) else K
    return np.asarray(arrays.to_numpy(layer.linear(K)))


def _chunks(n_rows: int, n_centres: int, device: str | None) -> list[slice]:
    """Return slices of rows whose kernel with some centres is computed at a time."""
    return block_slices(n_rows, n_centres, SIZES.sample if device is None else SIZES.copied)


def _placed(A: Array, device: str | None) -> Array:
    return A if device is None else arrays.upload(A, device)


def local_metric(
    network: LocalNetwork, A: Array, weight: Array, diagonal: bool, device: str | None = None
) -> Array:
    """Return the sum of the outer products of the input sensitivities at rows A of its view."""
    total = np.zeros(())
    for leaf in network.reached(A):
        some = _placed(A[leaf.rows].astype(leaf.D.dtype), device)
        of_rows = arrays.like(some, weight[leaf.rows])
        products = outer_products(leaf.network, some, of_rows, diagonal)
        total = total + leaf.share * arrays.to_numpy(products)
    return total
