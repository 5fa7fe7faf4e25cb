"""Rows that are copied to a device block by block, the next blocks during work on the last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import repeat

from .._arrays.devices import free_numbers, is_out_of_memory
from .memory import SIZES, Rows, S, Table, in_order, merged
from .streamed import (
    LocalPasses,
    OfBlock,
    Passes,
    Prepare,
    Raw,
    Sample,
    Streamed,
    copied,
    numbered,
    regrouped,
)

# Rows are kept on a device if its free memory is at least this many times their size.
AMPLE_MEMORY = 8


@dataclass(frozen=True)
class DevicePasses(Passes):
    """Passes over blocks that are copied to a device, the next blocks during work on the last."""

    blocks: Iterable[Raw]
    prepare: Prepare  # a function that a block is passed through before it is copied
    size: int  # the number of rows times the number of inputs
    device: str
    names: tuple[str, ...] | None = None
    block_size: int | None = field(default_factory=lambda: SIZES.copied)
    # The blocks on the device after the first pass, if there is ample memory for all of them.
    kept: list[Raw] = field(default_factory=list)
    # The errors of passes that ran out of memory: for each, blocks are halved, and none is kept.
    retries: list[str] = field(default_factory=list)

    def reduce(self, of_block: OfBlock[S], block_lengths: Iterable[int]) -> S:
        longest = next(iter(block_lengths))  # all lengths are the same
        while True:
            block_length = max(longest >> len(self.retries), 1)
            try:
                return self._pass(of_block, repeat(block_length))
            except Exception as error:
                if not is_out_of_memory(error) or block_length <= SIZES.shortest:
                    raise
                self.retries.append(str(error))
            self.kept.clear()

    def _pass(self, of_block: OfBlock[S], block_lengths: Iterable[int]) -> S:
        if self.kept:
            return merged(of_block(*block) for block in numbered(self.kept))
        seen: list[Raw] = []
        pieces = regrouped(self.blocks, block_lengths)
        with closing(in_order(self._copy, pieces, SIZES.copy_threads)) as blocks:
            total = merged(of_block(*block) for block in numbered(self._seen(blocks, seen)))
        self.kept.extend(seen)
        return total

    def _seen(self, blocks: Iterable[Raw], seen: list[Raw]) -> Iterator[Raw]:
        """Yield the blocks, and collect them in `seen` if the device has ample memory."""
        ample = None
        for block in blocks:
            if ample is None:
                needed = AMPLE_MEMORY * self.size
                ample = needed <= free_numbers(block[0], needed) and not self.retries
            if ample:
                seen.append(block)
            yield block

    def _copy(self, piece: Raw) -> Raw:
        return copied(self.prepare(*piece), self.device)


def on_device(table: Table, device: str, check: Prepare, sample: Sample | None = None) -> Streamed:
    """Return the rows of a table for passes on a device, copied to it block by block.

    Rows in memory are passed through `check` before they are copied. If `check` returns other
    columns than those of the table, a sample with these columns must be given.
    """
    if isinstance(table, Rows):
        sample = sample or _sample_of(table)
        passes, prepare = LocalPasses([(table.X, table.y, table.weight)]), check
    elif isinstance(table.passes, LocalPasses):
        passes, prepare, sample = table.passes, table.prepare, table.sample
    else:
        raise ValueError(
            f"device={device!r} takes rows in memory or blocks, but these are on a cluster: give "
            "device=None."
        )
    n, d = len(table), sample.rows.n_features
    there = DevicePasses(passes.blocks, prepare, n * d, device, passes.names)
    size = n, d, table.n_targets, table.total
    return Streamed(there, lambda X, y, weight: (X, y, weight), *size, sample)


def _sample_of(rows: Rows) -> Sample:
    step = 1
    while len(rows) * rows.n_features > step * SIZES.sample:
        step *= 2
    return Sample(rows.every(step), step)
