"""The report of a run: the paper's numbers compared with ours, in one HTML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from itertools import product
from math import nan
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from .._pages import environment as machine
from .._pages import html as page
from .._util.text_table import TextTable
from ..datasets import DATASETS
from . import figures, iris, xor
from .methods import BASELINE, DEPTHS, EXPERIMENTS_OF_SETS, KARNET, METHODS, SAME_WIDTH
from .store import Fit, Store
from .summary import AVERAGED, mean_difference, tables
from .uci import RunSettings
from .verdicts import HEADER, Results, factor, verdicts

# The packages whose versions a report shows.
PACKAGES = ("karnet", "numpy", "scipy", "scikit-learn", "pandas", "matplotlib")


def write_report(out: Path, settings: RunSettings, command: str) -> Path:
    """Write report.html and its figures from all results in a folder, and return its path.

    The case studies are run if this process has not run them yet. `command`, the command line of
    the run, is shown if the store holds no command.
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
    """Write report.html and its figures from results, and return its path."""
    folder = out / "figures"
    chapters = {
        "summary": ("Summary", _summary(results)),
        "xor": ("XOR", _xor(results, folder)),
        "iris": ("Iris", _iris(results, folder)),
        "sets": ("Data sets", _sets(results, folder)),
        "depth": ("Depth", _depth(results, folder)),
        "choices": ("Details that the paper leaves open", _choices(results, folder)),
        "deviations": ("Deviations from the paper", _deviations(results)),
        "machine": ("Machine and command", _machine(results)),
    }
    path = out / "report.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    introduction = (
        f"Results of karnet {version('karnet')}, compared with the numbers and figures of Toh, "
        "Lin, Li, Oh and Sun, Gradient-Free Learning Based on the Kernel and the Range Space. "
        "KARnet is the paper's network, trained in closed form."
    )
    page.write(path, "Reproduction of the paper's experiments", introduction, chapters)
    return path


def _drawn(drawing: Figure, folder: Path, name: str, title: str, caption: str) -> str:
    """Return a figure of the page, after writing its files."""
    return page.figure(figures.save(drawing, folder, name), title, caption)


def _summary(results: Results) -> list[str]:
    return [
        page.verdicts("The paper's numbers and ours", HEADER, verdicts(results)),
        page.note(
            "Means are over the data sets 1 to 39, as in the paper, and have a verdict if all 39 "
            "were run; baselines have none."
        ),
    ]


def _xor(results: Results, folder: Path) -> list[str]:
    shown = [each for each in results.xor if each.network != xor.UNIFORM]
    right = {(each.n_layers, each.network): each.n_right for each in results.xor}
    n = len(results.xor[0].outputs)
    divided, whole = ([right[k, kind] for k in xor.STRUCTURES] for kind in (xor.DIVIDED, xor.WHOLE))
    return [
        page.paragraph(
            "Networks of two and of five layers, with logit in each layer, are trained on four "
            "points: the corners of a square, slightly moved as in the paper. KARnet solves each "
            "layer once; the baseline is trained by Levenberg-Marquardt."
        ),
        page.table(xor.table(results.xor)),
        page.paragraph(
            "The paper's results of its baseline need not be a failure of the search. By default "
            "trainlm trains on 70 % of the rows and keeps 15 % for validation and 15 % for a test: "
            f"of four points it sees two. With this division, {divided[0]} of {n} seeds are right "
            f"in two layers and {divided[1]} in five; trained on all four points, {whole[0]} and "
            f"{whole[1]}. A problem this small also says little about speed: all trainings take "
            "milliseconds here."
        ),
        _drawn(
            figures.xor_surfaces(shown),
            folder,
            "figure-02-xor",
            "Figure 2: outputs over the plane",
            "Colours are clipped to 0 and 1; the line is at one half; circles have target 0 and "
            "squares 1. For each kind, the seed with the median of the largest errors is shown.",
        ),
    ]


def _iris(results: Results, folder: Path) -> list[str]:
    steps = [each.step for pair in results.sweeps for each in pair]
    two = results.sweeps[0][0].test_error.mean(axis=1)
    drawn = [
        _drawn(
            figures.iris_outputs(results.outputs),
            folder,
            "figure-03-iris-outputs",
            "Figure 3: targets and outputs",
            "Two-layer networks without output bias: one unit short of an exact fit, and with as "
            "many weights as rows.",
        )
    ]
    for number, depth, pair in zip((4, 5), ("two", "five"), results.sweeps, strict=True):
        name = f"figure-0{number}-iris-{depth}-layers"
        title = f"Figure {number}: {depth} layers, random hidden layers"
        caption = (
            f"Above, one point for each of {pair[0].sse.shape[1]} trials; dotted lines show where "
            "the sum of squares becomes zero. Below, means over trials."
        )
        drawn.append(_drawn(figures.iris_sweeps(pair), folder, name, title, caption))
    return [
        page.paragraph(
            "90 rows are for training and 60 for testing. Hidden layers are random, and only the "
            "output layer is solved: 90 equations for each output, with h unknown weights, or "
            "h + 1 with an output bias. The training rows of each split are distinct."
        ),
        page.paragraph(
            f"The sum of squares becomes zero at h = {steps[0]} without an output bias and at "
            f"{steps[1]} with it in two layers, and at {steps[2]} and {steps[3]} in five. The "
            "paper finds zero below 90 in its five-layer network and concludes that depth can "
            "replace width. The rank rules this out: in any network the last matrix has h columns, "
            "or h + 1 with a bias, so below h = 89 it cannot fit the targets of 90 distinct rows. "
            "The output bias, or repeated rows of Iris, are the likeliest explanation."
        ),
        page.paragraph(
            "An exact fit need not generalise. The paper finds the test error hardly affected; "
            f"here, in two layers without output bias, it goes from {100 * two[0]:.0f} % at "
            f"h = {iris.WIDTHS[0]} to {100 * two.max():.0f} % at most."
        ),
        page.figures(*drawn),
        *(page.table(iris.table(pair)) for pair in results.sweeps),
    ]


def _missing(experiment: str) -> list[str]:
    return [page.paragraph(f"Not run here: run “karnet reproduce {experiment}” for this section.")]


def _sets(results: Results, folder: Path) -> list[str]:
    """Return the section that compares accuracy and training time with the baselines."""
    run = [name for name in EXPERIMENTS_OF_SETS["uci"] if results.of(name)]
    if not run:
        return _missing("uci")
    best = [name for name in (KARNET, BASELINE, "mlp") if name in run]
    same = [name for name in (SAME_WIDTH, BASELINE, "mlp, baseline's width") if name in run]
    drawn = []
    for number, (time, methods) in enumerate(product((False, True), (best, same)), start=6):
        if not methods:
            continue
        width = "at the width chosen" if methods is best else "at the baseline's width"
        title = f"Figure {number}: {'training CPU time' if time else 'accuracy'} {width}"
        name = f"figure-{number:02}-{'time' if time else 'accuracy'}"
        name += "" if methods is best else "-equal-width"
        scale = "One training, without the choice of the width; logarithmic."
        caption = "The width of Levenberg-Marquardt is the one that the paper chose for it."
        caption = f"{scale if time else 'Test rows.'} {caption}"
        titles = {name: METHODS[name].title.partition(",")[0] for name in methods}
        drawn.append(_drawn(_per_set(results, titles, time), folder, name, title, caption))
    return [
        page.paragraph(_effort(results)),
        page.paragraph(_speed(results)),
        page.paragraph(_without_time_limit(results)),
        page.figures(*drawn),
        *map(page.table, tables(results.fits, run)),
    ]


def _per_set(results: Results, titles: Mapping[str, str], time: bool) -> Figure:
    """Draw the accuracy or the training time of methods, given with their titles, by data set."""
    names = _names_of_sets(results, titles)
    series = {}
    for method, title in titles.items():
        cells = {
            each.dataset: (each.cpu if time else 100 * each.accuracy, ", ".join(each.notes))
            for each in results.of(method)
        }
        series[title] = [cells.get(name, (nan, "")) for name in names]
    rows = [f"{name}  {DATASETS[name].number}" for name in names]
    return figures.per_set(rows, series, "CPU time, s" if time else "accuracy, %", time)


def _names_of_sets(results: Results, methods: Iterable[str]) -> list[str]:
    """Return the names of the data sets that any of the methods was run on, by number."""
    found = {(each.number, each.dataset) for name in methods for each in results.of(name)}
    return [name for _, name in sorted(found)]


def _effort(results: Results) -> str:
    """Return a sentence on the number of fits of each method."""
    parts = []
    for name in EXPERIMENTS_OF_SETS["uci"]:
        if found := results.of(name):
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


def _speed(results: Results) -> str:
    ratios = results.speed_ratios
    if not ratios:
        return "The speed-up of KARnet at equal width was not measured."
    statistics = (np.mean, np.median, np.min, np.max)
    mean, median, least, most = (factor(float(f(ratios))) for f in statistics)
    slow, fast = _means_of_pairs(results.pairs, "cpu")
    return (
        f"At equal width and on the same folds, KARnet trains {mean} times as fast as "
        f"Levenberg-Marquardt in the mean over {len(ratios)} sets, {median} times in the median, "
        f"{least} to {most} times on single sets, and {factor(slow / fast)} times by the ratio of "
        "mean times, as the paper counts. Trainings that the time limit ended would have taken "
        "longer."
    )


def _means_of_pairs(pairs: list[list[tuple[Fit, Fit]]], of: str) -> list[float]:
    """Return the mean over data sets of the first trainings' values, and of the second ones'."""
    means = [[np.mean([getattr(pair[k], of) for pair in each]) for each in pairs] for k in (0, 1)]
    return [float(np.mean(each)) for each in means]


def _without_time_limit(results: Results) -> str:
    """Return a sentence on the baseline's accuracy where the time limit was not reached."""
    converged = [[pair for pair in each if not pair[0].note] for each in results.pairs]
    converged = [each for each in converged if each]
    if not converged:
        return "No training of Levenberg-Marquardt ended before the time limit."
    theirs, ours = (100 * mean for mean in _means_of_pairs(converged, "accuracy"))
    return (
        f"Where Levenberg-Marquardt ended before the time limit ({len(converged)} of the sets), "
        f"its mean accuracy is {theirs:.1f} %, and that of KARnet of the same width {ours:.1f} % "
        "on the same folds."
    )


def _depth(results: Results, folder: Path) -> list[str]:
    """Return the section on networks of two, three and four layers."""
    run = {n: name for n, name in DEPTHS.items() if results.of(name)}
    if 2 not in run or len(run) == 1:
        return _missing("depth")
    methods, results = list(run.values()), results.by_depth
    parts = []
    for n in sorted(set(run) - {2}):
        change, p_value = results.change_by_depth(n)
        test = "" if p_value is None else f", p = {p_value:.2g}"
        parts.append(f"{n} layers {change:+.2f} points{test}")
    drawing = _per_set(results, {name: f"{n} layers" for n, name in run.items()}, time=False)
    return [
        page.paragraph(
            "The hidden layers have h units in two layers, 2h and h in three, and 4h, 2h and h in "
            "four; h is chosen for each depth by cross-validation. Depths are compared on the "
            f"folds that all of them were trained on. {_shared_folds(results)} Change "
            f"of the mean accuracy from two layers: {'; '.join(parts)}. p is the p-value of "
            "Wilcoxon's test over the mean differences of the sets."
        ),
        _drawn(drawing, folder, "figure-10-depth", "Figure 10: accuracy and depth", "Test rows."),
        *map(page.table, tables(results.fits, methods)),
    ]


def _shared_folds(results: Results) -> str:
    """Return sentences on the folds that all depths share, and on the data sets with fewer."""
    shared, n_folds = results.of(KARNET), results.settings.n_folds
    n_trials = max((each.n_trials for each in shared), default=0)
    fixed = {each.name for each in DATASETS.values() if each.fixed_split}
    all_folds = {name: n_trials * (1 if name in fixed else n_folds) for name in DATASETS}
    few = [each.dataset for each in shared if each.n_fits < all_folds[each.dataset]]
    left_out = [str(number) for number in sorted({*AVERAGED} - {each.number for each in shared})]
    return " ".join(
        [
            f"These are {sum(each.n_fits for each in shared)} folds of {len(shared)} sets, in "
            f"{n_trials} trial{'' if n_trials == 1 else 's'}.",
            *([f"Not all folds of these trials were run on {', '.join(few)}."] if few else []),
            *([f"Sets that were not run: {', '.join(left_out)}."] if left_out else []),
        ]
    )


def _choices(results: Results, folder: Path) -> list[str]:
    """Return the section on details that the paper leaves open."""
    run = [name for name in EXPERIMENTS_OF_SETS["choices"] if results.of(name)]
    varied = [name for name in run if METHODS[name].choice]
    if not varied or KARNET not in run:
        return _missing("choices")
    titles = [METHODS[name].title for name in varied]
    changes = np.nan_to_num([100 * mean_difference(results.fits, name) for name in varied])
    drawing = figures.differences(titles, changes, "difference of mean accuracy, points")
    caption = "Right of the line, the variation is better than the default."
    trials = _range(each.n_trials for name in varied for each in results.of(name))
    return [
        page.paragraph(
            "The paper does not specify the scaling of inputs, the encoding of categories, the "
            "distribution of initial weights, the value of logit outside (0, 1), the cut-off of "
            "the solver, and the choice among equally good widths. Here one of these details is "
            f"varied at a time; trials: {trials}."
        ),
        _drawn(drawing, folder, "open-choices", "Open choices", caption),
        *map(page.table, tables(results.fits, run)),
    ]


def _baseline_notes(results: Results) -> str:
    """Return sentences on the folds of the baseline, and on trainings that ended early."""
    found = results.of(BASELINE)
    if not found:
        return "It was not run."
    notes = sum((each.notes for each in found), Counter[str]())
    return (
        f"It was run on {len(found)} sets; number of folds of the first trial on each: "
        f"{_range(each.n_fits for each in found)}. Of {sum(each.n_fits for each in found)} "
        f"trainings, {notes['time limit']} reached the time limit of "
        f"{results.settings.time_limit:g} s and {notes['out of memory']} did not fit in memory."
    )


def _deviations(results: Results) -> list[str]:
    sets = [DATASETS[name] for name in _names_of_sets(results, METHODS)]
    rows = tuple((str(each.number), each.name, each.deviation) for each in sets if each.deviation)
    header = ("", "data set", "deviation")
    deviating = TextTable("Data sets that differ from the paper's", header, rows, "")
    return [
        page.bullets(
            [
                "The paper runs 10 trials of 10 folds; each section says how many were run here.",
                "Levenberg-Marquardt follows MATLAB's documentation of feedforwardnet and trainlm, "
                "but is not MATLAB. Inputs are in [0, 1] and targets are 0 and 1, as for KARnet; "
                "feedforwardnet maps both to [-1, 1].",
                "Its width is taken from the paper's table, or is 500 where the paper ran out of "
                "memory: choosing it by cross-validation would take 120 times as many trainings. "
                + _baseline_notes(results),
                "MLPClassifier is a baseline of today, not of the paper: scikit-learn's defaults, "
                "at most 200 epochs, the width chosen by 3 inner folds, on the folds of "
                "Levenberg-Marquardt.",
                "Training times were measured on this machine, the paper's on a laptop of 2015.",
            ]
        ),
        *([page.table(deviating)] if rows else []),
    ]


def _machine(results: Results) -> list[str]:
    made_with = (f"Fits made with: {each}" for each in sorted({f.versions for f in results.fits}))
    settings = f"Settings: {results.settings}"
    return [
        page.bullets([*machine.about(PACKAGES), *made_with, settings, machine.written()]),
        *map(page.command, results.commands),
        page.note("Every fit is in results.csv, every figure in figures/ as SVG and PNG."),
    ]
