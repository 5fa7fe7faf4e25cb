"""The singular values and the numerical rank of the inputs of each layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._lstsq.lapack import EPS
from .._lstsq.solve import check_rcond
from .._network.layers import forward_through
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

    # The name of the layer, or of the network in an ensemble.
    name: str
    # The singular values over the largest; the columns are centred and scaled to unit length.
    values: Array
    # The cut-off: values up to this one count as zero.
    rcond: float
    # The share of the layer's values outside the domain of its activation.
    outside: float

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
        network = network_of(estimator)
        A, _ = sampled(estimator, X)
        spectra = _of_members if hasattr(network, "estimators_") else _of_layers
        return cls(list(spectra(network, A))).plot(ax=ax, **kwargs)

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
            colour = self.lines_[-1].get_color()
            ax.axhline(each.rcond, color=colour, linestyle=":", linewidth=1.0)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("index")
        ax.set_ylabel("relative singular value")
        ax.legend()
        return self


def _of_layers(network: Any, X: Array) -> Iterator[Spectrum]:
    """Yield the spectra of the layers that were solved."""
    fitted = network._network()
    names = [*(f"layer {k + 1}" for k in range(len(fitted.layers) - 1)), "output layer"]
    reports = network.layers_[-len(fitted.layers) :]
    for k, (name, report) in enumerate(zip(names, reports, strict=True)):
        if report.rank is None:
            continue
        links = fitted.direct_links and name == "output layer"
        A = forward_through(fitted.layers[:k], links, fitted.input_map)(X)
        rcond = check_rcond(network.rcond)
        if rcond is None:
            pulled_back = k > 0 and network.hidden == "pullback"
            rcond = PULLED_BACK_RCOND if pulled_back else EPS * A.shape[1]
        yield Spectrum(name, _singular_values(A), rcond, report.outside)


def _of_members(network: Any, X: Array) -> Iterator[Spectrum]:
    for k, each in enumerate(network._networks(), start=1):
        yield Spectrum(f"network {k}", _singular_values(each.features(X)), EPS * each.width, 0.0)


def _singular_values(A: Array) -> Array:
    """Return the singular values of A's centred columns of unit length, over the largest."""
    A = A - A.mean(axis=0)
    norms = np.linalg.norm(A, axis=0)
    values = np.linalg.svd(A / np.where(norms > 0.0, norms, 1.0), compute_uv=False)
    return np.asarray(values / (values[0] if len(values) and values[0] > 0.0 else 1.0))
