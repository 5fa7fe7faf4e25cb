"""What a network answers over the plane of two inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ._common import Array, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["DecisionSurfaceDisplay"]

# How far the plane reaches beyond the rows, as a share of what they span.
MARGIN = 0.05


class DecisionSurfaceDisplay:
    """The answers of an estimator over the plane of two inputs, all others at their medians.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (n, n)
        The grid.
    response : ndarray of shape (n, n)
        The probability of the second of two classes, the number of the most probable of several,
        or the prediction.
    classes : ndarray or None
        The classes.
    labels : pair of str
        What the two inputs are called.
    points : tuple of ndarrays, optional
        Both inputs of some rows, and their targets.

    Attributes
    ----------
    surface_ : matplotlib QuadContourSet
        The filled contours.
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        The figure of these axes.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from karnet import KARClassifierCV
    >>> from karnet.inspection import DecisionSurfaceDisplay
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> net = KARClassifierCV(random_state=0).fit(X, y)
    >>> display = DecisionSurfaceDisplay.from_estimator(net, X, y=y, grid_resolution=20)
    >>> display.response.shape
    (20, 20)
    """

    ax_: Axes
    figure_: Figure | SubFigure | None

    def __init__(
        self,
        xx0: Array,
        xx1: Array,
        response: Array,
        classes: NDArray[Any] | None,
        labels: tuple[str, str],
        points: tuple[Array, Array, NDArray[Any]] | None = None,
    ) -> None:
        self.xx0 = xx0
        self.xx1 = xx1
        self.response = response
        self.classes = classes
        self.labels = labels
        self.points = points

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        y: Any = None,
        features: Sequence[Any] = (0, 1),
        grid_resolution: int = 100,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the answers of a fitted estimator.

        Parameters
        ----------
        estimator : estimator or Pipeline
            A fitted classifier or regressor.
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows of numbers that say how far the plane reaches and where other inputs stay.
        y : array-like of shape (n_samples,), optional
            Their targets; if given, the rows are drawn.
        features : pair of int or str
            The two inputs.
        grid_resolution : int
            Points of the grid along each.
        ax : matplotlib Axes, optional
            Where to draw.
        **kwargs
            As in `plot`.

        Returns
        -------
        DecisionSurfaceDisplay
        """
        names = [str(name) for name in getattr(X, "columns", ())]
        table = np.asarray(X, dtype=np.float64)
        first, second = (_place(each, names, table.shape[1]) for each in features)
        xx0, xx1 = np.meshgrid(*(_reach(table[:, k], grid_resolution) for k in (first, second)))
        grid = np.tile(np.median(table, axis=0), (xx0.size, 1))
        grid[:, first], grid[:, second] = xx0.ravel(), xx1.ravel()
        response = _response(estimator, X.__class__(grid, columns=X.columns) if names else grid)
        named = names or [f"x{k}" for k in range(table.shape[1])]
        points = None if y is None else (table[:, first], table[:, second], np.asarray(y))
        shown = cls(
            *(xx0, xx1, response.reshape(xx0.shape)),
            getattr(estimator, "classes_", None),
            (named[first], named[second]),
            points,
        )
        return shown.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw filled contours, and the rows that were given.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new ones by default.
        **kwargs
            For `contourf` of the axes.

        Returns
        -------
        DecisionSurfaceDisplay
        """
        ax = axes(self, ax)
        n = 0 if self.classes is None else len(self.classes)
        style: dict[str, Any] = {"cmap": "viridis", "levels": 12}
        if n == 2:
            style = {"cmap": "RdBu_r", "levels": np.linspace(0.0, 1.0, 11)}
        elif n:
            style = {"cmap": "tab20", "levels": np.arange(n + 1) - 0.5, "alpha": 0.6}
        self.surface_ = ax.contourf(self.xx0, self.xx1, self.response, **style | kwargs)
        if self.points is not None:
            x0, x1, y = self.points
            colours = np.searchsorted(self.classes, y) if self.classes is not None else y
            like: dict[str, Any] = {"cmap": self.surface_.cmap, "norm": self.surface_.norm}
            ax.scatter(x0, x1, c=colours, edgecolor="k", s=20, **like)
        ax.set_xlabel(self.labels[0])
        ax.set_ylabel(self.labels[1])
        return self


def _place(feature: Any, names: list[str], n: int) -> int:
    """Return the number of a column that is given by number or name."""
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, (int, np.integer)) and -n <= feature < n:
        return int(feature) % n
    raise ValueError(f"features={feature!r} is not a column of X: give names or numbers below {n}.")


def _reach(column: Array, n: int) -> Array:
    low, high = float(column.min()), float(column.max())
    margin = MARGIN * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, n)


def _response(estimator: Any, grid: Any) -> Array:
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return np.asarray(estimator.predict(grid), dtype=np.float64)
    proba = estimator.predict_proba(grid)
    return np.asarray(proba[:, 1] if len(classes) == 2 else proba.argmax(axis=1), dtype=np.float64)
