"""The search for good members: views, kernels, scales and depths that suit a table.

The hidden layer of a plain member does not depend on labels, so its exact leave-one-out error is
honest. The hidden layer of a stretched member was shaped by labels, and its own leave-one-out error
would be too small. Stretched members are therefore refitted without the rows of each fold, metric
included, and judged by their predictions for the fold: their error is the leave-one-out error of
the plain member times the ratio of the errors of both members over the same folds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter

import numpy as np

from .._network.infinite_width import RidgeTargets
from .._network.input_metric import kernel_metric, metric_root
from .._network.layers import scores
from .._rows.memory import in_order
from .._util.types import Array, Indices
from ..kernels import KERNELS
from .member import Member, Shape, fit_all, solved
from .views import Stretched, View, distinct_views, stretch

# The order of members, the best first.
ERROR = attrgetter("error")
# Scales tried for plain members, relative to the typical distance between rows.
SCALES = {"laplace_l1": (0.5, 1.0, 2.0, 4.0), "gaussian": (0.25, 0.5, 1.0, 2.0)}
# Depths tried for kernels without a scale.
DEPTHS = {"tangent": (1, 2, 3, 4)}
# Scales tried for stretched members.
STRETCHED_SCALES = (0.5, 1.0, 2.0)
# The kernels of stretched members.
STRETCHED_KERNELS = ("laplace_l1", "gaussian")
# The number of times that a view is stretched.
N_ROUNDS = 2
# The smallest factor by which an input or a direction is stretched, as a share of the largest.
LEAST_STRETCH = 1e-3


@dataclass(frozen=True)
class Search:
    """Members for one table, the most promising first."""

    X: Array
    targets: RidgeTargets
    # The rows left out together to judge members with a hidden layer that labels shaped.
    folds: Sequence[Indices]

    @cached_property
    def views(self) -> dict[str, tuple[View, Array]]:
        """The distinct views, and the rows as each shows them."""
        return distinct_views(self.X, self.targets.weight)

    def members(self) -> Iterator[list[Member]]:
        """Yield all members so far, after each step of the search."""
        members = [self.plain(name, "laplace_l1") for name in self.views]
        yield members
        best = min(members, key=ERROR).shape.view
        for name in dict.fromkeys([best, *self.views]):
            members = [*members, self.plain(name, "gaussian")]
            yield members
        members = [*members, self.plain(best, "tangent")]
        yield members
        for kernel in STRETCHED_KERNELS:
            of_kernel = [member for member in members if member.shape.kernel == kernel]
            members = [*members, *self.shaped(min(of_kernel, key=ERROR))]
            yield members

    def plain(self, name: str, kernel: str) -> Member:
        """Return the best member with this view and kernel."""
        shapes = [
            Shape(name, kernel, scale, depth)
            for scale in SCALES.get(kernel, (1.0,))
            for depth in DEPTHS.get(kernel, (1,))
        ]
        return self._best(shapes, *self.views[name])

    def _best(self, shapes: list[Shape], view: View, A: Array) -> Member:
        """Return the member of the smallest error; an interrupt cancels fits not yet begun."""
        G = KERNELS[shapes[0].kernel].geometry(A, A)
        fit = partial(fit_all, view=view, A=A, G=G, targets=self.targets)
        with closing(in_order(fit, shapes)) as members:
            return min(members, key=ERROR)

    def shaped(
        self,
        plain: Member,
        scales: Sequence[Sequence[float]] = (STRETCHED_SCALES,) * N_ROUNDS,
    ) -> list[Member]:
        """Return the stretched members of each round after a plain one, judged over the folds.

        Each round selects one of its scales.
        """
        rounds = [plain]
        for of_round in scales:
            rounds.append(self._stretched(rounds[-1], of_round))

        def of_fold(fold: Indices) -> tuple[Indices, Array]:
            kept = np.setdiff1d(np.arange(len(self.X)), fold)
            members = refitted(rounds[-1], plain.X_fit_[kept], self.targets.of(kept))
            return fold, np.array([scores(each.network, self.X[fold]) for each in members])

        with closing(in_order(of_fold, list(self.folds))) as folds:
            left_out = self.targets.left_out(len(rounds), folds)
        errors = [self.targets.error(each) for each in left_out]
        scale = plain.error / (errors[0] or 1.0)
        return [
            replace(member, error=scale * error, left_out=predictions)
            for member, error, predictions in zip(rounds, errors, left_out, strict=True)
        ][1:]

    def like(self, member: Member) -> Member:
        """Return a member of the same view, shape and rounds, fitted to these rows."""
        first, *others = member.rounds
        plain = self._best([first.shape], first.view, first.view(self.X))
        if not others:
            return plain
        return self.shaped(plain, [(each.shape.scale,) for each in others])[-1]

    def _stretched(self, before: Member, scales: Sequence[float]) -> Member:
        """Return the best member whose view is stretched by the metric of the member before."""
        view, k = _stretched_view(before, self.targets.weight), before.shape.rounds + 1
        shapes = [replace(before.shape, scale=scale, rounds=k) for scale in scales]
        return replace(self._best(shapes, view, view(self.X)), before=before)


def _stretched_view(member: Member, weight: Array) -> Stretched:
    """Return the view of a member, stretched by its metric over its own rows."""
    more = metric_root(kernel_metric(member.network, member.X_fit_, weight), LEAST_STRETCH)
    if not isinstance(member.view, Stretched):
        return Stretched(member.view, more)
    root = member.view.root
    return Stretched(member.view.view, root * more if root.ndim == 1 else root @ more)


def refitted(member: Member, A: Array, targets: RidgeTargets) -> list[Member]:
    """Return a member and those before it, the first one first, refitted to other rows.

    Shapes and ridges stay, metrics are computed anew. A holds the rows as the view of the member
    shows them before it is stretched.
    """
    if member.before is None:
        return [solved(member.shape, member.view, A, targets, member.alpha_)]
    members = refitted(member.before, A, targets)
    view = _stretched_view(members[-1], targets.weight)
    B = stretch(A, view.root)
    return [*members, solved(member.shape, view, B, targets, member.alpha_)]
