"""The reduction over blocks of rows on a Dask cluster, and answers that are computed there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate, repeat
from typing import Any, TypeVar
from uuid import uuid4

import cloudpickle
import dask.array as da
import numpy as np
from dask import config, delayed
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import DataNode, Task, TaskRef
from dask.utils import parse_bytes
from numpy.typing import NDArray

from .._arrays.threads import ONE_THREAD
from .._estimator.validation import plain_inputs
from ..blocks import Blocks
from .memory import Statistic
from .recut import Cutter, Part, Run, join, total
from .streamed import Raw
from .worker import on_worker

__all__ = ["DaskPasses", "lazily", "over_blocks"]

S = TypeVar("S", bound=Statistic)

# Statistics that are merged at once, by one worker.
SPLIT_EVERY = 8
# Rows that are scored at a time.
SCORED = 2**16
# The setting of Dask that says from which size on it warns of a graph.
LARGE = "distributed.admin.large-graph-warning-threshold"


@dataclass(frozen=True)
class DaskPasses:
    """Passes over the blocks of Dask collections, each worked on where it is.

    They run wherever Dask runs now: on the active `distributed.Client` or, without one, in threads.
    A pass is one map over the blocks and one tree of merges. All it needs is in its graph, so what
    is lost with a worker is computed again by another.

    Attributes
    ----------
    blocks : list of Delayed
        Tuples of inputs, targets and weights (or None), as arrays.
    sizes : tuple of int
        How many rows each has.
    names : tuple of str or None
        The names of the inputs.
    """

    blocks: list[Delayed]
    sizes: tuple[int, ...]
    names: tuple[str, ...] | None = None
    block_size: int | None = None
    device: str | None = None

    @classmethod
    def over(cls, X: Any, y: Any, sample_weight: Any) -> DaskPasses:
        """Return passes over collections, or say why their rows do not belong together.

        Rows are counted in a pass of its own if their number is not known.
        """
        tables = {"X": X, "y": y, "sample_weight": sample_weight}
        tables = {name: table for name, table in tables.items() if name == "y" or table is not None}
        for name, table in tables.items():
            _check_kind(name, table)
        frames = all(map(_is_frame, tables.values()))
        # As one collection: what several of them are made of is computed once.
        zipped = _zip_frames(tables) if frames else _zip_arrays(tables)
        blocks = list(np.ravel(zipped.to_delayed()))
        sizes = (np.nan,) if frames else zipped.chunks[0]
        if np.isnan(sizes).any():
            sizes = _counted(blocks)
        return cls(blocks, tuple(map(int, sizes)), Blocks([(X, y)]).names)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(self.sizes)

    def reduce(self, of_block: Callable[[Any, Any, Any], S], block_lengths: Iterable[int]) -> S:
        """Return what `of_block` gives for all rows in blocks of the given lengths, merged."""
        if not self.n_rows:
            raise ValueError("the Dask collections hold no rows.")
        cutter = Cutter.into(block_lengths, self.n_rows, of_block)
        graph = _Graph(self.blocks)
        # A node of its own: it goes to every worker once, not with every block.
        cut = graph.constant("statistic", cutter)
        starts = [0, *accumulate(self.sizes)]

        def task(function: Callable[..., Any], table: int, **options: Any) -> Any:
            place = {"start": starts[table], "size": self.sizes[table]}
            return graph.task(function, cut, self.blocks[table].key, **place, **options)

        ends = cache(partial(task, _ends))
        runs = [
            task(_whole, step.tables.start, blocks=step.blocks)
            if len(step.tables) == 1
            else graph.task(_seam, cut, *map(ends, step.tables), block=step.blocks.start)
            for step in cutter.steps(self.sizes)
        ]
        while len(runs) > 1:
            groups = [runs[i : i + SPLIT_EVERY] for i in range(0, len(runs), SPLIT_EVERY)]
            runs = [graph.task(_join, *group) for group in groups]
        found: S = graph.computed(graph.task(_total, *runs))
        return found


def _is_frame(table: Any) -> bool:
    return hasattr(type(table), "to_dask_array")


def _check_kind(name: str, table: Any) -> None:
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
            f"{name} has columns of unknown number: call compute_chunk_sizes() on it first."
        )


def _zip_frames(tables: dict[str, Any]) -> Any:
    """Return a collection of tuples of partitions."""
    X, *others = tables.values()
    for name, table in tables.items():
        if table.npartitions != X.npartitions:
            raise ValueError(
                f"{name} must have as many partitions as X, {X.npartitions}, but has "
                f"{table.npartitions}: take both from one data frame, or repartition them."
            )
    return X.map_partitions(_raw, *others, meta=X._meta, enforce_metadata=False)


def _zip_arrays(tables: dict[str, Any]) -> da.Array:
    """Return a collection of tuples of blocks, the rows of all cut as those of X."""
    arrays = {name: _in_rows(table) for name, table in tables.items()}
    arguments: list[Any] = []
    for place, (name, array) in enumerate(arrays.items()):
        columns = -1 - place
        arguments += [_cut_as(arrays["X"], name, array), (0, columns)[: array.ndim]]
    return da.blockwise(
        _raw,
        (0,),
        *arguments,
        concatenate=False,
        align_arrays=False,
        meta=np.empty(0, dtype=object),
    )


def _raw(X: Any, y: Any, sample_weight: Any = None) -> Raw:
    X, y, weight = map(_only, (X, y, sample_weight))
    # In one order: what is summed first must not depend on how a data frame lies in memory.
    y = np.asarray(y, order="C")
    return plain_inputs(X), y, None if weight is None else np.asarray(weight)


def _only(block: Any) -> Any:
    """Return a block; Dask gives those that lie side by side as a list, here of one."""
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
                f"{name} must have as many blocks of rows as X, {X.numblocks[0]}, but has "
                f"{array.numblocks[0]}, of unknown sizes: call compute_chunk_sizes() on both."
            )
        return array
    if n_here != n_rows:
        raise ValueError(f"{name} must have as many rows as X, {n_rows}, but has {n_here}.")
    return array if array.chunks[0] == X.chunks[0] else array.rechunk({0: X.chunks[0]})


class _Graph:
    """A graph in the making that reads some blocks."""

    def __init__(self, blocks: list[Delayed]) -> None:
        self._blocks = blocks
        self._token = uuid4().hex
        self._layer: dict[Any, Any] = {}

    def _key(self, name: str) -> tuple[str, int]:
        return f"{name}-{self._token}", len(self._layer)

    def constant(self, name: str, value: Any) -> Any:
        """Add a value, and return its key."""
        key = self._key(name)
        self._layer[key] = DataNode(key, value)
        return key

    def task(self, function: Callable[..., Any], *keys: Any, **options: Any) -> Any:
        """Add what the function makes of the values of some keys, and return its key."""
        key = self._key(function.__name__.strip("_"))
        self._layer[key] = Task(key, function, *map(TaskRef, keys), **options)
        return key

    def computed(self, key: Any) -> Any:
        """Return the value of a key."""
        name = f"pass-{self._token}"
        graph = HighLevelGraph.from_collections(name, self._layer, dependencies=self._blocks)
        try:
            with ONE_THREAD(), config.set(self._settings()):
                return Delayed(key, graph, layer=name).compute()
        except (TypeError, ValueError):
            raise
        except Exception as error:
            said = " ".join(str(error).split())
            raise RuntimeError(
                f"a block of the Dask collections cannot be computed ({type(error).__name__}: "
                f"{said})."
            ) from error

    def _settings(self) -> dict[str, int]:
        """Return from which size on to warn of a graph: for its data, not for what is learned."""
        limit = config.get(LARGE, None)
        if limit is None:  # there is no cluster
            return {}
        constants = [node for node in self._layer.values() if isinstance(node, DataNode)]
        try:
            size = len(cloudpickle.dumps(constants))
        except Exception:  # it does not matter in threads, and Dask will say so elsewhere
            size = 0
        return {LARGE: parse_bytes(limit) + size}


def _whole(cutter: Cutter[S], rows: Raw, *, start: int, size: int, blocks: range) -> Run[S]:
    _check_height(rows, size)
    with on_worker():
        return cutter.whole(start, rows, blocks)


def _ends(cutter: Cutter[S], rows: Raw, *, start: int, size: int) -> list[Part]:
    _check_height(rows, size)
    return cutter.ends(start, rows)


def _seam(cutter: Cutter[S], *ends: list[Part], block: int) -> Run[S]:
    with on_worker():
        return cutter.seam(block, *ends)


def _join(*runs: Run[S]) -> Run[S]:
    with on_worker():
        return join(*runs)


def _total(run: Run[S]) -> S:
    with on_worker():
        return total(run)


def _check_height(rows: Raw, size: int) -> None:
    found = _height(rows)
    if found != size:
        raise ValueError(
            f"a block of {size} rows holds {found} of them now: Dask collections must give the "
            "rows that their chunks say, and the same each time."
        )


def _counted(blocks: list[Delayed]) -> tuple[int, ...]:
    graph = _Graph(blocks)
    block_lengths = [graph.task(_height, block.key) for block in blocks]
    found: tuple[int, ...] = graph.computed(graph.task(_all, *block_lengths))
    return found


def _all(*values: Any) -> tuple[Any, ...]:
    return values


def _height(rows: Raw) -> int:
    """Return the number of rows, if inputs, targets and weights have as many."""
    X, *others = rows
    for name, array in zip(("y", "sample_weight"), others, strict=True):
        if array is not None and len(array) != X.shape[0]:
            raise ValueError(
                f"{name} must have as many rows as X in every block, {X.shape[0]}, but has "
                f"{len(array)}."
            )
    return int(X.shape[0])


def over_blocks(estimator: Any, of_block: Callable[..., S], *tables: Any) -> S:
    """Return what a function of the estimator and a block gives for all blocks, merged."""
    _check_kind("X", tables[0])
    row = _row_of_zeros(tables[0])
    estimator.predict(row)  # says what is wrong with the columns of X
    passes = DaskPasses.over(*tables)
    return passes.reduce(partial(of_block, _answering(estimator)), repeat(SCORED))


def lazily(estimator: Any, method: str, X: Any, *args: Any, **options: Any) -> da.Array:
    """Return what a method of an estimator answers to a collection: an array yet to be computed.

    Its type and its columns, and whether the estimator takes those of X, are known from one row of
    zeros. The estimator may be fitted again meanwhile: answers are those of now.
    """
    _check_kind("X", X)
    row = _row_of_zeros(X)
    like = getattr(estimator, method)(row, *args, **options)[:0]
    answering = delayed(_answering(estimator, Blocks([(X, None)]).names), traverse=False)
    ask = partial(_answer, method, like, args, options)
    if _is_frame(X):
        return X.map_partitions(ask, answering, meta=like, enforce_metadata=False)
    columns = range(1, like.ndim)
    return da.blockwise(
        ask,
        (0, *columns),
        *(_in_rows(X), (0, -1), answering, None),
        new_axes={k: like.shape[k] for k in columns},
        concatenate=False,
        align_arrays=False,
        meta=like,
    )


def _row_of_zeros(X: Any) -> Any:
    single = all(kind == np.float32 for kind in (X.dtypes if _is_frame(X) else [X.dtype]))
    zeros = np.zeros((1, X.shape[1]), dtype=np.float32 if single else np.float64)
    return type(X._meta)(zeros, columns=X.columns) if _is_frame(X) else zeros


def _answering(estimator: Any, names: tuple[str, ...] | None = None) -> Any:
    """Return the estimator as it is now, for inputs of these names: they have been checked."""
    answering = copy(estimator)
    answering.__dict__.pop("feature_names_in_", None)
    if names is not None:
        answering.feature_names_in_ = np.asarray(names, dtype=object)
    return answering


def _answer(
    method: str,
    like: NDArray[Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    X: Any,
    estimator: Any,
) -> NDArray[Any]:
    X = _only(X)
    if not X.shape[0]:
        return like
    with on_worker():
        return np.asarray(getattr(estimator, method)(X, *args, **options), dtype=like.dtype)
