"""Plain, slow, independent ways to the same results."""

from __future__ import annotations

import mpmath
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


def exact_solution(A: Array, B: Array) -> Array:
    """Return the minimum-norm least-squares solution for full rank, to 80 digits and rounded."""
    with mpmath.workdps(80):
        M, b = mpmath.matrix(A.tolist()), mpmath.matrix(B.tolist())
        if M.rows >= M.cols:
            x = mpmath.lu_solve(M.T * M, M.T * b)
        else:
            x = M.T * mpmath.lu_solve(M * M.T, b)
        return np.array([float(value) for value in x])


def forward_error(x: Array, exact: Array) -> float:
    """Return the decimal logarithm of the relative error, at best that of one rounding."""
    return float(np.log10(np.linalg.norm(x - exact) / np.linalg.norm(exact) + EPS / 2))


def backward_error(A: Array, b: Array, x: Array) -> float:
    """Return the smallest relative change of A for which x solves the least-squares problem.

    The formula is that of Walden, Karlson and Sun (1995).
    """
    r = b - A @ x
    size_r, size_x, size_A = np.linalg.norm(r), np.linalg.norm(x), np.linalg.norm(A)
    if size_r == 0.0:
        return 0.0
    if size_x == 0.0:
        return float(np.linalg.norm(A.T @ r) / (size_A * size_r)) if size_A else 0.0
    ratio = size_r / size_x
    projector = np.eye(len(b)) - np.outer(r, r) / size_r**2
    smallest = np.linalg.svd(np.hstack([A, ratio * projector]), compute_uv=False)[-1]
    return float(min(ratio, smallest) / size_A)


def with_spectrum(rng: np.random.Generator, m: int, n: int, singular_values: Array) -> Array:
    """Return a random m x n matrix with the given singular values."""
    k = len(singular_values)
    U = np.linalg.qr(rng.standard_normal((m, k)))[0]
    V = np.linalg.qr(rng.standard_normal((n, k)))[0]
    return (U * singular_values) @ V.T
