"""Rows that someone else has cut, reduced as if they were cut into blocks of given heights.

Sums of floating-point numbers depend on what is added first. So that a statistic does not depend on
how rows happen to lie on a cluster, a run of rows keeps at its ends the rows of blocks that go on
elsewhere, and merges blocks only where the tree over all of them does (`karnet._rows.merged`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._rows import Statistic
from ._stream import Raw, cut, joined

__all__ = ["Cutter", "Run"]

S = TypeVar("S", bound=Statistic)


@dataclass(frozen=True)
class Part:
    """Some rows of a block, or all, by the number of the block."""

    number: int
    rows: Raw

    def copy(self) -> Part:
        """Return the same rows in a place of their own."""
        X, y, weight = self.rows
        return Part(self.number, (X.copy(), y.copy(), None if weight is None else weight.copy()))


@dataclass(frozen=True)
class Node(Generic[S]):
    """The statistic of ``2**level`` blocks, the `number`-th so many."""

    level: int
    number: int
    found: S


# In the order of rows.
Run = list[Part | Node[S]]


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
        cls, heights: Iterable[int], n_rows: int, of_block: Callable[[Any, Any, Any], S]
    ) -> Cutter[S]:
        """Return the cutter into blocks of the given heights, and what is left as a last one."""
        edges = [0]
        for height in heights:
            if edges[-1] + height >= n_rows:
                break
            edges.append(edges[-1] + height)
        return cls(of_block, np.array([*edges, n_rows] if n_rows else edges))

    def run(self, start: int, rows: Raw) -> Run[S]:
        """Return the run of consecutive rows, the first of which has the number `start`."""
        run = self._reduced(self._parts(start, rows))
        # Views of the rows that are kept would keep all of them.
        return [item.copy() if isinstance(item, Part) else item for item in run]

    def join(self, *runs: Run[S]) -> Run[S]:
        """Return runs that follow each other as one."""
        return self._reduced(chain(*runs))

    def total(self, run: Run[S]) -> S:
        """Return the statistic of a run of all rows."""
        *nodes, last = (node.found for node in run if isinstance(node, Node))
        for found in reversed(nodes):
            last = found.merge(last)
        return last

    def _parts(self, start: int, rows: Raw) -> Iterator[Part]:
        stop = start + rows[0].shape[0]
        number = int(np.searchsorted(self.edges, start, side="right")) - 1
        while start < stop:
            end = min(stop, int(self.edges[number + 1]))
            height = end - start
            yield Part(number, cut(rows, 0, height))
            rows = cut(rows, height, rows[0].shape[0])
            start, number = end, number + 1

    def _reduced(self, items: Iterable[Part | Node[S]]) -> Run[S]:
        run: Run[S] = []
        for item in items:
            run.append(self._settled(item))
            while len(run) > 1 and (both := self._both(*run[-2:])) is not None:
                run[-2:] = [both]
        return run

    def _settled(self, item: Part | Node[S]) -> Part | Node[S]:
        """Return the statistic of rows if they are a whole block."""
        if isinstance(item, Part):
            first, end = self.edges[item.number : item.number + 2]
            if item.rows[0].shape[0] == end - first:
                return Node(0, item.number, self.of_block(*item.rows))
        return item

    def _both(self, a: Part | Node[S], b: Part | Node[S]) -> Part | Node[S] | None:
        """Return what two neighbours come to, or None if they have to wait for others."""
        if isinstance(a, Part) and isinstance(b, Part) and a.number == b.number:
            return self._settled(Part(a.number, joined([a.rows, b.rows])))
        if isinstance(a, Node) and isinstance(b, Node):
            even = a.number % 2 == 0
            if a.level == b.level and even:
                return Node(a.level + 1, a.number // 2, a.found.merge(b.found))
        return None
