from __future__ import annotations
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any
import numpy as np
from scipy.optimize import nnls
from .member import Member, Shape
from .views import Stretched, View, squares_of_features, VIEWS, distinct_views, stretched, shortened
from .._network.infinite_width import KernelMap, RidgeTargets, DualSolution
from .._network.input_metric import metric_is_diagonal
from .._util.types import Array, Indices, Mask
from .._network.local import local_metric, LocalNetwork, Partition, grow_tree
from .._rows.inputs import Inputs
from ..kernels import KERNELS
from .search import Search, Start, Trial, SCALES, DEPTHS, lower_distances, lower_kernel, mean_distance, tuned, telling, stretch
from .settings import Settings
import os
SETTINGS = Settings(**eval("dict(%s)" % os.environ.get("KSET", "")))

@dataclass(frozen=True)
class Average:
    """A weighted sum of members, and all candidates of the search."""

    members: list[Member]
    weights: Array  # of the members
    offset: Array  # added to their sum
    tried: list[Trial]  # all candidates of the search, the best first
    left_out: Array  # for every row the prediction of members fitted without it, or NaN
    honest: Mask  # the rows with left-out predictions that are not optimistic

    def metric(self, d: int, weight: Array, device: str | None = None) -> Array:
        """Return the mean over members of the diagonal of the metric of d inputs, of sum one."""
        step = max(len(weight) // 300, 1)
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
    return np.asarray(np.einsum("ij,jk,ik->i", root, M, root))


def make_starts(n, strata, s: Settings, one, rng):
    K = int(np.clip(round(s.starts_rows / n), 1, s.n_folds))
    order = rng.permutation(n)
    order = order[np.argsort(strata[order], kind="stable")]
    folds = [rng.permutation(order[k::s.n_folds]) for k in range(min(s.n_folds, n))]
    starts = []
    for fold in folds[:K]:
        rest = rng.permutation(np.setdiff1d(np.arange(n), fold))
        m = min(int(s.shaping_share * len(rest)), max(s.shaping // K, 2000))
        starts.append(Start(rest[:m], fold[: max(s.judging // K, 1)]))
    return starts

def fit_average(inputs: Inputs, targets: RidgeTargets, strata, rng, *, n_members, width=None, seconds=np.inf, device=None, report=None):
    s = SETTINGS
    n, q = len(inputs), targets.Y.shape[1]
    X = inputs.map(np.asarray)
    starts = make_starts(n, strata, s, q == 1, rng)
    some = np.sort(rng.permutation(n)[:20000])
    step = max(len(some) // 1000, 1)
    views = {name: view for name, (view, _) in distinct_views(X[some], targets.weight[some], VIEWS, step, s.alike).items()}
    leaf = s.leaf
    search = Search(X, targets, starts, views, leaf, s, rng)
    trials = search.trials()
    best = {}
    full = [t for t in trials if len(t.sums) == len(starts)]
    for t in full:
        best.setdefault((t.kernel, t.rounds > 0), t)
    near = [t for t in best.values() if t.error <= (1 + search.margin) * full[0].error][: s.n_families]
    members, outs, hon = [], [], []
    K = len(starts)
    variance = float(targets.Y.var(axis=0).sum()) or 1.0
    near, n_used, leaf = sized(near, n, views, starts, s)
    for t in near:
        fitted, out, count = fit_family(search, t, X, targets, n_used, leaf, s, rng, variance)
        members.append(fitted); outs.append(out)
    judged = np.isfinite(np.sum([o[:, 0] for o in outs], axis=0))
    w, offset = weights_of(outs, targets, judged, s.shrink_power / np.sqrt(judged.sum()))
    flat = [m for ms, wf in zip(members, w) for m in ms if wf > 0]
    weights = np.concatenate([np.full(len(ms), wf / len(ms)) for ms, wf in zip(members, w) if wf > 0])
    left = offset + sum(wf * o for wf, o in zip(w, outs))
    return Average(flat, weights, offset, trials, left, judged)

def weights_of(outs, targets, judged, shrink):
    mean = np.average(targets.Y, axis=0, weights=targets.weight)
    F = len(outs)
    root = np.sqrt(targets.weight[judged])[:, None]
    Z = np.stack([(root * (o[judged] - mean)).ravel() for o in outs], axis=1)
    y = (root * (targets.Y[judged] - mean)).ravel()
    # shrink towards equal weights of sum 1
    lam = shrink * np.mean(np.sum(Z**2, axis=0)) 
    A = np.vstack([Z, np.sqrt(lam) * np.eye(F)])
    b = np.concatenate([y, np.full(F, np.sqrt(lam) / F)])
    w, _ = nnls(A, b)
    if not w.any(): w = np.full(F, 1.0 / F)
    w[w < 0.02 * w.max()] = 0
    return w, (1 - w.sum()) * mean

def sized(near, n, views, starts, s):
    d = max(len(view.features) for view in views.values())
    each = s.operations / (d + 30)   # rows of leaves of all members together
    least = min(s.least_leaf, n)
    n_used = int(np.clip(each / (least * len(near)), 1, len(starts)))
    n_families = int(np.clip(each / (least * n_used), 1, len(near)))
    leaf = int(np.clip(each / (n_families * n_used), least, s.most_leaf))
    return near[:n_families], n_used, leaf

def fit_family(search, t: Trial, X, targets, n_used, leaf, s, rng, variance):
    n, K = len(X), len(search.starts)
    scaled = KERNELS[t.kernel].scaled
    d = search.rows(t.lenses[0]).shape[1]
    lenses = []
    for k, lens in enumerate(t.lenses[:n_used]):
        A0, root = search.rows(lens), lens.root
        view = lens.view if root is None else stretched(lens.view, root)
        view = shortened(view, s.short_share / variance * t.error)
        A = A0 if root is None else stretch(A0, view.root.astype(np.float32))
        unit = mean_distance(t.kernel, A, rng)
        tree, leaves = grow_tree(A, leaf, rng)
        lenses.append((view, A, unit, tree, leaves))
    tables = []
    for view, A, unit, tree, leaves in lenses:
        for rows in leaves:
            some = rng.permutation(rows)[: s.fit_tuned_rows]
            tables.append((A[some], targets.of(some), unit))
    few = telling(tables, min(2, len(tables)), rng)
    i, alpha, _, dtype = tuned(t.kernel, few, targets.ridges, targets.enough, (t.scale if scaled else t.depth, t.alpha), search.one)
    depth = 1 if scaled else DEPTHS[i]
    total, count = np.zeros_like(targets.Y), np.zeros(n)
    members = []
    for k, (view, A, unit, tree, leaves) in enumerate(lenses):
        honest = np.ones(n, bool)
        if t.lenses[k].root is not None:
            honest[search.starts[k].shaping] = False
        scale = float(SCALES[i]) * unit if scaled else 1.0
        leaves = [rows[np.argsort(honest[rows], kind="stable")] for rows in leaves]
        Ds, bs = [], []
        for rows in leaves:
            tt = targets.of(rows)
            K_ = lower_kernel(t.kernel, lower_distances(t.kernel, A[rows].astype(dtype, copy=False)), scale, depth)
            found = DualSolution.of(K_, tt, alpha)
            last = int(honest[rows].sum())
            if last:
                total[rows[len(rows) - last:]] += found.left_out(tt, last=last)
                count[rows[len(rows) - last:]] += 1
            Ds.append(found.D); bs.append(found.b)
        starts = np.cumsum([0, *map(len, leaves)])
        part = Partition(tree, np.concatenate(leaves), starts, np.concatenate(Ds), np.array(bs))
        kernel = KernelMap(t.kernel, scale, depth, Z=A)
        net = LocalNetwork(view, kernel, (part,))
        members.append(Member(replace(t.shape, scale=float(SCALES[i])), net, alpha, t.error))
        if all(l.root is None and l.name == t.lenses[0].name for l in t.lenses) and len(leaves) == 1: break
    with np.errstate(invalid="ignore"):
        out = total / count[:, None]
    return members, out, count
