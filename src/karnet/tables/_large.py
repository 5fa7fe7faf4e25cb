"""Parquet files that do not fit in memory: encoded by a sample of rows, fitted block by block.

The encoding of the columns is found from a sample of rows. The network is fitted to all rows except
a held-out part, which are read again for each pass. It is an average that selects all
hyper-parameters if the rows that this keeps fit in memory, and otherwise a hidden layer that is
fitted to the sample, and an output layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from .._rows.arrow_files import Parquet, reading
from .._util.environment import memory
from ..estimators import KARClassifier, KARRegressor
from ..selection import KARClassifierCV, KARRegressorCV
from ._columns import Columns
from ._files import kind_of, table_blocks
from ._model import SEED, TableFit, device_of, fitted_steps, table_fit
from ._names import check_names, input_names, missing_column
from ._sizes import SIZES
from ._table import Table
from ._target import Target, find_target

# Bytes of memory that a fit needs for each byte of a table.
COPIES = 8.0
# Bytes of memory that averaged networks need for each number of the encoded rows.
AVERAGE_BYTES = 24.0
# Largest share of the rows that are held out.
HELD_OUT_SHARE = 0.1
# Ridges that the sample is tried with.
RIDGES = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)


def is_large(path: Path, max_rows: int | None = None) -> bool:
    """Return whether a Parquet file has more than `max_rows` rows, or more than memory holds."""
    if kind_of(path) != "parquet":
        return False
    with reading(path.name, Parquet.name):
        about = parquet.ParquetFile(path).metadata
    if max_rows is not None:
        return bool(about.num_rows > max_rows)
    size = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
    size = max(size, 8 * about.num_rows * about.num_columns)
    return bool(COPIES * size > SIZES.memory_share * memory())


@dataclass(frozen=True)
class Source:
    """The blocks of a file, and the rows for the encoding and for the score."""

    path: Path
    target: Target  # of all rows
    sampled: NDArray[np.bool_]  # the rows with a target that the encoding is fitted to
    held_out: NDArray[np.bool_]  # the rows with a target that the score is computed on

    @classmethod
    def of(cls, path: Path, target: Target) -> Source:
        """Draw the rows from all parts of a file."""
        n = len(target.y)
        drawn = np.random.RandomState(SEED).permutation(n)
        n_held_out = min(SIZES.sample_rows, int(HELD_OUT_SHARE * n))
        held_out, sampled = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        held_out[drawn[:n_held_out]] = True
        sampled[drawn[n_held_out : n_held_out + SIZES.sample_rows]] = True
        return cls(path, target, sampled, held_out)

    def blocks(self, wanted: NDArray[np.bool_]) -> Iterator[tuple[Table, NDArray[Any]]]:
        """Yield the wanted rows of each block, and their targets."""
        first_row = first = 0
        for block in table_blocks(self.path):
            places = np.flatnonzero(self.target.known[first_row : first_row + len(block)])
            n = len(places)
            kept = wanted[first : first + n]
            if kept.any():
                yield block.take(places[kept]), self.target.y[first : first + n][kept]
            first_row, first = first_row + len(block), first + n

    def gathered(self, wanted: NDArray[np.bool_]) -> tuple[Table, NDArray[Any]]:
        """Return the wanted rows as one table, and their targets."""
        tables, targets = zip(*self.blocks(wanted), strict=True)
        return Table.joined(tables), np.concatenate(targets)


def fit_large(
    path: Path,
    target: str,
    task: str = "auto",
    device: str = "cpu",
    tell: Callable[[str], None] = lambda _: None,
) -> TableFit:
    """Fit a model to a Parquet file of any number of rows, block by block.

    Target, task and device are those of `fit_table`; `tell` is called with a sentence for each
    step. The score is the score on held-out rows. If memory does not hold all encoded rows in
    single precision, a network of 1000 units is fitted.
    """
    where = device_of(device)
    names, full_target = _target(path, target, task)
    source = Source.of(path, full_target)
    tell("Reading a sample of rows")
    sample, y = source.gathered(source.sampled)
    columns = Columns.of(sample, names)
    fitted, V = fitted_steps(columns, columns.frame(sample), only_numbers=True)
    if AVERAGE_BYTES * len(full_target.y) * V.shape[1] > SIZES.memory_share * memory():
        fitted.append(("scaler", scaler := StandardScaler()))
        network = _shaped(scaler.fit_transform(V), y, full_target.task, where)
    else:
        kind: Any = KARClassifierCV if full_target.task == "classification" else KARRegressorCV
        network = kind(device=where, random_state=SEED)
    steps = Pipeline(fitted)

    def blocks() -> Iterator[tuple[Any, NDArray[Any]]]:
        done = 0
        for rows, targets in source.blocks(~source.held_out):
            done += len(rows)
            tell(f"Fitting, {done} of {np.count_nonzero(~source.held_out)} rows of this pass")
            yield steps.transform(columns.frame(rows)), targets

    network.fit_blocks(blocks)
    tell("Scoring on rows that were left out")
    rows, targets = source.gathered(source.held_out)
    score = float(network.score(steps.transform(columns.frame(rows)), targets))
    how = f"{len(targets)} rows left out"
    parts, kept = [*fitted, ("network", network)], ~source.held_out
    model = table_fit(parts, columns, full_target, score, how, kept)
    return replace(model, left_out=(rows, targets), sample=sample)


def _target(path: Path, target: str, task: str) -> tuple[list[str], Target]:
    """Return the names of all columns except the target, and the target of all rows."""
    with reading(path.name, Parquet.name):
        file = parquet.ParquetFile(path)
        columns = file.schema_arrow.names
    names = check_names(columns, path.name)
    if target not in names:
        raise ValueError(missing_column(target, names, path.name))
    with reading(path.name, Parquet.name):
        column = Table(path.name, file.read([target]))
    return input_names(names, target, path.name), find_target(column, target, task)


def _shaped(X: NDArray[Any], y: NDArray[Any], task: str, device: str | None) -> Any:
    """Return an unfitted network with a hidden layer and a ridge that suit the sample."""
    kind: Any = KARClassifier if task == "classification" else KARRegressor
    drawn = np.random.RandomState(SEED).standard_normal((X.shape[1] + 1, SIZES.hidden_units))
    drawn[1:] /= np.sqrt(X.shape[1])
    settings: dict[str, Any] = {"activation": "tanh", "direct_links": True, "random_state": SEED}
    network = partial(kind, (SIZES.hidden_units,), device=device, **settings)
    order = np.random.RandomState(SEED).permutation(len(X))
    train, test = np.split(order, [max(2 * len(X) // 3, 1)])

    def score(ridge: float) -> float:
        net = network(hidden="random", alpha=ridge, init=[drawn]).fit(X[train], y[train])
        return float(net.score(X[test], y[test]))

    best = max(RIDGES, key=score)
    shaped = network(hidden="metric", alpha=best, init=[drawn]).fit(X, y)
    weights = np.vstack([shaped.intercepts_[0], shaped.coefs_[0]])
    return network(hidden="random", alpha=best, init=[weights])
