"""The report of a run: the paper's numbers compared with ours, in one HTML file."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from .._pages import environment as machine
from .._pages import html as page
from .._util.text_table import TextTable
from ..datasets import DATASETS
from . import figures, iris, sections, xor
from .methods import METHODS
from .results import Results
from .store import Fit, Store
from .uci import Settings
from .verdicts import HEADER, verdicts

# The packages whose versions a report shows.
PACKAGES = ("karnet", "numpy", "scipy", "scikit-learn", "pandas", "matplotlib")


def write_report(out: Path, settings: Settings, command: str) -> Path:
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
        "sets": ("Data sets", sections.sets(results, folder)),
        "depth": ("Depth", sections.depth(results, folder)),
        "choices": ("Details that the paper leaves open", sections.choices(results, folder)),
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
    drawing = figures.save(figures.xor_surfaces(shown), folder, "figure-02-xor")
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
        page.figure(
            drawing,
            "Figure 2: outputs over the plane",
            "Colours are clipped to 0 and 1; the line is at one half; circles have target 0 and "
            "squares 1. For each kind, the seed with the median of the largest errors is shown.",
        ),
    ]


def _iris(results: Results, folder: Path) -> list[str]:
    steps = [pair[k].step for pair in results.sweeps for k in (0, 1)]
    two = results.sweeps[0][0].test_error.mean(axis=1)
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
            "Two-layer networks without output bias: one unit short of an exact fit, and with as "
            "many weights as rows.",
        )
    ]
    for number, pair in zip((4, 5), results.sweeps, strict=True):
        name = {2: "two", 5: "five"}[pair[0].n_layers]
        svg = figures.save(
            figures.iris_sweeps(pair), folder, f"figure-0{number}-iris-{name}-layers"
        )
        caption = (
            f"Above, one point for each of {pair[0].sse.shape[1]} trials; dotted lines show where "
            "the sum of squares becomes zero. Below, means over trials."
        )
        drawn.append(
            page.figure(svg, f"Figure {number}: {name} layers, random hidden layers", caption)
        )
    return drawn


def _deviations(results: Results) -> list[str]:
    names = sections.names_of_sets(results, list(METHODS))
    rows = [
        (str(DATASETS[name].number), name, DATASETS[name].deviation)
        for name in names
        if DATASETS[name].deviation
    ]
    header = ("", "data set", "deviation")
    deviating = TextTable("Data sets that differ from the paper's", header, tuple(rows), "")
    return [
        page.bullets(
            [
                "The paper runs 10 trials of 10 folds; each section says how many were run here.",
                "Levenberg-Marquardt follows MATLAB's documentation of feedforwardnet and trainlm, "
                "but is not MATLAB. Inputs are in [0, 1] and targets are 0 and 1, as for KARnet; "
                "feedforwardnet maps both to [-1, 1].",
                "Its width is taken from the paper's table, or is 500 where the paper ran out of "
                "memory: choosing it by cross-validation would take 120 times as many trainings. "
                + sections.baseline_notes(results),
                "MLPClassifier is a baseline of today, not of the paper: scikit-learn's defaults, "
                "at most 200 epochs, the width chosen by 3 inner folds, on the folds of "
                "Levenberg-Marquardt.",
                "Training times were measured on this machine, the paper's on a laptop of 2015.",
            ]
        ),
        *([page.table(deviating)] if rows else []),
    ]


def _machine(results: Results) -> list[str]:
    fitted_with = sorted({fit.versions for fit in results.fits})
    return [
        page.bullets(
            [
                *machine.about(PACKAGES),
                *(f"Fits made with: {each}" for each in fitted_with),
                f"Settings: {results.settings}",
                machine.written(),
            ]
        ),
        *map(page.command, results.commands),
        page.note("Every fit is in results.csv, every figure in figures/ as SVG and PNG."),
    ]
