"""Rows that are copied to a device block by block, the next blocks during work on the last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, TypeVar

from .._arrays.devices import free_numbers, is_out_of_memory
from .memory import SIZES, Rows, Statistic, in_order
from .streamed import (
    LocalPasses,
    Passes,
    Prepare,
    Raw,
    Sample,
    Streamed,
    copied,
    merged_some,
    regrouped,
)

S = TypeVar("S", bound=Statistic)

# Rows are kept on a device if its free memory is at least this many times their size.
AMPLE_MEMORY = 8


@dataclass(frozen=True)
class DevicePasses(Passes):
    """Passes over blocks that are copied to a device, the next blocks during work on the last.

    Attributes
    ----------
    blocks : iterable
        As in `LocalPasses`.
    prepare : callable
        A function that a block is passed through before it is copied.
    size : int
        The number of rows times the number of inputs.
    device : str
        The device.
    names : tuple of str or None
        The names of the inputs.
    kept : list
        The blocks on the device after the first pass, if there is ample memory for all of them.
    retries : list
        The errors of passes that ran out of memory: for each, blocks are halved, and none is kept.
    """

    blocks: Iterable[Raw]
    prepare: Prepare
    size: int
    device: str
    names: tuple[str, ...] | None = None
    block_size: int | None = field(default_factory=lambda: SIZES.copied)
    kept: list[Raw] = field(default_factory=list)
    retries: list[str] = field(default_factory=list)

    def reduce(self, of_block: Callable[[Any, Any, Any], S], block_lengths: Iterable[int]) -> S:
        """Return the merged results of `of_block` for all rows in blocks of the given lengths."""
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
        """Yield the blocks, and collect them in `seen` if the device has ample memory."""
        ample = None
        for block in blocks:
            if ample is None:
                ample = self.size <= free_numbers(block[0]) // AMPLE_MEMORY and not self.retries
            if ample:
                seen.append(block)
            yield block

    def _copy(self, piece: Raw) -> Raw:
        return copied(self.prepare(*piece), self.device)


def on_device(
    table: Rows | Streamed, device: str, check: Prepare, sample: Sample | None = None
) -> Streamed:
    """Return the rows of a table for passes on a device, copied to it block by block.

    Rows in memory are passed through `check` before they are copied. If `check` returns other
    columns than those of the table, a sample with these columns must be given.
    """
    if isinstance(table, Rows):
        sample = sample or _sample_of(table)
        blocks: Iterable[Raw] = [(table.X, table.y, table.weight)]
        prepare, names = check, None
    elif isinstance(table.passes, LocalPasses):
        blocks, prepare, names = table.passes.blocks, table.prepare, table.passes.names
        sample = table.sample
    else:
        raise ValueError(
            f"device={device!r} takes rows in memory or blocks, but these are on a cluster: give "
            "device=None."
        )
    n_features = sample.rows.n_features
    passes = DevicePasses(blocks, prepare, len(table) * n_features, device, names)
    size = len(table), n_features, table.n_targets, table.total
    return Streamed(passes, lambda X, y, weight: (X, y, weight), *size, sample)


def _sample_of(rows: Rows) -> Sample:
    step = 1
    while len(rows) * rows.n_features > step * SIZES.sample:
        step *= 2
    return Sample(rows.every(step), step)
