"""How a member's answers change with its inputs: the input metric.

The metric is the mean outer product of the slopes of the answers over the inputs (the average
gradient outer product of Radhakrishnan et al., Science 2024); no gradient of a loss is in it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._ensemble.member import Member
from .._ensemble.views import Stretched
from ..kernels import angles, city_block

__all__ = ["input_metric", "root_of", "squared_slopes"]

Array = NDArray[np.float64]
# Relative step of the slope of a kernel's profile, and distance below which rows count as equal.
STEP, EQUAL = 1e-5, 1e-9
# Most inputs of which the whole metric is formed, not its diagonal alone.
WIDEST = 300
# Most products of a row, a centre and an input that are looked at.
MOST_WORK = 30_000_000
# The least that is left of an input, or of a direction, as a share of the most.
LEAST_STRETCH = 1e-3


def input_metric(member: Member, A: Array, weight: Array) -> Array:
    """Return the metric over some rows as the member's view shows them, or its diagonal.

    Of a kernel of city-block distances, and of many inputs, it is the diagonal. Where rows, centres
    and inputs are very many, it is that over every so many rows.
    """
    step = max(-(-A.size * len(member.X_fit_) // MOST_WORK), 1)
    A, weight = A[::step], weight[::step]
    Z, D, share = member.X_fit_, member.dual_coef_, weight / weight.sum()
    if member.kernel.geometry is city_block:
        return _city_block(member, A, Z, D, share)
    of = _angular if member.kernel.geometry is angles else _euclidean
    slopes = of(member, A, Z, D)
    if A.shape[1] > WIDEST:
        return np.asarray(sum(share @ slope**2 for slope in slopes))
    return np.asarray(sum((slope.T * share) @ slope for slope in slopes))


def squared_slopes(member: Member, X: Array, weight: Array) -> Array:
    """Return the diagonal of the metric in units of the view before it was stretched."""
    M = input_metric(member, member.view(X), weight)
    if not isinstance(member.view, Stretched):
        return M if M.ndim == 1 else M.diagonal()
    root = member.view.root
    if root.ndim == 1:
        return (M if M.ndim == 1 else M.diagonal()) * root**2
    return np.asarray(np.einsum("ij,jk,ik->i", root, M, root))


def root_of(M: Array) -> Array:
    """Return the root of a metric at mean 1, none of it below a share of the most."""
    if not M.any():
        return np.ones_like(M) if M.ndim == 1 else np.eye(len(M))
    if M.ndim == 1:
        root = np.sqrt(M / M.mean())
        return np.asarray(np.maximum(root, LEAST_STRETCH * root.max()))
    eigenvalues, V = np.linalg.eigh(M)
    roots = np.sqrt(np.maximum(eigenvalues, LEAST_STRETCH**2 * eigenvalues[-1]))
    return np.asarray((V * (roots / np.sqrt(np.mean(roots**2)))) @ V.T)


def _city_block(member: Member, A: Array, Z: Array, D: Array, share: Array) -> Array:
    K = member.kernel(A, Z, member.scale)
    squares = [
        share @ np.sum(((K * np.sign(A[:, [j]] - Z[:, j])) @ D) ** 2, axis=1)
        for j in range(A.shape[1])
    ]
    return np.array(squares) / member.scale**2


def _profile_slope(member: Member, G: Array, step: Array) -> Array:
    """Return the slope of the profile over distances or products G."""
    high, low = (
        member.kernel.profile(G + sign * step, member.scale, member.shape.depth)
        for sign in (1.0, -1.0)
    )
    return np.asarray((high - low) / (2.0 * step))


def _euclidean(member: Member, A: Array, Z: Array, D: Array) -> list[Array]:
    """Return the slopes of each output: of a distance they are differences over the distance."""
    G = member.kernel.geometry(A, Z)
    apart = G > EQUAL
    slope = np.where(apart, _profile_slope(member, G, STEP * np.where(apart, G, 1.0)), 0.0)
    W = slope / np.where(apart, G, 1.0)
    return [A * (W @ d)[:, None] - W @ (d[:, None] * Z) for d in D.T]


def _angular(member: Member, A: Array, Z: Array, D: Array) -> list[Array]:
    """Return the slopes of each output: those of a cosine between [1, x] and [1, z]."""
    C = np.clip(angles(A, Z), -1.0 + 2.0 * STEP, 1.0 - 2.0 * STEP)
    slope = _profile_slope(member, C, np.full_like(C, STEP))
    a, b = (np.sqrt(1.0 + np.sum(M**2, axis=1))[:, None] for M in (A, Z))
    return [slope @ (d[:, None] * Z / b) / a - A * ((slope * C) @ d)[:, None] / a**2 for d in D.T]
