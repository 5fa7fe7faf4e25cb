"""How the leave-one-out score of a network changes with its ridge and its width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import r2_score

from .._network.layers import forward_through
from ..learner import indicator
from ..loo import RidgePath, accuracy
from ._common import Array, axes, network_of, sample, seen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["LooPathDisplay", "Path"]

# Ridges that are tried, over the mean eigenvalue of what the output layer sees.
RIDGES = np.logspace(-8, 4, 49)
# Widths that are tried, over that of the network.
WIDTHS = (0.25, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Path:
    """The scores of one network for a range of ridges.

    Attributes
    ----------
    name : str
        The network.
    alphas : ndarray
        The ridges.
    scores : ndarray
        Accuracy or R^2 of each row, learned without it, for each ridge.
    alpha : float
        The ridge that the network has.
    """

    name: str
    alphas: Array
    scores: Array
    alpha: float


class LooPathDisplay:
    """The exact leave-one-out score over ridges, a curve for each width or network.

    Parameters
    ----------
    paths : sequence of Path
        The curves.
    score_name : str
        What the score is.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The curves.
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        The figure of these axes.

    Notes
    -----
    Hidden layers stay as they are when a row is left out. Where labels shaped them, in pulled-back
    networks and with an input metric, the score is too good, though not the place of its maximum.

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

    ax_: Axes
    figure_: Figure | SubFigure | None

    def __init__(self, paths: Sequence[Path], score_name: str) -> None:
        self.paths = paths
        self.score_name = score_name

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
        """Draw the scores of networks like those of a fitted estimator.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted. Of an average, each network has a curve; a plain one is learned anew at each
            width.
        X : array-like of shape (n_samples, n_features)
            The rows it was learned from; of many, every so many are taken.
        y : array-like of shape (n_samples,)
            Their targets.
        alphas : array-like, optional
            Ridges; by default a range around the size of what the output layer sees.
        widths : sequence of int, optional
            Units of each hidden layer of a plain network; by default from a quarter to twice its
            own.
        ax : matplotlib Axes, optional
            Where to draw.
        **kwargs
            As in `plot`.

        Returns
        -------
        LooPathDisplay
        """
        network = network_of(estimator)
        rows = sample(len(y))
        A, targets = seen(estimator, X)[rows], np.asarray(y)[rows]
        judge = _Judge(targets, getattr(network, "classes_", None))
        ridges = None if alphas is None else np.asarray(alphas, dtype=np.float64)
        if hasattr(network, "estimators_"):
            if widths is not None:
                raise ValueError("widths are for plain networks: those of an average have theirs.")
            members = enumerate(network.estimators_, start=1)
            found = [
                (f"network {k}", RidgePath.of_kernel(_products(each, A), judge.Y), each.alpha_)
                for k, each in members
            ]
        else:
            found = [
                (name, RidgePath.of(H, judge.Y, bias=network.fit_intercept), float(network.alpha))
                for name, H in _at_widths(network, A, targets, widths)
            ]
        paths = [judge.path(name, path, ridges, alpha) for name, path, alpha in found]
        return cls(paths, judge.name).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the curves, and a dot at the ridge that each network has.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new ones by default.
        **kwargs
            For `plot` of the axes.

        Returns
        -------
        LooPathDisplay
        """
        ax = axes(self, ax)
        self.lines_ = []
        for each in self.paths:
            (line,) = ax.plot(each.alphas, each.scores, **{"label": each.name} | kwargs)
            if each.alphas.min() <= each.alpha <= each.alphas.max():
                score = np.interp(np.log(each.alpha), np.log(each.alphas), each.scores)
                ax.plot(each.alpha, score, "o", color=line.get_color())
            self.lines_.append(line)
        ax.set_xscale("log")
        ax.set_xlabel("ridge")
        ax.set_ylabel(f"{self.score_name}, leave-one-out")
        ax.legend()
        return self


class _Judge:
    """The targets of some rows, and how good answers to them are."""

    def __init__(self, y: NDArray[Any], classes: NDArray[Any] | None) -> None:
        self.codes = None if classes is None else np.searchsorted(classes, y)
        if self.codes is None or classes is None:
            numbers = y.reshape(len(y), -1).astype(np.float64)
            self.Y, self.name = numbers - numbers.mean(axis=0), "R²"
        else:
            self.Y, self.name = indicator(self.codes, len(classes)), "accuracy"

    def path(self, name: str, path: RidgePath, alphas: Array | None, alpha: float) -> Path:
        if alphas is None:
            alphas = RIDGES * path.eigenvalues.mean()
        scores = [self._score(answers) for answers in path.loo_path(alphas)]
        return Path(name, alphas, np.array(scores), alpha)

    def _score(self, answers: Array) -> float:
        if self.codes is None:
            return float(r2_score(self.Y, answers))
        return accuracy(self.codes, answers)


def _products(member: Any, X: Array) -> Array:
    """Return the products of the hidden layer's outputs for all pairs of rows."""
    A = member.view(X)
    return np.asarray(member.kernel_map.at(A)(A))


def _at_widths(
    network: Any, X: Array, y: NDArray[Any], widths: Sequence[int] | None
) -> list[tuple[str, Array]]:
    """Return what the output layer sees of the rows, for networks of several widths."""
    sizes = tuple(V.shape[1] for V in getattr(network, "coefs_", ())[:-1])
    if not sizes:
        raise ValueError("the network has no hidden layers of finite width: there is no width.")
    chosen = [round(w * sizes[-1]) for w in WIDTHS] if widths is None else list(widths)
    found = []
    for width in chosen:
        like = type(network)(**network.get_params() | {"hidden_layer_sizes": (width,) * len(sizes)})
        learned = like.fit(X, y)._network()
        see = forward_through(learned.layers[:-1], learned.direct_links, learned.input_map)
        found.append((f"{width} units", see(X)))
    return found
