"""The paper's numbers compared with ours, each with a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from . import iris, xor
from .methods import BASELINE, DEPTHS, KARNET, METHODS, SAME_WIDTH
from .reported import REPORTED_ACCURACY, REPORTED_CPU, REPORTED_XOR
from .results import Results
from .summary import mean_over_sets

HEADER = ("result", "paper", "here", "verdict")
Row = tuple[str, str, str, str]
# The speed-up that the paper's mean times give: 180.37 s by 0.8003 s.
PAPER_SPEED_UP = 225
# The mean speed-up over data sets that meets the paper's claim.
SUFFICIENT_SPEED_UP = 200


def verdicts(results: Results) -> list[Row]:
    """Return rows of a result's name, the paper's number, ours, and the verdict."""
    return [
        *_xor_rows(results.xor),
        *_iris_rows(results.sweeps),
        *_mean_rows(results),
        _speed_row(results),
        _depth_row(results),
    ]


def _xor_rows(studies: Sequence[xor.Study]) -> Iterator[Row]:
    by_kind = {(each.n_layers, each.network): each for each in studies}
    for n_layers in xor.STRUCTURES:
        own = by_kind[n_layers, xor.KARNET]
        other = by_kind[n_layers, xor.DIVIDED]
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
    for method, accuracy in REPORTED_ACCURACY.items():
        mean = mean_over_sets(results.summaries, method, "accuracy")
        ours = f"{100 * mean.value:.2f} %, {mean.n_sets} sets" if mean.n_sets else "-"
        met = None if method == BASELINE else 100 * mean.value >= accuracy
        what = f"Mean accuracy: {METHODS[method].title}"
        yield what, f"{accuracy:.2f} %", ours, _verdict(met, results, method)
    for method, seconds in REPORTED_CPU.items():
        mean = mean_over_sets(results.summaries, method, "cpu")
        ours = f"{_time(mean.value)}, {mean.n_sets} sets" if mean.n_sets else "-"
        met = None if method == BASELINE else mean.value <= seconds
        what = f"Mean CPU time of a training: {METHODS[method].title}"
        yield what, _time(seconds), ours, _verdict(met, results, method)


def _speed_row(results: Results) -> Row:
    ratios = results.speed_ratios
    ours = "-"
    if ratios:
        average, median = (factor(float(f(ratios))) for f in (np.mean, np.median))
        ours = f"mean {average}, median {median}, {len(ratios)} sets"
    enough = bool(ratios) and float(np.mean(ratios)) >= SUFFICIENT_SPEED_UP
    return (
        f"Times faster than Levenberg-Marquardt at equal width, at least {SUFFICIENT_SPEED_UP}",
        f"{PAPER_SPEED_UP} (by mean times)",
        ours,
        _verdict(enough, results, BASELINE, SAME_WIDTH),
    )


def _depth_row(results: Results) -> Row:
    changes = {n: results.change_by_depth(n) for n in (3, 4)}
    ours = ", ".join(f"{n} layers {points:+.1f} points" for n, points in changes.items() if points)
    same = all((results.p_value(n) or 0.0) > 0.05 for n in (3, 4))
    what = "Depth: change of mean accuracy from two layers"
    return what, "not significant", ours or "-", _verdict(same, results, *DEPTHS.values())


def _verdict(met: bool | None, results: Results | None = None, *methods: str) -> str:
    if results is not None and not all(results.of(method) for method in methods):
        return "not run"
    if results is not None and not results.complete(*methods):
        return "not run in full"
    return "-" if met is None else "met" if met else "not met"


def factor(ratio: float) -> str:
    """Return a ratio with two digits, or as an integer from ten on."""
    return f"{ratio:.2g}" if ratio < 10.0 else f"{ratio:.0f}"


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"
