"""Members: their ridge solutions, left-out predictions and input metrics."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import minkowski_distance

from karnet._search.member import Member, Shape, fit_all, fit_near, solved
from karnet._ensemble.search import Search
from karnet._search.views import VIEWS
from karnet._model.intervals import jackknife_plus
from karnet._network import input_metric
from karnet._network.infinite_width import (
    LEAST_RIDGE,
    KernelMap,
    RidgeTargets,
    downhill,
    fit_kernel,
    fit_ridge,
    kernel_network,
)
from karnet._network.input_metric import kernel_metric, metric_root
from karnet._network.layers import scores
from karnet.kernels import KERNELS

rng = np.random.default_rng(1)
M, D = 40, 3
X = rng.standard_normal((M, D))
Y = np.column_stack([np.sin(2.0 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 2]])
Y += 0.1 * rng.standard_normal(Y.shape)
WEIGHT = rng.uniform(0.5, 3.0, M)
RIDGES = np.logspace(-4, 1, 6)
VIEW = VIEWS["standard"](X, WEIGHT)
A = VIEW(X)
TARGETS = RidgeTargets(Y, WEIGHT, RIDGES)
SHAPES = [
    Shape("standard", "laplace_l1"),
    Shape("standard", "laplace"),
    Shape("standard", "matern"),
    Shape("standard", "gaussian", 0.5),
    Shape("standard", "relu", depth=2),
    Shape("standard", "tangent", depth=3),
]


def predicted(member, X):
    return scores(member.network, X)


def fitted(shape, targets=TARGETS):
    return fit_all(shape, VIEW, A, KERNELS[shape.kernel].geometry(A, A), targets)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_kernels_are_positive_with_ones_on_the_diagonal(kernel):
    K = kernel(A, A, 1.3, 2)
    np.testing.assert_allclose(np.diag(K), 1.0, rtol=1e-7)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-10


@pytest.mark.parametrize(("geometry", "p"), [("laplace_l1", 1), ("laplace", 2)])
def test_distances_in_columns_of_two_values_are_those_of_all_columns(geometry, p):
    local = np.random.default_rng(3)
    few = np.where(local.random((30, 12)) < 0.5, local.standard_normal(12), 7.0)
    for rows in (few, np.hstack([few, local.standard_normal((30, 2))])):
        D = KERNELS[geometry].geometry(rows[:20], rows[10:])
        assert (D[np.arange(10, 20), np.arange(10)] == 0.0).all()
        np.testing.assert_allclose(D, minkowski_distance(rows[:20, None], rows[10:], p), rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.kernel)
def test_a_member_predicts_what_it_was_solved_for(shape):
    member = fitted(shape)
    again = solved(replace(shape), VIEW, A, TARGETS, member.alpha_)
    np.testing.assert_allclose(predicted(again, X), predicted(member, X), atol=1e-6)
    np.testing.assert_allclose(member.path.fitted(member.alpha_), predicted(member, X), atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.kernel)
def test_left_out_predictions_are_those_of_a_refit(shape):
    ones = RidgeTargets(Y, np.ones(M), RIDGES)
    member = fitted(shape, ones)
    absolute = replace(shape, scale=1.0)
    for i in (0, 7, 39):
        kept = np.delete(np.arange(M), i)
        K = member.kernel(A[kept], A[kept], member.scale, shape.depth)
        k = member.kernel(A[[i]], A[kept], member.scale, shape.depth)
        system = np.block(
            [
                [K + member.alpha_ * np.eye(M - 1), np.ones((M - 1, 1))],
                [np.ones((1, M - 1)), np.zeros((1, 1))],
            ]
        )
        found = np.linalg.solve(system, np.vstack([Y[kept], np.zeros((1, 2))]))
        np.testing.assert_allclose(member.left_out[i], (k @ found[:-1] + found[-1])[0], atol=1e-7)
    assert absolute.kernel == shape.kernel


@pytest.mark.parametrize("alpha", [1e-4, 0.1, 10.0])
@pytest.mark.parametrize("weight", [np.ones(M), WEIGHT, np.arange(M) % 3 + 1.0])
def test_one_ridge_is_judged_as_all_ridges_are(weight, alpha):
    kernel = KernelMap("gaussian", 1.0, Z=A)
    targets = RidgeTargets(Y, weight, np.array([alpha]))
    path = fit_kernel(kernel(A), kernel, targets).path
    fit = fit_ridge(kernel(A), kernel, targets, None, alpha)
    np.testing.assert_allclose(fit.left_out, path.loo(alpha), atol=1e-8)
    np.testing.assert_allclose(scores(fit.network, A), path.fitted(alpha), atol=1e-8)


@pytest.mark.parametrize("start", [(0, 0), (3, 16), (6, 2)])
def test_the_way_downhill_ends_in_the_valley_after_few_steps(start):
    tried = []

    def error(i, k):
        tried.append((i, k))
        return 1.0 + (i - 4) ** 2 + (k - 11) ** 2

    assert downhill(error, start, (7, 17)) == ((4, 11), 1.0)
    assert len(tried) == len(set(tried)) < 25


@pytest.mark.parametrize("scale", [0.25, 4.0])
def test_a_member_near_another_is_better_and_judged_by_all_rows(scale):
    shapes = [Shape("standard", "gaussian", scale) for scale in (0.25, 0.5, 1.0, 2.0, 4.0)]
    start = fitted(Shape("standard", "gaussian", scale))
    found = fit_near(start, shapes, VIEW, A, TARGETS)
    assert found.error < start.error
    assert found.shape != start.shape
    np.testing.assert_allclose(TARGETS.error(found.left_out), found.error)


def test_folds_are_predicted_by_members_fitted_without_them():
    splits = [np.arange(0, 20), np.arange(20, 35)]
    targets = replace(TARGETS, splits=splits)
    shape = SHAPES[0]
    member = fitted(shape, targets)
    assert np.isnan(member.left_out[35:]).all()
    for split in splits:
        kept = np.setdiff1d(np.arange(M), split)
        K = member.kernel(A[kept], A[kept], member.scale)
        K[np.diag_indices(len(kept))] += member.alpha_ / WEIGHT[kept]
        C = np.linalg.solve(K, np.column_stack([np.ones(len(kept)), Y[kept]]))
        b = C[:, 1:].sum(axis=0) / C[:, 0].sum()
        answers = member.kernel(A[split], A[kept], member.scale) @ (C[:, 1:] - np.outer(C[:, 0], b))
        np.testing.assert_allclose(member.left_out[split], answers + b, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.kernel)
def test_the_metric_is_that_of_differences_of_predictions(shape):
    member = fitted(shape)
    points = VIEW(rng.standard_normal((25, D)))
    step = 1e-5

    def predictions(points):
        hidden = member.kernel(points, member.X_fit_, member.scale, shape.depth)
        return hidden @ member.dual_coef_

    slopes = np.array(
        [
            (predictions(points + step * e) - predictions(points - step * e)) / (2.0 * step)
            for e in np.eye(D)
        ]
    )
    expected = np.einsum("aic,bic->ab", slopes, slopes) / len(points)
    found = kernel_metric(member.network, points, np.ones(25))
    expected *= D / np.trace(expected)
    if found.ndim == 1:
        expected = np.diag(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6 * np.abs(expected).max())


def test_the_metric_is_the_same_for_inputs_of_few_values(monkeypatch):
    Z = np.column_stack([X[:, 0], X[:, 1] > 0.0, np.round(X[:, 2]).clip(-1.0, 1.0)])
    kernel = KernelMap("laplace_l1", 2.0, Z=Z)
    network = kernel_network(Y, np.zeros(2), kernel, None)
    metric = kernel_metric(network, Z, WEIGHT)
    monkeypatch.setattr(input_metric, "FEW_VALUES", 0)
    np.testing.assert_allclose(metric, kernel_metric(network, Z, WEIGHT), rtol=1e-12)


def test_the_root_of_a_metric_squares_to_it():
    B = rng.standard_normal((4, 4))
    metric = B @ B.T
    root = metric_root(metric)
    np.testing.assert_allclose(root @ root, metric, rtol=1e-8)
    np.testing.assert_allclose(metric_root(np.zeros((3, 3))), np.eye(3))
    np.testing.assert_allclose(metric_root(np.zeros(3)), np.ones(3))
    for singular in (np.array([1.0, 0.0]), np.diag([1.0, 0.0])):
        floored = metric_root(singular, 1e-3)
        values = floored if floored.ndim == 1 else np.linalg.eigvalsh(floored)
        np.testing.assert_allclose(values.min() / values.max(), 1e-3)


def test_stretching_finds_the_inputs_that_matter():
    local = np.random.default_rng(5)
    Z = local.standard_normal((150, 10))
    target = np.sin(2.0 * Z[:, :1]) * np.sign(Z[:, 1:2])
    folds = [np.arange(k, 150, 5) for k in range(5)]
    search = Search(Z, RidgeTargets(target, np.ones(150), RIDGES), folds)
    plain = search.plain("gaussian", ["standard"])[0]
    best = min(search.shaped([plain]), key=lambda member: member.error)
    assert best.error < 0.8 * plain.error
    squares = np.diag(best.view.root @ best.view.root.T)
    assert squares[:2].sum() > 0.7 * squares.sum()


def test_the_view_is_the_best_one_after_its_first_metric():
    local = np.random.default_rng(5)
    Z = local.standard_normal((150, 6)) ** 3
    targets = RidgeTargets(np.sin(Z[:, :1]), np.ones(150), RIDGES)
    folds = [np.arange(k, 150, 5) for k in range(5)]
    search = Search(Z, targets, folds)
    plain = search.plain("gaussian", search.views)
    firsts = [search.shaped([each])[0].error for each in plain]
    assert len(plain) == 2
    assert search.shaped(plain)[0].error == min(firsts)
    assert search.shaped(plain, most=0.0) == []


def test_a_sample_ranks_candidates_and_all_rows_judge_members():
    local = np.random.default_rng(7)
    Z = local.standard_normal((150, 3))
    target = np.sin(2.0 * Z[:, :1]) + 0.1 * local.standard_normal((150, 1))
    folds = [np.arange(k, 150, 5) for k in range(5)]
    targets = RidgeTargets(target, np.ones(150), RIDGES)
    *_, members = Search(Z, targets, folds, sample=np.arange(0, 150, 3)).members()
    *_, thorough = Search(Z, targets, folds).members()
    for member in members:
        assert len(member.X_fit_) == 150
        if member.shape.rounds == 0:
            again = solved(member.shape, member.view, member.X_fit_, targets, member.alpha_)
            assert again.scale == member.scale
            np.testing.assert_allclose(predicted(again, Z), predicted(member, Z), atol=1e-8)
            np.testing.assert_allclose(targets.error(member.left_out), member.error)
    least = min(member.error for member in thorough)
    assert min(member.error for member in members) < 1.1 * least


def test_predictions_of_stretched_members_for_a_fold_do_not_depend_on_its_labels():
    local = np.random.default_rng(6)
    Z = local.standard_normal((60, 4))
    target = local.standard_normal((60, 1))
    folds = [np.arange(k, 60, 5) for k in range(5)]

    def left_out(target):
        targets = RidgeTargets(target, np.ones(60), np.array([0.1]))
        search = Search(Z, targets, folds)
        return search.shaped(search.plain("laplace_l1", ["standard"]))[-1].left_out[folds[0]]

    changed = target.copy()
    changed[folds[0]] += 0.01
    np.testing.assert_allclose(left_out(changed), left_out(target), rtol=0.5, atol=0.05)


def test_jackknife_plus_is_that_of_refits():
    ones = RidgeTargets(Y, np.ones(M), np.array([0.1]))
    member = fitted(SHAPES[0], ones)
    new = rng.standard_normal((4, D))
    errors = Y - member.left_out
    ends = jackknife_plus([member], np.ones(1), predicted(member, new), new, errors, None, 0.8)
    without = []
    for i in range(M):
        kept = np.delete(np.arange(M), i)
        K = member.kernel(A[kept], A[kept], member.scale) + member.alpha_ * np.eye(M - 1)
        C = np.linalg.solve(K, np.column_stack([np.ones(M - 1), Y[kept]]))
        b = C[:, 1:].sum(axis=0) / C[:, 0].sum()
        k = member.kernel(VIEW(new), A[kept], member.scale)
        without.append(k @ (C[:, 1:] - np.outer(C[:, 0], b)) + b)
    without = np.array(without)
    upper = np.sort(without + np.abs(errors)[:, None], axis=0)[int(np.ceil(0.8 * (M + 1))) - 1]
    np.testing.assert_allclose(ends[..., 1], upper, atol=1e-6)
    lower = np.sort(without - np.abs(errors)[:, None], axis=0)[int(np.floor(0.2 * (M + 1))) - 1]
    np.testing.assert_allclose(ends[..., 0], lower, atol=1e-6)


def test_ridges_stay_above_what_rounding_leaves():
    member = fitted(Shape("standard", "gaussian", 8.0), replace(TARGETS, ridges=np.array([1e-30])))
    assert isinstance(member, Member)
    assert member.alpha_ >= LEAST_RIDGE * member.path.eigenvalues.max()


def test_equal_rows_without_a_ridge_to_speak_of_are_solved_all_the_same():
    twice = np.repeat(A, 2, axis=0)
    targets = RidgeTargets(np.repeat(Y, 2, axis=0), np.full(2 * M, 1e3), RIDGES)
    member = solved(Shape("standard", "gaussian", 4.0), VIEW, twice, targets, 1e-300)
    assert np.isfinite(member.dual_coef_).all()
    np.testing.assert_allclose(predicted(member, X), Y, atol=0.5)
