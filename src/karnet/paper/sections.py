"""The sections of the report on the data sets: accuracy and time, depth, and open choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import isnan, nan
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from .._pages import html as page
from ..datasets import DATASETS
from . import figures
from .methods import BASELINE, DEPTHS, EXPERIMENTS_OF_SETS, KARNET, METHODS, SAME_WIDTH
from .results import Results
from .store import Fit
from .summary import mean_difference, on_the_same_folds, tables
from .verdicts import factor


def _missing(experiment: str) -> list[str]:
    return [page.paragraph(f"Not run here: run “karnet reproduce {experiment}” for this section.")]


def sets(results: Results, folder: Path) -> list[str]:
    """Return the section that compares accuracy and training time with the baselines."""
    run = [name for name in EXPERIMENTS_OF_SETS["uci"] if results.of(name)]
    if not run:
        return _missing("uci")
    best = [name for name in (KARNET, BASELINE, "mlp") if name in run]
    same = [name for name in (SAME_WIDTH, BASELINE, "mlp, baseline's width") if name in run]
    drawn = []
    for number, methods, time in (
        (6, best, False),
        (7, same, False),
        (8, best, True),
        (9, same, True),
    ):
        if not methods:
            continue
        width = "at the width chosen" if methods is best else "at the baseline's width"
        what = "training CPU time" if time else "accuracy"
        titles = {name: METHODS[name].title.partition(",")[0] for name in methods}
        name = f"figure-{number:02}-{'time' if time else 'accuracy'}"
        name += "" if methods is best else "-equal-width"
        svg = figures.save(_per_set(results, titles, time), folder, name)
        drawn.append(page.figure(svg, f"Figure {number}: {what} {width}", _caption(time)))
    return [
        page.paragraph(_effort(results)),
        page.paragraph(_speed(results)),
        page.paragraph(_without_time_limit(results)),
        page.figures(*drawn),
        *(page.table(each) for each in tables(results.fits, run)),
    ]


def _caption(time: bool) -> str:
    scale = "One training, without the choice of the width; logarithmic." if time else "Test rows."
    return f"{scale} The width of Levenberg-Marquardt is the one that the paper chose for it."


def _per_set(results: Results, titles: Mapping[str, str], time: bool) -> Figure:
    """Draw the accuracy or the training time of methods, given with their titles, by data set."""
    names = names_of_sets(results, titles)
    series = []
    for method, title in titles.items():
        by_name = {each.dataset: each for each in results.of(method)}
        found = [by_name.get(name) for name in names]
        values = [nan if s is None else s.cpu if time else 100 * s.accuracy for s in found]
        notes = ["" if s is None else ", ".join(s.notes) for s in found]
        series.append(figures.Series(title, values, notes))
    rows = [f"{name}  {DATASETS[name].number}" for name in names]
    return figures.per_set(rows, series, "CPU time, s" if time else "accuracy, %", log=time)


def names_of_sets(results: Results, methods: Iterable[str]) -> list[str]:
    """Return the names of the data sets that any of the methods was run on, by number."""
    found = {(each.number, each.dataset) for name in methods for each in results.of(name)}
    return [name for _, name in sorted(found)]


def _effort(results: Results) -> str:
    """Return a sentence on the number of fits of each method."""
    parts = []
    for name in EXPERIMENTS_OF_SETS["uci"]:
        found = results.of(name)
        if found:
            n_fits, n_trials = sum(s.n_fits for s in found), _range(s.n_trials for s in found)
            trials = f"{n_trials} trial{'' if n_trials == '1' else 's'}"
            parts.append(f"{METHODS[name].title}, {len(found)} sets, {trials}, {n_fits} fits")
    minutes = sum(fit.cpu_in_all for fit in results.fits if fit.method == KARNET) / 60.0
    return (
        f"These fits were run: {'; '.join(parts)}. All fits of {METHODS[KARNET].title}, including "
        f"the choice of the width for every fold, took {minutes:.1f} minutes of CPU time."
    )


def _range(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def baseline_notes(results: Results) -> str:
    """Return sentences on the folds of the baseline, and on trainings that ended early."""
    found = results.of(BASELINE)
    if not found:
        return "It was not run."
    notes = sum((each.notes for each in found), Counter[str]())
    n_fits = sum(each.n_fits for each in found)
    return (
        f"It was run on {len(found)} sets; number of folds of the first trial on each: "
        f"{_range(each.n_fits for each in found)}. Of {n_fits} trainings, {notes['time limit']} "
        f"reached the time limit of {results.settings.time_limit:g} s and "
        f"{notes['out of memory']} did not fit in memory."
    )


def _speed(results: Results) -> str:
    ratios = results.speed_ratios
    if not ratios:
        return "The speed-up of KARnet at equal width was not measured."
    mean, median, least, most = (
        factor(float(f(ratios))) for f in (np.mean, np.median, np.min, np.max)
    )
    slow, fast = _means_of_pairs(_pairs(results), lambda fit: fit.cpu)
    return (
        f"At equal width and on the same folds, KARnet trains {mean} times as fast as "
        f"Levenberg-Marquardt in the mean over {len(ratios)} sets, {median} times in the median, "
        f"{least} to {most} times on single sets, and {factor(slow / fast)} times by the ratio of "
        "mean times, as the paper counts. Trainings that the time limit ended would have taken "
        "longer."
    )


def _pairs(results: Results) -> list[list[tuple[Fit, Fit]]]:
    """Return pairs of trainings of the baseline and of KARnet at its width, by data set."""
    return list(on_the_same_folds(results.fits, BASELINE, SAME_WIDTH).values())


def _means_of_pairs(
    pairs: list[list[tuple[Fit, Fit]]], value: Callable[[Fit], float]
) -> list[float]:
    """Return the mean over data sets of the first trainings' values, and of the second ones'."""
    return [
        float(np.mean([np.mean([value(pair[k]) for pair in each]) for each in pairs]))
        for k in (0, 1)
    ]


def _without_time_limit(results: Results) -> str:
    """Return a sentence on the baseline's accuracy where the time limit was not reached."""
    converged = [[pair for pair in each if not pair[0].note] for each in _pairs(results)]
    converged = [each for each in converged if each]
    if not converged:
        return "No training of Levenberg-Marquardt ended before the time limit."
    theirs, ours = (100 * mean for mean in _means_of_pairs(converged, lambda fit: fit.accuracy))
    return (
        f"Where Levenberg-Marquardt ended before the time limit ({len(converged)} of the sets), "
        f"its mean accuracy is {theirs:.1f} %, and that of KARnet of the same width {ours:.1f} % "
        "on the same folds."
    )


def depth(results: Results, folder: Path) -> list[str]:
    """Return the section on networks of two, three and four layers."""
    run = {n: name for n, name in DEPTHS.items() if results.of(name)}
    if 2 not in run or len(run) == 1:
        return _missing("depth")
    methods = list(run.values())
    results = results.on_common_folds(methods)
    parts = []
    for n in sorted(set(run) - {2}):
        p_value = results.p_value(n)
        test = "" if p_value is None else f", p = {p_value:.2g}"
        parts.append(f"{n} layers {results.change_by_depth(n):+.2f} points{test}")
    folds = _range(each.n_fits for each in results.of(KARNET))
    drawing = _per_set(results, {name: f"{n} layers" for n, name in run.items()}, time=False)
    svg = figures.save(drawing, folder, "figure-10-depth")
    return [
        page.paragraph(
            "The hidden layers have h units in two layers, 2h and h in three, and 4h, 2h and h in "
            "four; h is chosen for each depth by cross-validation. The comparison uses the folds "
            f"of the first trial that all depths were trained on; folds of each set: {folds}; "
            f"sets: {len(results.of(KARNET))}. Change of the mean accuracy from two layers: "
            f"{'; '.join(parts)}. p is the p-value of Wilcoxon's test over the sets."
        ),
        page.figure(svg, "Figure 10: accuracy and depth", "Test rows."),
        *(page.table(each) for each in tables(results.fits, methods)),
    ]


def choices(results: Results, folder: Path) -> list[str]:
    """Return the section on details that the paper leaves open."""
    run = [name for name in EXPERIMENTS_OF_SETS["choices"] if results.of(name)]
    varied = [name for name in run if METHODS[name].choice]
    if not varied or KARNET not in run:
        return _missing("choices")
    changes = [mean_difference(results.fits, name) for name in varied]
    drawing = figures.differences(
        [METHODS[name].title for name in varied],
        [0.0 if isnan(change) else 100 * change for change in changes],
        "difference of mean accuracy, points",
    )
    svg = figures.save(drawing, folder, "open-choices")
    trials = _range(each.n_trials for name in varied for each in results.of(name))
    return [
        page.paragraph(
            "The paper does not specify the scaling of inputs, the encoding of categories, the "
            "distribution of initial weights, the value of logit outside (0, 1), the cut-off of "
            "the solver, and the choice among equally good widths. Here one of these details is "
            f"varied at a time; trials: {trials}."
        ),
        page.figure(
            svg, "Open choices", "Right of the line, the variation is better than the default."
        ),
        *(page.table(each) for each in tables(results.fits, run)),
    ]
