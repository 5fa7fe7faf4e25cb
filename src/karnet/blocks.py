"""A data set as blocks of rows that can be read repeatedly and need not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np

from ._arrays.namespace import described, is_remote
from ._rows.memory import chunk_slices
from ._rows.streamed import Raw, column_names

__all__ = ["Blocks"]

FilePath = str | PathLike[str]
FilePaths = FilePath | Iterable[FilePath]


@dataclass(frozen=True)
class Blocks:
    """Blocks of rows that are read again for every pass over them.

    Parameters
    ----------
    read : iterable or callable
        The blocks: an iterable that can be iterated over repeatedly, like a list, or a function
        that returns a new iterator over the blocks with every call.
        A block is a tuple ``(X, y)`` or ``(X, y, sample_weight)`` of arrays with the same number
        of rows.
    feature_names : sequence of str, optional
        The names of the inputs; by default the columns of the first block if it is a data frame.

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
    feature_names: Sequence[str] | None = None

    @classmethod
    def of(cls, blocks: Any) -> Blocks:
        """Return `Blocks` for any data that can be read repeatedly."""
        if isinstance(blocks, Blocks):
            return blocks
        if isinstance(blocks, Iterator):
            raise ValueError(
                "blocks can be read only once, and fitting reads them several times: give a list, "
                "or the function that makes the iterator."
            )
        if not callable(blocks) and not isinstance(blocks, Iterable):
            raise ValueError(
                f"blocks must be karnet.blocks.Blocks, a list of (X, y), or a function that "
                f"returns an iterator over (X, y), but is a {type(blocks).__name__}."
            )
        return cls(blocks)

    @classmethod
    def from_arrays(cls, X: Any, y: Any, sample_weight: Any = None) -> Blocks:
        """Return the rows of arrays, data frames, or other tables that can be sliced by rows.

        Parameters
        ----------
        X : array, data frame or CSR matrix of shape (n_samples, n_features)
            The inputs: any table with a shape that can be sliced, like a dataset of an HDF5 file.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            The targets.
        sample_weight : array of shape (n_samples,), optional
            Sample weights.
        """
        arrays = [X, y] if sample_weight is None else [X, y, sample_weight]
        names = ["X", "y", "sample_weight"]
        arrays = [_sliceable(*each) for each in zip(arrays, names, strict=False)]
        _check_shapes(names, arrays)
        return cls(partial(_slices, partial(tuple, arrays), arrays[0].shape))

    @classmethod
    def from_npy(
        cls, X_path: FilePath, y_path: FilePath, weight_path: FilePath | None = None
    ) -> Blocks:
        """Return the rows of .npy files, mapped to memory block by block.

        Parameters
        ----------
        X_path, y_path : path
            The files of inputs, of shape (n_samples, n_features), and targets.
        weight_path : path, optional
            The file of sample weights.
        """
        paths = [X_path, y_path] if weight_path is None else [X_path, y_path, weight_path]
        arrays = [_mapped(path) for path in paths]
        _check_shapes(paths, arrays)
        # Files are mapped again for each block, so that memory is freed after it.
        return cls(partial(_slices, partial(map, _mapped, paths), arrays[0].shape))

    @classmethod
    def from_parquet(
        cls,
        paths: FilePaths,
        target: str | Sequence[str],
        columns: Sequence[str] | None = None,
        sample_weight: str | None = None,
    ) -> Blocks:
        """Return the rows of Parquet files; memory holds few rows, however large row groups are.

        Parameters
        ----------
        paths : path or sequence of paths
            A file, several files, or a folder: its files that end in .parquet or .pq, by name.
        target : str or sequence of str
            The column of targets, numbers or labels; a sequence for several outputs.
        columns : sequence of str, optional
            The columns of inputs, which must hold numbers. By default all others except the index
            of a data frame that was written by pandas.
        sample_weight : str, optional
            The column of sample weights.
        """
        return cls._of_files("Parquet", paths, target, columns, sample_weight)

    @classmethod
    def from_arrow(
        cls,
        paths: FilePaths,
        target: str | Sequence[str],
        columns: Sequence[str] | None = None,
        sample_weight: str | None = None,
    ) -> Blocks:
        """Return the rows of Arrow files and streams, also known as Feather and IPC.

        Files are mapped to memory. If they are compressed, memory holds a whole record batch.

        Parameters
        ----------
        paths : path or sequence of paths
            A file, several files, or a folder: its files that end in .arrow, .arrows, .feather or
            .ipc, by name.
        target, columns, sample_weight
            As in `from_parquet`.
        """
        return cls._of_files("Arrow", paths, target, columns, sample_weight)

    @classmethod
    def from_csv(
        cls,
        paths: FilePaths,
        target: str | Sequence[str],
        columns: Sequence[str] | None = None,
        sample_weight: str | None = None,
        *,
        delimiter: str = ",",
        header: Sequence[str] | None = None,
        types: Mapping[str, Any] | None = None,
    ) -> Blocks:
        """Return the rows of CSV files.

        Parameters
        ----------
        paths : path or sequence of paths
            A file, several files, or a folder: its files that end in .csv or, compressed, .csv.gz,
            .csv.bz2 or .csv.zst, by name.
        target, columns, sample_weight
            As in `from_parquet`. Inputs and weights are float64; the first lines decide whether a
            target is a number or a string.
        delimiter : str, default=","
            The character between values.
        header : sequence of str, optional
            The names of the columns, if the first line of the file does not hold them.
        types : mapping, optional
            Types of columns by name, to replace the types above, as pyarrow names them:
            ``{"price": "float32", "code": "string"}``.
        """
        names = None if header is None else list(header)
        options = {"delimiter": delimiter, "header": names, "types": types}
        return cls._of_files("Csv", paths, target, columns, sample_weight, **options)

    @classmethod
    def _of_files(
        cls, kind: str, paths: Any, target: Any, columns: Any, sample_weight: Any, **options: Any
    ) -> Blocks:
        try:
            from ._rows import arrow_files
        except ModuleNotFoundError as error:
            raise ImportError(
                "reading Parquet, Arrow or CSV files needs pyarrow: pip install 'karnet[blocks]'."
            ) from error
        reader = getattr(arrow_files, kind)(**options)
        files = arrow_files.files_in(paths, reader)
        flat = isinstance(target, str)
        targets = (target,) if flat else tuple(target)
        columns = (columns,) if isinstance(columns, str) else columns
        inputs = None if columns is None else tuple(columns)
        weights = () if sample_weight is None else (sample_weight,)
        rows = arrow_files.FileRows(reader, files, targets, flat, inputs, weights)
        return cls(rows, rows.names(files[0]))

    @cached_property
    def names(self) -> tuple[str, ...] | None:
        """The names of the inputs, if they have any."""
        if self.feature_names is not None:
            return tuple(self.feature_names)
        for X, _, _ in self._read():
            return column_names(X)
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
        """Yield inputs, targets and weights (or None) of each block as arrays."""
        first = None
        for number, (X, y, weight) in enumerate(self._read()):
            names = column_names(X)
            where = f"of block {number}"
            X = X.tocsr() if hasattr(X, "tocsr") else _array(X, f"X {where}")
            y = _array(y, f"y {where}")
            weight = None if weight is None else _array(weight, f"sample_weight {where}")
            kind = {
                "columns of X": X.shape[1:],
                "columns of y": y.shape[1:],
                "names of columns": names,
                "numbers in y": y.dtype.kind in "biuf",
            }
            first = first or kind
            for name, value in kind.items():
                if value != first[name]:
                    raise ValueError(
                        f"block {number} has other {name} than the blocks before it, {value} "
                        f"instead of {first[name]}: all blocks must be of one kind."
                    )
            if len(y) != X.shape[0]:
                raise ValueError(
                    f"block {number} must have the same number of rows in y and in X, but has "
                    f"{len(y)} and {X.shape[0]}."
                )
            yield X, y, weight


def _array(values: Any, name: str, least: int = 1) -> Any:
    """Return values as an array of at least `least` dimensions."""
    if is_remote(values):
        raise ValueError(
            f"{name} is {described(values)}: give blocks as NumPy arrays, and device='cuda' to "
            "compute on a GPU."
        )
    try:
        array = np.asarray(values)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{name} must have rows of equal length.") from error
    if array.ndim < least:
        kind = type(values).__name__
        raise ValueError(f"{name} must be an array with a row for each sample, but is a {kind}.")
    return array


def _sliceable(values: Any, name: str) -> Any:
    """Return the values as a table that can be sliced by rows."""
    if hasattr(values, "tocsr"):
        return values.tocsr()
    sliceable = hasattr(values, "shape") and hasattr(values, "__getitem__")
    return values if sliceable else _array(values, name, 0)


def _slices(arrays: Callable[[], Iterable[Any]], shape: tuple[int, int]) -> Iterator[Any]:
    """Yield blocks of few numbers of the arrays, which are opened again for each."""
    for rows in chunk_slices(slice(0, shape[0]), shape[1]):
        yield tuple(getattr(array, "iloc", array)[rows] for array in arrays())


def _mapped(path: FilePath) -> Any:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is no file {path}.") from error
    except (EOFError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path} cannot be read as .npy ({reason}).") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} holds several arrays: give each a .npy file of its own.")
    return array


def _check_shapes(names: Sequence[Any], arrays: Sequence[Any]) -> None:
    X, *others = arrays
    if len(X.shape) != 2:
        raise ValueError(
            f"{names[0]} must have two dimensions, rows and features, but its shape is {X.shape}."
        )
    for name, other in zip(names[1:], others, strict=False):
        if not other.shape or other.shape[0] != X.shape[0]:
            raise ValueError(
                f"{name} must have the same number of rows as {names[0]}, {X.shape[0]}, but its "
                f"shape is {other.shape}."
            )
