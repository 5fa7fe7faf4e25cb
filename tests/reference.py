"""Plain, slow implementations of the same results, to compare the library with."""

from __future__ import annotations

import numpy as np

from trust.matrices import EPS, Array, with_ones, with_spectrum

__all__ = ["EPS", "naive_network", "ridge", "with_ones", "with_spectrum"]


def ridge(A: Array, B: Array, alpha: float, bias: bool) -> Array:
    """Return the ridge solution by the textbook formula; the bias is not penalised."""
    mean_A, mean_B = (A.mean(axis=0), B.mean(axis=0)) if bias else (np.zeros(A.shape[1]), 0.0)
    A, B = A - mean_A, B - mean_B
    W = np.linalg.solve(A.T @ A + alpha * np.eye(A.shape[1]), A.T @ B)
    return np.vstack([mean_B - mean_A @ W, W]) if bias else W


def naive_network(X, Y, weights, f, phi, solve=lambda A, B: np.linalg.pinv(A) @ B):
    """Return W_1 ... W_n of the paper's single pass, and its output; `weights` are W_2 ... W_n."""
    targets = [phi(Y)]
    for W in reversed(weights):
        targets.insert(0, phi((targets[0] - W[0]) @ np.linalg.pinv(W[1:])))
    A, solved = with_ones(X), []
    for B in targets:
        solved.append(solve(A, B))
        G = f(A @ solved[-1])
        A = with_ones(G)
    return solved, G
