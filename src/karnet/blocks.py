"""A data set as blocks of rows that can be read again and need not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ._stream import Raw

__all__ = ["Blocks"]


@dataclass(frozen=True)
class Blocks:
    """Blocks of rows that are read anew each time they are gone through.

    Parameters
    ----------
    read : iterable or callable
        What gives the blocks: something that can be gone through again, like a list, or a function
        that returns an iterator over them from the beginning each time it is called.
        A block is a tuple ``(X, y)`` or ``(X, y, sample_weight)`` of arrays with as many rows.

    Examples
    --------
    >>> import numpy as np
    >>> from karnet import KARRegressor
    >>> from karnet.blocks import Blocks
    >>> def days():
    ...     for day in range(3):
    ...         X = np.random.default_rng(day).standard_normal((50, 2))
    ...         yield X, X[:, 0] - X[:, 1]
    >>> net = KARRegressor((), output_activation="identity").fit_blocks(Blocks(days))
    >>> net.coefs_[0].round(6).tolist()
    [[1.0], [-1.0]]
    """

    read: Iterable[Any] | Callable[[], Iterable[Any]]

    @classmethod
    def of(cls, blocks: Any) -> Blocks:
        """Return what can be read again as blocks."""
        if isinstance(blocks, Blocks):
            return blocks
        if isinstance(blocks, Iterator):
            raise ValueError(
                "blocks can be gone through only once, and learning reads them several times: give "
                "a list, or the function that makes the iterator."
            )
        if not callable(blocks) and not isinstance(blocks, Iterable):
            raise ValueError(
                f"blocks must be karnet.blocks.Blocks, a list of (X, y), or a function that "
                f"returns an iterator over (X, y), but is a {type(blocks).__name__}."
            )
        return cls(blocks)

    @cached_property
    def names(self) -> tuple[str, ...] | None:
        """The names of the inputs, if the first block is a data frame."""
        for X, _, _ in self._read():
            return _names(X)
        return None

    def _read(self) -> Iterator[Raw]:
        for number, block in enumerate(self.read() if callable(self.read) else self.read):
            if not isinstance(block, tuple | list) or not 2 <= len(block) <= 3:
                raise ValueError(
                    f"block {number} must be a tuple (X, y) or (X, y, sample_weight), but is a "
                    f"{type(block).__name__}."
                )
            yield (*block, None)[:3]

    def __iter__(self) -> Iterator[Raw]:
        """Yield inputs, targets and weights, or None, of each block as arrays."""
        seen = None
        for number, (X, y, weight) in enumerate(self._read()):
            names = _names(X)
            X = X if hasattr(X, "tocsr") else np.asarray(X)
            y, weight = np.asarray(y), None if weight is None else np.asarray(weight)
            kind = {
                "columns of X": X.shape[1:],
                "columns of y": y.shape[1:],
                "names of columns": names,
                "numbers in y": y.dtype.kind in "biuf",
            }
            seen = seen or kind
            for what, value in kind.items():
                if value != seen[what]:
                    raise ValueError(
                        f"block {number} has other {what} than those before it, {value} instead of "
                        f"{seen[what]}: all blocks must be of one kind."
                    )
            if len(y) != X.shape[0]:
                raise ValueError(
                    f"block {number} must have as many rows of y as of X, {X.shape[0]}, but has "
                    f"{len(y)}."
                )
            yield X, y, weight


def _names(X: Any) -> tuple[str, ...] | None:
    names = tuple(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None
