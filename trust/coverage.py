"""Coverage of intervals and sets: `python -m trust.coverage` writes docs/trust/coverage.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_linnerud
from sklearn.ensemble import RandomForestClassifier

from karnet import KARClassifierCV, KARRegressorCV, datasets
from trust.coverage_tables import COLUMNS, GENERATED, N_NEW
from trust.record import table, write_page

Array = NDArray[Any]
Rows = tuple[Array, Array, Array, Array]  # training inputs and targets, and those of new rows
Draw = Callable[[int, np.random.Generator], Rows]
COMMAND = "make trust"
COVERAGE = 0.9
# Numbers of rows of a training set for intervals.
SIZES = (25, 60, 100, 250)
# The same with --quick.
QUICK_SIZES = (60,)
# Draws of each table.
N_DRAWS = 4
# Largest number of rows of a training set for sets, and their share of the table.
MOST_ROWS, SHARE = 500, 0.7
# Bounds of the mean coverage of intervals of short tables.
MEAN = (0.88, 0.93)
# Least coverage of intervals of a table of at least so many rows.
LEAST, ENOUGH_ROWS = 0.8, 100
# Least mean coverage of sets.
LEAST_OF_SETS = 0.89
# Least number of rows of a class that is kept.
FEWEST_OF_CLASS = 5


@dataclass(frozen=True)
class Held:
    """The share of new targets inside, and the mean size of intervals or sets."""

    coverage: float
    size: float

    def __str__(self) -> str:
        return f"{100 * self.coverage:.1f} %, {self.size:.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write the page; return 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one draw of generated tables, no page"
    )
    quick, start = parser.parse_args(arguments).quick, perf_counter()
    sizes, n_draws = QUICK_SIZES if quick else SIZES, N_DRAWS
    intervals = {
        (name, n): mean_of(interval_of(draw, n, seed) for seed in range(n_draws))
        for name, draw in (generated() if quick else {**generated(), **stored()}).items()
        for n in sizes
    }
    names = ("iris", "wine") if quick else classified()
    sets = {name: sets_of(load(name), range(n_draws)) for name in names}
    parts, met = page_parts(intervals, sets)
    print("\n\n".join(parts))
    if not quick:
        n_fits = n_draws * (len(intervals) + len(sets))
        counts = f"{n_fits} fits in {perf_counter() - start:.0f} s"
        write_page("coverage", "Coverage of intervals and sets", COMMAND, counts, parts)
    return int(not met)


def generated() -> dict[str, Draw]:
    """Return the tables that are drawn anew for each fit."""

    def drawn(function: Callable[[int, int], tuple[Array, Array]]) -> Draw:
        def draw(n: int, rng: np.random.Generator) -> Rows:
            X, y = function(n + N_NEW, int(rng.integers(2**31)))
            return X[:n], y[:n], X[n:], y[n:]

        return draw

    return {name: drawn(function) for name, function in GENERATED.items()}


def stored() -> dict[str, Draw]:
    """Return the tables of scikit-learn, and numeric columns of data sets that can be loaded."""
    linnerud, found = load_linnerud(), datasets.available()
    tables = {
        "diabetes": load_diabetes(return_X_y=True),
        "linnerud": (linnerud.data, linnerud.target[:, 0]),
    }
    for name, column in COLUMNS.items():
        if found.get(name) is not None:
            X = datasets.load(name).X
            tables[f"{name}: {column}"] = numbers(X.drop(columns=column)), np.asarray(X[column])
    return {name: split(*each) for name, each in tables.items()}


def split(X: Array, y: Array) -> Draw:
    """Return random divisions of a table into at most n rows, or 3/4 of all, and new rows."""

    def draw(n: int, rng: np.random.Generator) -> Rows:
        order, n = rng.permutation(len(y)), min(n, 3 * len(y) // 4)
        a, b = order[:n], order[n : n + N_NEW]
        return X[a], y[a].astype(float), X[b], y[b].astype(float)

    return draw


def numbers(X: Any) -> Array:
    """Return a data frame as numbers: a column for each value of a column of text."""
    pandas = sys.modules["pandas"]
    text = [name for name in X if not pandas.api.types.is_numeric_dtype(X[name])]
    return np.asarray(pandas.get_dummies(X, columns=text), dtype=float) if text else np.asarray(X)


def classified() -> list[str]:
    """Return the data sets that can be loaded, of more than 60 rows and at most 30000."""
    sources = datasets.available()
    return [
        name
        for name, each in datasets.DATASETS.items()
        if sources.get(name) is not None and 60 < each.here.rows <= 30000
    ]


def load(name: str) -> tuple[Array, Array]:
    """Return the inputs and the codes of the classes of a data set, without very rare classes."""
    found = datasets.load(name)
    codes = np.unique(np.asarray(found.y), return_inverse=True)[1]
    kept = np.bincount(codes)[codes] >= FEWEST_OF_CLASS
    return numbers(found.X)[kept], np.unique(codes[kept], return_inverse=True)[1]


def mean_of(results: Iterable[Held]) -> Held:
    """Return the mean over draws or tables."""
    each = [(held.coverage, held.size) for held in results]
    return Held(*map(float, np.mean(each, axis=0)))


def interval_of(draw: Draw, n: int, seed: int) -> Held:
    """Return the coverage and the width, in standard deviations of errors, of intervals."""
    X, y, new_X, new_y = draw(n, np.random.default_rng([seed, n]))
    net = KARRegressorCV(random_state=seed).fit(X, y)
    low, high = net.predict_interval(new_X, COVERAGE).T
    inside = np.mean((low <= new_y) & (new_y <= high))
    return Held(float(inside), float(np.mean(high - low) / np.std(new_y - net.predict(new_X))))


def sets_of(rows: tuple[Array, Array], seeds: Sequence[int]) -> tuple[Held, Held]:
    """Return the mean over draws of our sets and of those of a forest."""
    pairs = [both_sets(*rows, seed) for seed in seeds]
    return mean_of(ours for ours, _ in pairs), mean_of(forest for _, forest in pairs)


def both_sets(X: Array, y: Array, seed: int) -> tuple[Held, Held]:
    """Return the coverage and size of our sets, and of a forest's with half of the rows for each.

    The forest is fitted to half of the training set, and the other half determines the threshold of
    probabilities by split conformal prediction.
    """
    order = np.random.default_rng(seed).permutation(len(y))
    n = min(MOST_ROWS, int(SHARE * len(y)))
    a, b = order[:n], order[n : n + 2 * N_NEW]
    net = KARClassifierCV(random_state=seed).fit(X[a], y[a])
    ours = wide(net.predict_set(X[b], COVERAGE), net.classes_, y)
    first, second = a[: n // 2], a[n // 2 :]
    forest = RandomForestClassifier(200, random_state=seed).fit(X[first], y[first])
    known = wide(forest.predict_proba(X[second]), forest.classes_, y)
    scores = np.sort(known[np.arange(len(second)), y[second]])[::-1]
    place = int(np.ceil((len(scores) + 1) * COVERAGE)) - 1
    probabilities = wide(forest.predict_proba(X[b]), forest.classes_, y)
    theirs = probabilities >= (scores[place] if place < len(scores) else 0.0)
    theirs[np.arange(len(b)), probabilities.argmax(axis=1)] = True
    return held(ours, y[b]), held(theirs, y[b])


def wide(values: Array, classes: Array, y: Array) -> Array:
    """Return columns for all classes, zero for those that are not among the given ones."""
    full = np.zeros((len(values), y.max() + 1), dtype=values.dtype)
    full[:, classes] = values
    return full


def held(sets: Array, codes: Array) -> Held:
    """Return the share of rows whose class is in their set, and the mean size."""
    inside = sets[np.arange(len(codes)), codes]
    return Held(float(inside.mean()), float(sets.sum(axis=1).mean()))


def page_parts(
    intervals: Mapping[tuple[str, int], Held], sets: Mapping[str, tuple[Held, Held]]
) -> tuple[list[str], bool]:
    """Return the paragraphs and tables of the page, and whether all requirements are met."""
    sizes = sorted({n for _, n in intervals})
    short = mean_of(intervals.values())
    long = [each.coverage for (_, n), each in intervals.items() if n >= ENOUGH_ROWS]
    ours, forest = (mean_of(each[k] for each in sets.values()) for k in (0, 1))
    smaller = sum(a.size <= b.size for a, b in sets.values())
    several = [a.coverage for a, _ in sets.values() if a.size > 1.01]
    met = [
        MEAN[0] <= short.coverage <= MEAN[1],
        min(long, default=1.0) >= LEAST,
        ours.coverage >= LEAST_OF_SETS and ours.size <= forest.size,
    ]
    names = dict.fromkeys(name for name, _ in intervals)
    rows = [[name, *(intervals[name, n] for n in sizes)] for name in names]
    means = [mean_of(intervals[name, n] for name in names) for n in sizes]
    least = min(long, default=np.nan)
    return [
        "## Intervals",
        "`KARRegressorCV.predict_interval` at 90 %: the share of new targets inside, and the mean "
        "width in standard deviations of the errors of `predict`. Of a table with fewer rows, 3/4 "
        f"are used. The mean coverage is {100 * short.coverage:.1f} % ({answer(met[0])}: between "
        f"{MEAN[0]:.0%} and {MEAN[1]:.0%}). The least for {ENOUGH_ROWS} rows or more is "
        f"{100 * least:.1f} % ({answer(met[1])}: at least {LEAST:.0%}).",
        table(["table", *(f"{n} rows" for n in sizes)], [*rows, ["mean", *means]]),
        "## Sets",
        "`KARClassifierCV.predict_set` at 90 %: the share of new classes in their set, and the "
        "mean number of classes in a set. The forest of 200 trees is fitted to half of the same "
        "rows, and the other half determines its threshold (split conformal prediction). No set is "
        "empty, so that accurate classifiers exceed the coverage. Our sets are on average smaller "
        f"({answer(met[2])}), and not larger than the forest's on {smaller} of {len(sets)} data "
        f"sets. Where they contain more than one class, their mean coverage is "
        f"{100 * np.mean(several or [np.nan]):.1f} %.",
        table(
            ["data set", "karnet", "forest"],
            [*([name, *each] for name, each in sets.items()), ["mean", ours, forest]],
        ),
    ], all(met)


def answer(met: bool) -> str:
    """Return how the page says whether a requirement is met."""
    return "met" if met else "**missed**"


if __name__ == "__main__":
    sys.exit(main())
