"""What all displays need: axes to draw on, and the network behind a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._rows.memory import dense
from .._util.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["Array", "Drawn", "axes", "network_of", "sample", "seen"]

Array = NDArray[np.float64]
# Rows that a picture needs at most.
SAMPLED = 1500


class Drawn(Protocol):
    """What a display has once it is drawn."""

    ax_: Axes
    figure_: Figure | SubFigure | None


def axes(display: Drawn, ax: Axes | None) -> Axes:
    """Return the axes to draw on, those given or new ones, and let the display keep them."""
    require(type(display).__name__, "plot", "matplotlib")
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots()
    display.ax_, display.figure_ = ax, ax.figure
    return ax


def network_of(estimator: Any) -> Any:
    """Return a fitted estimator of karnet, taken out of a pipeline if it is in one."""
    network = estimator[-1] if hasattr(estimator, "steps") else estimator
    if not hasattr(network, "layers_") and not hasattr(network, "estimators_"):
        raise ValueError(
            f"{type(network).__name__} is not a fitted estimator of karnet: fit one first."
        )
    return network


def seen(estimator: Any, X: Any) -> Array:
    """Return rows as the network at the end of a pipeline sees them."""
    if hasattr(estimator, "steps") and len(estimator.steps) > 1:
        X = estimator[:-1].transform(X)
    return dense(X)


def sample(n_rows: int) -> NDArray[np.intp]:
    """Return the numbers of at most so many rows as a picture needs, from all of the table."""
    if n_rows <= SAMPLED:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, SAMPLED).astype(np.intp)
