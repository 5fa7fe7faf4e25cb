"""The search for good members: which views, kernels, scales and depths suit a table.

No label has a part in a plain member's hidden layer, so its exact leave-one-out error is honest. A
stretched member's hidden layer was shaped by labels: its own leave-one-out error would be too good.
Such members are therefore learned anew without the rows of each fold, metric and all, and judged by
what these say of the fold: the leave-one-out error of the plain member, times the ratio of both
members' errors over the same folds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from .._network.input_metric import input_metric, root_of
from .._rows.memory import in_order
from ..kernels import KERNELS
from .member import Member, Shape, SplitMean, Targets, fit_all, left_out_error, solved
from .views import Stretched, View, distinct_views, stretch

__all__ = ["Search", "learned_again"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Scales in units of the typical distance between rows, and depths.
SCALES = {"laplace_l1": (0.5, 1.0, 2.0, 4.0), "gaussian": (0.25, 0.5, 1.0, 2.0)}
DEPTHS = (1, 2, 3, 4)
# The scales of stretched members, the kernels of these, and how often they are stretched.
SCALES_AFTER = (0.5, 1.0, 2.0)
SHAPED, N_ROUNDS = ("laplace_l1", "gaussian"), 2


@dataclass(frozen=True)
class Search:
    """Members for one table, from the most promising on.

    Attributes
    ----------
    X : ndarray of shape (m, d)
        The rows.
    targets : Targets
        What members are to answer.
    folds : list of ndarray of int
        The rows left out together where labels shape a hidden layer.
    """

    X: Array
    targets: Targets
    folds: Sequence[Indices]

    @cached_property
    def views(self) -> dict[str, tuple[View, Array]]:
        """The views that differ, and what they show of the rows."""
        return distinct_views(self.X, self.targets.weight)

    def members(self) -> Iterator[list[Member]]:
        """Yield all members found so far, again after each step of the search."""
        found = [self.plain(name, "laplace_l1") for name in self.views]
        yield found
        best = min(found, key=lambda member: member.error).shape.view
        for name in dict.fromkeys([best, *self.views]):
            found = [*found, self.plain(name, "gaussian")]
            yield found
        found = [*found, self.plain(best, "tangent")]
        yield found
        for kernel in SHAPED:
            of_kernel = [member for member in found if member.shape.kernel == kernel]
            shaped = self.shaped(min(of_kernel, key=lambda member: member.error))
            found = [*found, *shaped]
            yield found

    def plain(self, name: str, kernel: str) -> Member:
        """Return the best member with this view and kernel."""
        view, A = self.views[name]
        G = KERNELS[kernel].geometry(A, A)
        if KERNELS[kernel].scaled:
            shapes = [Shape(name, kernel, scale) for scale in SCALES[kernel]]
        else:
            shapes = [Shape(name, kernel, depth=depth) for depth in DEPTHS]
        return self._best(shapes, view, A, G)

    def _best(self, shapes: list[Shape], view: View, A: Array, G: Array) -> Member:
        """Return the member of the smallest error; none is learned any more after an interrupt."""
        learn = partial(fit_all, view=view, A=A, G=G, targets=self.targets)
        with closing(in_order(learn, shapes)) as found:
            return min(found, key=lambda member: member.error)

    def shaped(
        self, plain: Member, scales: Sequence[Sequence[float]] = (SCALES_AFTER,) * N_ROUNDS
    ) -> list[Member]:
        """Return members like a plain one after each round of stretching, judged over the folds.

        For each round there are some scales to choose from.
        """
        rounds = [plain]
        for of_round in scales:
            rounds.append(self._stretched(rounds[-1], of_round))
        mean = SplitMean((len(rounds), *self.targets.Y.shape))

        def of_fold(fold: Indices) -> tuple[Indices, Array]:
            kept = np.setdiff1d(np.arange(len(self.X)), fold)
            learned = learned_again(rounds[-1], plain.X_fit_[kept], self.targets.of(kept))
            return fold, np.array([member(self.X[fold]) for member in learned])

        with closing(in_order(of_fold, list(self.folds))) as found:
            for fold, answers in found:
                mean.add(fold, answers)
        weight = self.targets.weight
        errors = [left_out_error(self.targets.Y, each, weight) for each in mean.value]
        scale = plain.error / (errors[0] or 1.0)
        return [
            replace(member, error=scale * error, left_out=left_out)
            for member, error, left_out in zip(rounds, errors, mean.value, strict=True)
        ][1:]

    def like(self, member: Member) -> Member:
        """Return a member of the same view, shape and rounds, learned from these rows."""
        first, *others = member.rounds
        A = first.view(self.X)
        G = first.kernel.geometry(A, A)
        plain = fit_all(first.shape, first.view, A, G, self.targets)
        if not others:
            return plain
        return self.shaped(plain, [(each.shape.scale,) for each in others])[-1]

    def _stretched(self, before: Member, scales: Sequence[float]) -> Member:
        """Return the best member whose view the metric of another stretched."""
        view = _stretched_view(before, self.targets.weight)
        A = view(self.X)
        G = before.kernel.geometry(A, A)
        k = before.shape.rounds + 1
        shapes = [replace(before.shape, scale=scale, rounds=k) for scale in scales]
        return replace(self._best(shapes, view, A, G), before=before)


def _stretched_view(member: Member, weight: Array) -> Stretched:
    """Return the view of a member, stretched by its metric over its own rows."""
    more = root_of(input_metric(member, member.X_fit_, weight))
    if not isinstance(member.view, Stretched):
        return Stretched(member.view, more)
    root = member.view.root
    return Stretched(member.view.view, root * more if root.ndim == 1 else root @ more)


def learned_again(member: Member, A: Array, targets: Targets) -> list[Member]:
    """Return a member and those before it, the first one first, learned again from other rows.

    Shapes and ridges stay, metrics are learned from the given rows.

    Parameters
    ----------
    member : Member
        The member.
    A : ndarray of shape (m, p)
        The rows as its view shows them before that is stretched.
    targets : Targets
        What is to be answered for them.

    Returns
    -------
    list of Member
    """
    if member.before is None:
        return [solved(member.shape, member.view, A, targets, member.alpha_)]
    learned = learned_again(member.before, A, targets)
    view = _stretched_view(learned[-1], targets.weight)
    B = stretch(A, view.root)
    return [*learned, solved(member.shape, view, B, targets, member.alpha_)]
