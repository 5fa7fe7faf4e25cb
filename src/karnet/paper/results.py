"""All results of a reproduction, and the statistics that its report shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.stats import wilcoxon

from . import iris, xor
from .methods import BASELINE, DEPTHS, KARNET, SAME_WIDTH
from .store import Fit
from .summary import AVERAGED, Summary, accuracy_differences, speed_ratios, summarise
from .uci import Settings


@dataclass(frozen=True)
class Results:
    """Everything that a report is made from."""

    fits: list[Fit]
    xor: tuple[xor.Study, ...]
    outputs: tuple[iris.Fitted, ...]  # one unit short of an exact fit of Iris, and with one
    sweeps: tuple[tuple[iris.Sweep, iris.Sweep], ...]  # each without an output bias and with it
    settings: Settings
    commands: list[str]  # that made the fits

    @cached_property
    def summaries(self) -> list[Summary]:
        """Summaries of the fits, by method and data set."""
        return summarise(self.fits)

    def of(self, method: str) -> list[Summary]:
        """Return the summaries of one method."""
        return [each for each in self.summaries if each.method == method]

    def complete(self, *methods: str) -> bool:
        """Return whether each method was run on all sets of the paper's means."""
        return all({each.number for each in self.of(name)} >= set(AVERAGED) for name in methods)

    @cached_property
    def speed_ratios(self) -> list[float]:
        """Ratios of the baseline's training time to KARnet's at the same width, by data set."""
        return list(speed_ratios(self.fits, BASELINE, SAME_WIDTH).values())

    def on_common_folds(self, methods: Sequence[str]) -> Results:
        """Return the results of these methods on the folds that all of them were trained on."""
        folds = [{fit.key[1:] for fit in self.fits if fit.method == name} for name in methods]
        common = set.intersection(*folds)
        fits = [fit for fit in self.fits if fit.method in methods and fit.key[1:] in common]
        return replace(self, fits=fits)

    def change_by_depth(self, n_layers: int) -> float | None:
        """Return the mean change of accuracy from two layers, in points; None without fits."""
        values = list(accuracy_differences(self.fits, DEPTHS[n_layers], KARNET).values())
        return 100 * float(np.mean(values)) if values else None

    def p_value(self, n_layers: int) -> float | None:
        """Return the p-value of Wilcoxon's test of that change; None for too few data sets."""
        values = list(accuracy_differences(self.fits, DEPTHS[n_layers], KARNET).values())
        return float(wilcoxon(values).pvalue) if np.count_nonzero(values) > 5 else None
