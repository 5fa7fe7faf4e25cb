"""Which inputs a network is sensitive to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ._common import Array, axes, network_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["MetricDisplay"]


class MetricDisplay:
    """The input metric of a network: how strongly its answers change with each input.

    Parameters
    ----------
    importances : ndarray of shape (n_features,)
        The diagonal of the metric, summing to one.
    feature_names : sequence of str
        What the inputs are called.
    metric : ndarray of shape (n_features, n_features), optional
        The whole metric, where the network has one.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        The figure of these axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from karnet import KARClassifierCV
    >>> from karnet.inspection import MetricDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> display = MetricDisplay.from_estimator(KARClassifierCV(random_state=0).fit(X, y))
    >>> display.feature_names[display.importances.argmax()]
    'petal length (cm)'
    """

    ax_: Axes
    figure_: Figure | SubFigure | None

    def __init__(
        self, importances: Array, feature_names: Sequence[str], metric: Array | None = None
    ) -> None:
        self.importances = importances
        self.feature_names = feature_names
        self.metric = metric

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the metric of a fitted estimator that has one.

        Parameters
        ----------
        estimator : estimator or Pipeline
            `KARClassifierCV`, `KARRegressorCV`, or a plain one with ``hidden="metric"``.
        feature_names : sequence of str, optional
            What to call the inputs; by default as in `fit`, or by number.
        ax : matplotlib Axes, optional
            Where to draw.
        **kwargs
            As in `plot`.

        Returns
        -------
        MetricDisplay
        """
        network = network_of(estimator)
        importances = getattr(network, "feature_importances_", None)
        if importances is None:
            raise ValueError(
                f"{type(network).__name__} has no input metric: use hidden='metric', or an "
                "estimator that settles everything itself."
            )
        names = _names(estimator, len(importances)) if feature_names is None else feature_names
        if len(names) != len(importances):
            raise ValueError(
                f"feature_names must name all {len(importances)} inputs, but names {len(names)}."
            )
        shown = cls(np.asarray(importances), list(names), getattr(network, "metric_", None))
        return shown.plot(ax=ax, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, matrix: bool = False, max_features: int = 20, **kwargs: Any
    ) -> Self:
        """Draw the importances as bars, or the whole metric as a matrix.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new ones by default.
        matrix : bool
            Whether to draw the whole metric.
        max_features : int
            The most important inputs are shown, so many at most.
        **kwargs
            For `barh` or `imshow` of the axes.

        Returns
        -------
        MetricDisplay
        """
        if matrix and self.metric is None:
            raise ValueError("the whole metric is not known, only its diagonal: use matrix=False.")
        ax = axes(self, ax)
        first = np.argsort(-self.importances, kind="stable")[:max_features]
        names = [self.feature_names[k] for k in first]
        if matrix and self.metric is not None:
            most = float(np.abs(self.metric).max())
            style: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -most, "vmax": most} | kwargs
            ax.imshow(self.metric[np.ix_(first, first)], **style)
            ax.set_xticks(range(len(first)), names, rotation=90)
        else:
            ax.barh(range(len(first)), self.importances[first], **kwargs)
            ax.set_xlabel("share of the input metric")
            ax.set_ylim(len(first) - 0.5, -0.5)
        ax.set_yticks(range(len(first)), names)
        return self


def _names(estimator: Any, n: int) -> list[str]:
    """Return what the inputs of the network are called."""
    found = getattr(network_of(estimator), "feature_names_in_", None)
    if found is None and hasattr(estimator, "steps") and len(estimator.steps) > 1:
        try:
            found = estimator[:-1].get_feature_names_out()
        except (AttributeError, ValueError):
            found = None
    return [f"x{k}" for k in range(n)] if found is None else [str(name) for name in found]
