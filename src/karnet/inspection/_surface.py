"""The predictions of an estimator as a function of two inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ._common import Array, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The margin of the grid around the rows, as a share of their range.
MARGIN = 0.05


@dataclass(eq=False, repr=False)
class DecisionSurfaceDisplay(Display):
    """The predictions of an estimator over two inputs, all other inputs at their medians.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (n, n)
        The grid.
    response : ndarray of shape (n, n)
        The probability of the second of two classes, the index of the most probable of several, or
        the predicted number.
    classes : ndarray or None
        The classes.
    labels : pair of str
        The names of the two inputs.
    points : tuple of ndarrays, optional
        The two inputs of some rows, and their targets.

    Attributes
    ----------
    surface_ : matplotlib QuadContourSet
        The filled contours.
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.

    See Also
    --------
    sklearn.inspection.DecisionBoundaryDisplay : For estimators of exactly two inputs.

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

    xx0: Array
    xx1: Array
    response: Array
    classes: NDArray[Any] | None
    labels: tuple[str, str]
    points: tuple[Array, Array, NDArray[Any]] | None = None

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
        """Plot the predictions of a fitted estimator over two of its inputs.

        Parameters
        ----------
        estimator : estimator or Pipeline
            A fitted classifier or regressor.
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows of numbers, which set the range of the grid and the medians of the other inputs.
        y : array-like of shape (n_samples,), optional
            Their targets; if given, the rows are plotted as points.
        features : pair of int or str
            The two inputs.
        grid_resolution : int
            The number of grid points along each input.
        ax : matplotlib Axes, optional
            The axes to draw on; new ones by default.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        DecisionSurfaceDisplay
        """
        A = np.asarray(X, dtype=np.float64)
        named = hasattr(X, "columns")
        names = list(map(str, X.columns)) if named else [f"x{k}" for k in range(A.shape[1])]
        i, j = (_index(each, names if named else [], A.shape[1]) for each in features)
        low, high = A[:, [i, j]].min(axis=0), A[:, [i, j]].max(axis=0)
        margin = np.where(high > low, MARGIN * (high - low), 1.0)
        xx0, xx1 = np.meshgrid(*np.linspace(low - margin, high + margin, grid_resolution).T)
        grid = np.tile(np.median(A, axis=0), (xx0.size, 1))
        grid[:, i], grid[:, j] = xx0.ravel(), xx1.ravel()
        rows = X.__class__(grid, columns=X.columns) if named else grid
        classes = getattr(estimator, "classes_", None)
        response = (estimator.predict if classes is None else estimator.predict_proba)(rows)
        if classes is not None:
            response = response[:, 1] if len(classes) == 2 else response.argmax(axis=1)
        response = np.asarray(response, dtype=np.float64).reshape(xx0.shape)
        points = None if y is None else (A[:, i], A[:, j], np.asarray(y))
        display = cls(xx0, xx1, response, classes, (names[i], names[j]), points)
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Plot filled contours of the predictions, and the rows if there are targets.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; new ones by default.
        **kwargs
            Passed to `contourf` of the axes.

        Returns
        -------
        DecisionSurfaceDisplay
        """
        ax = self._draw_on(ax)
        n_classes = 0 if self.classes is None else len(self.classes)
        style: dict[str, Any] = {"cmap": "viridis", "levels": 12}
        if n_classes == 2:
            style = {"cmap": "RdBu_r", "levels": np.linspace(0.0, 1.0, 11)}
        elif n_classes:
            style = {"cmap": "tab20", "levels": np.arange(n_classes + 1) - 0.5, "alpha": 0.6}
        self.surface_ = ax.contourf(self.xx0, self.xx1, self.response, **style | kwargs)
        if self.points is not None:
            x0, x1, y = self.points
            colours = y if self.classes is None else np.searchsorted(self.classes, y)
            scale: dict[str, Any] = {"cmap": self.surface_.cmap, "norm": self.surface_.norm}
            ax.scatter(x0, x1, c=colours, edgecolor="k", s=20, **scale)
        ax.set(xlabel=self.labels[0], ylabel=self.labels[1])
        return self


def _index(feature: Any, names: list[str], n_features: int) -> int:
    """Return the index of a column that is given by its index or its name."""
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, (int, np.integer)) and -n_features <= feature < n_features:
        return int(feature) % n_features
    raise ValueError(
        f"features={feature!r} is not a column of X: give names or numbers below {n_features}."
    )
