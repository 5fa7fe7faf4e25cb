"""The search for views, kernels, metrics, scales and ridges that suit a table.

Each start leaves out a fold of the rows. Of the others, most shape its metrics: trees divide them,
the leaves are solved, and the outer products of their input sensitivities add up to the metric of
the next round. The fold judges: its rows shaped nothing. Views are compared first, and those that
are nearly the best take turns among the starts. Then come rounds of the metric with a smooth
kernel, as long as the error falls, and rounds of the other kernels, which begin with its metrics.
Candidates that cannot win are dropped after few starts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter

import numpy as np

from .._arrays import namespace as arrays
from .._network.infinite_width import RidgeTargets, kernel_network
from .._network.input_metric import metric_is_diagonal, outer_products
from .._network.kernel_map import KernelMap
from .._network.local import Tree, grow_tree
from .._rows.memory import in_order
from .._util.progress import Progress
from .._util.types import Array, Indices
from .leaves import LeafTable, mean_distance, solve_leaf, telling, tuned
from .settings import Settings
from .trial import FIRST_TUNING, Lens, Start, Trial
from .views import View, WithScores

# The order of trials, the best first.
ERROR = attrgetter("error")
# The kernel whose networks shape metrics: the sensitivities of a smooth kernel are the least noisy.
SMOOTH = "gaussian"
# The kernels that begin with its metrics, and the one that is also tried without a metric.
OTHERS = ("laplace", "laplace_l1")
PLAIN = "laplace_l1"
# Scores are tried if the error is at least this share of the variance of the targets.
SHARE_FOR_SCORES = 0.1


@dataclass(frozen=True)
class Part:
    """The rows that shape a metric at a start, as a lens shows them, in the leaves of a tree."""

    table: LeafTable
    tree: Tree
    leaves: list[Indices]


@dataclass(frozen=True)
class Search:
    """The search in some rows of a table."""

    X: Array
    targets: RidgeTargets
    starts: list[Start]
    views: dict[str, View]
    settings: Settings
    rng: np.random.RandomState
    has_time: Callable[[], bool] = lambda: True
    device: str | None = None  # where leaves are solved
    progress: Progress = field(default_factory=Progress)
    tried: list[Trial] = field(default_factory=list)
    _shown: dict[int, Array] = field(default_factory=dict)

    def trials(self) -> list[Trial]:
        """Return all trials, the best first; there are as many as there is time for."""
        self._plan()
        ways = self._ways()
        first = self._in_turn(ways)
        best = self._rounds(self._judged(first), self.settings.n_rounds)
        for kernel in OTHERS:
            if self._goes_on(best):
                self._branch(best.with_kernel(kernel), best)
        if self._goes_on(best):
            self._judged_if_near(first.without_metric().with_kernel(PLAIN), best, self._margin)
        return sorted(self.tried, key=ERROR)

    @property
    def _leaf(self) -> int:
        """The rows of a leaf to begin with; those of few outputs take less time."""
        leaf = self.settings.leaf
        leaf += 2 * leaf // self.targets.Y.shape[1] ** 2
        return min(leaf, self.settings.largest_leaf)

    # Views

    @cached_property
    def few(self) -> range:
        """The starts that compare views: as many as have enough judging rows."""
        n = -(-self.settings.comparing_rows // len(self.starts[0].judging))
        return range(min(n, len(self.starts)))

    def _ways(self) -> list[Trial]:
        """Return views with one round of a metric, or its diagonal, the best first."""
        settings, tuning = self.settings, FIRST_TUNING[SMOOTH]
        plain = []
        for name, view in self.views.items():
            lenses = (Lens(name, view),) * len(self.starts)
            plain.append(self._compared(Trial(SMOOTH, lenses, self._leaf, tuning)))
        plain.sort(key=ERROR)
        most = (1.0 + settings.view_margin) * plain[0].error
        near = [each for k, each in enumerate(plain) if k < settings.n_views or each.error <= most]
        ways = list(plain)
        for trial in near:
            if not self._goes_on(min(ways, key=ERROR)):
                break
            ways += [self._compared(each.next_round()) for each in self._metrics_of(trial)]
        ways.sort(key=ERROR)
        return self._with_scores(ways)

    def _metrics_of(self, trial: Trial) -> list[Trial]:
        """Return a trial, and for many columns another one that forms the diagonal only."""
        M = next(iter(trial.metrics.values()))
        if M.ndim == 1 or len(M) <= self.settings.columns_of_full:
            return [trial]
        lenses = tuple(replace(lens, diagonal=True) for lens in trial.lenses)
        return [trial, replace(trial, lenses=lenses)]

    def _with_scores(self, ways: list[Trial]) -> list[Trial]:
        """Return ways that also see scores of an additive network, if these help much."""
        best = ways[0]
        least = SHARE_FOR_SCORES * self.targets.variance
        if not self._goes_on(best) or best.error < least:
            return ways
        lenses = []
        for lens, start in zip(best.lenses, self.starts, strict=True):
            rows = start.shaping
            view = WithScores.of(lens.view, self.X[rows], self.targets.of(rows))
            if view is None:
                return ways
            root = None if lens.root is None else view.extended(lens.root)
            lenses.append(replace(lens, name=f"{lens.name} and scores", view=view, root=root))
        scored = self._compared(best.begun_with(lenses=tuple(lenses)))
        gain = self.settings.gain_of_scores
        return [scored] if scored.error <= (1.0 - gain) * best.error else ways

    def _in_turn(self, ways: list[Trial]) -> Trial:
        """Return the first trial of all starts, which take the ways that are nearly best in turn.

        Leaves are as large as the best way gains from.
        """
        settings, best = self.settings, ways[0]
        near = [each for each in ways if each.error <= (1.0 + settings.turn_margin) * best.error]
        near = near[: settings.n_views]
        while best.leaf < min(settings.largest_leaf, len(self._shaping(0))) and self._goes_on(best):
            leaf = min(2 * best.leaf, settings.largest_leaf)
            large = self._compared(best.begun_with(leaf=leaf))
            if large.error > (1.0 - settings.gain_of_leaf) * best.error:
                break
            best = large
        lenses = [near[k % len(near)].lenses[k] for k in range(len(self.starts))]
        # Metrics from few starts or few rows are formed again.
        begun = tuple(replace(lens, root=None) for lens in lenses)
        return best.begun_with(lenses=begun, rounds=0)

    # Rounds

    def _rounds(self, first: Trial, most: int) -> Trial:
        """Return the best of a trial and further rounds of the metric."""
        last = best = first
        waited = 0
        for _ in range(most):
            if waited == self._patience or not self._goes_on(best):
                break
            last = self._judged(last.next_round())
            gains = last.error < (1.0 - self.settings.gain) * best.error
            best, waited = min(best, last, key=ERROR), 0 if gains else waited + 1
        return best

    @property
    def _patience(self) -> int:
        """The rounds without gain after which no other follows; few starts take more of them."""
        return -(-self.settings.n_folds // (2 * len(self.starts)))

    def _branch(self, first: Trial, rival: Trial) -> None:
        """Try a kernel that begins with the metrics of another one."""
        first = self._judged_if_near(first, rival, self.settings.branch_margin)
        if first.is_complete:
            self._rounds(first, self.settings.n_branch_rounds)

    def n_columns(self, trial: Trial) -> int:
        """Return the number of columns that the lenses of a trial show."""
        return int(self.shown(trial.lenses[0], np.arange(1)).shape[1])

    @property
    def operations(self) -> float:
        """The operations of the search so far, up to the factor of those of a fit."""
        return float(sum(each.leaf**2 * each.n_rows for each in self.tried))

    @property
    def _margin(self) -> float:
        """The margin within which kernels are averaged."""
        n = sum(self.targets.of(start.judging).n_repeats for start in self.starts)
        return float(self.settings.margin + self.settings.margin_of_few / np.sqrt(n))

    def near_best(self, trials: list[Trial]) -> list[Trial]:
        """Return the best trial of each kernel, with and without a metric, if it is near the best.

        The best one comes first.
        """
        complete = [trial for trial in trials if trial.is_complete] or trials[:1]
        best: dict[tuple[str, bool], Trial] = {}
        for trial in complete:
            best.setdefault((trial.kernel, trial.rounds > 0), trial)
        most = (1.0 + self._margin) * complete[0].error
        near = [trial for trial in best.values() if trial.error <= most]
        return near[: self.settings.n_kernels]

    def _goes_on(self, best: Trial) -> bool:
        """Return whether there is time for more trials, and a smaller error would matter."""
        return self.has_time() and best.error > self.targets.enough

    # Judging

    def _compared(self, trial: Trial) -> Trial:
        """Return a trial judged at few starts, with a limited number of rows."""
        return self._judged(trial, self.few, self.settings.compared_rows)

    def _judged_if_near(self, trial: Trial, rival: Trial, margin: float) -> Trial:
        """Return a trial judged at all starts if few show that it is near a rival."""
        trial = self._judged(trial, self.few)
        if trial.error_at(self.few) > (1.0 + margin) * rival.error_at(self.few):
            return trial
        return self._judged(trial)

    def _judged(self, trial: Trial, starts: range | None = None, most: int | None = None) -> Trial:
        """Return a trial with a tuning, judged at some starts with at most some shaping rows."""
        wanted = range(len(self.starts)) if starts is None else starts
        which = [k for k in wanted if k not in trial.errors]
        if not which:
            return trial
        parts = [self._part(trial, k, most) for k in which]
        trial = trial if trial.is_tuned else self._tuned(trial, parts)
        with closing(
            in_order(lambda pair: self._solved(trial, *pair), [*zip(which, parts, strict=True)])
        ) as done:
            found = dict(zip(which, done, strict=True))
        self.tried[:] = [each for each in self.tried if each is not trial]
        judged = replace(
            trial,
            errors={**trial.errors, **{k: each[0] for k, each in found.items()}},
            weights={**trial.weights, **{k: each[1] for k, each in found.items()}},
            metrics={**trial.metrics, **{k: each[2] for k, each in found.items()}},
            n_rows=trial.n_rows + sum(len(part.table.A) for part in parts),
        )
        self.tried.append(judged)
        n_rows = judged.n_rows - trial.n_rows
        which_round = f"{trial.kernel}, round {trial.rounds + 1}"
        self.progress.step("search", which_round, n_rows, n_rows * trial.leaf, judged.error)
        return judged

    def _shaping(self, k: int, most: int | None = None) -> Indices:
        return self.starts[k].shaping[:most]

    def shown(self, lens: Lens, rows: Indices) -> Array:
        """Return rows as a lens shows them, in single precision."""
        key = id(lens.view)
        if key not in self._shown:
            self._shown[key] = lens.view(self.X).astype(np.float32)
        return lens.of(self._shown[key][rows])

    def _part(self, trial: Trial, k: int, most: int | None) -> Part:
        rows = self._shaping(k, most)
        A, targets = self.shown(trial.lenses[k], rows), self.targets.of(rows)
        unit = mean_distance(trial.kernel, A, targets.weight, self.rng)
        tree, leaves = grow_tree(A, trial.leaf, self.rng)
        leaves = [self.rng.permutation(leaf) for leaf in leaves]
        return Part(LeafTable(A, targets, unit, self.device), tree, leaves)

    def _tuned(self, trial: Trial, parts: list[Part]) -> Trial:
        """Return a trial with the scale and ridge that some leaves select."""
        n_rows = self.settings.tuned_rows
        tables = [part.table.of(leaf[:n_rows]) for part in parts for leaf in part.leaves]
        # Leaves of several starts have rows in common.
        n = int(np.clip(len(self.X) // n_rows, 1, self.settings.n_tuned_leaves))
        tuning = tuned(trial.kernel, telling(tables, n, self.rng), trial.tuning)
        is_settled = tuning[:2] == trial.tuning[:2]
        return replace(trial, tuning=tuning, is_tuned=True, is_settled=is_settled)

    def _solved(self, trial: Trial, k: int, part: Part) -> tuple[float, float, Array]:
        """Return the error of the judging rows, their weight, and the metric of the leaves."""
        tuning, table, settings = trial.tuning, part.table, self.settings
        kernel = KernelMap(trial.kernel, tuning.scale * table.unit)
        judging = self.starts[k].judging
        judged = LeafTable(
            self.shown(trial.lenses[k], judging), self.targets.of(judging), device=self.device
        )
        reached = dict(part.tree.route(judged.A))
        predictions, total = np.zeros_like(judged.targets.Y), np.zeros(())
        diagonal = trial.lenses[k].diagonal or metric_is_diagonal(kernel, table.A.shape[1])
        n_metric_rows = settings.metric_rows // (len(part.leaves) * len(self.starts))
        few = slice(0, max(n_metric_rows, settings.metric_rows_of_leaf))
        for number, leaf in enumerate(part.leaves):
            rows = table.of(leaf)
            found, _ = solve_leaf(kernel, rows, tuning)
            A = rows.inputs(tuning.dtype)
            network = kernel_network(found.D, found.b, kernel.at(A))
            if number in reached:
                new = judged.of(reached[number]).inputs(tuning.dtype)
                predicted = network.layers[0].linear(kernel.at(A)(new))
                predictions[reached[number]] = arrays.to_numpy(predicted)
            weight = arrays.like(A, rows.targets.weight[few])
            total = total + arrays.to_numpy(outer_products(network, A[few], weight, diagonal))
        weight = float(judged.targets.weight.sum())
        return judged.targets.error(predictions) * weight, weight, total.astype(np.float64)

    def _plan(self) -> None:
        """Plan the work of a typical search, in pairs of rows that share a leaf."""
        n_rows = sum(len(start.shaping) for start in self.starts)
        of_few = sum(len(self._shaping(k, self.settings.compared_rows)) for k in self.few)
        n_trials = self.settings.n_rounds // 2 + 3 * len(OTHERS)
        n_compared = len(self.views) + self.settings.n_views
        self.progress.plan(search=float(self._leaf * (n_compared * of_few + n_trials * n_rows)))
