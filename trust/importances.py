"""Importances of columns and influences: `python -m trust.importances` writes a page of docs."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.base import is_classifier
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.inspection import permutation_importance
from sklearn.metrics import accuracy_score, r2_score

from karnet import KARClassifierCV, KARRegressorCV
from karnet.inspection import row_influence
from trust.record import table, write_page

Array = NDArray[Any]
COMMAND = "make trust"
# Rows of generated training sets, largest number of those of stored ones, and of held-out rows.
N_TRAIN, MOST_TRAIN, N_HELD_OUT = 1000, 2000, 10_000
# Share of the rows of a stored table that is used for training.
TRAIN_SHARE = 2 / 3
FEWEST_ROWS = 1000
N_SEEDS, N_REPEATS = 5, 5
# Names of the default score and of the squared error.
DEFAULT, SQUARED = "default", "squared error"
# Correlation of two halves of held-out rows from which on the order of the columns is clear.
CLEAR = 0.9
# Columns of noise that are appended to a table.
N_NOISE = 5
# Requirements: the mean correlation, the largest share of a column of noise, and CPU times of
# importances and of influences relative to that of the fit.
CORRELATION, NOISE_SHARE, TIME_OF_IMPORTANCES, TIME_OF_INFLUENCES = 0.9, 0.02, 2.0, 1.0


@dataclass(frozen=True)
class Rows:
    """Training rows and held-out rows of a table; y holds numbers or codes of classes."""

    X: Any
    y: Array
    X_new: Any
    y_new: Array
    classes: bool


@dataclass(frozen=True)
class Agreement:
    """Spearman correlations with importances by shuffling held-out rows."""

    importances: float  # of feature_importances_
    squared: float  # the same where the squared error is shuffled for, not R^2 or the accuracy
    metric: float  # of the diagonal of the input metric
    halves: float  # between two halves of the held-out rows
    forest: float  # of a forest's feature_importances_ with its own


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write the page; return 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small table, no page")
    quick, start = parser.parse_args(arguments).quick, perf_counter()
    found = {
        name: [agreement(draw(seed, 500 if quick else N_HELD_OUT)) for seed in range(N_SEEDS)]
        for name, draw in GENERATED.items()
        if not quick or name == "Friedman 2"
    }
    if not quick:
        for name in stored():
            found[name] = [agreement(stored_rows(name))]
    noise = {
        name: [noise_share(*made(), seed) for seed in range(3)] for name, made in NOISY.items()
    }
    parts, met = page_parts(found, noise, relative_times())
    print("\n\n".join(parts))
    if not quick:
        counts = f"{len(found)} tables in {perf_counter() - start:.0f} s"
        write_page("importances", "Importances of columns", COMMAND, counts, parts)
    return int(not met)


Draw = Callable[[int, int], Rows]


def friedman(make: Callable[..., tuple[Array, Array]], noise: float) -> Draw:
    """Return the function that draws one of Friedman's problems."""

    def draw(seed: int, n_new: int) -> Rows:
        return parted(*make(N_TRAIN + n_new, noise=noise, random_state=seed))

    return draw


def correlated(seed: int, n_new: int) -> Rows:
    """Return a linear problem: 12 columns, each like its neighbours, 8 with a coefficient."""
    rng = np.random.default_rng(seed)
    places = np.arange(12)
    covariance = 0.7 ** np.abs(places[:, None] - places)
    X = rng.multivariate_normal(np.zeros(12), covariance, N_TRAIN + n_new)
    coefficients = np.where(rng.permutation(12) < 8, rng.standard_normal(12), 0.0)
    return parted(X, X @ coefficients + rng.standard_normal(len(X)))


def parted(X: Array, y: Array) -> Rows:
    """Return the first rows for training, and the others."""
    return Rows(X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:], classes=False)


GENERATED: dict[str, Draw] = {
    "Friedman 1": friedman(make_friedman1, 1.0),
    "Friedman 2": friedman(make_friedman2, 125.0),
    "Friedman 3": friedman(make_friedman3, 0.1),
    "linear, correlated": correlated,
}


def stored() -> list[str]:
    """Return the names of tables that can be loaded and are long enough."""
    from benchmarks.quality import data

    names = []
    for name in data.PROBLEMS:
        try:
            long = len(data.load(name).y) >= FEWEST_ROWS
        except FileNotFoundError:
            continue
        if long and not name.startswith(("friedman", "linear")):
            names.append(name)
    return names


def frame(name: str) -> tuple[Any, Array, bool]:
    """Return a table as a data frame, its targets, and whether these are classes."""
    import pandas as pd

    from benchmarks.quality import data

    problem = data.load(name)
    categories, numbers = problem.inputs.categories, problem.inputs.numbers
    X = {f"category {k}": pd.Categorical(column) for k, column in enumerate(categories.T)}
    X |= {f"number {k}": column for k, column in enumerate(numbers.T)}
    return pd.DataFrame(X), problem.y, problem.kind == "classification"


def stored_rows(name: str) -> Rows:
    """Return a random division of a stored table."""
    X, y, classes = frame(name)
    order = np.random.default_rng(0).permutation(len(y))
    n = min(MOST_TRAIN, int(TRAIN_SHARE * len(y)))
    a, b = order[:n], order[n : n + N_HELD_OUT]
    return Rows(X.iloc[a], y[a], X.iloc[b], y[b], classes)


def fitted(rows: Rows) -> Any:
    """Return the fitted estimator."""
    net = (KARClassifierCV if rows.classes else KARRegressorCV)(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return net.fit(rows.X, rows.y)


def forest_of(X: Array, y: Array, classes: bool) -> Any:
    """Return a fitted forest."""
    forest = RandomForestClassifier if classes else RandomForestRegressor
    return forest(random_state=0, n_jobs=1).fit(X, y)


def codes(X: Any) -> Array:
    """Return a data frame as numbers, with the codes of categories."""
    if isinstance(X, np.ndarray):
        return X
    columns = [X[name].cat.codes if hasattr(X[name], "cat") else X[name] for name in X]
    return np.column_stack(columns).astype(float)


def scores(estimator: Any, X: Any, y: Array) -> dict[str, float]:
    """Return R^2 or the accuracy, and the negative squared error.

    The squared error of a classifier is that of its decision function from indicators of classes.
    """
    if not is_classifier(estimator):
        predicted = estimator.predict(X)
        return {DEFAULT: r2_score(y, predicted), SQUARED: -float(np.mean((predicted - y) ** 2))}
    if not hasattr(estimator, "decision_function"):  # a forest, of which only the first is used
        return {DEFAULT: accuracy_score(y, estimator.predict(X)), SQUARED: float("nan")}
    decision = estimator.decision_function(X)
    if decision.ndim == 1:
        decision = np.column_stack([1.0 - decision, 1.0 + decision]) / 2.0
    errors = np.sum((decision - (y[:, None] == estimator.classes_)) ** 2, axis=1)
    predicted = estimator.classes_[decision.argmax(axis=1)]
    return {DEFAULT: accuracy_score(y, predicted), SQUARED: -float(errors.mean())}


def shuffled(estimator: Any, X: Any, y: Array) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return scikit-learn's permutation importances on both halves of held-out rows."""

    def of(half: slice) -> dict[str, Array]:
        part = X[half] if isinstance(X, np.ndarray) else X.iloc[half]
        found = permutation_importance(
            estimator, part, y[half], scoring=scores, n_repeats=N_REPEATS, random_state=0
        )
        return {name: each.importances_mean for name, each in found.items()}

    middle = len(y) // 2
    return of(slice(None, middle)), of(slice(middle, None))


def correlation(a: Array, b: Array) -> float:
    """Return Spearman's rank correlation: 0 if a is constant, NaN if b is constant."""
    if np.ptp(b) == 0.0:
        return float("nan")
    if np.ptp(a) == 0.0:
        return 0.0
    return float(spearmanr(a, b).statistic)


def agreement(rows: Rows) -> Agreement:
    """Return how importances agree with those by shuffling held-out rows."""
    net = fitted(rows)
    first, second = shuffled(net, rows.X_new, rows.y_new)
    both = {name: first[name] + second[name] for name in first}
    forest = forest_of(codes(rows.X), rows.y, rows.classes)
    halves = shuffled(forest, codes(rows.X_new), rows.y_new)
    return Agreement(
        correlation(net.feature_importances_, both[DEFAULT]),
        correlation(net.feature_importances_, both[SQUARED]),
        correlation(net.input_metric_, both[DEFAULT]),
        correlation(first[DEFAULT], second[DEFAULT]),
        correlation(forest.feature_importances_, halves[0][DEFAULT] + halves[1][DEFAULT]),
    )


def friedman_table() -> tuple[Array, Array, bool]:
    """Return the rows of Friedman's first problem."""
    return *make_friedman1(N_TRAIN, noise=1.0, random_state=0), False


def diabetes() -> tuple[Array, Array, bool]:
    """Return the diabetes data."""
    return *load_diabetes(return_X_y=True), False


def breast_cancer() -> tuple[Array, Array, bool]:
    """Return the breast cancer data."""
    return *load_breast_cancer(return_X_y=True), True


NOISY: dict[str, Callable[[], tuple[Array, Array, bool]]] = {
    "Friedman 1": friedman_table,
    "diabetes": diabetes,
    "breast cancer": breast_cancer,
}


def noise_share(X: Array, y: Array, classes: bool, seed: int) -> float:
    """Return the largest importance among columns of noise that are appended to a table."""
    noise = np.random.default_rng(seed).standard_normal((len(y), N_NOISE))
    wide = np.hstack([X, noise])
    net = fitted(Rows(wide, y, wide, y, classes))
    return float(net.feature_importances_[-N_NOISE:].max())


def relative_times(n: int = 1000, n_features: int = 20, n_times: int = 3) -> tuple[float, float]:
    """Return CPU times of importances and of influences of n rows, relative to that of the fit."""
    ratios = []
    for seed in range(n_times):
        X, y = make_friedman1(2 * n, n_features=n_features, noise=1.0, random_state=seed)
        net, times = KARRegressorCV(random_state=0), [process_time()]
        net.fit(X[:n], y[:n])
        times.append(process_time())
        assert len(net.feature_importances_) == n_features
        times.append(process_time())
        assert row_influence(net, X[n:]).changes.shape == (n, n)
        times.append(process_time())
        fit, importances, influences = np.diff(times)
        ratios.append((float(importances / fit), float(influences / fit)))
    return median(a for a, _ in ratios), median(b for _, b in ratios)


def mean_of(found: Iterable[Agreement]) -> Agreement:
    """Return the means of correlations that are defined."""
    each = np.array([astuple(one) for one in found])
    return Agreement(*(float(np.nanmean(column)) for column in each.T))


def page_parts(
    found: Mapping[str, Sequence[Agreement]],
    noise: Mapping[str, Sequence[float]],
    times: tuple[float, float],
) -> tuple[list[str], bool]:
    """Return the paragraphs and tables of the page, and whether all requirements are met."""
    means = {name: mean_of(each) for name, each in found.items()}
    mean, most = mean_of(means.values()), max(map(max, noise.values()))
    met = [
        mean.importances >= CORRELATION,
        most <= NOISE_SHARE,
        times[0] <= TIME_OF_IMPORTANCES,
        times[1] <= TIME_OF_INFLUENCES,
    ]
    requirements = [
        f"The mean correlation over tables is at least {CORRELATION}",
        f"No column of noise has a share above {NOISE_SHARE:.0%}",
        f"Importances take at most {TIME_OF_IMPORTANCES:g} times the CPU time of the fit",
        f"Influences take at most {TIME_OF_INFLUENCES:g} times the CPU time of the fit",
    ]
    measured = [f"{mean.importances:.3f}", f"{most:.2%}", *(f"{time:.2f}" for time in times)]
    verdicts = ["met" if each else "**missed**" for each in met]
    parts = [
        "## Requirements",
        table(
            ["requirement", "measured", "verdict"],
            zip(requirements, measured, verdicts, strict=True),
        ),
        "Times are medians of three fits of `KARRegressorCV` to 1000 rows of 20 columns: of "
        "`feature_importances_`, and of `karnet.inspection.row_influence` for 1000 new rows.",
        "## Correlations",
        *correlations(means, mean),
        "## Columns of noise",
        f"The largest share in `feature_importances_` among {N_NOISE} columns of standard normal "
        "noise that are appended to a table, for three draws of the noise.",
        table(
            ["table", "largest share"],
            [[name, ", ".join(f"{one:.2%}" for one in each)] for name, each in noise.items()],
        ),
    ]
    return parts, all(met)


def correlations(means: Mapping[str, Agreement], mean: Agreement) -> list[str]:
    """Return the paragraphs and the table of correlations."""

    def line(name: str, each: Agreement) -> list[str]:
        return [name, *(f"{value:.2f}" for value in astuple(each))]

    clear = [each.importances for each in means.values() if each.halves >= CLEAR]
    return [
        "Spearman's rank correlation of `feature_importances_`, which come from the training rows "
        "alone, with scikit-learn's `permutation_importance` of the same fitted estimator on "
        f"held-out rows ({N_REPEATS} repeats, default scoring: R^2 or accuracy). Generated tables "
        f"have {N_TRAIN} training rows and {N_HELD_OUT} held-out rows, and correlations are means "
        f"over {N_SEEDS} draws. Of stored tables, which are data frames, at most {MOST_TRAIN} rows "
        "and at most two thirds are used for training, and at most "
        f"{N_HELD_OUT} of the others are held out.",
        "For classes, `feature_importances_` are shares of the rises of an error rate in which a "
        "row counts as wrong in part if the score of its class differs from the largest other "
        "score by less than a width. The width is 0.5, 0.25, 0.125 or 0, and is chosen for each "
        "table from its training rows alone: the one with which importances from half of the rows "
        "are closest to those by the plain error rate from the other half. Rises of less than two "
        "standard errors are 0, and the correlation is 0 if all are. "
        "*Squared error* is the correlation with permutation importances by the squared error; "
        "for classes, that of the decision function from "
        "the indicators of the classes. *Metric* is the correlation with the default scoring for "
        "the diagonal of the input metric (`input_metric_`). *Halves* is the "
        "correlation between permutation importances on the two halves of the held-out rows: where "
        "it is low, the order of the columns is noise, and no estimate can be close to it. "
        "*Forest* is the correlation of a random forest's `feature_importances_` with its own "
        "permutation importances on the same rows. Over the "
        f"{len(clear)} tables whose halves correlate at {CLEAR} or more, the mean correlation of "
        f"`feature_importances_` is {np.mean(clear or [np.nan]):.3f}.",
        table(
            ["table", "importances", "squared error", "metric", "halves", "forest"],
            [*(line(name, each) for name, each in means.items()), line("mean", mean)],
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
