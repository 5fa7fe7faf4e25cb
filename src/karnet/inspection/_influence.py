"""Influences of training rows and columns on single predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .._arrays.namespace import check_device
from .._estimator.ensemble_base import KARNetworkCV, features_of
from .._model.fitted import FittedModel
from .._util.checks import check_positive_integer
from ._common import Array, Display, network_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class RowInfluence:
    """The changes of predictions without each training row, as `row_influence` returns them.

    Attributes
    ----------
    changes : ndarray of shape (n_samples, n_rows) or (n_samples, n_rows, n_outputs)
        The prediction of a fit without a training row, less that of the fit to all rows. Those of
        a classifier are changes of its decision function.
    similarities : ndarray of shape (n_samples, n_rows)
        The mean kernel of the networks between a row and a training row: 1 for equal rows. In
        tables that trees divide, only rows of the same leaves are alike.
    exact : bool
        Whether no target shaped an input metric. The changes are then those of refits with the same
        views, scales and ridges. Otherwise they leave out the change of the metric.
    """

    changes: Array
    similarities: Array
    exact: bool

    @property
    def sizes(self) -> Array:
        """The sizes of the changes, of shape (n_samples, n_rows)."""
        changes = self.changes
        return np.abs(changes) if changes.ndim == 2 else np.linalg.norm(changes, axis=2)

    def most_influential(self, n: int = 3) -> NDArray[np.intp]:
        """Return the training rows with the largest changes, of shape (n_samples, n)."""
        return _largest(self.sizes, n)

    def most_alike(self, n: int = 3) -> NDArray[np.intp]:
        """Return the training rows that are most alike, of shape (n_samples, n)."""
        return _largest(self.similarities, n)


def _largest(values: Array, n: int) -> NDArray[np.intp]:
    order = np.argsort(-values, axis=1, kind="stable")
    return order[:, : check_positive_integer("n", n)]


def row_influence(estimator: Any, X: Any) -> RowInfluence:
    """Compute how predictions would change if each training row had not been there.

    One factorisation of the kernel matrix gives the predictions without each row, so no network is
    fitted again. Views, scales, ridges, input metrics and the weights of the networks stay as they
    are. A row of weight 0 changes nothing.

    Parameters
    ----------
    estimator : KARClassifierCV, KARRegressorCV or Pipeline
        A fitted estimator that selects all hyper-parameters, or a pipeline that ends with one.
    X : array-like or data frame of shape (n_samples, n_features)
        The rows whose predictions are explained.

    Returns
    -------
    RowInfluence

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from karnet import KARRegressorCV
    >>> from karnet.inspection import row_influence
    >>> X, y = load_diabetes(return_X_y=True)
    >>> net = KARRegressorCV(random_state=0).fit(X[:200], y[:200])
    >>> row_influence(net, X[200:202]).changes.shape
    (2, 200)
    """
    model, rows, device = explained(estimator, X)
    exact = all(member.shape.rounds == 0 for member in model.members)
    return RowInfluence(*model.influence(rows, device), exact)


def column_effects(estimator: Any, X: Any) -> Array:
    """Compute how far each column moves predictions from their mean over values of other rows.

    The effect of a column is the prediction for a row, less the mean prediction for the row with
    values of training rows in that column. Effects of columns that act together do not sum to the
    difference to the mean prediction.

    Parameters
    ----------
    estimator : KARClassifierCV, KARRegressorCV or Pipeline
        A fitted estimator that selects all hyper-parameters, or a pipeline that ends with one.
    X : array-like or data frame of shape (n_samples, n_features)
        The rows whose predictions are explained.

    Returns
    -------
    ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_outputs)
        The effects on predictions, or on the decision function of a classifier. The features are
        those that the estimator sees.
    """
    model, rows, device = explained(estimator, X)
    return model.output.difference(model.column_effects(rows, device=device))


def average_of(estimator: Any) -> KARNetworkCV:
    """Return the fitted average of an estimator or pipeline."""
    net = network_of(estimator)
    if not isinstance(net, KARNetworkCV):
        raise ValueError(
            f"{type(net).__name__} keeps no training rows: use KARClassifierCV or KARRegressorCV."
        )
    return net


def explained(estimator: Any, X: Any) -> tuple[FittedModel[Any], Array, str | None]:
    """Return the model of an estimator or pipeline, rows as its features, and its device."""
    net = average_of(estimator)
    if hasattr(estimator, "steps") and len(estimator.steps) > 1:
        X = estimator[:-1].transform(X)
    return net.model_, features_of(net, X), check_device(net.device)


@dataclass(eq=False, repr=False)
class RowInfluenceDisplay(Display):
    """The training rows that change the prediction for one row most.

    Parameters
    ----------
    changes : ndarray of shape (n_rows,)
        The changes of the prediction without the rows.
    row_names : sequence of str
        The names of the rows.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from karnet import KARRegressorCV
    >>> from karnet.inspection import RowInfluenceDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> net = KARRegressorCV(random_state=0).fit(X[:200], y[:200])
    >>> len(RowInfluenceDisplay.from_estimator(net, X[200:201], n_rows=5).changes)
    5
    """

    changes: Array
    row_names: Sequence[str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        n_rows: int = 10,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the most influential training rows for the prediction of a single row.

        Parameters
        ----------
        estimator : KARClassifierCV, KARRegressorCV or Pipeline
            A fitted estimator that selects all hyper-parameters.
        X : array-like or data frame of shape (1, n_features)
            The row. For several classes, the changes are those of the class that is predicted.
        n_rows : int
            The number of training rows to show.
        ax : matplotlib Axes, optional
            The axes to draw on; new ones by default.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        RowInfluenceDisplay
        """
        found = row_influence(estimator, X)
        if len(found.changes) != 1:
            raise ValueError(f"X must hold one row, but holds {len(found.changes)}.")
        first = found.most_influential(n_rows)[0]
        changes = found.changes[0, first]
        if changes.ndim == 2:
            model, rows, device = explained(estimator, X)
            changes = changes[:, model.scores(rows, device)[0].argmax()]
        return cls(changes, [f"row {k}" for k in first]).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Plot the changes as bars.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; new ones by default.
        **kwargs
            Passed to `barh` of the axes.

        Returns
        -------
        RowInfluenceDisplay
        """
        ax = self._draw_on(ax)
        n = len(self.changes)
        ax.barh(range(n), self.changes, **kwargs)
        ax.set(xlabel="change of the prediction without the row", ylim=(n - 0.5, -0.5))
        ax.set_yticks(range(n), self.row_names)
        return self
