"""The base class of the displays, and the network and the rows that a display shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._estimator.notebook import networks_of
from .._rows.memory import dense, evenly_spaced
from .._util.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Array = NDArray[np.float64]
# The largest number of rows that a display is computed from.
MAX_ROWS = 1500


class Display:
    """Base class of the displays: the axes that one was drawn on, and their figure."""

    ax_: Axes
    figure_: Figure | SubFigure | None

    def _draw_on(self, ax: Axes | None) -> Axes:
        """Return the given axes, or new ones if there are none, and store them."""
        require(type(self).__name__, "plot", "matplotlib")
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots()
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def network_of(estimator: Any) -> Any:
    """Return a fitted estimator of karnet, which may be the last step of a pipeline."""
    network = estimator[-1] if hasattr(estimator, "steps") else estimator
    if not networks_of(network):
        name = type(network).__name__
        raise ValueError(f"{name} is not a fitted estimator of karnet: fit one first.")
    return network


def sampled(estimator: Any, X: Any) -> tuple[Array, NDArray[np.intp]]:
    """Return evenly spaced rows as the network in a pipeline receives them, and their indices."""
    if hasattr(estimator, "steps") and len(estimator.steps) > 1:
        X = estimator[:-1].transform(X)
    A = dense(np.asarray(X) if hasattr(X, "columns") else X)
    rows = evenly_spaced(len(A), MAX_ROWS)
    return A[rows], rows
