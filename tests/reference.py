"""Plain, slow, independent ways to the same results."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


def with_ones(A: Array) -> Array:
    return np.hstack([np.ones((len(A), 1)), A])


def ridge(A: Array, B: Array, alpha: float, bias: bool) -> Array:
    """Return the ridge solution by the textbook formula, the bias free."""
    mean_A, mean_B = (A.mean(axis=0), B.mean(axis=0)) if bias else (np.zeros(A.shape[1]), 0.0)
    A, B = A - mean_A, B - mean_B
    W = np.linalg.solve(A.T @ A + alpha * np.eye(A.shape[1]), A.T @ B)
    return np.vstack([mean_B - mean_A @ W, W]) if bias else W


def naive_network(X, Y, weights, f, phi, solve=lambda A, B: np.linalg.pinv(A) @ B):
    """Return W_1 ... W_n of the paper's single pass, and its output; `weights` are W_2 ... W_n."""
    targets = [phi(Y)]
    for W in reversed(weights):
        targets.insert(0, phi((targets[0] - W[0]) @ np.linalg.pinv(W[1:])))
    A, learned = with_ones(X), []
    for B in targets:
        learned.append(solve(A, B))
        G = f(A @ learned[-1])
        A = with_ones(G)
    return learned, G


def with_spectrum(rng: np.random.Generator, m: int, n: int, singular_values: Array) -> Array:
    """Return a random m x n matrix with the given singular values."""
    k = len(singular_values)
    U = np.linalg.qr(rng.standard_normal((m, k)))[0]
    V = np.linalg.qr(rng.standard_normal((n, k)))[0]
    return (U * singular_values) @ V.T
