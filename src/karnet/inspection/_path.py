"""The leave-one-out score of a network as a function of its ridge and its width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import r2_score

from .._estimator.notebook import networks_of
from .._util.types import AnyArray, Array
from ..learner import indicator
from ..loo import RidgePath, accuracy
from ._common import Display, network_of, sampled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# Default ridges, relative to the mean eigenvalue of the output layer's Gram matrix.
RELATIVE_RIDGES = np.logspace(-8, 4, 49)
# Default widths, relative to the width of the network.
RELATIVE_WIDTHS = (0.25, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class LooPath:
    """The scores of one network for a range of ridges."""

    name: str
    alphas: Array
    scores: Array  # the accuracy or the R^2 of the leave-one-out predictions for each ridge
    alpha: float  # the ridge of the fitted network


@dataclass(eq=False, repr=False)
class LooPathDisplay(Display):
    """The exact leave-one-out score over the ridge, with a curve for each width or network.

    Parameters
    ----------
    paths : sequence of LooPath
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

    paths: Sequence[LooPath]
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
            A fitted estimator. An ensemble has a curve for each of its networks, infinitely wide
            layers have one curve, and any other network is fitted again at each width.
        X : array-like of shape (n_samples, n_features)
            The training rows; of more than 1500 rows, a sample is used.
        y : array-like of shape (n_samples,)
            Their targets.
        alphas : array-like, optional
            The ridges; by default a range around the mean eigenvalue of the output layer's Gram
            matrix.
        widths : sequence of int, optional
            The units of each hidden layer, not for an ensemble or infinitely wide layers; by
            default from a quarter to twice the width of the network.
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
        if (classes := getattr(network, "classes_", None)) is None:
            Y = targets.reshape(len(targets), -1).astype(np.float64)
            Y -= Y.mean(axis=0)
            score, name = partial(r2_score, Y), "R²"
        else:
            codes = np.searchsorted(classes, targets)
            Y = indicator(codes, len(classes))
            score, name = partial(accuracy, codes), "accuracy"
        paths = []
        for curve, path, alpha in _curves(network, A, targets, Y, widths):
            ridges = RELATIVE_RIDGES * path.eigenvalues.mean() if alphas is None else alphas
            ridges = np.asarray(ridges, dtype=np.float64)
            scores = np.array([score(left_out) for left_out in path.loo_path(ridges)])
            paths.append(LooPath(curve, ridges, scores, alpha))
        return cls(paths, name).plot(ax=ax, **kwargs)

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
        ax.set(xscale="log", xlabel="ridge", ylabel=f"leave-one-out {self.score_name}")
        ax.legend()
        return self


def _curves(
    estimator: Any, X: Array, y: AnyArray, Y: Array, widths: Sequence[int] | None
) -> Iterator[tuple[str, RidgePath, float]]:
    """Yield the name, the solutions for all ridges and the ridge of each network."""
    networks, settings = networks_of(estimator), estimator.get_params(deep=False)
    bias = settings.get("fit_intercept", True)
    kernels = [
        (each.kernel_map, each.view(X), each.alpha_)
        for each in getattr(estimator, "estimators_", ())
    ]
    if not kernels and networks[0].kernel is not None:
        kernels = [(networks[0].kernel, X, settings["alpha"])]
    if kernels:
        if widths is not None:
            raise ValueError(
                "widths must be None for an ensemble and for infinitely wide layers: their "
                "networks keep their widths."
            )
        for k, (kernel, A, alpha) in enumerate(kernels, start=1):
            yield f"network {k}", RidgePath.of_kernel(kernel.at(A)(A), Y, bias=bias), alpha
        return
    sizes = [layer.V.shape[1] for layer in networks[0].layers[:-1]]
    if not sizes:
        raise ValueError("the network has no hidden layers: there is no width.")
    for width in [round(w * sizes[-1]) for w in RELATIVE_WIDTHS] if widths is None else widths:
        settings["hidden_layer_sizes"] = (width,) * len(sizes)
        (network,) = networks_of(type(estimator)(**settings).fit(X, y))
        path = RidgePath.of(network.features(X), Y, bias=bias)
        yield f"{width} units", path, float(estimator.alpha)
