"""The leave-one-out score of a network as a function of its ridge and its width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import r2_score

from .._network.layers import forward_through
from ..learner import indicator
from ..loo import RidgePath, accuracy
from ._common import Array, Display, network_of, sampled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# Default ridges, relative to the mean eigenvalue of the output layer's Gram matrix.
RELATIVE_RIDGES = np.logspace(-8, 4, 49)
# Default widths, relative to the width of the network.
RELATIVE_WIDTHS = (0.25, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Path:
    """The scores of one network for a range of ridges."""

    # The name of the network.
    name: str
    # The ridges.
    alphas: Array
    # The accuracy or the R^2 of the leave-one-out predictions for each ridge.
    scores: Array
    # The ridge of the fitted network.
    alpha: float


@dataclass(eq=False, repr=False)
class LooPathDisplay(Display):
    """The exact leave-one-out score over the ridge, with a curve for each width or network.

    Parameters
    ----------
    paths : sequence of Path
        The curves.
    score_name : str
        The name of the score.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The plotted curves.
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.

    Notes
    -----
    Leaving out a row does not change the hidden layers. If they depend on the labels, as in
    pulled-back networks and with an input metric, the score is optimistic, but its maximum is in
    the right place.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from karnet import KARClassifier
    >>> from karnet.inspection import LooPathDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> net = KARClassifier((50,), activation="tanh", hidden="random", random_state=0).fit(X, y)
    >>> display = LooPathDisplay.from_estimator(net, X, y, widths=[10, 50])
    >>> [path.name for path in display.paths]
    ['10 units', '50 units']
    """

    paths: Sequence[Path]
    score_name: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        alphas: ArrayLike | None = None,
        widths: Sequence[int] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the leave-one-out scores of networks like those of a fitted estimator.

        Parameters
        ----------
        estimator : estimator or Pipeline
            A fitted estimator. An ensemble has a curve for each of its networks; any other network
            is fitted again at each width.
        X : array-like of shape (n_samples, n_features)
            The training rows; of more than 1500 rows, a sample is used.
        y : array-like of shape (n_samples,)
            Their targets.
        alphas : array-like, optional
            The ridges; by default a range around the mean eigenvalue of the output layer's Gram
            matrix.
        widths : sequence of int, optional
            The units of each hidden layer, not for an ensemble; by default from a quarter to twice
            the width of the network.
        ax : matplotlib Axes, optional
            The axes to draw on; new ones by default.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        LooPathDisplay
        """
        network = network_of(estimator)
        A, rows = sampled(estimator, X)
        targets = np.asarray(y)[rows]
        score = _Score(targets, getattr(network, "classes_", None))
        ridges = None if alphas is None else np.asarray(alphas, dtype=np.float64)
        if hasattr(network, "estimators_"):
            if widths is not None:
                raise ValueError(
                    "widths must be None for an ensemble: its networks keep their widths."
                )
            candidates = [
                (f"network {k}", RidgePath.of_kernel(_kernel_matrix(each, A), score.Y), each.alpha_)
                for k, each in enumerate(network.estimators_, start=1)
            ]
        else:
            candidates = [
                (name, RidgePath.of(H, score.Y, bias=network.fit_intercept), float(network.alpha))
                for name, H in _at_widths(network, A, targets, widths)
            ]
        paths = [score.path(name, path, ridges, alpha) for name, path, alpha in candidates]
        return cls(paths, score.name).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Plot the curves, with a dot at the ridge of each fitted network.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; new ones by default.
        **kwargs
            Passed to `plot` of the axes.

        Returns
        -------
        LooPathDisplay
        """
        ax = self._draw_on(ax)
        self.lines_: list[Line2D] = []
        for each in self.paths:
            self.lines_ += ax.plot(each.alphas, each.scores, **{"label": each.name} | kwargs)
            if each.alphas.min() <= each.alpha <= each.alphas.max():
                score = np.interp(np.log(each.alpha), np.log(each.alphas), each.scores)
                ax.plot(each.alpha, score, "o", color=self.lines_[-1].get_color())
        ax.set_xscale("log")
        ax.set_xlabel("ridge")
        ax.set_ylabel(f"leave-one-out {self.score_name}")
        ax.legend()
        return self


class _Score:
    """The targets of some rows, and the score of predictions for them."""

    def __init__(self, y: NDArray[Any], classes: NDArray[Any] | None) -> None:
        self.codes = None if classes is None else np.searchsorted(classes, y)
        if self.codes is None or classes is None:
            numbers = y.reshape(len(y), -1).astype(np.float64)
            self.Y, self.name = numbers - numbers.mean(axis=0), "R²"
        else:
            self.Y, self.name = indicator(self.codes, len(classes)), "accuracy"

    def path(self, name: str, path: RidgePath, alphas: Array | None, alpha: float) -> Path:
        if alphas is None:
            alphas = RELATIVE_RIDGES * path.eigenvalues.mean()
        scores = [
            r2_score(self.Y, left_out) if self.codes is None else accuracy(self.codes, left_out)
            for left_out in path.loo_path(alphas)
        ]
        return Path(name, alphas, np.array(scores), alpha)


def _kernel_matrix(member: Any, X: Array) -> Array:
    """Return the products of the hidden layer's outputs for all pairs of rows."""
    A = member.view(X)
    return np.asarray(member.kernel_map.at(A)(A))


def _at_widths(
    network: Any, X: Array, y: NDArray[Any], widths: Sequence[int] | None
) -> Iterator[tuple[str, Array]]:
    """Yield the inputs of the output layer for networks of several widths."""
    sizes = tuple(V.shape[1] for V in getattr(network, "coefs_", ())[:-1])
    if not sizes:
        raise ValueError("the network has no hidden layers of finite width: there is no width.")
    for width in [round(w * sizes[-1]) for w in RELATIVE_WIDTHS] if widths is None else widths:
        settings = network.get_params() | {"hidden_layer_sizes": (width,) * len(sizes)}
        fitted = type(network)(**settings).fit(X, y)._network()
        hidden = forward_through(fitted.layers[:-1], fitted.direct_links, fitted.input_map)
        yield f"{width} units", hidden(X)
