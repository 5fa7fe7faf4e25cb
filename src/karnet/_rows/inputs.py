"""The inputs of a long table, of which only some rows are taken as they are.

A search takes a sample of the rows. A fit maps all rows to arrays that are kept, block by block.
Blocks are cut alike in memory, in files and on a cluster, so that results do not depend on where
the rows are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._util.types import Array, Indices, Mask
from .memory import block_slices, dense
from .streamed import LocalPasses, OfRows, Passes


@dataclass(frozen=True)
class Inputs:
    """The inputs of rows that are read in passes."""

    passes: Passes
    shape: tuple[int, int]
    prepare: Callable[[Any], Any]  # from inputs as they were read to those of the fit

    @classmethod
    def in_memory(cls, X: Any, prepare: Callable[[Any], Any]) -> Inputs:
        """Return the rows of an array or a CSR matrix."""
        n_rows, n_features = X.shape
        block = X, np.broadcast_to(0.0, n_rows), None
        return cls(LocalPasses([block]), (n_rows, n_features), prepare)

    def __len__(self) -> int:
        return self.shape[0]

    def of(self, kept: Mask) -> Inputs:
        """Return some of the rows."""
        n_rows = int(np.count_nonzero(kept))
        return replace(self, passes=self.passes.some(kept), shape=(n_rows, self.shape[1]))

    def take(self, rows: Indices) -> Array:
        """Return the rows of the given numbers, which must ascend."""
        return self._filled(partial(_taken, self.prepare, rows), len(rows))

    def map(self, function: Callable[[Array], Array]) -> Array:
        """Return the function of all rows."""
        return self._filled(partial(_mapped, self.prepare, function), len(self))

    def _filled(self, of_block: OfRows[Array], n_rows: int) -> Array:
        """Return the rows of the results for all blocks."""
        block_lengths = [rows.stop - rows.start for rows in block_slices(*self.shape)]
        filled, start = np.empty((0, 0)), 0
        with closing(self.passes.gather(of_block, block_lengths)) as parts:
            for part in parts:
                if not len(filled):
                    filled = np.empty((n_rows, *part.shape[1:]), dtype=part.dtype)
                filled[start : start + len(part)] = part
                start += len(part)
        return filled


def _taken(
    prepare: Callable[[Any], Any], rows: Indices, start: int, X: Any, y: Any, weight: Any
) -> Array:
    first, last = np.searchsorted(rows, [start, start + X.shape[0]])
    return dense(prepare(X[rows[first:last] - start]))


def _mapped(
    prepare: Callable[[Any], Any],
    function: Callable[[Array], Array],
    start: int,
    X: Any,
    y: Any,
    weight: Any,
) -> Array:
    return function(dense(prepare(X)))
