"""The input metric of a network: how strongly each input changes its predictions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ._common import Array, Display, network_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class MetricDisplay(Display):
    """The input metric of a network: how strongly its predictions change with each input.

    The metric is no importance: a column may change predictions strongly in rows that are rare, or
    say the same as another column. ``feature_importances_`` of an estimator that selects all
    hyper-parameters is the rise of the left-out error without a column.

    Parameters
    ----------
    importances : ndarray of shape (n_features,)
        The diagonal of the metric, scaled to sum to one.
    feature_names : sequence of str
        The names of the inputs.
    metric : ndarray of shape (n_features, n_features), optional
        The full metric, if the network has one.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from karnet import KARClassifierCV
    >>> from karnet.inspection import MetricDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> display = MetricDisplay.from_estimator(KARClassifierCV(random_state=0).fit(X, y))
    >>> display.feature_names[display.importances.argmax()].startswith("petal")
    True
    """

    importances: Array
    feature_names: Sequence[str]
    metric: Array | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the input metric of a fitted estimator.

        Parameters
        ----------
        estimator : estimator or Pipeline
            `KARClassifierCV`, `KARRegressorCV`, or another estimator with ``hidden="metric"``.
        feature_names : sequence of str, optional
            The names of the inputs; by default those seen by `fit`, or ``x0``, ``x1``, and so on.
        ax : matplotlib Axes, optional
            The axes to draw on; new ones by default.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        MetricDisplay
        """
        network = network_of(estimator)
        # A single network has a full metric, and an average the diagonals of several.
        importances = getattr(network, "input_metric_", None)
        if importances is None:
            raise ValueError(
                f"{type(network).__name__} has no input metric: use hidden='metric', or an "
                "estimator that selects all hyper-parameters."
            )
        names = _names(estimator, len(importances)) if feature_names is None else feature_names
        if len(names) != len(importances):
            raise ValueError(
                f"feature_names must name all {len(importances)} inputs, but names {len(names)}."
            )
        display = cls(np.asarray(importances), list(names), getattr(network, "metric_", None))
        return display.plot(ax=ax, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, matrix: bool = False, max_features: int = 20, **kwargs: Any
    ) -> Self:
        """Plot the importances as bars, or the full metric as a matrix.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; new ones by default.
        matrix : bool
            Whether to plot the full metric.
        max_features : int
            The number of most important inputs to show.
        **kwargs
            Passed to `barh` or `imshow` of the axes.

        Returns
        -------
        MetricDisplay
        """
        if matrix and self.metric is None:
            raise ValueError("the network has only the diagonal of a metric: use matrix=False.")
        ax = self._draw_on(ax)
        first = np.argsort(-self.importances, kind="stable")[:max_features]
        names = [self.feature_names[k] for k in first]
        if matrix and self.metric is not None:
            largest = float(np.abs(self.metric).max())
            style: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest} | kwargs
            ax.imshow(self.metric[np.ix_(first, first)], **style)
            ax.set_xticks(range(len(first)), names, rotation=90)
        else:
            ax.barh(range(len(first)), self.importances[first], **kwargs)
            ax.set(xlabel="share of the input metric", ylim=(len(first) - 0.5, -0.5))
        ax.set_yticks(range(len(first)), names)
        return self


def _names(estimator: Any, n_features: int) -> Sequence[str]:
    """Return the names of the network's inputs, those that the pipeline before it makes."""
    names = getattr(network_of(estimator), "feature_names_in_", None)
    if names is None and hasattr(estimator, "steps") and len(estimator.steps) > 1:
        with suppress(AttributeError, ValueError):
            names = estimator[:-1].get_feature_names_out()
    return [f"x{k}" for k in range(n_features)] if names is None else list(map(str, names))
