"""Rows that are copied to a device block by block, the next ones while one is worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._arrays import namespace as arrays
from .memory import SIZES, Rows, Statistic, in_order
from .streamed import (
    LocalPasses,
    Prepare,
    Raw,
    Sample,
    Streamed,
    copied,
    merged_some,
    regrouped,
)

__all__ = ["DevicePasses", "on_device"]

Array = NDArray[np.float64]
S = TypeVar("S", bound=Statistic)

# How much more room than they need there must be for rows to be kept on a device.
AMPLE = 8


@dataclass(frozen=True)
class DevicePasses:
    """Passes over blocks that are copied to a device, the next ones while one is worked on.

    Attributes
    ----------
    blocks : iterable
        As in `LocalPasses`.
    prepare : callable
        What a block goes through before it is copied.
    device : str
        Where to.
    size : int
        How many numbers the inputs are in all.
    kept : list
        The blocks as they lie there, from the first pass on, if there is ample room for all.
    retries : list
        An entry for each time that memory ran out: blocks are halved as often, and none is kept.
    """

    blocks: Iterable[Raw]
    prepare: Prepare
    device: str
    size: int
    names: tuple[str, ...] | None = None
    n_rows: int | None = None
    kept: list[Raw] = field(default_factory=list)
    retries: list[str] = field(default_factory=list)

    @property
    def block_size(self) -> int:
        """Numbers in a block."""
        return SIZES.copied

    def reduce(self, of_block: Callable[[Any, Any, Any], S], block_lengths: Iterable[int]) -> S:
        """Return what `of_block` gives for all blocks, merged, cut and joined to the lengths."""
        wanted = next(iter(block_lengths))  # all of them are as high
        while True:
            block_length = max(wanted >> len(self.retries), 1)
            try:
                return self._pass(of_block, repeat(block_length))
            except Exception as error:
                if not arrays.is_out_of_memory(error) or block_length <= SIZES.shortest:
                    raise
                self.retries.append(str(error))
            self.kept.clear()

    def _pass(self, of_block: Callable[[Any, Any, Any], S], block_lengths: Iterable[int]) -> S:
        if self.kept:
            return merged_some(of_block(*block) for block in self.kept)
        seen: list[Raw] = []
        pieces = regrouped(self.blocks, block_lengths)
        with closing(in_order(self._copy, pieces, SIZES.copy_threads)) as blocks:
            total = merged_some(of_block(*block) for block in self._seen(blocks, seen))
        self.kept.extend(seen)
        return total

    def _seen(self, blocks: Iterable[Raw], seen: list[Raw]) -> Iterator[Raw]:
        """Yield the blocks, and keep them if the first one lies where there is ample room."""
        ample = None
        for block in blocks:
            if ample is None:
                ample = self.size <= arrays.free_numbers(block[0]) // AMPLE and not self.retries
            if ample:
                seen.append(block)
            yield block

    def _copy(self, piece: Raw) -> Raw:
        return copied(self.prepare(*piece), self.device)


def on_device(
    table: Rows | Streamed, device: str, check: Prepare, sample: Sample | None = None
) -> Streamed:
    """Return the rows of a table as they are copied, block by block, to a device.

    Rows in memory go through `check` on the way. If it shows other columns than theirs, a sample of
    what it shows must be given.
    """
    if isinstance(table, Rows):
        sample = sample or _sample_of(table)
        blocks: Iterable[Raw] = [(table.X, table.y, table.weight)]
        prepare = check
        names = None
    else:
        if not isinstance(table.passes, LocalPasses):
            raise ValueError(
                f"device={device!r} takes rows in memory or blocks, but these are on a cluster: "
                "give device=None."
            )
        blocks, prepare, names = table.passes.blocks, table.prepare, table.passes.names
        sample = table.sample
    n_features = sample.rows.n_features
    passes = DevicePasses(blocks, prepare, device, len(table) * n_features, names)
    size = len(table), n_features, table.n_targets, table.total
    return Streamed(passes, _as_it_is, *size, sample)


def _sample_of(rows: Rows) -> Sample:
    step = 1
    while len(rows) * rows.n_features > step * SIZES.sample:
        step *= 2
    return Sample(rows.every(step), step)


def _as_it_is(X: Any, y: Any, weight: Any) -> tuple[Any, NDArray[Any], Array | None]:
    return X, y, weight
