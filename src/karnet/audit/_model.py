"""Checks of rows by a model: predictions without a row, and rows that no other row is like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.namespace import check_device
from .._model.fitted import FittedModel
from .._rows.memory import evenly_spaced
from .._util.types import Array, Mask
from ..selection import KARClassifierCV, KARRegressorCV
from ._findings import Suspect, number

# The left-out probability of a class below which it looks wrong.
UNLIKELY = 0.1
# Errors of left-out predictions beyond this number of standard deviations are suspects. The
# standard deviation is estimated from the median of the errors.
FAR_ERROR = 5.0
# The median of the absolute values of a standard normal distribution.
NORMAL_MEDIAN = 0.6745
# Distances to all other rows beyond this multiple of the 95 % quantile are suspects.
ALONE = 4.0
# Rows whose leaves give the score without suspects.
MOST_SCORED = 20
# The coverage of the intervals of suspects.
COVERAGE = 0.9


def wrong_classes(net: KARClassifierCV, y: NDArray[Any], left_out: Array) -> Iterator[Suspect]:
    """Yield rows whose class the other rows contradict, the clearest first.

    The left-out probability of the given class must be very small.
    """
    probabilities = net.model_.output.calibration.probabilities(left_out)
    codes = np.searchsorted(net.classes_, y)
    rows, known = np.arange(len(y)), ~np.isnan(left_out[:, 0])
    own, best = probabilities[rows, codes], probabilities.argmax(axis=1)
    top = probabilities[rows, best]
    wrong = known & (best != codes) & (own < UNLIKELY)
    for row in np.flatnonzero(wrong)[np.argsort((own - top)[wrong], kind="stable")]:
        detail = (
            f"predicted without this row: {net.classes_[best[row]]} with probability "
            f"{top[row]:.2f}, {y[row]} with {own[row]:.2f}"
        )
        yield Suspect(int(row), "label", detail, str(net.classes_[best[row]]))


def wrong_numbers(y: NDArray[Any], predictions: Array) -> Iterator[Suspect]:
    """Yield rows whose target is far from its left-out prediction, the farthest first."""
    errors = y - predictions
    known = ~np.isnan(errors)
    spread = float(np.median(np.abs(errors[known]))) / NORMAL_MEDIAN if known.any() else 0.0
    around = float(np.quantile(np.abs(errors[known]), COVERAGE)) if known.any() else 0.0
    with np.errstate(invalid="ignore"):
        far = known & (np.abs(errors) > FAR_ERROR * spread) & (spread > 0.0)
    for row in np.flatnonzero(far)[np.argsort(-np.abs(errors[far]), kind="stable")]:
        f = predictions[row]
        detail = (
            f"the target is {number(y[row])}, predicted without this row: {number(f)} (90 % "
            f"interval {number(f - around)} to {number(f + around)})"
        )
        yield Suspect(int(row), "target", detail, number(f))


def alone(model: FittedModel[Any], features: Array) -> Iterator[Suspect]:
    """Yield rows that no other row is like, the farthest first."""
    away = model.novelty(features, np.arange(len(features)))
    far = away > ALONE
    for row in np.flatnonzero(far)[np.argsort(-away[far], kind="stable")]:
        detail = (
            f"its distance to the nearest row is {away[row]:.1f} times that which 95 % of the rows "
            "do not exceed"
        )
        yield Suspect(int(row), "unlike all others", detail)


def scores_without(
    net: KARClassifierCV | KARRegressorCV, left_out: Array, suspects: Mask
) -> tuple[float, float]:
    """Return the left-out score of the rows that are no suspects, with and without suspects.

    Both are scores of left-out predictions of the same rows: of networks fitted to all rows, and of
    networks that forgot the suspects. The score is the accuracy, or R^2. In long tables it is that
    of the leaves of some of the rows.
    """
    Y = net.model_.target_scores
    wanted = np.zeros(len(Y), dtype=bool)
    wanted[evenly_spaced(len(Y), MOST_SCORED)] = True
    without = net.model_.left_out(suspects, wanted, check_device(net.device))
    judged = ~suspects & ~np.isnan(without[:, 0]) & ~np.isnan(left_out[:, 0])
    before, after = (_score(net, Y[judged], each[judged]) for each in (left_out, without))
    return before, after


def _score(net: KARClassifierCV | KARRegressorCV, Y: Array, predictions: Array) -> float:
    if not len(Y):
        return float("nan")
    if isinstance(net, KARClassifierCV):
        return float(np.mean(Y.argmax(axis=1) == predictions.argmax(axis=1)))
    spread = np.sum((Y - Y.mean(axis=0)) ** 2)
    return float(1.0 - np.sum((Y - predictions) ** 2) / spread) if spread > 0.0 else float("nan")
