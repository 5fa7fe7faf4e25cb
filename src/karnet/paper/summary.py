"""Means of many fits: by method and data set, over data sets, and as tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._util.text_table import TextTable
from ..datasets import DATASETS
from .methods import KARNET, METHODS, REPORTED, Method
from .store import Fit, write_csv

# The numbers of the data sets that the paper's means are over.
AVERAGED = range(1, 40)


class Summary(NamedTuple):
    """Means over the fits of one method on one data set."""

    number: int  # of the data set
    dataset: str
    method: str
    accuracy: float  # mean over fits, in 0 ... 1; NaN if there was no training
    spread: float  # standard deviation of the means of trials; NaN for one trial
    width: int  # the width chosen most often; the least one of equals
    cpu: float  # mean seconds of training; NaN if there was no training
    n_fits: int
    n_trials: int
    notes: Counter[str]  # number of fits by note


class Mean(NamedTuple):
    """A mean over data sets, and their number; NaN for none."""

    value: float
    n_sets: int


def summarise(fits: Iterable[Fit]) -> list[Summary]:
    """Return one summary for each method and data set, sorted by method, then by number."""
    grouped: dict[tuple[str, str], list[Fit]] = defaultdict(list)
    for fit in fits:
        grouped[fit.method, fit.dataset].append(fit)
    return sorted(map(_summary, grouped.values()), key=lambda each: (each.method, each.number))


def _summary(fits: list[Fit]) -> Summary:
    trials = dict.fromkeys(fit.trial for fit in fits)
    means = [_mean(fit.accuracy for fit in fits if fit.trial == trial) for trial in trials]
    widths = Counter(int(fit.structure.split("-")[-1]) for fit in fits)
    return Summary(
        number=DATASETS[fits[0].dataset].number,
        dataset=fits[0].dataset,
        method=fits[0].method,
        accuracy=_mean([fit.accuracy for fit in fits]),
        spread=float(np.std(means, ddof=1)) if len(means) > 1 else nan,
        width=min(widths, key=lambda width: (-widths[width], width)),
        cpu=_mean([fit.cpu for fit in fits]),
        n_fits=len(fits),
        n_trials=len(means),
        notes=Counter(fit.note for fit in fits if fit.note),
    )


def write_summary(path: Path, fits: Iterable[Fit]) -> None:
    """Write the summaries of fits as CSV, one row for each method and data set."""
    rows = [
        (*each[:-1], ", ".join(f"{note}: {n}" for note, n in each.notes.items()))
        for each in summarise(fits)
    ]
    write_csv(path, Summary._fields, rows)


def _mean(values: Iterable[float]) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    defined = [value for value in values if not isnan(value)]
    return float(np.mean(defined)) if defined else nan


def mean_over_sets(summaries: Iterable[Summary], method: str, of: str) -> Mean:
    """Return the mean accuracy (in 0 ... 1) or seconds of training over the sets 1 to 39."""
    averaged = (each for each in summaries if each.method == method and each.number in AVERAGED)
    defined = [value for value in (getattr(each, of) for each in averaged) if not isnan(value)]
    return Mean(_mean(defined), len(defined))


def speed_ratios(fits: Iterable[Fit], slow: str, fast: str) -> dict[str, float]:
    """Return the ratio of mean training times by data set, on the folds of both methods."""
    return {
        name: _mean(a.cpu for a, _ in pairs) / _mean(b.cpu for _, b in pairs)
        for name, pairs in on_the_same_folds(fits, slow, fast).items()
    }


def accuracy_differences(fits: Iterable[Fit], method: str, other: str) -> dict[str, float]:
    """Return the mean difference of accuracies by data set, on the folds of both methods."""
    return {
        name: _mean(a.accuracy - b.accuracy for a, b in pairs)
        for name, pairs in on_the_same_folds(fits, method, other).items()
    }


def mean_difference(fits: Iterable[Fit], method: str) -> float:
    """Return the mean difference of a method's accuracy to KARnet's over the sets 1 to 39."""
    differences = accuracy_differences(fits, method, KARNET).items()
    return _mean(value for name, value in differences if DATASETS[name].number in AVERAGED)


def on_the_same_folds(
    fits: Iterable[Fit], method: str, other: str
) -> dict[str, list[tuple[Fit, Fit]]]:
    """Return pairs of trainings on the same fold, by data set in order of number."""
    trained = {fit.key: fit for fit in fits if not isnan(fit.accuracy)}
    pairs: dict[str, list[tuple[Fit, Fit]]] = defaultdict(list)
    for fit in trained.values():
        partner = trained.get(fit.key._replace(method=other))
        if fit.method == method and partner is not None:
            pairs[fit.dataset].append((fit, partner))
    return {name: pairs[name] for name in sorted(pairs, key=lambda name: DATASETS[name].number)}


def tables(fits: Sequence[Fit], methods: Sequence[str]) -> list[TextTable]:
    """Return tables that compare methods: accuracy, widths and times, or the open choices."""
    fits = [fit for fit in fits if fit.method in methods]
    compared = [METHODS[name] for name in methods]
    summaries = summarise(fits)
    if any(method.choice for method in compared):
        return [_choices(fits, summaries, compared)]
    return [make(summaries, compared) for make in (_accuracies, _widths, _times)]


def _accuracies(summaries: list[Summary], methods: list[Method]) -> TextTable:
    note = (
        "Baselines are trained on some folds of the first trial only; * marks data sets on which "
        "the time limit ended a training."
    )
    means = [mean_over_sets(summaries, method.name, "accuracy") for method in methods]
    paper = (per_cent(REPORTED["accuracy"].get(method.name)) for method in methods)
    rows = (
        *_rows(summaries, methods, _accuracy_cell),
        ("", "mean of those in 1-39", *(per_cent(mean.value) for mean in means)),
        ("", "sets in that mean", *(str(mean.n_sets) for mean in means)),
        ("", "the paper's, of all 39", *paper),
    )
    return TextTable("Accuracy", _header(methods), rows, note)


def _times(summaries: list[Summary], methods: list[Method]) -> TextTable:
    note = "Without the choice of the width."
    means = (mean_over_sets(summaries, method.name, "cpu").value for method in methods)
    paper = (_seconds(REPORTED["cpu"].get(method.name)) for method in methods)
    rows = (
        *_rows(summaries, methods, lambda each: _seconds(each.cpu)),
        ("", "mean of those in 1-39", *map(_seconds, means)),
        ("", "the paper's, of all 39", *paper),
    )
    return TextTable("CPU time of one training", _header(methods), rows, note)


def _header(methods: list[Method]) -> tuple[str, ...]:
    return "", "data set", *(method.title for method in methods)


def _rows(
    summaries: list[Summary], methods: list[Method], cell: Callable[[Summary], str]
) -> list[tuple[str, ...]]:
    """Return a row for each data set: number, name, and a cell for each method."""
    by_key = {(each.number, each.dataset, each.method): each for each in summaries}
    rows = []
    for number, name in sorted({key[:2] for key in by_key}):
        found = [by_key.get((number, name, method.name)) for method in methods]
        rows.append((str(number), name, *("" if each is None else cell(each) for each in found)))
    return rows


def _accuracy_cell(summary: Summary) -> str:
    if isnan(summary.accuracy):
        return ", ".join(summary.notes)
    star = "*" if summary.notes["time limit"] else ""
    return f"{100 * summary.accuracy:.1f} %{star}"


def per_cent(share: float | None) -> str:
    """Return a share in per cent, a dash for NaN, and nothing for None."""
    return "" if share is None else "-" if isnan(share) else f"{100 * share:.2f} %"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else "-" if isnan(seconds) else f"{seconds:.4f} s"


def _widths(summaries: list[Summary], methods: list[Method]) -> TextTable:
    chosen = [method for method in methods if method.widths]
    rows = []
    for row in _rows(summaries, chosen, lambda each: str(each.width)):
        baseline, *own = DATASETS[row[1]].widths
        rows.append((*row, str(baseline or "-"), *map(str, own)))
    paper = ("paper's baseline", "paper's 2 layers", "paper's 3 layers", "paper's 4 layers")
    return TextTable(
        "Width chosen by cross-validation inside the training part",
        (*_header(chosen), *paper),
        tuple(rows),
        "The width chosen most often over folds and trials; the hidden layers of 3 layers are "
        "[2h, h], those of 4 layers [4h, 2h, h].",
    )


def _choices(fits: list[Fit], summaries: list[Summary], methods: list[Method]) -> TextTable:
    rows = []
    for method in methods:
        what, option = method.choice or ("", "as in the other tables")
        mean = mean_over_sets(summaries, method.name, "accuracy")
        points = f"{100 * mean_difference(fits, method.name):+.2f}" if method.choice else ""
        rows.append((what, option, per_cent(mean.value), str(mean.n_sets), points))
    return TextTable(
        "Details that the paper leaves open, varied one at a time",
        ("choice", "option", "mean accuracy", "sets of 1-39", "difference in points"),
        tuple(rows),
        "By default inputs are scaled to [0, 1], categories are integers, initial weights are "
        "normal, logit is log|x / (1 - x)|, the cut-off is 1e-9, and the least of equally good "
        "widths is taken. Differences are on the same folds.",
    )
