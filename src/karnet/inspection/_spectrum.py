"""What the layers of a network see: singular values, numerical rank, values outside the domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._lstsq.lapack import EPS
from .._lstsq.solve import check_rcond
from .._network.layers import forward_through
from ..learner import PULLED_BACK_RCOND
from ._common import Array, axes, network_of, sample, seen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["LayerSpectrumDisplay", "Spectrum"]

# What is drawn of values that are zero.
LEAST = 1e-18


@dataclass(frozen=True)
class Spectrum:
    """What one layer sees.

    Attributes
    ----------
    name : str
        The layer, or the member of an average.
    values : ndarray
        The singular values of what it sees, on columns that are centred and of unit length, over
        the largest.
    rcond : float
        Values at most this large count as zero.
    outside : float
        Share of the layer's values outside the domain of its activation.
    """

    name: str
    values: Array
    rcond: float
    outside: float

    @property
    def rank(self) -> int:
        """The number of values that do not count as zero."""
        return int(np.count_nonzero(self.values > self.rcond))


class LayerSpectrumDisplay:
    """The singular values of what each layer of a network sees, and where they count as zero.

    Parameters
    ----------
    spectra : sequence of Spectrum
        One for each layer that is solved; of an average of networks, one for each of these.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The curves.
    ax_ : matplotlib Axes
        Where it is drawn.
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

    ax_: Axes
    figure_: Figure | SubFigure | None

    def __init__(self, spectra: Sequence[Spectrum]) -> None:
        self.spectra = spectra

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw what the layers of a fitted estimator see of some rows.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted. Of an average of networks, the hidden layer of each is shown.
        X : array-like of shape (n_samples, n_features)
            The rows, best those it was learned from; of many, every so many are taken.
        ax : matplotlib Axes, optional
            Where to draw.
        **kwargs
            As in `plot`.

        Returns
        -------
        LayerSpectrumDisplay
        """
        network = network_of(estimator)
        rows = seen(estimator, X)
        rows = rows[sample(len(rows))]
        spectra = _of_members if hasattr(network, "estimators_") else _of_layers
        return cls(spectra(network, rows)).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new ones by default.
        **kwargs
            For `plot` of the axes.

        Returns
        -------
        LayerSpectrumDisplay
        """
        ax = axes(self, ax)
        self.lines_ = []
        for each in self.spectra:
            outside = f", {100 * each.outside:.1f} % outside" if each.outside else ""
            label = f"{each.name}: rank {each.rank} of {len(each.values)}{outside}"
            places = np.arange(1, len(each.values) + 1)
            style = {"drawstyle": "steps-mid", "label": label} | kwargs
            (line,) = ax.plot(places, np.maximum(each.values, LEAST), **style)
            ax.axhline(each.rcond, color=line.get_color(), linestyle=":", linewidth=1.0)
            self.lines_.append(line)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("number")
        ax.set_ylabel("singular value")
        ax.legend()
        return self


def _of_layers(network: Any, X: Array) -> list[Spectrum]:
    """Return the spectra of the layers that were solved."""
    learned = network._network()
    names = [str(k + 1) for k in range(len(learned.layers) - 1)] + ["output"]
    reports = network.layers_[-len(learned.layers) :]
    found = []
    for k, (name, report) in enumerate(zip(names, reports, strict=True)):
        if report.rank is None:
            continue
        below = learned.layers[:k]
        links = learned.direct_links and name == "output"
        A = forward_through(below, links, learned.input_map)(X)
        pulled_back = bool(below) and network.hidden == "pullback"
        rcond = check_rcond(network.rcond)
        if rcond is None:
            rcond = PULLED_BACK_RCOND if pulled_back else EPS * A.shape[1]
        found.append(Spectrum(f"layer {name}", _singular_values(A), rcond, report.outside))
    return found


def _of_members(network: Any, X: Array) -> list[Spectrum]:
    return [
        Spectrum(f"network {k}", _singular_values(each.features(X)), EPS * each.width, 0.0)
        for k, each in enumerate(network._networks(), start=1)
    ]


def _singular_values(A: Array) -> Array:
    """Return the singular values of centred columns of unit length, over the largest."""
    A = A - A.mean(axis=0)
    norms = np.linalg.norm(A, axis=0)
    values = np.linalg.svd(A / np.where(norms > 0.0, norms, 1.0), compute_uv=False)
    return np.asarray(values / (values[0] if len(values) and values[0] > 0.0 else 1.0))
