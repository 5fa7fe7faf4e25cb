"""A table as blocks of rows that can be read again, and the reduction over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rows", "Statistic", "block_slices", "dense"]

Array = NDArray[np.float64]

# Numbers per block: many enough for the matrix product, few enough for memory.
BLOCK_SIZE = 2**22


class Statistic(Protocol):
    """What a block of rows contributes; the contributions of two blocks merge into one."""

    def merge(self, other: Self, /) -> Self:
        """Return the statistic of both blocks together."""
        ...


S = TypeVar("S", bound=Statistic)


def block_slices(n_rows: int, width: int) -> list[slice]:
    """Return slices that cut `n_rows` rows of `width` numbers into blocks of about `BLOCK_SIZE`."""
    step = max(BLOCK_SIZE // max(width, 1), 256)
    return [slice(i, min(i + step, n_rows)) for i in range(0, max(n_rows, 1), step)]


@dataclass(frozen=True)
class Rows:
    """Rows of a table: inputs, targets and weights.

    Parameters
    ----------
    X : array or sparse matrix of shape (m, d)
        The inputs. A block of them is made dense and float64 only while it is worked on.
    y : array of shape (m, ...)
        The targets, row by row.
    weight : array of shape (m,), optional
        Weights of the rows, all positive.
    change : callable, optional
        What every block of inputs goes through before it is used.
    width : int
        The largest number of columns a block reaches on its way.
    """

    X: Any
    y: NDArray[Any]
    weight: Array | None = None
    change: Callable[[Array], Array] | None = None
    width: int = 1

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __iter__(self) -> Iterator[tuple[Array, NDArray[Any], Array | None]]:
        for rows in block_slices(len(self), max(self.width, self.X.shape[1])):
            X = dense(self.X[rows])
            yield (
                X if self.change is None else self.change(X),
                self.y[rows],
                None if self.weight is None else self.weight[rows],
            )

    def map(self, change: Callable[[Array], Array], width: int) -> Rows:
        """Return these rows with inputs as they come out of `change`; of one block, at once."""
        lazy = replace(self, change=change, width=width)
        if len(block_slices(len(self), max(width, self.X.shape[1]))) > 1:
            return lazy
        X, y, weight = next(iter(lazy))
        return Rows(X, y, weight)

    def every(self, step: int) -> Rows:
        """Return every `step`-th of these rows."""
        weight = None if self.weight is None else self.weight[::step]
        return replace(self, X=self.X[::step], y=self.y[::step], weight=weight)

    def reduce(self, statistic: Callable[[Array, NDArray[Any], Array | None], S]) -> S:
        """Return the merged statistic of all blocks, merged as a tree: so rounding hardly grows."""
        waiting: list[tuple[int, S]] = []
        for block in self:
            level, total = 0, statistic(*block)
            while waiting and waiting[-1][0] == level:
                level, total = level + 1, waiting.pop()[1].merge(total)
            waiting.append((level, total))
        total = waiting.pop()[1]
        while waiting:
            total = waiting.pop()[1].merge(total)
        return total


def dense(X: Any) -> Array:
    """Return a block of inputs as a dense float64 array, rows in one piece.

    Matrix products round differently on columns in one piece; results must not depend on that.
    """
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64, order="C")
