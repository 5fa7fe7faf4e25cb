"""Views of a table: what its columns are brought to before a network sees them.

No label has a part in a view. Weights count as repeats, constant columns are left out, and values
beyond those that a view was made from are moved to the edge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = ["VIEWS", "Stretched", "View", "distinct_views", "stretch"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Columns with so many values are taken for categories.
FEWEST, MOST = 3, 8
# Distances between quartiles beyond the outer ones at which a value is moved to the edge.
TAIL = 5.0
# The shares of rows up to the quartiles, less what rounding may take from a sum.
QUARTILES = np.array([0.25, 0.75]) - 1e-9
# Most nodes that the ranks of a column are interpolated between.
NODES = 1000


class View(Protocol):
    """A map from rows of a table to rows of columns of about unit variance.

    Attributes
    ----------
    features : ndarray of int
        For each column of the view, the feature that it shows.
    """

    @property
    def features(self) -> Indices:
        """For each column of the view, the feature that it shows."""
        ...

    def __call__(self, X: Array) -> Array:
        """Return the rows as the view shows them."""
        ...


@dataclass(frozen=True)
class Standard:
    """Columns less their means, over their standard deviations, far tails moved in."""

    features: Indices
    low: Array
    high: Array
    mean: Array
    scale: Array

    @classmethod
    def of(cls, X: Array, weight: Array) -> Standard:
        """Return the view of these rows."""
        share = weight / weight.sum()
        low, high = _edges(X, share)
        # A power of 2 is exact, and in its units squares do not overflow.
        unit = _powers_of_2(np.maximum(np.abs(low), np.abs(high)))
        Z = np.clip(X, low, high) / unit
        mean = share @ Z
        mean += share @ (Z - mean)
        scale = np.sqrt(share @ (Z - mean) ** 2) * unit
        mean *= unit
        kept = np.flatnonzero(scale > 1e-12 * np.abs(mean))
        return cls(kept, low[kept], high[kept], mean[kept], scale[kept])

    def __call__(self, X: Array) -> Array:
        """Return the rows as the view shows them."""
        Z = np.clip(X[:, self.features], self.low, self.high)
        Z -= self.mean
        Z /= self.scale
        return Z


def _powers_of_2(sizes: Array) -> Array:
    return np.asarray(np.ldexp(1.0, np.clip(np.frexp(sizes)[1] - 1, -1022, 1023)))


def _edges(X: Array, share: Array) -> tuple[Array, Array]:
    """Return the values beyond which a column's tails are far; all of them if it is mostly one."""
    low, high = X.min(axis=0), X.max(axis=0)
    for j in range(X.shape[1]):
        order = np.argsort(X[:, j])
        upto = np.cumsum(share[order])
        first, last = X[order[np.searchsorted(upto, QUARTILES).clip(max=len(X) - 1)], j]
        if last > first:
            low[j] = max(low[j], first - TAIL * (last - first))
            high[j] = min(high[j], last + TAIL * (last - first))
    return low, high


@dataclass(frozen=True)
class Ranks:
    """Normal scores: the normal quantile of the share of rows below a value, at unit variance."""

    features: Indices
    nodes: tuple[tuple[Array, Array], ...]

    @classmethod
    def of(cls, X: Array, weight: Array) -> Ranks:
        """Return the view of these rows."""
        kept = np.flatnonzero(X.min(axis=0) < X.max(axis=0))
        return cls(kept, tuple(_normal_scores(X[:, j], weight / weight.sum()) for j in kept))

    def __call__(self, X: Array) -> Array:
        """Return the rows as the view shows them."""
        shown = np.empty((len(X), len(self.features)))
        for k, (values, scores) in enumerate(self.nodes):
            shown[:, k] = np.interp(X[:, self.features[k]], values, scores)
        return shown


def _normal_scores(x: Array, share: Array) -> tuple[Array, Array]:
    values, codes = np.unique(x, return_inverse=True)
    shares = np.bincount(codes, share)
    scores = ndtri(np.cumsum(shares) - 0.5 * shares)
    scores -= shares @ scores
    scores /= np.sqrt(shares @ scores**2)
    if len(values) > NODES:
        some = np.unique(np.linspace(0, len(values) - 1, NODES).astype(np.intp))
        values, scores = values[some], scores[some]
    return values, scores


@dataclass(frozen=True)
class Indicators:
    """Normal scores, but an indicator of each value for columns with few."""

    ranks: Ranks
    plain: Indices
    columns: tuple[tuple[int, float, float, float], ...]

    @property
    def features(self) -> Indices:
        """For each column of the view, the feature that it shows."""
        shown = [column[0] for column in self.columns]
        return np.concatenate([self.ranks.features[self.plain], np.array(shown, dtype=np.intp)])

    @classmethod
    def of(cls, X: Array, weight: Array) -> Indicators:
        """Return the view of these rows."""
        ranks, share = Ranks.of(X, weight), weight / weight.sum()
        n_values = np.array([len(np.unique(X[:, j])) for j in ranks.features], dtype=np.intp)
        few = (n_values >= FEWEST) & (n_values <= MOST)
        columns: list[tuple[int, float, float, float]] = []
        for j, n in zip(ranks.features[few], n_values[few], strict=True):
            for value in np.unique(X[:, j]):
                p = float(share @ (X[:, j] == value))
                # All indicators of a column have the variance of one column together.
                columns.append((int(j), float(value), p, float(np.sqrt(n * p * (1.0 - p)))))
        return cls(ranks, np.flatnonzero(~few), tuple(columns))

    def __call__(self, X: Array) -> Array:
        """Return the rows as the view shows them."""
        parts = [self.ranks(X)[:, self.plain]]
        parts += [((X[:, [j]] == v) - p) / scale for j, v, p, scale in self.columns]
        return np.hstack(parts)


@dataclass(frozen=True)
class Stretched:
    """Another view, its columns times the root of an input metric: a matrix, or its diagonal."""

    view: View
    root: Array

    @property
    def features(self) -> Indices:
        """For each column of the view below, the feature that it shows."""
        return self.view.features

    def __call__(self, X: Array) -> Array:
        """Return the rows as the view shows them."""
        return stretch(self.view(X), self.root)


def stretch(A: Array, root: Array) -> Array:
    """Return the rows times the root of a metric."""
    return np.asarray(A * root if root.ndim == 1 else A @ root)


VIEWS: dict[str, Callable[[Array, Array], Any]] = {
    "standard": Standard.of,
    "ranks": Ranks.of,
    "indicators": Indicators.of,
}


def distinct_views(X: Array, weight: Array) -> dict[str, tuple[View, Array]]:
    """Return the views of these rows that differ from each other, with what they show."""
    shown: dict[str, tuple[View, Array]] = {}
    for name, make in VIEWS.items():
        view = make(X, weight)
        A = view(X)
        if not any(B.shape == A.shape and np.allclose(A, B) for _, B in shown.values()):
            shown[name] = view, A
    return shown
