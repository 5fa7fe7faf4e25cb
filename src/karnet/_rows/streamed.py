"""Rows that are read again for every pass, block by block, and a sample of them in memory.

A `Passes` runs a pass over the blocks: in a loop, on a device or on a cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from typing import Any, Generic, TypeAlias

import numpy as np

from .._arrays import namespace as arrays
from .._util.types import AnyArray, Array, Mask
from .memory import (
    SIZES,
    Change,
    Rows,
    S,
    T,
    Table,
    U,
    block_slices,
    dense,
    in_order,
    merged,
    power_of_2,
)

# Inputs, targets and weights (or None) of some rows as they were read.
Raw = tuple[Any, Any, Any]
# From the number of the first row of a block, inputs, targets and weights to a statistic.
OfBlock: TypeAlias = Callable[[int, Any, Any, Any], S]
# The same, to any result.
OfRows: TypeAlias = Callable[[int, Any, Any, Any], T]
# From a block of X as it was read to an array or a CSR matrix.
AsInputs = Callable[[Any], Any]
# From rows as they were read to inputs, targets and weights for the fit.
Prepare = Callable[[Any, Any, Any], tuple[Any, AnyArray, Array | None]]


class Passes:
    """A way to go through all blocks of a data set."""

    names: tuple[str, ...] | None = None  # of the inputs, if they have any
    n_rows: int | None = None  # if it is known before rows are read
    block_size: int | None = None  # numbers in the best block; None for that of rows in memory
    device: str | None = None  # to which rows are copied; None if they stay in memory

    def reduce(self, of_block: OfBlock[S], block_lengths: Iterable[int]) -> S:
        """Return the merged results of `of_block` for all rows in blocks of the given lengths."""
        raise NotImplementedError

    def gather(self, of_block: OfRows[T], block_lengths: Iterable[int]) -> Generator[T]:
        """Yield the results of `of_block` for all rows in blocks of the given lengths."""
        raise NotImplementedError

    def some(self, kept: Mask) -> Passes:
        """Return passes over some of the rows."""
        raise NotImplementedError

    def compute(
        self, function: Callable[..., U], arguments: Callable[[T], tuple[Any, ...]], items: list[T]
    ) -> Generator[U]:
        """Yield a pure function of the arguments for each item, computed where blocks are."""
        return in_order(lambda item: function(*arguments(item)), items)


@dataclass(frozen=True)
class LocalPasses(Passes):
    """Passes over blocks that are read one after the other and worked on in threads."""

    blocks: Iterable[Raw]  # which can be iterated over repeatedly
    names: tuple[str, ...] | None = None

    def reduce(self, of_block: OfBlock[S], block_lengths: Iterable[int]) -> S:
        with closing(self.gather(of_block, block_lengths)) as parts:
            return merged(parts)

    def gather(self, of_block: OfRows[T], block_lengths: Iterable[int]) -> Generator[T]:
        pieces = numbered(regrouped(self.blocks, block_lengths))
        with closing(in_order(lambda piece: of_block(*piece), pieces)) as parts:
            yield from parts

    def some(self, kept: Mask) -> LocalPasses:
        return replace(self, blocks=_Some(self.blocks, kept))


@dataclass(frozen=True)
class _Some:
    """Some of the rows of blocks, which must hold the same number of rows each time."""

    blocks: Iterable[Raw]
    kept: Mask

    def __iter__(self) -> Iterator[Raw]:
        stop = 0
        for start, *block in numbered(self.blocks):
            stop = start + block[0].shape[0]
            if stop <= len(self.kept):
                yield selected(block, self.kept[start:stop])
        check_number(len(self.kept), stop)


def check_number(before: int, now: int) -> None:
    """Raise an error if blocks hold another number of rows than when they were read first."""
    if before != now:
        raise ValueError(
            f"the blocks held {before} rows in the first pass and {now} now: they must give the "
            "same rows each time."
        )


def selected(block: Sequence[Any], kept: Mask) -> Raw:
    """Return the rows of a block that a mask selects."""
    X, y, weight = block
    if kept.all():
        return X, y, weight
    return X[kept], y[kept], None if weight is None else weight[kept]


def copied(block: Raw, device: str) -> Raw:
    """Return the arrays of a block, copied to a device."""
    X, y, weight = block
    X = X.toarray() if hasattr(X, "toarray") else X
    X, y = arrays.upload(X, device), arrays.upload(y, device)
    return X, y, None if weight is None else arrays.upload(weight, device)


def regrouped(blocks: Iterable[Raw], block_lengths: Iterable[int]) -> Iterator[Raw]:
    """Yield the same rows in blocks of the given lengths; the last block takes the rest."""
    waiting: list[Raw] = []
    n_waiting = 0
    lengths = iter(block_lengths)
    block_length = next(lengths, sys.maxsize)
    for block in blocks:
        start, n_rows = 0, block[0].shape[0]
        while n_rows - start >= block_length - n_waiting:
            stop = start + block_length - n_waiting
            yield joined([*waiting, cut(block, start, stop)])
            waiting, n_waiting, start = [], 0, stop
            block_length = next(lengths, sys.maxsize)
        if start < n_rows:
            waiting.append(cut(block, start, n_rows))
            n_waiting += n_rows - start
    if waiting:
        yield joined(waiting)


def numbered(blocks: Iterable[Raw]) -> Iterator[tuple[int, Any, Any, Any]]:
    """Yield the number of the first row of each block before the block."""
    start = 0
    for X, y, weight in blocks:
        yield start, X, y, weight
        start += X.shape[0]


def unnumbered(of_block: Callable[[Any, Any, Any], T]) -> OfRows[T]:
    """Return a function of numbered blocks that ignores their numbers."""
    return partial(_without_number, of_block)


def _without_number(of_block: Callable[[Any, Any, Any], T], _: int, *block: Any) -> T:
    return of_block(*block)


def cut(block: Raw, start: int, stop: int) -> Raw:
    """Return some rows of a block."""
    X, y, weight = block
    if start == 0 and stop == X.shape[0]:
        return block
    rows = slice(start, stop)
    weight = None if weight is None else weight[rows]
    return arrays.some_rows(X, rows), arrays.some_rows(y, rows), weight


def joined(blocks: list[Raw]) -> Raw:
    """Return the rows of several blocks as one block."""
    if len(blocks) == 1:
        return blocks[0]
    X, y, weight = zip(*blocks, strict=True)
    inputs = arrays.joined([dense(part) if hasattr(part, "toarray") else part for part in X])
    targets = arrays.joined(list(y))
    if all(part is None for part in weight):
        return inputs, targets, None
    weights = [
        arrays.like(labels, np.ones(len(labels))) if part is None else part
        for part, labels in zip(weight, y, strict=True)
    ]
    return inputs, targets, arrays.joined(weights)


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of X, if all of them are text."""
    names = tuple(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


@dataclass(frozen=True)
class Sample:
    """Every `step`-th row of each block, few enough for memory."""

    rows: Rows
    step: int = 1

    @classmethod
    def of(cls, X: Any, y: AnyArray, weight: Array | None, n_rows: int | None = None) -> Sample:
        """Return the sample of one block, thinned for `n_rows` rows in total if that is known."""
        X = dense(X) if hasattr(X, "toarray") else X
        return cls(Rows(np.array(X), np.array(y), weight))._thinned(n_rows or 0)

    def merge(self, other: Sample, /) -> Sample:
        """Return the sample of both."""
        step = max(self.step, other.step)
        both = self.every(step).rows, other.every(step).rows
        rows = joined([(part.X, part.y, part.weight) for part in both])
        return Sample(Rows(*rows), step)._thinned()

    def every(self, step: int) -> Sample:
        """Return every `step`-th row of all rows; `step` is rounded to a power of 2."""
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
    """A statistic that holds the rows themselves."""

    parts: tuple[Raw, ...]

    @classmethod
    def of(cls, X: Array, y: AnyArray, weight: Array | None) -> Joined:
        """Keep some rows."""
        X, y = (np.array(X), np.array(y)) if arrays.is_host(X) else (X, y)
        return cls(((X, y, weight),))

    @classmethod
    def every(cls, step: int, X: Array, y: AnyArray, weight: Array | None, *, start: int) -> Joined:
        """Keep the rows whose numbers are multiples of `step`."""
        rows = slice(-start % step, None, step)
        some = arrays.some_rows(X, rows), arrays.some_rows(y, rows)
        return cls.of(*some, None if weight is None else weight[rows])

    def merge(self, other: Joined, /) -> Joined:
        """Return the rows of both."""
        return Joined((*self.parts, *other.parts))


@dataclass(frozen=True)
class Streamed:
    """Rows that are read again for every pass; `change`, `width` and `counters` as in `Rows`."""

    passes: Passes
    prepare: Prepare  # leaves out rows of weight 0
    n_rows: int
    n_features: int
    n_targets: int
    total: float  # the sum of the weights
    sample: Sample  # some of the prepared rows
    change: Change | None = None
    width: int = 1
    counters: list[Array] | None = None

    def __len__(self) -> int:
        return self.n_rows

    def map(self, change: Change, width: int, counters: list[Array] | None = None) -> Table:
        """Return these rows with changed inputs; few rows are changed at once."""
        lazy = replace(self, change=change, width=width, counters=counters)
        return lazy.gathered() if len(self) * max(width, self.n_features) <= SIZES.block else lazy

    def gathered(self) -> Rows:
        """Return these rows with their changed inputs in memory."""
        return Rows(*joined(list(self.reduce(Joined.of).parts)))

    def every(self, step: int) -> Rows:
        """Return about every `step`-th row, without counters, from the sample if it holds them."""
        step = power_of_2(step)
        if self.sample.step <= step:
            some = self.sample.every(step).rows
            if self.passes.device is not None:
                some = Rows(*copied((some.X, some.y, some.weight), self.passes.device))
            return replace(some, change=self.change, width=self.width)
        unchanged = replace(self, change=None, counters=None)
        parts = unchanged._pass(partial(Joined.every, step), numbered=True).statistic.parts
        return Rows(*joined(list(parts)), change=self.change, width=self.width)

    def reduce(
        self, statistic: Callable[..., S], small_chunks: bool = False, numbered: bool = False
    ) -> S:
        """Return the merged statistic of all blocks, as in `Rows`."""
        result = self._pass(statistic, small_chunks, numbered)
        check_number(len(self), result.n_rows)
        if self.counters is not None:
            self.counters.extend(result.counters)
        return result.statistic

    def _pass(
        self, statistic: Callable[..., S], small_chunks: bool = False, numbered: bool = False
    ) -> _Part[S]:
        rows = partial(Rows, change=self.change, width=self.width)
        counted, how = self.counters is not None, (small_chunks, numbered)
        of_block = partial(_of_block, self.prepare, rows, counted, statistic, how)
        width = max(self.width, self.n_features)
        blocks = block_slices(len(self), width, self.passes.block_size)
        block_lengths = [rows.stop - rows.start for rows in blocks]
        # Rows of weight 0 are read too, so there may be more rows than `n_rows`.
        return self.passes.reduce(of_block, chain(block_lengths, repeat(block_lengths[0])))


@dataclass(frozen=True)
class _Part(Generic[S]):
    """The result for some blocks; None if they hold no rows."""

    result: S | None
    n_rows: int
    counters: list[Array]

    @property
    def statistic(self) -> S:
        if self.result is None:
            raise ValueError("the blocks hold no rows of a weight above 0.")
        return self.result

    def merge(self, other: _Part[S], /) -> _Part[S]:
        counters = [*self.counters, *other.counters]
        counters = [sum(counters[1:], counters[0])] if counters else []
        n_rows = self.n_rows + other.n_rows
        if self.result is None or other.result is None:
            return _Part(other.result if self.result is None else self.result, n_rows, counters)
        return _Part(self.result.merge(other.result), n_rows, counters)

    @property
    def large(self) -> bool:
        """Whether parts are merged in sequence."""
        return getattr(self.result, "large", False)

    def absorb(self, other: _Part[S], /) -> _Part[S]:
        """Return the result for all blocks, in the memory of this one."""
        n_rows, counters = self.n_rows + other.n_rows, [*self.counters, *other.counters]
        both = [each.result for each in (self, other) if each.result is not None]
        return _Part(merged(both), n_rows, counters)


def _of_block(
    prepare: Prepare,
    as_rows: Callable[..., Rows],
    counted: bool,
    statistic: Callable[..., S],
    how: tuple[bool, bool],
    start: int,
    *raw: Any,
) -> _Part[S]:
    counters: list[Array] = []
    rows = as_rows(*prepare(*raw), counters=counters if counted else None, first=start)
    if not len(rows):
        return _Part(None, 0, [])
    most = SIZES.block if arrays.is_host(rows.X) else 2 * SIZES.copied
    if len(rows) * max(rows.width, rows.n_features) > most:
        result = rows.reduce(statistic, *how)
    else:
        result = rows.of_block(statistic, *how, [], slice(0, len(rows)))
    return _Part(result, len(rows), counters)
