"""The sections of the report on the data sets: accuracy and time, depth, and open choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import isnan, nan
from pathlib import Path

import numpy as np

from .._pages import html as page
from ..datasets import DATASETS
from . import figures
from .methods import EXPERIMENTS_OF_SETS, METHODS
from .results import BASELINE, DEPTHS, KARNET, SAME_WIDTH, Results
from .summary import AVERAGED, Summary, accuracy_differences, on_the_same_folds, tables
from .verdicts import factor

__all__ = ["baseline_notes", "choices", "depth", "names_of_sets", "sets"]


def _missing(experiment: str) -> list[str]:
    return [page.paragraph(f"Not run here: “karnet reproduce {experiment}” makes this section.")]


def sets(results: Results, folder: Path) -> list[str]:
    """Return the section on accuracy and training time beside the baselines."""
    methods = EXPERIMENTS_OF_SETS["uci"]
    there = [name for name in methods if results.of(name)]
    if not there:
        return _missing("uci")
    best = [name for name in (KARNET, BASELINE, "mlp") if name in there]
    same = [name for name in (SAME_WIDTH, BASELINE, "mlp, baseline's width") if name in there]
    drawn = []
    for number, chosen, time in (
        (6, best, False),
        (7, same, False),
        (8, best, True),
        (9, same, True),
    ):
        width = "at the width chosen" if chosen is best else "at the baseline's width"
        what = "training CPU time" if time else "accuracy"
        if chosen:
            titles = [METHODS[name].title.partition(",")[0] for name in chosen]
            drawing = _per_set(results, chosen, titles, time)
            name = f"figure-{number:02}-{'time' if time else 'accuracy'}"
            svg = figures.save(drawing, folder, name + ("" if chosen is best else "-equal-width"))
            drawn.append(page.figure(svg, f"Figure {number}: {what} {width}", _caption(time)))
    return [
        page.paragraph(_effort(results)),
        page.paragraph(_speed(results)),
        page.paragraph(_unhurried(results)),
        page.figures(*drawn),
        *(page.table(each) for each in tables(results.fits, there)),
    ]


def _caption(time: bool) -> str:
    scale = "One training, without the choice of the width; logarithmic." if time else "Test rows."
    return f"{scale} The width of Levenberg-Marquardt is the one that the paper chose for it."


def _per_set(
    results: Results, methods: Sequence[str], titles: Sequence[str], time: bool
) -> figures.Figure:
    def value(each: Summary) -> float:
        return each.cpu if time else 100 * each.accuracy

    names = names_of_sets(results, methods)
    series = [
        _series(results, names, method, title, value)
        for method, title in zip(methods, titles, strict=True)
    ]
    rows = [f"{name}  {DATASETS[name].number}" for name in names]
    return figures.per_set(rows, series, "CPU time, s" if time else "accuracy, %", log=time)


def names_of_sets(results: Results, methods: Sequence[str]) -> list[str]:
    """Return the names of the data sets that any of the methods was run on, by number."""
    found = {(each.number, each.dataset) for name in methods for each in results.of(name)}
    return [name for _, name in sorted(found)]


def _series(
    results: Results,
    names: Sequence[str],
    method: str,
    title: str,
    value: Callable[[Summary], float],
) -> figures.Series:
    by_name = {each.dataset: each for each in results.of(method)}
    values = [value(by_name[name]) if name in by_name else nan for name in names]
    notes = [", ".join(by_name[name].notes) if name in by_name else "" for name in names]
    return figures.Series(title, [None if isnan(each) else each for each in values], notes)


def _effort(results: Results) -> str:
    """Say how much was run of each method."""
    parts = []
    for name in EXPERIMENTS_OF_SETS["uci"]:
        found = results.of(name)
        if found:
            n_fits, n_trials = sum(s.n_fits for s in found), _range(s.n_trials for s in found)
            trials = f"{n_trials} trial{'' if n_trials == '1' else 's'}"
            parts.append(f"{METHODS[name].title}, {len(found)} sets, {trials}, {n_fits} fits")
    minutes = sum(fit.cpu_in_all for fit in results.fits if fit.method == KARNET) / 60.0
    return (
        f"What was run: {'; '.join(parts)}. All of {METHODS[KARNET].title}, with the choice of its "
        f"width for every fold, took {minutes:.1f} minutes of CPU time."
    )


def _range(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def baseline_notes(results: Results) -> str:
    """Say on how many folds the baseline was trained, and how its trainings ended."""
    found = results.of(BASELINE)
    if not found:
        return "It was not run."
    notes = sum((each.notes for each in found), Counter[str]())
    n_fits = sum(each.n_fits for each in found)
    return (
        f"It was tried on {len(found)} sets, folds of the first trial on each: "
        f"{_range(each.n_fits for each in found)}. Of {n_fits} trainings, {notes['time limit']} "
        f"ended by the time limit of {results.settings.time_limit:g} s and "
        f"{notes['out of memory']} did not fit in memory."
    )


def _speed(results: Results) -> str:
    ratios = results.speed_ratios
    if not ratios:
        return "How many times faster KARnet trains at equal width was not measured."
    mean, median, least, most = (
        factor(float(f(ratios))) for f in (np.mean, np.median, np.min, np.max)
    )
    return (
        f"At equal width and on the same folds KARnet trains {mean} times as fast as "
        f"Levenberg-Marquardt in the mean of {len(ratios)} sets, {median} times in the median, "
        f"{least} to {most} times on single ones, and by the ratio of mean times, as the paper "
        f"counts, {_ratio_of_means(results)}. A training that the time limit ended would have "
        "taken longer."
    )


def _ratio_of_means(results: Results) -> str:
    pairs = on_the_same_folds(results.fits, BASELINE, SAME_WIDTH).values()
    slow, fast = (
        float(np.mean([np.mean([pair[k].cpu for pair in each]) for each in pairs])) for k in (0, 1)
    )
    return factor(slow / fast)


def _unhurried(results: Results) -> str:
    """Say how the baseline does where the time limit did not end its training."""
    pairs = on_the_same_folds(results.fits, BASELINE, SAME_WIDTH).values()
    whole = [[pair for pair in each if not pair[0].note] for each in pairs]
    whole = [each for each in whole if each]
    if not whole:
        return "No training of Levenberg-Marquardt came to its own end."
    theirs, ours = (
        100 * float(np.mean([np.mean([pair[k].accuracy for pair in each]) for each in whole]))
        for k in (0, 1)
    )
    return (
        f"Where its training came to its own end ({len(whole)} of the sets), "
        "Levenberg-Marquardt has a "
        f"mean accuracy of {theirs:.1f} %, and KARnet of the same width {ours:.1f} % on the same "
        "folds."
    )


def depth(results: Results, folder: Path) -> list[str]:
    """Return the section on networks of two, three and four layers."""
    there = {n: name for n, name in DEPTHS.items() if results.of(name)}
    if 2 not in there or len(there) == 1:
        return _missing("depth")
    results = results.on_common_folds(list(there.values()))
    parts = []
    for n in sorted(set(there) - {2}):
        p_value = results.p_value(n)
        test = "" if p_value is None else f", p = {p_value:.2g}"
        parts.append(f"{n} layers {results.change_by_depth(n):+.2f} points{test}")
    folds = _range(each.n_fits for each in results.of(KARNET))
    titles = [f"{n} layers" for n in there]
    drawing = _per_set(results, list(there.values()), titles, time=False)
    svg = figures.save(drawing, folder, "figure-10-depth")
    return [
        page.paragraph(
            "Hidden layers of h units in two layers, 2h and h in three, 4h, 2h and h in four; h is "
            f"chosen for each by cross-validation. Folds of the first trial that all were trained "
            f"on, by set: {folds}; sets: {len(results.of(KARNET))}. Change of the mean accuracy "
            f"from two layers: {'; '.join(parts)}. p is that of Wilcoxon's test over the sets."
        ),
        page.figure(svg, "Figure 10: accuracy and depth", "Test rows."),
        *(page.table(each) for each in tables(results.fits, list(there.values()))),
    ]


def choices(results: Results, folder: Path) -> list[str]:
    """Return the section on what the paper leaves open."""
    there = [name for name in EXPERIMENTS_OF_SETS["choices"] if results.of(name)]
    varied = [name for name in there if METHODS[name].choice]
    if not varied or KARNET not in there:
        return _missing("choices")
    points = []
    for name in varied:
        by_set = accuracy_differences(results.fits, name, KARNET)
        averaged = [by_set[each] for each in by_set if DATASETS[each].number in AVERAGED]
        points.append(100 * float(np.mean(averaged)) if averaged else 0.0)
    drawing = figures.differences(
        [METHODS[name].title for name in varied], points, "difference of mean accuracy, points"
    )
    svg = figures.save(drawing, folder, "open-choices")
    trials = _range(each.n_trials for name in varied for each in results.of(name))
    return [
        page.paragraph(
            "The paper does not say how inputs are scaled, how categories become numbers, how "
            "initial weights are drawn, what logit is outside (0, 1), where the solver cuts off, "
            "and which of equally good widths is taken. Here one of these is varied at a time, "
            f"trials: {trials}."
        ),
        page.figure(
            svg, "Open choices", "Right of the line, the variation is better than the default."
        ),
        *(page.table(each) for each in tables(results.fits, there)),
    ]
