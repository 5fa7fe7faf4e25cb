"""The search for good members: views, kernels, scales and depths that suit a table.

The hidden layer of a plain member does not depend on labels, so its exact leave-one-out error is
honest. The hidden layer of a stretched member was shaped by labels, and its own leave-one-out error
would be too small. Stretched members are therefore refitted without the rows of each fold, metric
included, and judged by their predictions for the fold: their error is the leave-one-out error of
the plain member times the ratio of the errors of both members over the same folds.

A sample of the rows ranks all candidates. The best of them is the start of a way through
neighbouring candidates, each fitted to all rows, to one that is better than its neighbours. No
member is judged by the sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter

import numpy as np

from .._network.infinite_width import RidgeTargets
from .._network.input_metric import kernel_metric, metric_root
from .._network.layers import Network
from .._rows.memory import in_order
from .._util.types import Array, Indices
from ..kernels import KERNELS
from .member import Member, Shape, fit_all, fit_near, solved
from .views import Stretched, View, distinct_views, stretch, stretched

# The order of members, the best first.
ERROR = attrgetter("error")
# Scales tried for plain members, relative to the typical distance between rows.
SCALES = {"laplace_l1": (0.5, 1.0, 2.0, 4.0), "gaussian": (0.25, 0.5, 1.0, 2.0)}
# Depths tried for kernels without a scale.
DEPTHS = {"tangent": (1, 2, 3, 4)}
# Scales tried for stretched members.
STRETCHED_SCALES = (0.5, 1.0, 2.0)
# The kernels of stretched members, and the number of views that are stretched, the best first.
STRETCHED_VIEWS = {"laplace_l1": 1, "gaussian": 3}
# Views go on if the error of their first stretched member exceeds the least by at most this share.
NEARLY = 0.03
# The number of steps of a search: one of each kernel for plain and for stretched members.
N_STEPS = len(SCALES) + len(DEPTHS) + len(STRETCHED_VIEWS)
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
    # The rows that rank candidates; None for all rows.
    sample: Indices | None = None
    # Stretched members whose error exceeds the least by more than this share are not judged.
    margin: float = np.inf

    @cached_property
    def views(self) -> dict[str, tuple[View, Array]]:
        """The distinct views, and the rows as each shows them."""
        return distinct_views(self.X, self.targets.weight)

    def members(self) -> Iterator[list[Member]]:
        """Yield all members so far, after each step of the search."""
        members = self.plain("laplace_l1", self.views)
        yield members
        best = min(members, key=ERROR).shape.view
        for kernel, views in (("gaussian", self.views), ("tangent", [best])):
            members = [*members, *self.plain(kernel, views)]
            yield members
        for kernel, n_views in STRETCHED_VIEWS.items():
            plain = sorted((each for each in members if each.shape.kernel == kernel), key=ERROR)
            most = (1.0 + self.margin) * min(map(ERROR, members))
            members = [*members, *self.shaped(plain[:n_views], most)]
            yield members

    def plain(self, kernel: str, views: Iterable[str]) -> list[Member]:
        """Return the best member of each view with this kernel."""
        return [self._best(_shapes(Shape(name, kernel)), *self.views[name]) for name in views]

    def _best(self, shapes: list[Shape], view: View, A: Array) -> Member:
        """Return the best member for all rows A, near the best one for the sample."""
        first = self._ranked(shapes, view, A)
        return first if self.sample is None else fit_near(first, shapes, view, A, self.targets)

    def _ranked(self, shapes: list[Shape], view: View, A: Array) -> Member:
        """Return the best member for the sample; an interrupt cancels fits not yet begun."""
        targets = self.targets
        if self.sample is not None:
            A, targets = A[self.sample], targets.of(self.sample)
        G = KERNELS[shapes[0].kernel].geometry(A, A)
        fit = partial(fit_all, view=view, A=A, G=G, targets=targets)
        with closing(in_order(fit, shapes)) as members:
            return min(members, key=ERROR)

    def shaped(self, plain: Sequence[Member], most: float = np.inf) -> list[Member]:
        """Return the stretched members of each round after plain ones, judged over the folds.

        The first rounds of the plain members are compared: the best view may be another one after
        its metric is known. Views nearly as good go on too.
        """
        firsts = sorted(map(self._stretched, plain), key=ERROR)
        going = [each for each in firsts if each.error <= (1.0 + NEARLY) * firsts[0].error]
        return [member for first in going for member in self._judged(first, most)]

    def _judged(self, last: Member, most: float) -> list[Member]:
        """Return all rounds of a stretched member, judged over the folds.

        If their own errors, which are too small, exceed `most`, there are none.
        """
        while last.shape.rounds < N_ROUNDS:
            last = self._stretched(last)
        rounds = last.rounds
        if min(map(ERROR, rounds[1:])) > most:
            return []
        left_out = self._left_out(last)
        errors = [self.targets.error(each) for each in left_out]
        scale = rounds[0].error / (errors[0] or 1.0)
        return [
            replace(member, error=scale * error, left_out=predictions)
            for member, error, predictions in zip(rounds, errors, left_out, strict=True)
        ][1:]

    def _stretched(self, before: Member) -> Member:
        """Return the best member whose view is stretched by the metric of the member before."""
        view = _stretched_view(before, self.targets.weight)
        shapes = _shapes(replace(before.shape, rounds=before.shape.rounds + 1))
        A = stretch(before.rounds[0].X_fit_, view.root)
        return replace(self._best(shapes, view, A), before=before)

    def _left_out(self, member: Member) -> Array:
        """Return, for a member and those before it, the predictions for each fold without it."""

        def of_fold(fold: Indices) -> tuple[Indices, Array]:
            kept = np.setdiff1d(np.arange(len(self.X)), fold)
            again = refitted(member, member.rounds[0].X_fit_[kept], self.targets.of(kept))
            return fold, np.array([each.network.scores(self.X[fold]) for each in again.rounds])

        with closing(in_order(of_fold, list(self.folds))) as folds:
            return self.targets.left_out(len(member.rounds), folds)

    def like(self, member: Member) -> Member:
        """Return a member of the same view, shape and rounds, fitted to these rows.

        The ridges of earlier rounds stay.
        """
        view, A, before = renewed(member, member.rounds[0].view(self.X), self.targets)
        if self.targets.splits is None:
            again = fit_near(member, [member.shape], view, A, self.targets)
        else:
            again = self._ranked([member.shape], view, A)
        if before is None:
            return again
        left_out = self._left_out(replace(again, before=before))[-1]
        return replace(again, error=self.targets.error(left_out), left_out=left_out)


def _shapes(like: Shape) -> list[Shape]:
    """Return the shapes that are tried with the view, the kernel and the rounds of another."""
    if like.rounds:
        return [replace(like, scale=scale) for scale in STRETCHED_SCALES]
    return [
        replace(like, scale=scale, depth=depth)
        for scale in SCALES.get(like.kernel, (1.0,))
        for depth in DEPTHS.get(like.kernel, (1,))
    ]


def _stretched_view(member: Member, weight: Array) -> Stretched:
    """Return the view of a member, stretched by its metric over its own rows."""
    assert isinstance(member.network, Network)
    more = metric_root(kernel_metric(member.network, member.X_fit_, weight), LEAST_STRETCH)
    return stretched(member.view, more)


def refitted(member: Member, A: Array, targets: RidgeTargets) -> Member:
    """Return a member and those before it refitted to other rows.

    Shapes and ridges stay, metrics are computed anew. A holds the rows as the view of the member
    shows them before it is stretched.
    """
    view, B, before = renewed(member, A, targets)
    return replace(solved(member.shape, view, B, targets, member.alpha_), before=before)


def renewed(member: Member, A: Array, targets: RidgeTargets) -> tuple[View, Array, Member | None]:
    """Return the view of a member for other rows, the rows it shows, and the member before."""
    if member.before is None:
        return member.view, A, None
    before = refitted(member.before, A, targets)
    view = _stretched_view(before, targets.weight)
    return view, stretch(A, view.root), before


def selected_again(members: Sequence[Member], kept: Indices, targets: RidgeTargets) -> list[Member]:
    """Return members fitted to the rows kept, each with the view, kernel and rounds of another.

    Scales, depths, ridges and metrics are those for the rows kept, near those of the other member.
    """
    found: dict[tuple[str, str, int], Member] = {}  # rounds that several members have in common

    def again(member: Member) -> Member:
        shape = member.shape
        key = shape.view, shape.kernel, shape.rounds
        if key not in found:
            A = member.rounds[0].X_fit_[kept]
            if member.before is None:
                view, before = member.view, None
            else:
                before = again(member.before)
                view = _stretched_view(before, targets.weight)
                A = stretch(A, view.root)
            near = fit_near(member, _shapes(shape), view, A, targets)
            found[key] = replace(near, before=before)
        return found[key]

    return [again(member) for member in members]
