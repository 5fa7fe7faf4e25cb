"""All results of a reproduction, and verdicts that compare them with the paper's numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.stats import wilcoxon

from . import iris, summary, xor
from .methods import BASELINE, DEPTHS, KARNET, METHODS, REPORTED, REPORTED_XOR, SAME_WIDTH
from .store import Fit
from .uci import RunSettings

HEADER = ("result", "paper", "here", "verdict")
Row = tuple[str, str, str, str]
# The mean speed-up over data sets that meets the paper's claim.
SUFFICIENT_SPEED_UP = 200


@dataclass(frozen=True)
class Results:
    """Everything that a report is made from."""

    fits: list[Fit]
    xor: tuple[xor.Study, ...]
    outputs: tuple[iris.Fitted, ...]  # one unit short of an exact fit of Iris, and with one
    sweeps: tuple[tuple[iris.Sweep, iris.Sweep], ...]  # each without an output bias and with it
    settings: RunSettings
    commands: list[str]  # that made the fits

    @cached_property
    def summaries(self) -> list[summary.Summary]:
        """Summaries of the fits, by method and data set."""
        return summary.summarise(self.fits)

    def of(self, method: str) -> list[summary.Summary]:
        """Return the summaries of one method."""
        return [each for each in self.summaries if each.method == method]

    @cached_property
    def pairs(self) -> list[list[tuple[Fit, Fit]]]:
        """Pairs of trainings of the baseline and of KARnet at its width, by data set."""
        return list(summary.on_the_same_folds(self.fits, BASELINE, SAME_WIDTH).values())

    @cached_property
    def speed_ratios(self) -> list[float]:
        """Ratios of the baseline's training time to KARnet's at the same width, by data set."""
        return list(summary.speed_ratios(self.fits, BASELINE, SAME_WIDTH).values())

    @cached_property
    def by_depth(self) -> Results:
        """The results by number of layers, on the folds that all depths were trained on."""
        run = [name for name in DEPTHS.values() if self.of(name)]
        folds = [{fit.key[1:] for fit in self.fits if fit.method == name} for name in run]
        common = set.intersection(*folds) if folds else set()
        fits = [fit for fit in self.fits if fit.method in run and fit.key[1:] in common]
        return replace(self, fits=fits)

    def change_by_depth(self, n_layers: int) -> tuple[float | None, float | None]:
        """Return the mean change of accuracy in points from two layers, and its p-value, if any."""
        changes = list(summary.accuracy_differences(self.fits, DEPTHS[n_layers], KARNET).values())
        p_value = float(wilcoxon(changes).pvalue) if np.count_nonzero(changes) > 5 else None
        return 100 * float(np.mean(changes)) if changes else None, p_value


def verdicts(results: Results) -> list[Row]:
    """Return rows of a result's name, the paper's number, ours, and the verdict."""
    rows = (*_xor_rows(results.xor), *_iris_rows(results.sweeps), *_mean_rows(results))
    return [*rows, _speed_row(results), _depth_row(results)]


def _xor_rows(studies: Sequence[xor.Study]) -> Iterator[Row]:
    by_kind = {(each.n_layers, each.network): each for each in studies}
    for n_layers in xor.STRUCTURES:
        own, other = (by_kind[n_layers, kind] for kind in (xor.KARNET, xor.DIVIDED))
        name = f"XOR, {n_layers} layers"
        seeds = f"{own.n_right} of {len(own.outputs)} seeds right"
        most = own.n_right > 0.9 * len(own.outputs)
        yield f"{name}: KARnet's outputs for 0 0 1 1", "0 0 1 1", seeds, _verdict(most)
        seconds, slow = (REPORTED_XOR[n_layers, method][1] for method in (KARNET, BASELINE))
        faster = own.cpu <= seconds
        yield f"{name}: training of KARnet", _time(seconds), _time(own.cpu), _verdict(faster)
        ratio, reported = other.cpu / own.cpu, slow / seconds
        what = f"{name}: times faster than Levenberg-Marquardt"
        yield what, factor(reported), factor(ratio), _verdict(ratio >= reported)


def _iris_rows(sweeps: Sequence[tuple[iris.Sweep, iris.Sweep]]) -> Iterator[Row]:
    for without, with_bias in sweeps:
        steps = f"{without.step} without an output bias, {with_bias.step} with it"
        what = f"Iris, {without.n_layers} layers: least h with a sum of squared errors of zero"
        if without.n_layers == 2:
            yield what, "90", steps, _verdict(without.step == 90)
        else:
            yield what, "below 90", steps, "with the bias only"


def _mean_rows(results: Results) -> Iterator[Row]:
    """Yield the mean accuracies and training times; those of a baseline have no verdict."""
    names = {"accuracy": "Mean accuracy", "cpu": "Mean CPU time of a training"}
    for of, reported in REPORTED.items():
        text = summary.per_cent if of == "accuracy" else _time
        for method, paper in reported.items():
            mean = summary.mean_over_sets(results.summaries, method, of)
            ours = f"{text(mean.value)}, {mean.n_sets} sets" if mean.n_sets else "-"
            met = mean.value >= paper if of == "accuracy" else mean.value <= paper
            verdict = _verdict(None if method == BASELINE else met, results, method)
            yield f"{names[of]}: {METHODS[method].title}", text(paper), ours, verdict


def _speed_row(results: Results) -> Row:
    ratios = results.speed_ratios
    what = f"Times faster than Levenberg-Marquardt at equal width, at least {SUFFICIENT_SPEED_UP}"
    ours, enough = "-", False
    if ratios:
        average, median = float(np.mean(ratios)), float(np.median(ratios))
        ours = f"mean {factor(average)}, median {factor(median)}, {len(ratios)} sets"
        enough = average >= SUFFICIENT_SPEED_UP
    verdict = _verdict(enough, results, BASELINE, SAME_WIDTH)
    paper = REPORTED["cpu"][BASELINE] / REPORTED["cpu"][SAME_WIDTH]
    return what, f"{factor(paper)} (by mean times)", ours, verdict


def _depth_row(results: Results) -> Row:
    results = results.by_depth
    changes = {n: results.change_by_depth(n) for n in (3, 4)}
    ours = (f"{n} layers {points:+.1f} points" for n, (points, _) in changes.items() if points)
    same = all((p_value or 0.0) > 0.05 for _, p_value in changes.values())
    what = "Depth: change of mean accuracy from two layers"
    verdict = _verdict(same, results, *DEPTHS.values())
    return what, "not significant", ", ".join(ours) or "-", verdict


def _verdict(met: bool | None, results: Results | None = None, *methods: str) -> str:
    """Return whether a result meets the paper's, if these methods were run on all sets 1 to 39."""
    sets = [{each.number for each in results.of(name)} for name in methods] if results else []
    if not all(sets):
        return "not run"
    if not all(numbers >= set(summary.AVERAGED) for numbers in sets):
        return "not run in full"
    return "-" if met is None else "met" if met else "not met"


def factor(ratio: float) -> str:
    """Return a ratio with two digits, or as an integer from ten on."""
    return f"{ratio:.2g}" if ratio < 10.0 else f"{ratio:.0f}"


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"
