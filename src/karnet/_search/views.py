"""Views of a table: transformations of its columns before a network sees them.

Views do not depend on labels, but for metrics and scores. Weights count as repeats, constant
columns are left out, and values outside the range from which a view was made are moved to its edge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag
from scipy.special import ndtri

from .._arrays.linalg import powers_of_2
from .._network.additive import fit_additive
from .._network.infinite_width import RidgeTargets
from .._network.input_metric import sensitivities
from .._network.layers import Network
from .._util.types import Array, Indices, Mask

# Smallest number of distinct values of a categorical column.
FEWEST_CATEGORIES = 3
# Largest number of distinct values of a categorical column.
MOST_CATEGORIES = 8
# Distance from the quartiles, in interquartile ranges, beyond which values are moved to the edge.
TAIL = 5.0
# Largest share of the rows in a tail, of tables with enough rows: more values are not outliers.
MOST_IN_TAIL = 0.05
FEWEST_ROWS = 1000
# The share of the rows in the tail of a column with more values beyond that distance.
SHARE_OF_TAIL = 0.001
# The shares of rows up to the quartiles and the edges of such tails, less the rounding error of a
# sum.
SHARES = np.array([0.25, 0.75, SHARE_OF_TAIL, 1.0 - SHARE_OF_TAIL]) - 1e-9
# Share of the columns whose range is that of the widest, or nearly, if all have the same unit.
MOST_COLUMNS = 0.5
# How near.
NEARLY = 0.9
# Least share of the variance of the targets that scores have.
LEAST_EXPLAINED = 0.01
# About the number of rows that show whether a few directions can have most of the variance.
FEW_ROTATED = 500
# Fewest rows for each of these directions: few rows differ in few directions anyway.
ROWS_OF_DIRECTION = 4
# Largest number of nodes for the interpolation of the ranks of a column.
MOST_NODES = 1000


@dataclass(frozen=True)
class Standard:
    """Columns standardised to mean 0 and variance 1, with far tails clipped."""

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
        # Dividing by a power of 2 is exact, and squares of the quotients do not overflow.
        unit = powers_of_2(np.maximum(np.abs(low), np.abs(high)))
        Z = np.clip(X, low, high) / unit
        mean = share @ Z
        mean += share @ (Z - mean)
        scale = np.sqrt(share @ (Z - mean) ** 2) * unit
        mean *= unit
        kept = np.flatnonzero(scale > 1e-12 * np.abs(mean))
        return cls(kept, low[kept], high[kept], mean[kept], scale[kept])

    @classmethod
    def of_one_unit(cls, X: Array, weight: Array) -> Standard:
        """Return the view that divides all columns by the same number, if they have one unit.

        Otherwise it is that of `of`.
        """
        each = cls.of(X, weight)
        ranges = np.ptp(X[:, each.features], axis=0)
        if not len(ranges) or np.mean(ranges >= NEARLY * ranges.max()) < MOST_COLUMNS:
            return each
        largest = each.scale.max()  # squares of the quotients do not underflow
        scale = largest * np.sqrt(np.mean((each.scale / largest) ** 2))
        return replace(each, scale=np.full_like(each.scale, scale))

    @classmethod
    def of_small_indicators(cls, X: Array, weight: Array) -> Standard:
        """Return the view in which the values of a column of two values differ by 2.

        Other columns are standardised. If all columns are, a rare value is far from the other one.
        """
        each = cls.of(X, weight)
        half = 0.5 * np.ptp(X[:, each.features], axis=0)
        return replace(each, scale=np.where(_has_two_values(X)[each.features], half, each.scale))

    def __call__(self, X: Array) -> Array:
        """Return the view of the rows."""
        Z = np.clip(X[:, self.features], self.low, self.high)
        Z -= self.mean
        Z /= self.scale
        return Z


def _has_two_values(X: Array) -> Mask:
    """Return which columns have at most two values."""
    return np.asarray(np.all((X.min(axis=0) == X) | (X.max(axis=0) == X), axis=0))


def _edges(X: Array, share: Array) -> tuple[Array, Array]:
    """Return the edges of far tails: the range if most values of a column are equal."""
    low, high = X.min(axis=0), X.max(axis=0)
    for j in np.flatnonzero(~_has_two_values(X)):
        order = np.argsort(X[:, j])
        x, upto = X[order, j], np.cumsum(share[order])
        first, last, *far = x[np.searchsorted(upto, SHARES).clip(max=len(X) - 1)]
        if not last > first:
            continue
        ends = np.array([first, last]) + TAIL * (last - first) * np.array([-1.0, 1.0])
        if len(X) >= FEWEST_ROWS:
            is_in_tail = share[order] * [x < ends[0], x > ends[1]]
            ends = np.where(is_in_tail.sum(axis=1) > MOST_IN_TAIL, far, ends)
        low[j], high[j] = max(low[j], ends[0]), min(high[j], ends[1])
    return low, high


@dataclass(frozen=True)
class Ranks:
    """Normal scores: normal quantiles of the ranks, scaled to unit variance."""

    features: Indices
    nodes: tuple[tuple[Array, Array], ...]

    @classmethod
    def of(cls, X: Array, weight: Array) -> Ranks:
        """Return the view of these rows."""
        kept = np.flatnonzero(X.min(axis=0) < X.max(axis=0))
        return cls(kept, tuple(_normal_scores(X[:, j], weight / weight.sum()) for j in kept))

    @classmethod
    def of_small_indicators(cls, X: Array, weight: Array) -> Ranks:
        """Return the view in which the scores of columns of two values differ by 2."""
        each = cls.of(X, weight)
        nodes = [
            (values, scores * 2.0 / np.ptp(scores) if len(values) == 2 else scores)
            for values, scores in each.nodes
        ]
        return replace(each, nodes=tuple(nodes))

    def __call__(self, X: Array) -> Array:
        """Return the view of the rows."""
        A = np.empty((len(X), len(self.features)))
        two, low, high, first, last = self._two_valued
        share = np.clip((X[:, self.features[two]] - low) / (high - low), 0.0, 1.0)
        A[:, two] = first * (1.0 - share) + last * share
        for k in np.flatnonzero(~two):
            A[:, k] = np.interp(X[:, self.features[k]], *self.nodes[k])
        return A

    @cached_property
    def _two_valued(self) -> tuple[Mask, Array, Array, Array, Array]:
        """Which columns have two values, these values, and their scores."""
        two = np.array([len(values) == 2 for values, _ in self.nodes], dtype=bool)
        ends = [np.concatenate(self.nodes[k]) for k in np.flatnonzero(two)]
        return two, *np.array(ends).reshape(-1, 4).T


def _normal_scores(x: Array, share: Array) -> tuple[Array, Array]:
    if _has_two_values(x[:, None])[0]:
        values, codes = np.array([x.min(), x.max()]), (x == x.max()).astype(np.intp)
    else:
        values, codes = np.unique(x, return_inverse=True)
    shares = np.bincount(codes, share)
    scores = ndtri(np.cumsum(shares) - 0.5 * shares)
    scores -= shares @ scores
    scores /= np.sqrt(shares @ scores**2)
    if len(values) > MOST_NODES:
        some = np.unique(np.linspace(0, len(values) - 1, MOST_NODES).astype(np.intp))
        values, scores = values[some], scores[some]
    return values, scores


@dataclass(frozen=True)
class Indicators:
    """Normal scores, and an indicator of each value for categorical columns."""

    ranks: Ranks
    plain: Indices
    columns: tuple[tuple[int, float, float, float], ...]

    @property
    def features(self) -> Indices:
        """For each column of the view, the index of its feature."""
        categorical = np.array([column[0] for column in self.columns], dtype=np.intp)
        return np.concatenate([self.ranks.features[self.plain], categorical])

    @classmethod
    def of(cls, X: Array, weight: Array) -> Indicators:
        """Return the view of these rows."""
        ranks, share = Ranks.of(X, weight), weight / weight.sum()
        n_values = np.array([len(np.unique(X[:, j])) for j in ranks.features], dtype=np.intp)
        few = (n_values >= FEWEST_CATEGORIES) & (n_values <= MOST_CATEGORIES)
        columns: list[tuple[int, float, float, float]] = []
        for j, n in zip(ranks.features[few], n_values[few], strict=True):
            for value in np.unique(X[:, j]):
                p = float(share @ (X[:, j] == value))
                # The variances of all indicators of a column add up to 1.
                columns.append((int(j), float(value), p, float(np.sqrt(n * p * (1.0 - p)))))
        return cls(ranks, np.flatnonzero(~few), tuple(columns))

    def __call__(self, X: Array) -> Array:
        """Return the view of the rows."""
        parts = [self.ranks(X)[:, self.plain]]
        parts += [((X[:, [j]] == v) - p) / scale for j, v, p, scale in self.columns]
        return np.hstack(parts)


@dataclass(frozen=True)
class WithScores:
    """Another view, and the scores of an additive network as further columns.

    Scores that are sums of effects of many columns are hard to find by distances of rows. With the
    scores as columns, rows of similar scores are near to each other.
    """

    view: View
    network: Network  # for rows as the view below shows them
    slopes: Array  # mean squares of the slopes of each score, in rows, for columns of the view

    @property
    def features(self) -> Indices:
        """For each column of the view below, the index of its feature."""
        return self.view.features

    @classmethod
    def of(cls, view: View, X: Array, targets: RidgeTargets) -> WithScores | None:
        """Return the view with scores fitted to these rows; None if they explain hardly anything.

        The scores together have the same variance as the columns of the view below.
        """
        A = view(X)
        network = fit_additive(A, targets)
        if network is None:
            return None
        (hidden, last), weight = network.layers, targets.weight
        variance = total_variance(network.scores(A), weight)
        if not variance > LEAST_EXPLAINED * total_variance(targets.Y, weight):
            return None
        size = np.sqrt(total_variance(A, weight) / variance)
        scaled = Network((hidden, replace(last, V=size * last.V, w=size * last.w)))
        slopes = [weight @ D**2 / weight.sum() for D in sensitivities(scaled, A)]
        return cls(view, scaled, np.array(slopes))

    def extended(self, root: Array) -> Array:
        """Return the root of a metric of the view below, joined by the scores.

        The scores keep their share of the variance.
        """
        n, q = len(root), self.network.n_outputs
        size = float(np.sqrt(np.mean(root**2) if root.ndim == 1 else np.sum(root**2) / n))
        if root.ndim == 1:
            return np.concatenate([root, np.full(q, size)])
        return np.asarray(block_diag(root, size * np.eye(q)))

    def __call__(self, X: Array) -> Array:
        """Return the view of the rows."""
        A = self.view(X)
        return np.hstack([A, self.network.scores(A)])


@dataclass(frozen=True)
class Stretched:
    """Another view, multiplied by the root of an input metric: a matrix, or its diagonal."""

    view: View
    root: Array

    @property
    def features(self) -> Indices:
        """For each column of the view below, the index of its feature."""
        return self.view.features

    def __call__(self, X: Array) -> Array:
        """Return the view of the rows."""
        return stretch(self.view(X), self.root)


def stretch(A: Array, root: Array) -> Array:
    """Return rows multiplied by the root of a metric."""
    return np.asarray(A * root if root.ndim == 1 else A @ root)


def total_variance(A: Array, weight: Array) -> float:
    """Return the sum of the variances of columns; the weights of rows count as repeats."""
    share = weight / weight.sum()
    return float(np.sum(share @ (A - share @ A) ** 2))


def stretched(view: View, root: Array) -> Stretched:
    """Return a view stretched by the root of a metric.

    A view that is stretched by a diagonal is stretched by another diagonal.
    """
    if isinstance(view, Stretched):
        return Stretched(view.view, view.root * root if root.ndim == 1 else view.root @ root)
    return Stretched(view, root)


def squares_of_features(view: View, squares: Array, d: int) -> Array:
    """Return the sums, for d features, of squared slopes in the columns of a view."""
    if isinstance(view, Stretched):
        of_columns = view.root**2 * squares if view.root.ndim == 1 else view.root**2 @ squares
        return squares_of_features(view.view, of_columns, d)
    if isinstance(view, WithScores):
        own, of_scores = np.split(squares, [view.slopes.shape[1]])
        return squares_of_features(view.view, own + of_scores @ view.slopes, d)
    return np.asarray(np.bincount(view.features, squares, minlength=d), dtype=np.float64)


def rotated(view: View, A: Array, weight: Array, most: int, share: float) -> View:
    """Return a view of at most `most` principal directions of rows A, which the view shows.

    It is the view itself if these directions have less than a share of the variance, or if there
    are too few rows to tell.
    """
    if len(A) < ROWS_OF_DIRECTION * most:
        return view
    leading = slice(-1, -most - 1, -1)
    # The leading directions of a few rows have a larger share of their variance.
    few = A[:: max(len(A) // FEW_ROTATED, 1)] - A.mean(axis=0)
    values = np.linalg.eigvalsh(few @ few.T)
    if values[leading].sum() < share * values.sum():
        return view
    values, Q = _principal(A, weight)
    if values[leading].sum() < share * values.sum():
        return view
    return Stretched(view, np.ascontiguousarray(Q[:, leading]))


def _principal(A: Array, weight: Array) -> tuple[Array, Array]:
    """Return variances in ascending order, and the directions of rows A that have them."""
    share = weight / weight.sum()
    Z = np.sqrt(share)[:, None] * (A - share @ A)
    if len(Z) >= Z.shape[1]:
        return np.linalg.eigh(Z.T @ Z)
    values, U = np.linalg.eigh(Z @ Z.T)  # a product with fewer rows
    sizes = np.sqrt(values.clip(np.finfo(np.float64).tiny))
    return values, np.asarray(Z.T @ (U / sizes))


def shortened(root: Array, share: float) -> Array:
    """Return a root of a metric with fewer columns and the same distances, but for a share.

    Directions that the metric hardly stretches are left out: together they contribute at most about
    the given share to the squares of distances.
    """
    if root.ndim == 1 or not len(root):
        return root
    U, s, _ = np.linalg.svd(root, full_matrices=False)
    remaining = np.cumsum(s[::-1] ** 2)[::-1]  # from each direction on
    kept = remaining > share * remaining[0]
    return np.ascontiguousarray(U[:, kept] * s[kept])


# A map from rows of a table to rows with columns of about unit variance; `features` holds the index
# of the feature of each column.
View = Standard | Ranks | Indicators | WithScores | Stretched
VIEWS: dict[str, Callable[[Array, Array], View]] = {
    "standard": Standard.of,
    "ranks": Ranks.of,
    "indicators": Indicators.of,
    "one unit": Standard.of_one_unit,
    "standard, small indicators": Standard.of_small_indicators,
    "ranks, small indicators": Ranks.of_small_indicators,
}


def distinct_views(X: Array, weight: Array, step: int = 1, alike: float = 0.0) -> dict[str, View]:
    """Return the views that differ on these rows by more than a number.

    Of many rows, each `step`-th is compared.
    """
    distinct: dict[str, tuple[View, Array]] = {}
    for name, of in VIEWS.items():
        view = of(X, weight)
        A = view(X[::step])
        if not any(
            B.shape == A.shape and np.allclose(A, B, atol=alike) for _, B in distinct.values()
        ):
            distinct[name] = view, A
    return {name: view for name, (view, _) in distinct.items()}
