"""The report of a run: the paper's numbers and ours side by side, in one HTML file."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from math import isnan, nan
from pathlib import Path

import numpy as np

from ..datasets import DATASETS
from . import figures, iris, page, xor
from .methods import EXPERIMENTS_OF_SETS, METHODS
from .results import BASELINE, DEPTHS, KARNET, SAME_WIDTH, Results
from .store import Fit, Store
from .summary import AVERAGED, Summary, accuracy_differences, on_the_same_folds, tables
from .table import Table
from .uci import Settings
from .verdicts import HEADER, factor, verdicts

__all__ = ["write", "write_report"]

PACKAGES = ("karnet", "numpy", "scipy", "scikit-learn", "pandas", "matplotlib")


def write_report(out: Path, settings: Settings, command: str) -> Path:
    """Write report.html and the figures from all results of a folder, and return its path.

    The case studies are run if this process has not run them yet.

    Parameters
    ----------
    out : Path
        The folder with the store, results.sqlite, if there is one yet.
    settings : Settings
        What the run was asked for.
    command : str
        What it was called with; shown if the folder knows of no other.

    Returns
    -------
    Path
    """
    fits: list[Fit] = []
    commands = [command]
    if (out / "results.sqlite").exists():
        with Store(out / "results.sqlite", str(settings)) as store:
            fits = store.fits()
            commands = store.commands() or commands
    outputs = tuple(iris.fitted(width) for width in (89, 90))
    pairs = (iris.sweeps(2), iris.sweeps(5))
    return write(out, Results(fits, xor.study(), outputs, pairs, settings, commands))


def write(out: Path, results: Results) -> Path:
    """Write report.html and the figures from results, and return its path."""
    folder = out / "figures"
    title = "The paper's experiments, run again"
    sections = {
        "summary": ("Summary", _summary(results)),
        "xor": ("XOR", _xor(results, folder)),
        "iris": ("Iris", _iris(results, folder)),
        "sets": ("Data sets", _sets(results, folder)),
        "depth": ("Depth", _depth(results, folder)),
        "choices": ("What the paper leaves open", _choices(results, folder)),
        "deviations": ("What deviates, and why", _deviations(results)),
        "machine": ("Machine and command", _machine(results)),
    }
    body = [
        f"<h1>{title}</h1>",
        page.paragraph(
            f"karnet {version('karnet')} beside the numbers and figures of Toh, Lin, Li, Oh and "
            "Sun, Gradient-Free Learning Based on the Kernel and the Range Space. KARnet is the "
            "paper's network, trained in closed form."
        ),
        page.contents({name: title for name, (title, _) in sections.items()}),
        *(page.section(name, title, *parts) for name, (title, parts) in sections.items()),
    ]
    path = out / "report.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page.page(title, "\n".join(body)), encoding="utf-8")
    return path


def _summary(results: Results) -> list[str]:
    return [
        page.verdicts("The paper's numbers, and ours", HEADER, verdicts(results)),
        page.note(
            "Means are over the data sets 1 to 39, as in the paper, and get a verdict when all 39 "
            "were run; a baseline gets none."
        ),
    ]


def _xor(results: Results, folder: Path) -> list[str]:
    shown = [each for each in results.xor if each.network != xor.UNIFORM]
    drawing = figures.save(figures.xor_surfaces(shown), folder, "figure-02-xor")
    right = {(each.n_layers, each.network): each.n_right for each in results.xor}
    n = len(results.xor[0].outputs)
    divided, whole = ([right[k, kind] for k in xor.STRUCTURES] for kind in (xor.DIVIDED, xor.WHOLE))
    return [
        page.paragraph(
            "Networks of two and of five layers, logit in each, learn four points: the corners of "
            "a square, moved a little as in the paper. KARnet solves each layer once; the baseline "
            "searches by Levenberg-Marquardt."
        ),
        page.table(xor.table(results.xor)),
        page.paragraph(
            "What the paper shows of its baseline need not be a failure of the search. By default "
            "trainlm learns 70 % of the rows and keeps 15 % for validation and 15 % for a test: of "
            f"four points it sees two. So divided, {divided[0]} of {n} seeds come out right in two "
            f"layers and {divided[1]} in five; learned from all four points, {whole[0]} and "
            f"{whole[1]}. A problem this small also says little about speed: all trainings take "
            "milliseconds here."
        ),
        page.figure(
            drawing,
            "Figure 2: outputs over the plane",
            "Colours are held within 0 and 1; the line is at one half; circles have target 0 and "
            "squares 1. Of each kind, the seed in the middle is shown, by largest error.",
        ),
    ]


def _iris(results: Results, folder: Path) -> list[str]:
    steps = [pair[k].step for pair in results.sweeps for k in (0, 1)]
    two = results.sweeps[0][0].test_error.mean(axis=1)
    return [
        page.paragraph(
            "90 rows are learned and 60 are for testing, hidden layers are random, and only the "
            "output layer is solved: for each output 90 equations, with h unknown weights, and one "
            "more with an output bias. Splits have 90 distinct training rows."
        ),
        page.paragraph(
            f"The sum of squares becomes zero at h = {steps[0]} without an output bias and at "
            f"{steps[1]} with it in two layers, and at {steps[2]} and {steps[3]} in five. The "
            "paper sees zero below 90 in its five-layer network and reads it as depth traded for "
            "width. By rank depth cannot do that: in any network the last matrix has h columns, "
            "and one more with a bias, so below h = 89 it does not reach the targets of 90 "
            "distinct rows. The output bias, or rows that Iris holds twice, are the likeliest "
            "reading."
        ),
        page.paragraph(
            "An exact fit is not a good one. The paper finds the test error hardly affected; here, "
            f"in two layers without output bias, it goes from {100 * two[0]:.0f} % at "
            f"h = {results.sweeps[0][0].widths[0]} to {100 * two.max():.0f} % at most."
        ),
        page.figures(*_iris_figures(results, folder)),
        *(page.table(iris.table(pair)) for pair in results.sweeps),
    ]


def _iris_figures(results: Results, folder: Path) -> list[str]:
    outputs = figures.save(figures.iris_outputs(results.outputs), folder, "figure-03-iris-outputs")
    drawn = [
        page.figure(
            outputs,
            "Figure 3: targets and outputs",
            "A two-layer network without output bias, one weight short of an exact fit and with "
            "as many weights as rows.",
        )
    ]
    for number, pair in zip((4, 5), results.sweeps, strict=True):
        name = {2: "two", 5: "five"}[pair[0].n_layers]
        svg = figures.save(
            figures.iris_sweeps(pair), folder, f"figure-0{number}-iris-{name}-layers"
        )
        caption = (
            f"Above, one point a trial, {pair[0].sse.shape[1]} trials; dotted, where the sum of "
            "squares becomes zero: the output bias moves it by one. Below, means over trials."
        )
        drawn.append(
            page.figure(svg, f"Figure {number}: {name} layers, hidden ones random", caption)
        )
    return drawn


def _missing(experiment: str) -> list[str]:
    return [page.paragraph(f"Not run here: “karnet reproduce {experiment}” makes this section.")]


def _sets(results: Results, folder: Path) -> list[str]:
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

    names = _names(results, methods)
    series = [
        _series(results, names, method, title, value)
        for method, title in zip(methods, titles, strict=True)
    ]
    rows = [f"{name}  {DATASETS[name].number}" for name in names]
    return figures.per_set(rows, series, "CPU time, s" if time else "accuracy, %", log=time)


def _names(results: Results, methods: Sequence[str]) -> list[str]:
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


def _notes(results: Results) -> str:
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


def _depth(results: Results, folder: Path) -> list[str]:
    there = {n: name for n, name in DEPTHS.items() if results.of(name)}
    if not set(there) - {2}:
        return _missing("depth")
    parts = []
    for n, name in there.items():
        trials = _range(each.n_trials for each in results.of(name))
        p_value = results.p_value(n) if n > 2 else None
        test = "" if p_value is None else f" (difference to two: p = {p_value:.2g})"
        parts.append(f"{n} layers, {len(results.of(name))} sets, trials: {trials}{test}")
    titles = [f"{n} layers" for n in there]
    drawing = _per_set(results, list(there.values()), titles, time=False)
    svg = figures.save(drawing, folder, "figure-10-depth")
    return [
        page.paragraph(
            "Hidden layers of h units in two layers, 2h and h in three, 4h, 2h and h in four; h is "
            f"chosen for each by cross-validation. {'; '.join(parts)}. p is that of Wilcoxon's "
            "test over the differences of the sets."
        ),
        page.figure(svg, "Figure 10: accuracy and depth", "Test rows."),
        *(page.table(each) for each in tables(results.fits, list(there.values()))),
    ]


def _choices(results: Results, folder: Path) -> list[str]:
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


def _deviations(results: Results) -> list[str]:
    names = _names(results, list(METHODS))
    rows = [
        (str(DATASETS[name].number), name, DATASETS[name].deviation)
        for name in names
        if DATASETS[name].deviation
    ]
    deviating = Table(
        "Data sets that are not quite the paper's", ("", "data set", "how"), tuple(rows), ""
    )
    return [
        page.bullets(
            [
                "The paper runs 10 trials of 10 folds; how many were run here is said in each "
                "section.",
                "Levenberg-Marquardt is written after what MATLAB documents of feedforwardnet and "
                "trainlm, and is not MATLAB. Inputs are in [0, 1] and targets 0 and 1, as for "
                "KARnet; feedforwardnet maps both to [-1, 1].",
                "Its width is the one that the paper's table gives, and 500 where the paper ran "
                "out of memory: to search for it means to train 120 times as many. "
                + _notes(results),
                "MLPClassifier is today's baseline and not the paper's: scikit-learn's defaults, "
                "at most 200 epochs, the width chosen by 3 inner folds, on the folds of "
                "Levenberg-Marquardt.",
                "Training times are of this machine; the paper's is a laptop of 2015.",
            ]
        ),
        *([page.table(deviating)] if rows else []),
    ]


def _machine(results: Results) -> list[str]:
    fitted_with = sorted({fit.versions for fit in results.fits})
    return [
        page.bullets(
            [
                f"CPU: {_cpu_model()}, {os.cpu_count()} cores",
                f"System: {platform.system()} {platform.release()}, {platform.machine()}",
                f"Python {platform.python_version()}",
                "Packages: " + ", ".join(f"{name} {version(name)}" for name in PACKAGES),
                *(f"Fits made with: {each}" for each in fitted_with),
                f"Settings: {results.settings}",
                datetime.now(UTC).strftime("Written on %Y-%m-%d at %H:%M UTC"),
            ]
        ),
        *map(page.command, results.commands),
        page.note("Every fit is in results.csv, every figure in figures/ as SVG and PNG."),
    ]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
