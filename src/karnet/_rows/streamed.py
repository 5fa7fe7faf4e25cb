"""Rows that are read anew for every pass over them, block by block, and a sample that is kept.

What goes through the blocks, a loop here or a cluster elsewhere, is a `Passes`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._arrays import namespace as arrays
from .memory import (
    SIZES,
    Change,
    Counters,
    Rows,
    Statistic,
    block_slices,
    dense,
    in_order,
    merged,
    power_of_2,
)

__all__ = [
    "Joined",
    "LocalPasses",
    "Passes",
    "Prepare",
    "Raw",
    "Sample",
    "Streamed",
    "copied",
    "cut",
    "joined",
    "merged_some",
    "regrouped",
]

Array = NDArray[np.float64]
S = TypeVar("S", bound=Statistic)
# Inputs, targets and weights of some rows as they were read, and as the learner takes them.
Raw = tuple[Any, Any, Any]
Prepare = Callable[[Any, Any, Any], tuple[Any, NDArray[Any], Array | None]]


class Passes(Protocol):
    """A way to go through all blocks of a data set."""

    @property
    def block_size(self) -> int | None:
        """Numbers per block that would be best; None as in memory."""
        ...

    @property
    def device(self) -> str | None:
        """Where rows are copied to; None if they stay."""
        ...

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the inputs, if they have any."""
        ...

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, if that is known before they are read."""
        ...

    def reduce(self, of_block: Callable[[Any, Any, Any], S], block_lengths: Iterable[int]) -> S:
        """Return what `of_block` gives for all blocks, merged.

        Blocks of the given lengths would be best; they need not be kept to.
        """
        ...


@dataclass(frozen=True)
class LocalPasses:
    """Passes over blocks that are read here, one after the other, and worked on in threads.

    Attributes
    ----------
    blocks : iterable
        Of tuples of inputs, targets and weights (or None). It can be gone through again.
    names : tuple of str or None
        The names of the inputs.
    n_rows : int or None
        As in `Passes`.
    """

    blocks: Iterable[Raw]
    names: tuple[str, ...] | None = None
    n_rows: int | None = None
    block_size: int | None = None
    device: str | None = None

    def reduce(self, of_block: Callable[[Any, Any, Any], S], block_lengths: Iterable[int]) -> S:
        """Return what `of_block` gives for all blocks, merged, cut and joined to the lengths."""
        pieces = regrouped(self.blocks, block_lengths)
        with closing(in_order(lambda piece: of_block(*piece), pieces)) as parts:
            return merged_some(parts)


def copied(block: Raw, device: str) -> Raw:
    """Return the arrays of a block as they lie on a device."""
    X, y, weight = block
    X = X.toarray() if hasattr(X, "toarray") else X
    X, y = arrays.upload(X, device), arrays.upload(y, device)
    return X, y, None if weight is None else arrays.upload(weight, device)


def merged_some(parts: Iterable[S]) -> S:
    """Return all parts merged, or say that there are none."""
    parts = iter(parts)
    first = next(parts, None)
    if first is None:
        raise ValueError("the blocks hold no rows.")
    return merged(chain([first], parts))


def regrouped(blocks: Iterable[Raw], block_lengths: Iterable[int]) -> Iterator[Raw]:
    """Yield the same rows in blocks of the given lengths, and what is left as a last one."""
    waiting: list[Raw] = []
    n_waiting = 0
    wanted = iter(block_lengths)
    block_length = next(wanted, sys.maxsize)
    for block in blocks:
        start, n_rows = 0, block[0].shape[0]
        while n_rows - start >= block_length - n_waiting:
            stop = start + block_length - n_waiting
            yield joined([*waiting, cut(block, start, stop)])
            waiting, n_waiting, start = [], 0, stop
            block_length = next(wanted, sys.maxsize)
        if start < n_rows:
            waiting.append(cut(block, start, n_rows))
            n_waiting += n_rows - start
    if waiting:
        yield joined(waiting)


def cut(block: Raw, start: int, stop: int) -> Raw:
    """Return some rows of a block."""
    X, y, weight = block
    if start == 0 and stop == X.shape[0]:
        return block
    rows = slice(start, stop)
    weight = None if weight is None else weight[rows]
    return arrays.some_rows(X, rows), arrays.some_rows(y, rows), weight


def joined(blocks: list[Raw]) -> Raw:
    """Return the rows of several blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    X, y, weight = zip(*blocks, strict=True)
    weighted = any(part is not None for part in weight)
    weights = [
        arrays.like(labels, np.ones(len(labels))) if part is None else part
        for part, labels in zip(weight, y, strict=True)
    ]
    inputs = [dense(part) if hasattr(part, "toarray") else part for part in X]
    targets, joined = list(y), arrays.joined
    return joined(inputs), joined(targets), joined(weights) if weighted else None


@dataclass(frozen=True)
class Sample:
    """Every `step`-th row of each block, of so many that they are no burden."""

    rows: Rows
    step: int = 1

    @classmethod
    def of(cls, X: Any, y: NDArray[Any], weight: Array | None, n_rows: int | None = None) -> Sample:
        """Return the sample of one block; no more than one of all rows takes of it, if known."""
        X = dense(X) if hasattr(X, "toarray") else X
        return cls(Rows(np.array(X), np.array(y), weight))._thinned(n_rows or 0)

    def merge(self, other: Sample, /) -> Sample:
        """Return the sample of both."""
        step = max(self.step, other.step)
        both = self.every(step).rows, other.every(step).rows
        blocks = [cut((rows.X, rows.y, rows.weight), 0, len(rows)) for rows in both]
        return Sample(Rows(*joined(blocks)), step)._thinned()

    def every(self, step: int) -> Sample:
        """Return every `step`-th row of all, or the next smaller power of 2."""
        factor = power_of_2(step // self.step)
        return Sample(self.rows.every(factor), factor * self.step)

    def _thinned(self, n_rows: int = 0) -> Sample:
        most = max(SIZES.sample // max(self.rows.n_features, 1), SIZES.sample_rows)
        step = self.step
        while max(len(self.rows) * self.step, n_rows) > most * step:
            step *= 2
        if step == self.step:
            return self
        rows = self.every(step).rows
        return Sample(Rows(np.array(rows.X), np.array(rows.y), rows.weight), step)


@dataclass(frozen=True)
class Joined:
    """Rows one after the other."""

    parts: tuple[Raw, ...]

    @classmethod
    def of(cls, X: Array, y: NDArray[Any], weight: Array | None) -> Joined:
        """Keep some rows."""
        if not arrays.is_host(X):
            return cls(((X, y, weight),))
        return cls(((np.array(X), np.array(y), weight),))

    def merge(self, other: Joined, /) -> Joined:
        """Return the rows of both."""
        return Joined((*self.parts, *other.parts))


@dataclass(frozen=True)
class Streamed:
    """Rows that are read anew for every pass.

    Parameters
    ----------
    passes : Passes
        How all blocks are gone through.
    prepare : callable
        From a block as it was read to inputs, targets and weights, rows of weight 0 left out.
    n_rows, n_features, n_targets : int
        The number of rows, and of columns of inputs and targets.
    total : float
        The sum of the weights.
    sample : Sample
        Some of the rows, as prepared.
    change, width, counters
        As in `Rows`.
    """

    passes: Passes
    prepare: Prepare
    n_rows: int
    n_features: int
    n_targets: int
    total: float
    sample: Sample
    change: Change | None = None
    width: int = 1
    counters: Counters | None = None

    def __len__(self) -> int:
        return self.n_rows

    @property
    def fast_products(self) -> bool:
        """Whether matrix products take little time beside everything else."""
        return self.passes.device is not None

    def map(self, change: Change, width: int, counters: Counters | None = None) -> Streamed | Rows:
        """Return these rows with inputs as they come out of `change`; of few rows, at once."""
        lazy = replace(self, change=change, width=width, counters=counters)
        few = len(self) * max(width, self.n_features) <= SIZES.block
        return lazy.gathered() if few else lazy

    def gathered(self) -> Rows:
        """Return these rows, as they come out of their change, in memory."""
        return Rows(*joined(list(self.reduce(Joined.of).parts)))

    def every(self, step: int) -> Rows:
        """Return about every `step`-th of these rows, unwatched; of the sample, if it has them."""
        if self.sample.step <= power_of_2(step):
            some = self.sample.every(step).rows
            if self.passes.device is not None:
                some = Rows(*copied((some.X, some.y, some.weight), self.passes.device))
            return replace(some, change=self.change, width=self.width)
        prepare = partial(_every, self.prepare, power_of_2(step))
        thinned = replace(self, prepare=prepare, change=None, counters=None)
        parts = thinned._pass(Joined.of, False).statistic.parts
        return Rows(*joined(list(parts)), change=self.change, width=self.width)

    def reduce(
        self,
        statistic: Callable[[Array, NDArray[Any], Array | None], S],
        small_chunks: bool = False,
    ) -> S:
        """Return the merged statistic of all blocks, or of chunks of them if `small_chunks`."""
        found = self._pass(statistic, small_chunks)
        if found.n_rows != len(self):
            raise ValueError(
                f"the blocks held {len(self)} rows when they were read first and {found.n_rows} "
                "now: they must give the same rows each time."
            )
        if self.counters is not None:
            self.counters.extend(found.counters)
        return found.statistic

    def _pass(self, statistic: Callable[..., S], small_chunks: bool) -> _Part[S]:
        of_block = partial(
            _of_block,
            self.prepare,
            partial(Rows, change=self.change, width=self.width),
            self.counters is not None,
            statistic,
            small_chunks,
        )
        width = max(self.width, self.n_features)
        blocks = block_slices(len(self), width, self.passes.block_size)
        block_lengths = [rows.stop - rows.start for rows in blocks]
        # Rows of weight 0 are read too: there may be more than those that count.
        return self.passes.reduce(of_block, chain(block_lengths, repeat(block_lengths[0])))


@dataclass(frozen=True)
class _Part(Generic[S]):
    """What some blocks give: nothing if they hold no rows."""

    found: S | None
    n_rows: int
    counters: Counters

    @property
    def statistic(self) -> S:
        if self.found is None:
            raise ValueError("the blocks hold no rows of a weight above 0.")
        return self.found

    def merge(self, other: _Part[S], /) -> _Part[S]:
        counters = [*self.counters, *other.counters]
        counters = [sum(counters[1:], counters[0])] if counters else []
        n_rows = self.n_rows + other.n_rows
        if self.found is None or other.found is None:
            return _Part(other.found if self.found is None else self.found, n_rows, counters)
        return _Part(self.found.merge(other.found), n_rows, counters)


def _of_block(
    prepare: Prepare,
    rows_of: Callable[..., Rows],
    watched: bool,
    statistic: Callable[..., S],
    small_chunks: bool,
    *raw: Any,
) -> _Part[S]:
    counters: Counters = []
    rows = rows_of(*prepare(*raw), counters=counters if watched else None)
    if not len(rows):
        return _Part(None, 0, [])
    most = SIZES.block if arrays.is_host(rows.X) else 2 * SIZES.copied
    if len(rows) * max(rows.width, rows.n_features) > most:
        found = rows.reduce(statistic, small_chunks)
    else:
        found = rows.of_block(statistic, small_chunks, [], slice(0, len(rows)))
    return _Part(found, len(rows), counters)


def _every(prepare: Prepare, step: int, *raw: Any) -> tuple[Any, NDArray[Any], Array | None]:
    X, y, weight = prepare(*raw)
    return X[::step], y[::step], None if weight is None else weight[::step]
