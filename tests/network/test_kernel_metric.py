"""Kernels, and the input metrics of kernel networks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import minkowski_distance

from karnet._network import input_metric
from karnet._network.infinite_width import DualSolution, KernelMap, RidgeTargets, kernel_network
from karnet._network.input_metric import metric_root, outer_products
from karnet.kernels import KERNELS

RNG = np.random.default_rng(1)
X = RNG.standard_normal((40, 3))
D = RNG.standard_normal((40, 2))
WEIGHT = RNG.uniform(0.5, 3.0, 40)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_kernels_are_positive_with_ones_on_the_diagonal(kernel):
    K = kernel(X, X, 1.3, 2)
    np.testing.assert_allclose(np.diag(K), 1.0, rtol=1e-7)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-10


@pytest.mark.parametrize(("geometry", "p"), [("laplace_l1", 1), ("laplace", 2)])
def test_distances_in_columns_of_two_values_are_those_of_all_columns(geometry, p):
    local = np.random.default_rng(3)
    few = np.where(local.random((30, 12)) < 0.5, local.standard_normal(12), 7.0)
    for rows in (few, np.hstack([few, local.standard_normal((30, 2))])):
        found = KERNELS[geometry].geometry(rows[:20], rows[10:])
        assert (found[np.arange(10, 20), np.arange(10)] == 0.0).all()
        expected = minkowski_distance(rows[:20, None], rows[10:], p)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "laplace_l1", "matern"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outer_products_are_those_of_differences_of_predictions(kernel, dtype):
    centres, new, V = X.astype(dtype), X[:5].astype(dtype) + dtype(0.1), D.astype(dtype)
    network = kernel_network(V, np.zeros(2, dtype), KernelMap(kernel, 1.5, Z=centres))
    found = outer_products(network, new, None)
    step, expected, double = 1e-6, np.zeros((3, 3)), KernelMap(kernel, 1.5, Z=centres.astype(float))
    for row in new.astype(float):
        moves = row + step * np.vstack([np.eye(3), -np.eye(3)])
        outputs = double(moves) @ V.astype(float)
        slopes = (outputs[:3] - outputs[3:]) / (2.0 * step)
        expected += slopes @ slopes.T
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_the_metric_is_the_same_for_inputs_of_few_values(monkeypatch):
    Z = np.column_stack([X[:, 0], X[:, 1] > 0.0, np.round(X[:, 2]).clip(-1.0, 1.0)])
    network = kernel_network(D, np.zeros(2), KernelMap("laplace_l1", 2.0, Z=Z))
    metric = outer_products(network, Z, WEIGHT, diagonal=True)
    monkeypatch.setattr(input_metric, "FEW_VALUES", 0)
    expected = outer_products(network, Z, WEIGHT, diagonal=True)
    np.testing.assert_allclose(metric, expected, rtol=1e-12)


def test_the_root_of_a_metric_squares_to_it():
    B = RNG.standard_normal((4, 4))
    metric = B @ B.T
    root = metric_root(metric)
    np.testing.assert_allclose(root @ root, metric, rtol=1e-8)
    np.testing.assert_allclose(metric_root(np.zeros((3, 3))), np.eye(3))
    np.testing.assert_allclose(metric_root(np.zeros(3)), np.ones(3))
    for singular in (np.array([1.0, 0.0]), np.diag([1.0, 0.0])):
        floored = metric_root(singular, 1e-3)
        values = floored if floored.ndim == 1 else np.linalg.eigvalsh(floored)
        np.testing.assert_allclose(values.min() / values.max(), 1e-3)


def test_equal_rows_without_a_ridge_to_speak_of_are_solved_all_the_same():
    twice, Y = np.repeat(X, 2, axis=0), np.repeat(D, 2, axis=0)
    kernel = KernelMap("gaussian", 1.0, Z=twice)
    found = DualSolution.of(kernel(twice), RidgeTargets(Y, np.full(80, 1e3), np.ones(1)), 1e-300)
    assert np.isfinite(found.D).all()
    np.testing.assert_allclose(kernel(twice) @ found.D + found.b, Y, atol=0.5)
