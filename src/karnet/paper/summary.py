"""What many fits come to: means of each method on each data set, over sets, and in tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from math import isnan, nan
from pathlib import Path

import numpy as np

from .._util.text_table import TextTable
from ..datasets import DATASETS
from .methods import METHODS, Method
from .reported import REPORTED_ACCURACY, REPORTED_CPU
from .store import Fit, write_csv

__all__ = [
    "AVERAGED",
    "Mean",
    "Summary",
    "accuracy_differences",
    "mean_accuracy",
    "mean_cpu",
    "on_the_same_folds",
    "speed_ratios",
    "summarise",
    "tables",
    "write_summary",
]

# The numbers of the data sets that the paper's means are taken over.
AVERAGED = range(1, 40)
DEFAULT = "karnet"


@dataclass(frozen=True)
class Summary:
    """What the fits of one method on one data set come to.

    Attributes
    ----------
    number : int
        The number of the data set.
    dataset, method : str
        Their names.
    accuracy : float
        Mean share of right answers over fits, in 0 ... 1; NaN if there was no training.
    spread : float
        Standard deviation of the means of trials; NaN for one trial.
    width : int
        The width most often chosen; of equals the least.
    cpu : float
        Mean seconds of training; NaN if there was no training.
    n_fits, n_trials : int
        How many there are.
    notes : Counter
        How many fits have which note.
    """

    number: int
    dataset: str
    method: str
    accuracy: float
    spread: float
    width: int
    cpu: float
    n_fits: int
    n_trials: int
    notes: Counter[str]


@dataclass(frozen=True)
class Mean:
    """A plain mean over data sets, and over how many; NaN over none."""

    value: float
    n_sets: int


def summarise(fits: Iterable[Fit]) -> list[Summary]:
    """Return one summary for each method and data set, sorted by method, then by number."""
    grouped: dict[tuple[str, str], list[Fit]] = defaultdict(list)
    for fit in fits:
        grouped[fit.method, fit.dataset].append(fit)
    summaries = [_summary(group) for group in grouped.values()]
    return sorted(summaries, key=lambda each: (each.method, each.number))


def _summary(fits: list[Fit]) -> Summary:
    by_trial: dict[int, list[float]] = defaultdict(list)
    for fit in fits:
        by_trial[fit.trial].append(fit.accuracy)
    means = [_mean(accuracies) for accuracies in by_trial.values()]
    widths = Counter(_width(fit) for fit in fits)
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
    """Write what the fits come to, one row for each method and data set."""
    header = [field.name for field in fields(Summary)]
    write_csv(path, header, ([*astuple(each)[:-1], _said(each)] for each in summarise(fits)))


def _said(summary: Summary) -> str:
    return ", ".join(f"{note}: {count}" for note, count in summary.notes.items())


def _width(fit: Fit) -> int:
    return int(fit.structure.split("-")[-1])


def _mean(values: Sequence[float]) -> float:
    """Return the mean of the values that are there; NaN if there are none."""
    there = [value for value in values if not isnan(value)]
    return float(np.mean(there)) if there else nan


def mean_accuracy(summaries: Iterable[Summary], method: str) -> Mean:
    """Return the mean accuracy of a method over the sets 1 to 39, in 0 ... 1."""
    return _mean_of_sets(
        (each.number, each.accuracy) for each in summaries if each.method == method
    )


def mean_cpu(summaries: Iterable[Summary], method: str) -> Mean:
    """Return the mean seconds of training of a method over the sets 1 to 39."""
    return _mean_of_sets((each.number, each.cpu) for each in summaries if each.method == method)


def _mean_of_sets(values: Iterable[tuple[int, float]]) -> Mean:
    there = [value for number, value in values if number in AVERAGED and not isnan(value)]
    return Mean(_mean(there), len(there))


def speed_ratios(fits: Iterable[Fit], slow: str, fast: str) -> dict[str, float]:
    """Return by data set how many times longer one method trains, on folds that both have."""
    return {
        name: _mean([a.cpu for a, _ in pairs]) / _mean([b.cpu for _, b in pairs])
        for name, pairs in on_the_same_folds(fits, slow, fast).items()
    }


def accuracy_differences(fits: Iterable[Fit], method: str, other: str) -> dict[str, float]:
    """Return by data set how much more accurate one method is, on folds that both have."""
    return {
        name: _mean([a.accuracy - b.accuracy for a, b in pairs])
        for name, pairs in on_the_same_folds(fits, method, other).items()
    }


def on_the_same_folds(
    fits: Iterable[Fit], method: str, other: str
) -> dict[str, list[tuple[Fit, Fit]]]:
    """Return by data set, in order of number, the pairs of fits that both trained."""
    trained = {fit.key: fit for fit in fits if not isnan(fit.accuracy)}
    pairs: dict[str, list[tuple[Fit, Fit]]] = defaultdict(list)
    for fit in trained.values():
        partner = trained.get((other, fit.dataset, fit.trial, fit.fold))
        if fit.method == method and partner is not None:
            pairs[fit.dataset].append((fit, partner))
    return {name: pairs[name] for name in sorted(pairs, key=lambda name: DATASETS[name].number)}


def tables(fits: Sequence[Fit], methods: Sequence[str]) -> list[TextTable]:
    """Return the tables of an experiment: accuracy, widths and times, or what each choice does.

    Parameters
    ----------
    fits : sequence of Fit
        Those of other methods are left out.
    methods : sequence of str
        Names of the methods to be set beside each other, as in `METHODS`.

    Returns
    -------
    list of Table
    """
    fits = [fit for fit in fits if fit.method in methods]
    chosen = [METHODS[name] for name in methods]
    if any(method.choice for method in chosen):
        return [_choices(fits, chosen)]
    summaries = summarise(fits)
    return [_accuracies(summaries, chosen), _widths(summaries, chosen), _times(summaries, chosen)]


def _accuracies(summaries: list[Summary], methods: list[Method]) -> TextTable:
    means = [mean_accuracy(summaries, method.name) for method in methods]
    rows = _rows(summaries, methods, _accuracy_cell)
    rows.append(("", "mean of those in 1-39", *(_per_cent(mean.value) for mean in means)))
    rows.append(("", "sets in that mean", *(str(mean.n_sets) for mean in means)))
    reported = [REPORTED_ACCURACY.get(method.name) for method in methods]
    rows.append(
        ("", "the paper's, of all 39", *("" if r is None else f"{r:.2f} %" for r in reported))
    )
    return TextTable(
        "Accuracy",
        ("", "data set", *(method.title for method in methods)),
        tuple(rows),
        "Baselines and deep networks are trained on some folds of the first trial only; * where "
        "the time limit ended a training.",
    )


def _accuracy_cell(summary: Summary) -> str:
    if isnan(summary.accuracy):
        return ", ".join(summary.notes)
    star = "*" if summary.notes["time limit"] else ""
    return f"{100 * summary.accuracy:.1f} %{star}"


def _per_cent(share: float) -> str:
    return "-" if isnan(share) else f"{100 * share:.2f} %"


def _widths(summaries: list[Summary], methods: list[Method]) -> TextTable:
    chosen = [method for method in methods if method.widths]
    names = dict.fromkeys(each.dataset for each in sorted(summaries, key=lambda s: s.number))
    paper = {name: DATASETS[name].widths for name in names}
    rows = [
        (*row, str(paper[row[1]].baseline or "-"), *map(str, paper[row[1]][1:]))
        for row in _rows(summaries, chosen, lambda summary: str(summary.width))
    ]
    header = ("paper's baseline", "paper's 2 layers", "paper's 3 layers", "paper's 4 layers")
    return TextTable(
        "Width chosen by cross-validation inside the training part",
        ("", "data set", *(method.title for method in chosen), *header),
        tuple(rows),
        "The width most often chosen over folds and trials; hidden layers of 3 layers are [2h, h], "
        "of 4 layers [4h, 2h, h].",
    )


def _times(summaries: list[Summary], methods: list[Method]) -> TextTable:
    means = [mean_cpu(summaries, method.name) for method in methods]
    rows = _rows(summaries, methods, lambda summary: _seconds(summary.cpu))
    rows.append(("", "mean of those in 1-39", *(_seconds(mean.value) for mean in means)))
    reported = [REPORTED_CPU.get(method.name) for method in methods]
    rows.append(
        ("", "the paper's, of all 39", *("" if r is None else _seconds(r) for r in reported))
    )
    return TextTable(
        "CPU time of one training",
        ("", "data set", *(method.title for method in methods)),
        tuple(rows),
        "Without the choice of the width.",
    )


def _seconds(seconds: float) -> str:
    return "-" if isnan(seconds) else f"{seconds:.4f} s"


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


def _choices(fits: Sequence[Fit], methods: list[Method]) -> TextTable:
    summaries = summarise(fits)
    default = mean_accuracy(summaries, DEFAULT)
    rows = [("", "as in the other tables", _per_cent(default.value), str(default.n_sets), "")]
    for method in methods:
        if method.choice is None:
            continue
        mean = mean_accuracy(summaries, method.name)
        differences = accuracy_differences(fits, method.name, DEFAULT)
        numbered = [(DATASETS[name].number, value) for name, value in differences.items()]
        points = f"{100 * _mean_of_sets(numbered).value:+.2f}"
        rows.append((*method.choice, _per_cent(mean.value), str(mean.n_sets), points))
    return TextTable(
        "What the paper leaves open, varied one at a time",
        ("choice", "option", "mean accuracy", "sets of 1-39", "difference in points"),
        tuple(rows),
        "By default inputs are in [0, 1], categories integers, initial weights normal, logit is "
        "log|x / (1 - x)|, the cut-off 1e-9, and of equally good widths the least is taken. "
        "Differences are on the same folds.",
    )
