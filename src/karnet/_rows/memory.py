"""Rows of a table in memory, their blocks, and the reduction over blocks."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cached_property, partial
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from .._arrays import namespace as arrays
from .._arrays.devices import free_numbers, is_out_of_memory
from .._arrays.namespace import some_rows
from .._arrays.threads import ABANDONED, ONE_THREAD, stop_if_abandoned
from .._util.types import AnyArray, Array, Indices

if TYPE_CHECKING:
    from .streamed import Streamed


@dataclass
class BlockSizes:
    """Sizes of the parts in which rows are read and worked on."""

    block: int = 2**22  # numbers in a block in memory: many for fast products, few for memory
    chunk: int = 2**18  # numbers in a chunk of a block: few enough for the cache of a core
    shortest: int = 256  # rows of a block that is not halved further if device memory runs out
    device_block: int = 2**30  # most numbers in a block on a device, where each start takes long
    device_parts: int = 8  # blocks of the largest size that fit in free device memory together
    copied: int = 2**27  # numbers in a block that is copied to a device: few, to start soon
    copy_threads: int = 4  # threads that copy to a device: enough for the bandwidth of the bus
    sample: int = 2**22  # numbers in the sample of rows that is kept in memory
    sample_rows: int = 512  # rows of a sample at least, if there are that many
    batch: int = 2**18  # numbers taken from a file at a time, to turn columns to rows in a cache
    csv: int = 2**22  # bytes of CSV that are parsed at a time; no line may be longer


SIZES = BlockSizes()


# Seconds after which a thread that waits for others looks for an interrupt.
INTERRUPT_SECONDS = 0.1


class Statistic(Protocol):
    """The contribution of a block of rows; the statistics of two blocks merge into one."""

    def merge(self, other: Self, /) -> Self:
        """Return the statistic of both blocks together."""


S = TypeVar("S", bound=Statistic)
T = TypeVar("T")
U = TypeVar("U")
# Inputs, targets and weights of some rows.
Block = tuple[Array, AnyArray, Array | None]
# From inputs to other inputs; it may append counts to the list `counters`, if that is given.
Change = Callable[..., Array]
# Rows that can be read repeatedly: in memory or on a device, from files or on a cluster.
Table: TypeAlias = "Rows | Streamed"


def evenly_spaced(n: int, most: int) -> Indices:
    """Return at most `most` evenly spaced indices below n."""
    return np.linspace(0, n - 1, min(n, max(most, 1))).astype(np.intp)


def block_slices(n_rows: int, width: int, most: int | None = None) -> list[slice]:
    """Return slices that cut `n_rows` rows of `width` numbers into blocks of `most` numbers.

    By default `most` is `SIZES.block`, and an even number of blocks of equal length are cut, for
    threads to share, unless that makes blocks short: a decomposition saves work only on the rows
    that a block has beyond its number of columns.
    """
    if n_rows * width <= SIZES.chunk:
        return [slice(0, n_rows)]
    if most is not None:
        return _slices(slice(0, n_rows), max(most // width, SIZES.shortest))
    longest = max(SIZES.block // width, SIZES.shortest)
    n_pairs = -(-n_rows // (2 * longest))
    even = -(-n_rows // (2 * n_pairs))
    return _slices(slice(0, n_rows), min(max(even, 2 * width, SIZES.shortest), longest))


def chunk_slices(rows: slice, width: int, most: int | None = None) -> list[slice]:
    """Return slices that cut rows of `width` numbers into chunks of about `most` numbers.

    By default `most` is `SIZES.chunk`.
    """
    return _slices(rows, max((most or SIZES.chunk) // max(width, 1), 32))


def _slices(rows: slice, step: int) -> list[slice]:
    starts = range(rows.start, max(rows.stop, rows.start + 1), step)
    return [slice(i, min(i + step, rows.stop)) for i in starts]


def in_order(
    function: Callable[[T], U], items: Iterable[T], most: int | None = None
) -> Generator[U]:
    """Yield the function of each item, computed in `most` threads or as many as BLAS may use.

    Elementwise functions use one thread, so parallel blocks are faster than threads inside BLAS.
    Items of an iterator are read while others are computed. After an error or an interrupt, items
    that have not begun are not computed, and those that have end at their next step.
    """
    few = isinstance(items, list) and len(items) <= 1
    n = 1 if few else min(ONE_THREAD.allowed(), most or sys.maxsize)
    if n == 1 and isinstance(items, list):
        for item in items:
            stop_if_abandoned()
            yield function(item)
        return
    abandoned = Event()

    def task(item: T) -> U:
        ABANDONED.set(abandoned)
        stop_if_abandoned()
        return function(item)

    with ONE_THREAD(), ThreadPoolExecutor(n) as pool:
        waiting: deque[Future[U]] = deque()
        try:
            for item in items:
                stop_if_abandoned()
                # NumPy stores in the context which warnings are off.
                waiting.append(pool.submit(copy_context().run, task, item))
                if len(waiting) > n:
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
        finally:
            abandoned.set()


def _result(future: Future[U]) -> U:
    """Return the result of a task; if another thread receives the interrupt, look for it soon."""
    while not wait([future], timeout=INTERRUPT_SECONDS).done:
        pass
    return future.result()


@dataclass(frozen=True)
class Rows:
    """Rows of a table: inputs, targets and weights."""

    X: Any  # an array or a sparse matrix: blocks are converted to dense float64 one at a time
    y: AnyArray
    weight: Array | None = None  # positive
    change: Change | None = None  # a function that every block of inputs is passed through
    width: int = 1  # the largest number of columns that a block has on its way through `change`
    counters: list[Array] | None = None  # passed to `change`, which appends counts of a block
    first: int = 0  # the number of the first row in the whole table

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """The number of columns of the inputs."""
        return int(self.X.shape[1])

    @property
    def n_targets(self) -> int:
        """The number of columns of the targets."""
        return int(self.y.shape[1]) if self.y.ndim > 1 else 1

    @property
    def total(self) -> float:
        """The sum of the weights."""
        if self.weight is None:
            return float(len(self))
        return float(arrays.namespace(self.weight).sum(self.weight))

    @cached_property
    def _in_memory(self) -> bool:
        return arrays.is_host(self.X)

    @cached_property
    def block_size(self) -> int | None:
        """The most numbers in a block on a device; None in memory."""
        if self._in_memory:
            return None
        most = SIZES.device_block * SIZES.device_parts
        return min(most, free_numbers(self.X, most)) // SIZES.device_parts

    def _blocks(self) -> list[slice]:
        return block_slices(len(self), max(self.width, self.X.shape[1]), self.block_size)

    def _read(self, rows: slice, buffer: Array | None = None) -> Block:
        """Return some rows, their inputs changed, in `buffer` if they fit."""
        weight = None if self.weight is None else self.weight[rows]
        return self._inputs(rows, buffer), read_only(some_rows(self.y, rows)), weight

    def _inputs(self, rows: slice, buffer: Array | None = None) -> Array:
        change = self.change
        if change is None:
            return read_only(dense(some_rows(self.X, rows)))
        if self.counters is not None:
            change = partial(change, counters=self.counters)
        # Half a chunk at a time: the block to which chunks are copied needs a place in the cache.
        few = SIZES.chunk // 2
        chunks = chunk_slices(rows, self.width, few) if self._in_memory else [rows]
        if len(chunks) == 1:
            return arrays.float64(change(read_only(dense(some_rows(self.X, rows)))))
        start, n_rows = rows.start, rows.stop - rows.start
        for chunk in chunks:
            A = change(read_only(dense(some_rows(self.X, chunk))))
            if buffer is None or buffer.shape[1] != A.shape[1] or len(buffer) < n_rows:
                buffer = np.empty((n_rows, A.shape[1]))
            buffer[chunk.start - start : chunk.stop - start] = A
        assert buffer is not None
        return buffer[:n_rows]

    def map(self, change: Change, width: int, counters: list[Array] | None = None) -> Rows:
        """Return these rows with changed inputs; few rows are changed at once."""
        lazy = replace(self, change=change, width=width, counters=counters)
        size = len(self) * max(width, self.X.shape[1])
        few = SIZES.block if self._in_memory else free_numbers(self.X, 4 * size) // 4
        return lazy.gathered() if size <= few else lazy

    def gathered(self) -> Rows:
        """Return these rows with their changed inputs in one array."""
        if self.change is None:
            return self
        # On a device in one block: joining blocks would copy each.
        blocks = self._blocks() if self._in_memory else [slice(0, len(self))]
        if len(blocks) == 1:
            return Rows(self._inputs(blocks[0]), self.y, self.weight)
        with closing(in_order(self._inputs, blocks)) as parts:
            return Rows(np.concatenate(list(parts)), self.y, self.weight)

    def every(self, step: int) -> Rows:
        """Return every `step`-th row, without counters; `step` is rounded to a power of 2."""
        step = power_of_2(step)
        X, y = (some_rows(each, slice(None, None, step)) for each in (self.X, self.y))
        weight = None if self.weight is None else self.weight[::step]
        return replace(self, X=X, y=y, weight=weight, counters=None)

    def reduce(
        self, statistic: Callable[..., S], small_chunks: bool = False, numbered: bool = False
    ) -> S:
        """Return the merged statistic of all blocks, or of their chunks if `small_chunks`.

        A statistic must not keep its arguments: the next block overwrites them. If `numbered`, it
        is also given `start`, the number of the first row of the block.
        """
        few = SIZES.chunk if self._in_memory else SIZES.block
        if len(self) * max(self.width, self.X.shape[1]) <= few:
            rows = slice(0, len(self))
            return self._at(statistic, numbered, rows)(*self._read(rows))
        of_block = partial(self.of_block, statistic, small_chunks, numbered, [])
        if not self._in_memory:  # threads would only wait for each other
            return merged(map(of_block, self._blocks()))
        with closing(in_order(of_block, self._blocks())) as parts:
            return merged(parts)

    def of_block(
        self,
        statistic: Callable[..., S],
        small_chunks: bool,
        numbered: bool,
        buffers: list[Array],
        rows: slice,
    ) -> S:
        """Return the statistic of a block of rows, which may be computed in one of the buffers."""
        if not self._in_memory:
            return self._of_device_block(statistic, numbered, rows)
        if small_chunks:
            chunks = chunk_slices(rows, max(self.width, self.X.shape[1]))
            return merged(
                self._at(statistic, numbered, chunk)(*self._read(chunk)) for chunk in chunks
            )
        block = self._read(rows, spare(buffers))
        result = self._at(statistic, numbered, rows)(*block)
        buffers.append(block[0])
        return result

    def _at(self, statistic: Callable[..., S], numbered: bool, rows: slice) -> Callable[..., S]:
        return partial(statistic, start=self.first + rows.start) if numbered else statistic

    def _of_device_block(self, statistic: Callable[..., S], numbered: bool, rows: slice) -> S:
        """Return the statistic of a block of rows, or of its halves if memory runs out."""
        try:
            return self._at(statistic, numbered, rows)(*self._read(rows))
        except Exception as error:
            if rows.stop - rows.start <= SIZES.shortest or not is_out_of_memory(error):
                raise
        middle = (rows.start + rows.stop) // 2
        halves = slice(rows.start, middle), slice(middle, rows.stop)
        return merged(self._of_device_block(statistic, numbered, half) for half in halves)


def spare(buffers: list[Array]) -> Array | None:
    """Return a buffer that no thread uses, taken from the list, or None."""
    try:
        return buffers.pop()
    except IndexError:  # to ask for the length first would let another thread take the last one
        return None


def merged(parts: Iterable[S]) -> S:
    """Return all parts merged in a binary tree, in which rounding hardly grows.

    Statistics that are marked as large are merged in sequence, the first absorbing the others.
    """
    waiting: list[tuple[int, S]] = []
    for total in parts:
        level = 0
        if waiting and getattr(total, "large", False):
            total = waiting.pop()[1].absorb(total)  # type: ignore[attr-defined]
        while waiting and waiting[-1][0] == level:
            level, total = level + 1, waiting.pop()[1].merge(total)
        waiting.append((level, total))
    if not waiting:
        raise ValueError("the blocks hold no rows.")
    total = waiting.pop()[1]
    while waiting:
        total = waiting.pop()[1].merge(total)
    return total


def power_of_2(step: int) -> int:
    """Return the largest power of 2 that is not above `step`."""
    return int(1 << (max(step, 1).bit_length() - 1))


def read_only(array: Any) -> Any:
    """Return a read-only view of a NumPy array; arrays of other libraries have none."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def dense(X: Any) -> Array:
    """Return a block of inputs as a dense float64 array in C order.

    Matrix products round differently in Fortran order, and results must not depend on the order.
    """
    if hasattr(X, "toarray"):
        X = X.toarray()
    if isinstance(X, np.ndarray):
        return np.asarray(X, dtype=np.float64, order="C")
    return arrays.float64(X)
