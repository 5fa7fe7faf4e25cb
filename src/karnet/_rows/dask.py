"""The reduction over blocks of rows on a Dask cluster.

Sums of floating-point numbers depend on the order of the additions. So that a statistic does not
depend on how rows happen to be partitioned on a cluster, rows are cut again into the blocks of a
table in memory: a block that spans several partitions is joined, and the statistics of blocks are
merged only where the tree over all blocks does (`karnet._rows.memory.merged`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate, chain, pairwise, takewhile
from typing import Any, Generic
from uuid import uuid4

import cloudpickle
import dask.array as da
import numpy as np
from dask import compute, config, delayed
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import DataNode, Task, TaskRef
from dask.utils import parse_bytes
from numpy.typing import NDArray

from .._arrays.threads import ONE_THREAD
from .._util.types import Mask
from .memory import S, T, U
from .streamed import (
    AsInputs,
    OfBlock,
    OfRows,
    Passes,
    Raw,
    column_names,
    cut,
    joined,
    selected,
)

# Statistics that one worker merges at once.
SPLIT_EVERY = 8
# Bytes of the arguments of a task, and of all tasks that are sent to workers at once.
TASK_BYTES = 2**20
SENT_BYTES = 2**26
# The smallest number of tasks that are sent to workers at once.
FEWEST_TASKS = 16
# Dask's setting for the size from which on it warns of a graph.
LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"


@contextmanager
def on_worker() -> Iterator[None]:
    """Compute on one thread and without floating-point warnings.

    Other tasks use the other cores, and the client checks for overflow in the end.
    """
    with ONE_THREAD.alone(), np.errstate(all="ignore"):
        yield


@dataclass(frozen=True)
class DaskPasses(Passes):
    """Passes over the blocks of Dask collections, each computed where the block is.

    Passes run on the active `distributed.Client` or, without one, in threads. A pass is one map
    over the blocks and one tree of merges. Its graph holds everything it needs, so another worker
    computes again the results that are lost with a worker.
    """

    blocks: list[Delayed]  # tuples of inputs, targets and weights (or None), as arrays
    sizes: tuple[int, ...]  # numbers of rows of the blocks
    n_rows: int
    names: tuple[str, ...] | None = None

    @classmethod
    def over(cls, as_inputs: AsInputs, X: Any, y: Any, sample_weight: Any) -> DaskPasses:
        """Return passes over collections with the same rows; an extra pass counts unknown rows."""
        tables = {"X": X, "y": y, "sample_weight": sample_weight}
        tables = {name: table for name, table in tables.items() if name == "y" or table is not None}
        for name, table in tables.items():
            check_kind(name, table)
        frames = all(map(_is_frame, tables.values()))
        # As one collection: anything that several tables are computed from is computed once.
        raw = partial(_raw, as_inputs)
        zipped = (_zip_frames if frames else _zip_arrays)(raw, tables)
        blocks = list(np.ravel(zipped.to_delayed()))
        sizes = (np.nan,) if frames else zipped.chunks[0]
        if np.isnan(sizes).any():
            graph = _Graph(blocks)
            lengths = [graph.task(_length, block.key) for block in blocks]
            sizes = graph.computed(*lengths)
        return cls(blocks, tuple(map(int, sizes)), int(sum(sizes)), column_names(X))

    def reduce(self, of_block: OfBlock[S], block_lengths: Iterable[int]) -> S:
        graph = _Graph(self.blocks)
        runs = self._runs(graph, of_block, block_lengths)
        while len(runs) > 1:
            runs = [graph.task(merged_runs, *group) for group in _groups(runs, SPLIT_EVERY)]
        statistic: S = graph.computed(graph.task(total, *runs))[0]
        return statistic

    def gather(self, of_block: OfRows[T], block_lengths: Iterable[int]) -> Generator[T]:
        graph = _Graph(self.blocks)
        runs = self._runs(graph, partial(_Parts.of, of_block), block_lengths)
        # Not merged on a worker: all results may be larger than its memory.
        waiting = list(reversed(graph.computed(*runs)))
        while waiting:
            for node in waiting.pop():
                yield from node.statistic.results

    def some(self, kept: Mask) -> DaskPasses:
        if kept.all():
            return self
        masks = np.split(kept, np.cumsum(self.sizes)[:-1])
        pairs = zip(self.blocks, masks, strict=True)
        blocks = [delayed(_selected)(block, mask) for block, mask in pairs]
        sizes = tuple(int(np.count_nonzero(mask)) for mask in masks)
        return replace(self, blocks=blocks, sizes=sizes, n_rows=sum(sizes))

    def compute(
        self, function: Callable[..., U], arguments: Callable[[T], tuple[Any, ...]], items: list[T]
    ) -> Generator[U]:
        n_bytes = len(cloudpickle.dumps(arguments(items[0])))
        # Large tasks, since each takes the scheduler a millisecond.
        groups = _groups(items, max(TASK_BYTES // n_bytes, 1))
        n_tasks = max(SENT_BYTES // (n_bytes * len(groups[0])), FEWEST_TASKS)
        for some in _groups(groups, n_tasks):
            graph = _Graph([])
            tasks = [
                graph.add("task", Task, _applied, function, list(map(arguments, group)))
                for group in some
            ]
            yield from chain(*graph.computed(*tasks))

    def _runs(
        self, graph: _Graph, of_block: OfBlock[Any], block_lengths: Iterable[int]
    ) -> list[Any]:
        """Add tasks for all rows in blocks of the given lengths, and return the keys of runs."""
        if not self.n_rows:
            raise ValueError("the Dask collections hold no rows.")
        cutter = Cutter.into(block_lengths, self.n_rows, of_block)
        # A node of its own: it goes to every worker once, not with every block.
        function = graph.add("statistic", DataNode, cutter)
        starts = [0, *accumulate(self.sizes)]

        def task(method: Callable[..., Any], table: int, **options: Any) -> Any:
            place = {"start": starts[table], "size": self.sizes[table]}
            return graph.task(method, function, self.blocks[table].key, **place, **options)

        ends = cache(partial(task, Cutter.ends))
        return [
            task(Cutter.whole, tables.start, blocks=blocks)
            if len(tables) == 1
            else graph.task(Cutter.seam, function, *map(ends, tables), block=blocks.start)
            for blocks, tables in cutter.steps(self.sizes)
        ]


@dataclass(frozen=True)
class _Parts(Generic[T]):
    """The results for consecutive blocks."""

    results: tuple[T, ...]

    @classmethod
    def of(cls, of_block: OfRows[T], *block: Any) -> _Parts[T]:
        return cls((of_block(*block),))

    def merge(self, other: _Parts[T], /) -> _Parts[T]:
        return _Parts((*self.results, *other.results))


def _selected(rows: Raw, kept: Mask) -> Raw:
    _length(rows, len(kept))
    return selected(rows, kept)


def _groups(items: list[T], n: int) -> list[list[T]]:
    """Return groups of n consecutive items."""
    return [items[i : i + n] for i in range(0, len(items), n)]


@on_worker()
def _applied(function: Callable[..., U], arguments: list[tuple[Any, ...]]) -> list[U]:
    return [function(*each) for each in arguments]


def map_rows(function: Callable[..., Any], X: Any, argument: Any, like: NDArray[Any]) -> da.Array:
    """Return the lazy array of ``function(block, argument)`` for all blocks of rows of X.

    `like` is an array without rows that has the columns and the dtype of the result.
    """
    of_block, once = partial(_of_rows, function, like), delayed(argument, traverse=False)
    if _is_frame(X):
        return X.map_partitions(of_block, once, meta=like, enforce_metadata=False)
    axes = {k: like.shape[k] for k in range(1, like.ndim)}
    options = {"new_axes": axes, "concatenate": False, "align_arrays": False, "meta": like}
    return da.blockwise(of_block, (0, *axes), _in_rows(X), (0, -1), once, None, **options)


@on_worker()
def _of_rows(function: Callable[..., Any], like: NDArray[Any], X: Any, argument: Any) -> Any:
    X = _only(X)
    return np.asarray(function(X, argument), dtype=like.dtype) if X.shape[0] else like


def row_of_zeros(X: Any) -> Any:
    """Return one row of zeros with the columns of X, in float32 if all of X is."""
    single = all(kind == np.float32 for kind in (X.dtypes if _is_frame(X) else [X.dtype]))
    zeros = np.zeros((1, X.shape[1]), dtype=np.float32 if single else np.float64)
    return type(X._meta)(zeros, columns=X.columns) if _is_frame(X) else zeros


def _is_frame(table: Any) -> bool:
    return hasattr(type(table), "to_dask_array")


def check_kind(name: str, table: Any) -> None:
    """Raise an error unless a table is a Dask array or data frame with a fitting shape."""
    if not isinstance(table, da.Array) and not _is_frame(table):
        raise ValueError(
            f"{name} is a {type(table).__name__}, but with a Dask collection as X, y or "
            "sample_weight all of them must be Dask arrays or data frames."
        )
    allowed = (2,) if name == "X" else (1, 2)
    if table.ndim not in allowed:
        expected = " or ".join(map(str, allowed))
        raise ValueError(f"{name} must have {expected} dimensions, but has {table.ndim}.")
    if table.ndim == 2 and np.isnan(table.shape[1]):
        raise ValueError(
            f"{name} has an unknown number of columns: call compute_chunk_sizes() on it first."
        )


def _zip_frames(raw: Callable[..., Raw], tables: dict[str, Any]) -> Any:
    """Return a collection of tuples of partitions."""
    X, *others = tables.values()
    for name, table in tables.items():
        if table.npartitions != X.npartitions:
            raise ValueError(
                f"{name} must have the same number of partitions as X, {X.npartitions}, but has "
                f"{table.npartitions}: take both from one data frame, or repartition them."
            )
    return X.map_partitions(raw, *others, meta=X._meta, enforce_metadata=False)


def _zip_arrays(raw: Callable[..., Raw], tables: dict[str, Any]) -> da.Array:
    """Return a collection of tuples of blocks, all tables cut into the chunks of X."""
    arrays = {name: _in_rows(table) for name, table in tables.items()}
    arguments: list[Any] = []
    for k, (name, array) in enumerate(arrays.items(), start=1):
        arguments += [_cut_as(arrays["X"], name, array), (0, -k)[: array.ndim]]
    meta = np.empty(0, dtype=object)
    return da.blockwise(raw, (0,), *arguments, concatenate=False, align_arrays=False, meta=meta)


def _raw(as_inputs: AsInputs, X: Any, y: Any, sample_weight: Any = None) -> Raw:
    X, y, weight = map(_only, (X, y, sample_weight))
    weight = None if weight is None else np.asarray(weight)
    # In one order: sums must not depend on how a data frame is laid out in memory.
    return as_inputs(X), np.asarray(y, order="C"), weight


def _only(block: Any) -> Any:
    """Return a block; Dask passes the blocks of one row of blocks as a list, here of one."""
    return block[0] if isinstance(block, list) else block


def _in_rows(table: Any) -> da.Array:
    """Return an array with all columns in one block."""
    array = table.to_dask_array() if _is_frame(table) else table
    return array if array.ndim == 1 or array.numblocks[1] == 1 else array.rechunk({1: -1})


def _cut_as(X: da.Array, name: str, array: da.Array) -> da.Array:
    n_rows, n_here = X.shape[0], array.shape[0]
    if np.isnan(n_rows) or np.isnan(n_here):
        if array.numblocks[0] != X.numblocks[0]:
            raise ValueError(
                f"{name} must have the same number of blocks of rows as X, {X.numblocks[0]}, but "
                f"has {array.numblocks[0]}, of unknown sizes: call compute_chunk_sizes() on both."
            )
        return array
    if n_here != n_rows:
        raise ValueError(
            f"{name} must have the same number of rows as X, {n_rows}, but has {n_here}."
        )
    return array if array.chunks[0] == X.chunks[0] else array.rechunk({0: X.chunks[0]})


class _Graph:
    """A graph under construction that reads some blocks."""

    def __init__(self, blocks: list[Delayed]) -> None:
        self._blocks, self._token = blocks, uuid4().hex
        self._layer: dict[Any, Any] = {}

    def add(self, name: str, node: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Add a node of the given type, and return its key."""
        key = f"{name}-{self._token}", len(self._layer)
        self._layer[key] = node(key, *args, **options)
        return key

    def task(self, function: Callable[..., Any], *keys: Any, **options: Any) -> Any:
        """Add a function of the values of some keys, and return its key."""
        name = function.__name__.strip("_")
        return self.add(name, Task, function, *map(TaskRef, keys), **options)

    def computed(self, *keys: Any) -> tuple[Any, ...]:
        """Return the values of some keys."""
        name = f"pass-{self._token}"
        graph = HighLevelGraph.from_collections(name, self._layer, dependencies=self._blocks)
        try:
            with ONE_THREAD(), config.set(self._settings()):
                return tuple(compute(*(Delayed(key, graph, layer=name) for key in keys)))
        except (TypeError, ValueError):
            raise
        except Exception as error:
            message = " ".join(str(error).split())
            raise RuntimeError(
                f"a block of the Dask collections cannot be computed ({type(error).__name__}: "
                f"{message})."
            ) from error

    def _settings(self) -> dict[str, int]:
        """Return the graph size from which on to warn: karnet's own constants do not count."""
        limit = config.get(LARGE_GRAPH, None)
        if limit is None:  # there is no cluster
            return {}
        try:
            size = len(cloudpickle.dumps(list(self._layer.values())))
        except Exception:  # threads need no pickle, and with a cluster Dask raises the error
            size = 0
        return {LARGE_GRAPH: parse_bytes(limit) + size}


@dataclass(frozen=True)
class MergeNode(Generic[S]):
    """The statistic of ``2**level`` blocks, from block ``number * 2**level`` on."""

    level: int
    number: int
    statistic: S


# Nodes in the order of rows.
Run = list[MergeNode[S]]


@dataclass(frozen=True)
class Cutter(Generic[S]):
    """A function of blocks, and the rows at which blocks begin and end."""

    of_block: OfBlock[S]
    edges: NDArray[np.int64]  # the first row of each block, and the number of rows

    @classmethod
    def into(cls, lengths: Iterable[int], n_rows: int, of_block: OfBlock[S]) -> Cutter[S]:
        """Return the cutter into blocks of the given lengths; the last block takes the rest."""
        inside = takewhile(lambda edge: edge < n_rows, accumulate(lengths))
        return cls(of_block, np.array([0, *inside, n_rows]))

    def steps(self, sizes: Iterable[int]) -> Iterator[tuple[range, range]]:
        """Yield consecutive blocks and the tables with their rows: one table, or else one block.

        `sizes` are the numbers of rows of the tables.
        """
        starts = np.array([0, *accumulate(sizes)])
        block, n_blocks = 0, len(self.edges) - 1
        while block < n_blocks:
            table = int(np.searchsorted(starts, self.edges[block], side="right")) - 1
            end = int(np.searchsorted(self.edges, starts[table + 1], side="right")) - 1
            last = table + 1
            if end == block:
                end += 1
                last = int(np.searchsorted(starts, self.edges[end], side="left"))
            yield range(block, end), range(table, last)
            block = end

    @on_worker()
    def whole(self, rows: Raw, *, start: int, size: int, blocks: range) -> Run[S]:
        """Return the run of blocks inside one table, of `size` rows from row `start` on."""
        _length(rows, size)
        edges = self.edges[blocks.start : blocks.stop + 1]
        statistics = (
            self.of_block(int(i), *cut(rows, i - start, j - start)) for i, j in pairwise(edges)
        )
        return merged_runs(MergeNode(0, *each) for each in zip(blocks, statistics, strict=True))

    def ends(self, rows: Raw, *, start: int, size: int) -> list[tuple[int, list[Any]]]:
        """Return numbers of blocks that span other tables as well, and their rows in this table."""
        _length(rows, size)
        stop = start + size
        inside = self.edges[(self.edges >= start) & (self.edges <= stop)]
        first, last = (inside[0], inside[-1]) if len(inside) else (stop, stop)
        parts = []
        for i, j in ((start, first), (last, stop)):
            if i < j:
                block = int(np.searchsorted(self.edges, i, side="right")) - 1
                # Views would keep the whole table in memory.
                copies = [x if x is None else x.copy() for x in cut(rows, i - start, j - start)]
                parts.append((block, copies))
        return parts

    @on_worker()
    def seam(self, *ends: list[tuple[int, Any]], block: int) -> Run[S]:
        """Return the run of one block, joined from the ends of several tables."""
        rows = [part for number, part in chain(*ends) if number == block]
        return [MergeNode(0, block, self.of_block(int(self.edges[block]), *joined(rows)))]


@on_worker()
def merged_runs(*runs: Iterable[MergeNode[S]]) -> Run[S]:
    """Return consecutive runs as one, with both halves of a node of the whole tree merged."""
    run: Run[S] = []
    for node in chain(*runs):
        while run and run[-1].level == node.level and run[-1].number % 2 == 0:
            statistic = run.pop().statistic.merge(node.statistic)
            node = MergeNode(node.level + 1, node.number // 2, statistic)
        run.append(node)
    return run


@on_worker()
def total(run: Run[S]) -> S:
    """Return the statistic of the run of all blocks."""
    *others, last = (node.statistic for node in run)
    for statistic in reversed(others):
        last = statistic.merge(last)
    return last


def _length(rows: Raw, expected: int | None = None) -> int:
    """Return the number of rows, if it is the same in inputs, targets and weights."""
    X, *others = rows
    for name, array in zip(("y", "sample_weight"), others, strict=True):
        if array is not None and len(array) != X.shape[0]:
            raise ValueError(
                f"{name} must have the same number of rows as X in every block, {X.shape[0]}, but "
                f"has {len(array)}."
            )
    if expected not in (None, X.shape[0]):
        raise ValueError(
            f"a block of {expected} rows holds {X.shape[0]} of them now: Dask collections must "
            "give the number of rows that their chunks state, and the same rows each time."
        )
    return int(X.shape[0])
