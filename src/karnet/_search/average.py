"""An average of networks selected for one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from scipy.optimize import nnls

from .._network.infinite_width import RidgeTargets, Splits
from .._network.input_metric import metric_is_diagonal
from .._network.local import local_metric
from .._rows.inputs import Inputs
from .._util.progress import Progress, Report
from .._util.types import Array, Indices, Mask
from .fit import FamilyFit, Sizes
from .member import Member
from .search import Search
from .settings import Settings
from .trial import Start, Trial
from .views import Stretched, View, distinct_views, rotated, squares_of_features

# The share of the time for the search, after which networks are fitted.
SEARCH_SHARE = 0.5
# About the number of rows that tell whether two views differ.
COMPARED_ROWS = 1000
# About the number of rows over which the input metric of an average is computed.
METRIC_ROWS = 300
# Kernels whose weight is at most this share of the largest are left out.
LEAST_WEIGHT = 0.02


@dataclass(frozen=True)
class Average:
    """A weighted sum of members, and all candidates of the search."""

    members: list[Member]
    weights: Array  # of the members
    offset: Array  # added to their sum
    tried: list[Trial]  # all candidates of the search, the best first
    fitted: list[Trial]  # those with members
    left_out: Array  # for every row the prediction of members fitted without it, or NaN
    honest: Mask  # the rows with left-out predictions that are not optimistic

    def metric(self, d: int, weight: Array, device: str | None = None) -> Array:
        """Return the mean over members of the diagonal of the metric of d inputs, of sum one."""
        step = max(len(weight) // METRIC_ROWS, 1)
        total = np.zeros(d)
        for member in self.members:
            squares = _metric_diagonal(member, member.X_fit_[::step], weight[::step], device)
            view = member.view.view if isinstance(member.view, Stretched) else member.view
            of_feature = squares_of_features(view, squares, d)
            total += of_feature / (of_feature.sum() or 1.0)
        return np.asarray(total / total.sum()) if total.any() else np.full(d, 1.0 / d)


def _metric_diagonal(member: Member, A: Array, weight: Array, device: str | None) -> Array:
    """Return the diagonal of the metric of a member, in units of its view before the stretch."""
    diagonal = metric_is_diagonal(member.network.kernel, A.shape[1])
    M = local_metric(member.network, A, weight, diagonal, device)
    root = member.view.root if isinstance(member.view, Stretched) else np.ones(1)
    if root.ndim == 1:
        return np.asarray((M if M.ndim == 1 else M.diagonal()) * root**2)
    if M.ndim == 1:
        return np.asarray(root**2 @ M)
    return np.asarray(np.einsum("ij,jk,ik->i", root, M, root))


@dataclass(frozen=True)
class TimeLimit:
    """A time limit in seconds, possibly infinite, from a start."""

    seconds: float
    start: float

    @property
    def spent(self) -> float:
        """The seconds since the start."""
        return perf_counter() - self.start

    def has_time(self) -> bool:
        """Return whether there is time for more of the search."""
        return self.spent < SEARCH_SHARE * self.seconds

    def operations(self, of_search: float, n_rows: int) -> float:
        """Return the operations for a row of a fit that the remaining time allows.

        `of_search` are those of the search so far, which tell the speed.
        """
        if np.isinf(self.seconds):
            return np.inf
        left = max(self.seconds - self.spent, 0.0)
        return of_search / max(self.spent, 1e-9) * left / n_rows


def fit_average(
    inputs: Inputs,
    targets: RidgeTargets,
    strata: Indices,
    rng: np.random.RandomState,
    settings: Settings,
    *,
    n_members: int,
    seconds: float = np.inf,
    device: str | None = None,
    report: Report | None = None,
) -> Average:
    """Search for kernels and metrics, and fit at most `n_members` networks to all rows.

    The targets hold the rule that judges: rows that are left out together, or one at a time.
    `strata` are groups of rows with equal shares in folds. Leaves are solved on the device.
    `report` is called after each step.
    """
    limit, progress = TimeLimit(seconds, perf_counter()), Progress(report, seconds)
    if targets.splits is not None:  # they say already which rows shape what
        settings = replace(settings, shaping_share=1.0)
    folds = folds_of(strata, targets.splits, settings.n_folds, rng)
    starts = starts_of(folds, len(inputs), settings, rng)
    some = np.unique(np.concatenate([rows for start in starts for rows in start.all]))
    X, of_some = inputs.take(some), targets.of(some)
    places = [start.within(some) for start in starts]
    search = Search(
        X,
        of_some,
        places,
        _views(X, of_some.weight, settings, rng),
        settings,
        rng,
        limit.has_time,
        device,
        progress,
    )
    tried = search.trials()
    near = search.near_best(tried)
    shape = len(inputs), search.n_columns(near[0])
    sizes = Sizes.of(len(near), len(starts), shape, near[0].leaf, settings)
    sizes = sizes.limited(n_members, limit.operations(search.operations, len(inputs)))
    pairs = float(sizes.trees * min(sizes.leaf, len(inputs)) * len(inputs))  # as in the search
    progress.plan(search=0.0, fit=sizes.networks * pairs)

    def ended(which: str, n_planned: float) -> None:
        progress.step("fit", which, len(inputs), n_planned * pairs)

    fit = FamilyFit(inputs, targets, settings, sizes, rng, device, ended)
    shaped = [start.shaping for start in starts]
    near = near[: sizes.kernels]
    families = [fit.family(trial, shaped) for trial in near]
    weights, offset, left_out = _weighted([out for _, out in families], targets, settings)
    kept = np.flatnonzero(weights)
    shares = [np.full(len(families[k][0]), weights[k] / len(families[k][0])) for k in kept]
    return Average(
        [member for k in kept for member in families[k][0]],
        np.concatenate(shares),
        offset,
        tried,
        [near[k] for k in kept],
        left_out,
        np.asarray(np.isfinite(left_out).all(axis=1)),
    )


def _views(
    X: Array, weight: Array, settings: Settings, rng: np.random.RandomState
) -> dict[str, View]:
    """Return the distinct views, with principal directions in place of very many columns."""
    rows = np.sort(rng.permutation(len(X))[: settings.view_rows])
    X, weight = X[rows], weight[rows]
    views = distinct_views(X, weight, max(len(X) // COMPARED_ROWS, 1), settings.alike)
    for name, view in views.items():
        if len(view.features) > settings.wide and settings.n_directions:
            directions = settings.n_directions, settings.share_of_directions
            views[name] = rotated(view, view(X), weight, *directions)
    return views


def folds_of(
    strata: Indices, splits: Splits, n_folds: int, rng: np.random.RandomState
) -> list[Indices]:
    """Return folds with equal shares of every stratum, or unions of the rows of splits.

    Splits that leave out all rows at once cannot be used.
    """
    if splits is not None:
        parts = [splits[k::n_folds] for k in range(min(n_folds, len(splits)))]
        folds = [np.unique(np.concatenate(part)) for part in parts]
    else:
        order = rng.permutation(len(strata))
        order = order[np.argsort(strata[order], kind="stable")]
        folds = [np.sort(order[k::n_folds]) for k in range(min(n_folds, len(order)))]
    folds = [rng.permutation(fold) for fold in folds if 0 < len(fold) < len(strata)]
    return folds or folds_of(strata, None, n_folds, rng)


def starts_of(
    folds: Sequence[Indices], n: int, settings: Settings, rng: np.random.RandomState
) -> list[Start]:
    """Return the starts of a search of n rows, which leave out a fold each."""
    n_starts = int(np.clip(round(settings.rows_of_starts / n), 1, len(folds)))
    starts = []
    for fold in folds[:n_starts]:
        others = rng.permutation(np.setdiff1d(np.arange(n), fold))
        n_shaping = min(round(settings.shaping_share * len(others)), settings.shaping // n_starts)
        n_judging = max(settings.judging // n_starts, 1)
        starts.append(Start(others[: max(n_shaping, 1)], fold[:n_judging]))
    return starts


def _weighted(
    left_out: list[Array], targets: RidgeTargets, settings: Settings
) -> tuple[Array, Array, Array]:
    """Return weights of predictions, the offset of their sum, and the sum."""
    judged = np.isfinite(np.sum(left_out, axis=0)).all(axis=1)
    weights, offset = combined(left_out, targets, judged, settings.shrinkage)
    kept = np.flatnonzero(weights)
    return weights, offset, offset + np.sum([weights[k] * left_out[k] for k in kept], axis=0)


def combined(
    left_out: list[Array], targets: RidgeTargets, judged: Mask, shrinkage: float
) -> tuple[Array, Array]:
    """Return weights of predictions, and the part of their sum that the mean of targets takes.

    The weights are not negative, and have the least error of left-out predictions with a ridge that
    shrinks them towards equal weights. The fewer rows there are, the larger is the ridge.
    """
    mean = np.average(targets.Y, axis=0, weights=targets.weight)
    equal = 1.0 / len(left_out)
    if not judged.any():
        return np.full(len(left_out), equal), np.zeros_like(mean)
    root = np.sqrt(targets.weight[judged])[:, None]
    Z = np.stack([(root * (each[judged] - mean)).ravel() for each in left_out], axis=1)
    n = targets.of(np.flatnonzero(judged)).n_repeats
    ridge = np.sqrt(shrinkage / np.sqrt(n) * np.mean(np.sum(Z**2, axis=0)))
    A = np.vstack([Z, ridge * np.eye(len(left_out))])
    y = (root * (targets.Y[judged] - mean)).ravel()
    weights, _ = nnls(A, np.concatenate([y, np.full(len(left_out), ridge * equal)]))
    if not weights.any():
        weights = np.full(len(left_out), equal)
    weights[weights <= LEAST_WEIGHT * weights.max()] = 0.0
    return weights, (1.0 - weights.sum()) * mean
