"""Everything that was measured, and what a report asks of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
from scipy.stats import wilcoxon

from . import iris, xor
from .store import Fit
from .summary import AVERAGED, Summary, accuracy_differences, speed_ratios, summarise
from .uci import Settings

__all__ = ["BASELINE", "DEPTHS", "KARNET", "SAME_WIDTH", "Results"]

# Names of methods, as in `METHODS`.
KARNET, SAME_WIDTH, BASELINE = "karnet", "karnet, baseline's width", "levenberg-marquardt"
DEPTHS = MappingProxyType({2: KARNET, 3: "karnet, 3 layers", 4: "karnet, 4 layers"})


@dataclass(frozen=True)
class Results:
    """Everything that a report is made from.

    Attributes
    ----------
    fits : list of Fit
        On the data sets.
    xor : tuple of xor.Study
        The first case study.
    outputs : tuple of iris.Fitted
        Of the second one, below the step and on it.
    sweeps : tuple of pairs of iris.Sweep
        In two layers and in five, each without an output bias and with it.
    settings : Settings
        What the run was asked for.
    commands : list of str
        What was called to make them.
    """

    fits: list[Fit]
    xor: tuple[xor.Study, ...]
    outputs: tuple[iris.Fitted, ...]
    sweeps: tuple[tuple[iris.Sweep, iris.Sweep], ...]
    settings: Settings
    commands: list[str]

    @cached_property
    def summaries(self) -> list[Summary]:
        """What the fits come to, by method and data set."""
        return summarise(self.fits)

    def of(self, method: str) -> list[Summary]:
        """Return the summaries of one method."""
        return [each for each in self.summaries if each.method == method]

    def complete(self, *methods: str) -> bool:
        """Return whether each method was tried on all sets of the paper's means."""
        tried = [{each.number for each in self.of(method)} for method in methods]
        return all(numbers >= set(AVERAGED) for numbers in tried)

    @cached_property
    def speed_ratios(self) -> list[float]:
        """How many times longer the baseline trains than KARnet at its width, by data set."""
        return list(speed_ratios(self.fits, BASELINE, SAME_WIDTH).values())

    def on_common_folds(self, methods: Sequence[str]) -> Results:
        """Return the results of these methods on the folds that all of them were trained on."""
        folds = [{fit.key[1:] for fit in self.fits if fit.method == name} for name in methods]
        common = set.intersection(*folds)
        fits = [fit for fit in self.fits if fit.method in methods and fit.key[1:] in common]
        return replace(self, fits=fits)

    def change_by_depth(self, n_layers: int) -> float | None:
        """Return the mean of the sets' differences to two layers, in points; None without any."""
        values = list(accuracy_differences(self.fits, DEPTHS[n_layers], KARNET).values())
        return 100 * float(np.mean(values)) if values else None

    def p_value(self, n_layers: int) -> float | None:
        """Return Wilcoxon's p of the sets' differences to two layers; None if there is no test."""
        values = list(accuracy_differences(self.fits, DEPTHS[n_layers], KARNET).values())
        return float(wilcoxon(values).pvalue) if np.count_nonzero(values) > 5 else None
