"""Rows that someone else has cut, reduced as if they were cut into blocks of given block_lengths.

Sums of floating-point numbers depend on what is added first. So that a statistic does not depend on
how rows happen to lie on a cluster, rows of a block that lies on several tables are put together,
and blocks are merged only where the tree over all of them does (`karnet._rows.memory.merged`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from .memory import Statistic
from .streamed import Raw, cut, joined

__all__ = ["Cutter", "Part", "Run", "Step", "join", "total"]

S = TypeVar("S", bound=Statistic)


@dataclass(frozen=True)
class Step:
    """Blocks, by their numbers, and the tables that they lie on: one table, or one block."""

    blocks: range
    tables: range


@dataclass(frozen=True)
class Part:
    """Some rows of a block, by its number."""

    block: int
    rows: Raw


@dataclass(frozen=True)
class Node(Generic[S]):
    """The statistic of ``2**level`` blocks, the `number`-th so many."""

    level: int
    number: int
    found: S


# In the order of rows.
Run = list[Node[S]]


@dataclass(frozen=True)
class Cutter(Generic[S]):
    """A function of blocks, and where they begin and end in all rows.

    Attributes
    ----------
    of_block : callable
        From inputs, targets and weights of a block to its statistic.
    edges : array of shape (n_blocks + 1,)
        The first row of each block, and the number of rows.
    """

    of_block: Callable[[Any, Any, Any], S]
    edges: NDArray[np.int64]

    @classmethod
    def into(
        cls, block_lengths: Iterable[int], n_rows: int, of_block: Callable[[Any, Any, Any], S]
    ) -> Cutter[S]:
        """Return the cutter into blocks of the given lengths, and what is left as a last one."""
        edges = [0]
        for block_length in block_lengths:
            if edges[-1] + block_length >= n_rows:
                break
            edges.append(edges[-1] + block_length)
        return cls(of_block, np.array([*edges, n_rows]))

    def steps(self, sizes: Sequence[int]) -> Iterator[Step]:
        """Yield, in the order of rows, which blocks lie on which of the tables of these sizes."""
        starts = np.array([0, *accumulate(sizes)])
        block, n_blocks = 0, len(self.edges) - 1
        while block < n_blocks:
            table = int(np.searchsorted(starts, self.edges[block], side="right")) - 1
            end = int(np.searchsorted(self.edges, starts[table + 1], side="right")) - 1
            if end > block:
                yield Step(range(block, end), range(table, table + 1))
            else:
                end = block + 1
                last = int(np.searchsorted(starts, self.edges[end], side="left"))
                yield Step(range(block, end), range(table, last))
            block = end

    def whole(self, start: int, rows: Raw, blocks: range) -> Run[S]:
        """Return the run of blocks that lie on a table, whose first row has the number `start`."""
        edges = self.edges[blocks.start : blocks.stop + 1] - start
        found = (self.of_block(*cut(rows, *edges[k : k + 2])) for k in range(len(blocks)))
        return _reduced(Node(0, block, each) for block, each in zip(blocks, found, strict=True))

    def ends(self, start: int, rows: Raw) -> list[Part]:
        """Return the rows of a table that belong to blocks which lie on others as well."""
        stop = start + rows[0].shape[0]
        inside = self.edges[(self.edges >= start) & (self.edges <= stop)]
        first, last = (inside[0], inside[-1]) if len(inside) else (stop, stop)
        # Views would keep the whole table in memory.
        return [
            Part(self._block(i), _copied(cut(rows, i - start, j - start)))
            for i, j in ((start, first), (last, stop))
            if i < j
        ]

    def _block(self, row: int) -> int:
        return int(np.searchsorted(self.edges, row, side="right")) - 1

    def seam(self, block: int, *ends: list[Part]) -> Run[S]:
        """Return the run of one block, put together from the ends of several tables."""
        rows = [part.rows for part in chain(*ends) if part.block == block]
        return [Node(0, block, self.of_block(*joined(rows)))]


def _copied(rows: Raw) -> Raw:
    X, y, weight = rows
    return X.copy(), y.copy(), None if weight is None else weight.copy()


def join(*runs: Run[S]) -> Run[S]:
    """Return runs that follow each other as one."""
    return _reduced(chain(*runs))


def total(run: Run[S]) -> S:
    """Return the statistic of the run of all blocks."""
    *others, last = (node.found for node in run)
    for found in reversed(others):
        last = found.merge(last)
    return last


def _reduced(nodes: Iterable[Node[S]]) -> Run[S]:
    """Return nodes merged two by two where they are halves of a node of the tree over all."""
    run: Run[S] = []
    for node in nodes:
        while run and run[-1].level == node.level and run[-1].number % 2 == 0:
            before = run.pop()
            node = Node(node.level + 1, node.number // 2, before.found.merge(node.found))
        run.append(node)
    return run
