"""The singular values and the numerical rank of the inputs of each layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._estimator.notebook import networks_of
from .._lstsq.lapack import EPS
from .._lstsq.solve import check_rcond
from ..learner import PULLED_BACK_RCOND
from ._common import Array, Display, network_of, sampled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# Zeros are plotted at this value, since the axis is logarithmic.
SMALLEST_PLOTTED = 1e-18


@dataclass(frozen=True)
class Spectrum:
    """The singular values of the inputs of one layer."""

    name: str  # of the layer, or of the network in an ensemble
    values: Array  # over the largest; the columns are centred and scaled to unit length
    rcond: float  # the cut-off: values up to this one count as zero
    outside: float  # the share of the layer's values outside the domain of its activation

    @property
    def rank(self) -> int:
        """The number of singular values above the cut-off."""
        return int(np.count_nonzero(self.values > self.rcond))


@dataclass(eq=False, repr=False)
class LayerSpectrumDisplay(Display):
    """The singular values of the inputs of each layer, and the cut-off of the numerical rank.

    Parameters
    ----------
    spectra : sequence of Spectrum
        One for each layer that was solved; for an ensemble, one for each network.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The plotted curves.
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import minmax_scale
    >>> from karnet import KARClassifier
    >>> from karnet.inspection import LayerSpectrumDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> net = KARClassifier((100,), random_state=0).fit(minmax_scale(X), y)
    >>> display = LayerSpectrumDisplay.from_estimator(net, minmax_scale(X))
    >>> [spectrum.rank < 100 for spectrum in display.spectra]
    [True, True]
    """

    spectra: Sequence[Spectrum]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Plot the singular values of the inputs of a fitted estimator's layers.

        Parameters
        ----------
        estimator : estimator or Pipeline
            A fitted estimator. For an ensemble, the outputs of each network's hidden layer are
            used.
        X : array-like of shape (n_samples, n_features)
            Rows, preferably the training rows; of more than 1500 rows, a sample is used.
        ax : matplotlib Axes, optional
            The axes to draw on; new ones by default.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        LayerSpectrumDisplay
        """
        A, _ = sampled(estimator, X)
        return cls(list(spectra(network_of(estimator), A))).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Plot the singular values, with a dotted line at the cut-off.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; new ones by default.
        **kwargs
            Passed to `plot` of the axes.

        Returns
        -------
        LayerSpectrumDisplay
        """
        ax = self._draw_on(ax)
        self.lines_: list[Line2D] = []
        for each in self.spectra:
            outside = f", {100 * each.outside:.1f} % outside" if each.outside else ""
            label = f"{each.name}: rank {each.rank} of {len(each.values)}{outside}"
            indices = np.arange(1, len(each.values) + 1)
            style = {"drawstyle": "steps-mid", "label": label} | kwargs
            self.lines_ += ax.plot(indices, np.maximum(each.values, SMALLEST_PLOTTED), **style)
            ax.axhline(each.rcond, color=self.lines_[-1].get_color(), linestyle=":", linewidth=1.0)
        ax.set(xscale="log", yscale="log", xlabel="index", ylabel="relative singular value")
        ax.legend()
        return self


def spectra(estimator: Any, X: Array) -> Iterator[Spectrum]:
    """Yield the spectrum of each layer that was solved."""
    for n, member in enumerate(getattr(estimator, "estimators_", ()), start=1):
        A = member.view(X)
        K = member.kernel_map.at(A)(A)
        yield Spectrum(f"network {n}", _singular_values(K), EPS * len(K), 0.0)
    for network in networks_of(estimator) if hasattr(estimator, "layers_") else ():
        # Infinitely wide layers have reports of their own.
        reports = estimator.layers_[-len(network.layers) :]
        for k, report in enumerate(reports, start=1):
            if report.rank is None:
                continue
            last = k == len(network.layers)
            links = network.direct_links and last
            A = replace(network, layers=network.layers[:k], direct_links=links).features(X)
            rcond = check_rcond(estimator.rcond)
            if rcond is None:
                pulled_back = k > 1 and estimator.hidden == "pullback"
                rcond = PULLED_BACK_RCOND if pulled_back else EPS * A.shape[1]
            name = "output layer" if last else f"layer {k}"
            yield Spectrum(name, _singular_values(A), rcond, report.outside)


def _singular_values(A: Array) -> Array:
    """Return the singular values of A's centred columns of unit length, over the largest."""
    A = A - A.mean(axis=0)
    norms = np.linalg.norm(A, axis=0)
    values = np.linalg.svd(A / np.where(norms > 0.0, norms, 1.0), compute_uv=False)
    return np.asarray(values / (values[0] if len(values) and values[0] > 0.0 else 1.0))
