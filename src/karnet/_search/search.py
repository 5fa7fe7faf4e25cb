from __future__ import annotations
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from contextlib import closing
import numpy as np
from .._arrays import namespace as arrays
from .._network.infinite_width import DualSolution, KernelMap, RidgeTargets, downhill, kernel_network, nearest
from .._network.input_metric import metric_is_diagonal, metric_root, outer_products, scaled_metric
from .._network.local import grow_tree
from .._rows.memory import in_order
from .._util.types import Array, Indices
from ..kernels import KERNELS, lower_geometry, lower_profile
from .views import View, stretch, stretched, Stretched, shortened
from .member import Shape, activation
from .settings import Settings

LEAST_STRETCH = 1e-3
SMOOTH = "gaussian"
SCALES = 2.0 ** np.arange(-5.0, 5.5, 0.5)
DEPTHS = (1, 2, 3, 4)
STARTS = {"gaussian": (0.5, 0.05), "laplace": (1.0, 0.05), "laplace_l1": (0.5, 0.05), "tangent": (2, 0.05), "matern": (0.7, .05)}
SINGLE_RIDGE = {"gaussian": 0.9e-3, "laplace": 0.9e-5, "laplace_l1": 0.9e-5, "tangent": 0.9e-2, "matern": .9e-4}
SINGLE_ERROR = 1e-3
ENOUGH_SHARE = 0.3


@dataclass(frozen=True)
class Start:
    """Rows that shape metrics, and rows that judge them."""
    shaping: Indices
    judging: Indices


@dataclass(frozen=True)
class Lens:
    """How a start sees the rows: a view, multiplied by the root of a metric."""
    name: str
    view: View
    diagonal: bool = False
    root: Array | None = None

    def then(self, M: Array) -> "Lens":
        root = diagonal_root(self.root) if self.diagonal else self.root
        M = M.diagonal() if self.diagonal and M.ndim == 2 else M
        return replace(self, root=next_root(root, M))


@dataclass(frozen=True)
class Trial:
    """A kernel and a round of the metric, tried at some starts."""
    kernel: str
    lenses: tuple  # of each start
    rounds: int = 0
    leaf: int = 500
    begin: tuple = (0.5, 0.05)
    setting: int = 0     # scale or depth index
    alpha: float = 0.05
    dtype: type = np.float64
    sums: dict = field(default_factory=dict)   # start -> (error, weight)
    metrics: dict = field(default_factory=dict)
    settled: bool = False

    @property
    def error(self):
        return sum(e for e, _ in self.sums.values()) / sum(w for _, w in self.sums.values())
    def error_at(self, starts):
        return sum(self.sums[k][0] for k in starts) / sum(self.sums[k][1] for k in starts)
    @property
    def scale(self):
        return float(SCALES[self.setting]) if KERNELS[self.kernel].scaled else 1.0
    @property
    def depth(self):
        return 1 if KERNELS[self.kernel].scaled else DEPTHS[self.setting]
    @property
    def place(self): return (self.scale if KERNELS[self.kernel].scaled else self.depth, self.alpha)
    @property
    def alpha_(self): return self.alpha
    @property
    def activation(self): return activation(self.kernel)
    @property
    def name(self): return " | ".join(dict.fromkeys(l.name + (" (diagonal)" if l.diagonal else "") for l in self.lenses))
    @property
    def shape(self): return Shape(self.name, self.kernel, self.scale, self.rounds)


def lower_distances(kernel, A):
    K = KERNELS[kernel]
    return lower_geometry(K, A) if K.scaled else K.geometry(A, A)

def lower_kernel(kernel, G, scale, depth):
    K = KERNELS[kernel]
    return lower_profile(K, G, scale) if K.scaled else K.profile(G, scale, depth)


def mean_distance(kernel: str, A: Array, rng) -> float:
    if not KERNELS[kernel].scaled:
        return 1.0
    some = A[rng.randint(len(A), size=min(500, len(A)))]
    return float(KERNELS[kernel].geometry(some, some).mean(dtype=np.float64)) or 1.0


def tuned(kernel, leaves, ridges, enough, begin, one):
    """leaves: list of (A, targets, unit). Return setting index, alpha, error, dtype."""
    scaled = KERNELS[kernel].scaled
    n_settings = len(SCALES) if scaled else len(DEPTHS)
    variance = np.mean([t.Y.var(axis=0).sum() for _, t, _ in leaves])
    i0 = int(np.argmin(np.abs(SCALES - begin[0]))) if scaled else min(int(begin[0]) - 1, 3)
    def go(begin, single_ridge):
        kept = {}
        factors = {np.float32: 1.0, np.float64: 1.0 if one else 1.01}
        def precision(k): return np.float32 if ridges[k] >= single_ridge else np.float64
        def error(i, k):
            sums, dtype = np.zeros(2), precision(k)
            for number, (A, targets, unit) in enumerate(leaves):
                if (number, dtype) not in kept:
                    kept[number, dtype] = lower_distances(kernel, A.astype(dtype, copy=False))
                G = kept[number, dtype]
                K = lower_kernel(kernel, G, float(SCALES[i]) * unit if scaled else 1.0, 1 if scaled else DEPTHS[i])
                half = -(-len(G) // 2)
                w = targets.weight[-half:]
                out = DualSolution.of(K, targets, float(ridges[k])).left_out(targets, last=half)
                total = float(w @ np.sum((targets.Y[-half:] - out) ** 2, axis=1))
                sums += (total if np.isfinite(total) else np.inf), float(w.sum())
            return float(sums[0] / sums[1]) * factors[dtype]
        (i, k), least = downhill(error, begin, (n_settings, len(ridges)), ENOUGH_SHARE * enough)
        return i, k, least, precision(k)
    i, k, least, dtype = go((i0, nearest(ridges, begin[1])), SINGLE_RIDGE[kernel])
    if ENOUGH_SHARE * enough < least < SINGLE_ERROR * variance:
        i, k, least, dtype = go((i, k), np.inf)
    return i, float(ridges[k]), least, dtype


def telling(tables, n, rng):
    variance = [-t[1].Y.var(axis=0).sum() for t in tables]
    first, *others = np.argsort(variance, kind="stable")[: max(len(tables) // 2, n)]
    return [tables[k] for k in (first, *rng.permutation(others)[: n - 1].astype(np.intp))]


def next_root(root, M):
    if root is None:
        return metric_root(scaled_metric(M), LEAST_STRETCH)
    if root.ndim == 1:
        M = M if M.ndim == 1 else M.diagonal()
        return metric_root(scaled_metric(root**2) + scaled_metric(M * root**2), LEAST_STRETCH)
    return metric_root(scaled_metric(root @ root) + scaled_metric(root @ M @ root), LEAST_STRETCH)

def diagonal_root(root):
    return root if root is None or root.ndim == 1 else np.sqrt(np.sum(root**2, axis=1))


@dataclass
class Search:
    X: Array
    targets: RidgeTargets
    starts: list[Start]
    views: dict[str, View]
    leaf: int
    settings: Settings
    rng: np.random.RandomState
    has_time: Callable[[], bool] = lambda: True
    told: Callable = lambda *a: None
    shown: dict = field(default_factory=dict)

    @property
    def one(self): return self.targets.Y.shape[1] == 1

    def rows(self, lens):
        if lens.name not in self.shown:
            self.shown[lens.name] = lens.view(self.X).astype(np.float32)
        return self.shown[lens.name]

    def seen(self, lens, rows):
        A = self.rows(lens)[rows]
        return A if lens.root is None else stretch(A, lens.root.astype(np.float32))

    def judged(self, trial: Trial, which=None) -> Trial:
        """Tune a trial and judge it at some starts."""
        s, targets = self.settings, self.targets
        which = list(range(len(self.starts)) if which is None else which)
        which = [k for k in which if k not in trial.sums]
        if not which: return trial
        scaled = KERNELS[trial.kernel].scaled
        tuned_already = bool(trial.sums) or trial.settled
        parts = {}
        for k in which:
            rows = self.starts[k].shaping
            A = self.seen(trial.lenses[k], rows)
            unit = mean_distance(trial.kernel, A, self.rng)
            tree, leaves = grow_tree(A, trial.leaf, self.rng)
            leaves = [self.rng.permutation(leaf) for leaf in leaves]
            parts[k] = A, rows, unit, tree, leaves
        if not tuned_already:
            n_tuned = int(s.tuned_rows * np.sqrt(trial.leaf / s.leaf))
            tables = [(A[leaf[:n_tuned]], targets.of(rows[leaf[:n_tuned]]), unit) for A, rows, unit, _, leaves in parts.values() for leaf in leaves]
            n_leaves = int(np.clip(len(self.X) // s.tuned_rows, 1, s.n_tuned_leaves))
            some = telling(tables, min(n_leaves, len(tables)), self.rng)
            i, alpha, _, dtype = tuned(trial.kernel, some, targets.ridges, targets.enough, trial.begin, self.one)
            trial = replace(trial, setting=i, alpha=alpha, dtype=dtype)
        i, alpha, dtype, depth = trial.setting, trial.alpha, trial.dtype, trial.depth
        def of_start(k):
            A, rows, unit, tree, leaves = parts[k]
            kernel = KernelMap(trial.kernel, trial.scale * unit if scaled else 1.0, depth)
            J = self.seen(trial.lenses[k], self.starts[k].judging)
            reached = dict(tree.route(J))
            out = np.zeros((len(J), targets.Y.shape[1]))
            diagonal = trial.lenses[k].diagonal or metric_is_diagonal(kernel, A.shape[1])
            M = np.zeros(())
            n_metric = max(s.metric_rows // (len(leaves) * len(self.starts)), 60)
            for l, leaf in enumerate(leaves):
                B, t = A[leaf].astype(dtype, copy=False), targets.of(rows[leaf])
                G = lower_distances(trial.kernel, B)
                found = DualSolution.of(lower_kernel(trial.kernel, G, kernel.scale, depth), t, alpha)
                at = kernel.at(B)
                net = kernel_network(found.D, found.b, at, None)
                if l in reached:
                    out[reached[l]] = net.layers[0].linear(at(J[reached[l]].astype(dtype, copy=False)))
                if scaled:
                    M = M + outer_products(net, B[:n_metric], t.weight[:n_metric], diagonal)
            t = targets.of(self.starts[k].judging)
            error = float(t.weight @ np.sum((t.Y - out) ** 2, axis=1))
            return error, float(t.weight.sum()), np.asarray(M, dtype=np.float64)
        with closing(in_order(of_start, which)) as done:
            found = dict(zip(which, done))
        result = replace(trial, sums=trial.sums | {k: (e, w) for k, (e, w, _) in found.items()}, metrics=trial.metrics | {k: M for k, (*_, M) in found.items()})
        self.told(result, sum(len(self.starts[k].shaping) for k in which))
        return result

    def next_round(self, trial: Trial) -> Trial:
        lenses = tuple(lens.then(trial.metrics[k]) if k in trial.metrics else lens for k, lens in enumerate(trial.lenses))
        same = self.settings.settle and trial.rounds > 0 and trial.place == trial.begin
        return replace(trial, lenses=lenses, rounds=trial.rounds + 1, begin=trial.place, sums={}, metrics={}, settled=same)

    def with_kernel(self, trial: Trial, kernel: str, plain=False) -> Trial:
        lenses = trial.lenses
        if plain:
            lenses = tuple(replace(lens, root=None) for lens in lenses)
        elif metric_is_diagonal(KernelMap(kernel), 0):
            lenses = tuple(replace(lens, root=diagonal_root(lens.root)) for lens in lenses)
        return replace(trial, kernel=kernel, lenses=lenses, begin=STARTS[kernel], rounds=0 if plain else trial.rounds, sums={}, metrics={}, settled=False)

    def ways(self):
        """Return the trials of the views after a round of the metric, judged at a few starts, the best first."""
        s, K = self.settings, len(self.starts)
        few = range(min(-(-s.comparing_rows // len(self.starts[0].judging)), K))
        firsts = [self.judged(Trial(SMOOTH, (Lens(n, v),) * K, leaf=s.leaf, begin=STARTS[SMOOTH]), few) for n, v in self.views.items()]
        firsts.sort(key=lambda t: t.error)
        near = [t for k, t in enumerate(firsts) if k < s.n_first_views or t.error <= (1 + s.view_margin) * firsts[0].error]
        M = firsts[0].metrics[0]
        seconds = [self.next_round(t) for t in near]
        for t in near:
            if t.metrics[0].ndim == 2 and len(t.metrics[0]) > s.columns_of_full:
                seconds.append(self.next_round(replace(t, lenses=tuple(replace(l, diagonal=True) for l in t.lenses))))
        seconds = sorted([self.judged(t, few) for t in seconds], key=lambda t: t.error)
        return firsts, seconds, list(few)

    def trials(self) -> list[Trial]:
        s, K = self.settings, len(self.starts)
        enough = self.targets.enough
        firsts, seconds, few = self.ways()
        pool = [*firsts, *seconds]
        near = [t for t in seconds if t.error <= (1 + s.second_view) * seconds[0].error][: s.n_views]
        leaf, base = s.leaf, seconds[0]
        while leaf < min(s.most_search_leaf, len(self.starts[0].shaping)) and base.error > enough:
            large = self.judged(replace(base, leaf=2 * leaf, begin=base.place, sums={}, metrics={}, settled=False), few)
            pool.append(large)
            if large.error > (1 - s.gain_of_leaf) * base.error: break
            base, leaf = large, 2 * leaf
        # starts share the near-best ways in turn
        plain = {t.lenses[0].name: t for t in firsts}
        lenses = tuple(replace(near[k % len(near)].lenses[k], root=None) for k in range(K))
        first = Trial(SMOOTH, lenses, leaf=leaf, begin=firsts[0].place)
        for_starts = {k: plain[lenses[k].name] for k in range(K)}
        known = {k: for_starts[k].sums[k] for k in range(K) if leaf == s.leaf and k in for_starts[k].sums}
        metrics = {k: for_starts[k].metrics[k] for k in known}
        first = replace(first, setting=firsts[0].setting, alpha=firsts[0].alpha, dtype=firsts[0].dtype, sums=known, metrics=metrics)
        first = self.judged(first)
        pool.append(first)
        best = self.chain(first, pool, s.patience, s.most_rounds)
        if best.error > enough:
            for kernel in ("laplace", "laplace_l1"):
                new = self.tried(self.with_kernel(best, kernel), best, few, s.branch_margin)
                pool.append(new)
                if len(new.sums) == K:
                    self.chain(new, pool, 1, s.n_branch_rounds)
            for kernel in s.plain_kernels:
                pool.append(self.tried(self.with_kernel(first, kernel, plain=True), min(pool, key=lambda t: t.error if len(t.sums) == K else np.inf), few, self.margin))
        return sorted(pool, key=lambda t: t.error)

    def chain(self, first, pool, patience, most_rounds):
        s, enough = self.settings, self.targets.enough
        last = best = first
        waited = done = 0
        most = max(len(start.shaping) for start in self.starts)
        while done < most_rounds and best.error > enough and self.has_time():
            last = self.judged(self.next_round(last))
            done += 1
            pool.append(last)
            waited = 0 if last.error < (1 - s.gain) * best.error else waited + 1
            best = min(best, last, key=lambda t: t.error)
            if waited < patience: continue
            break
        return best

    @property
    def margin(self):
        n = sum(len(start.judging) for start in self.starts)
        return self.settings.margin + self.settings.margin_of_few / np.sqrt(n)

    def tried(self, trial, rival, few, margin):
        trial = self.judged(trial, few)
        if trial.error_at(few) > (1 + margin) * rival.error_at(few):
            return trial
        return self.judged(trial)
