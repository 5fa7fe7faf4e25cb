"""The minimum-norm least-squares solution of small matrices of any rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .lapack import (
    EPS,
    ESTIMATE_FACTOR,
    back_substitute,
    column_norms,
    exact_scale,
    pivoted_qr,
    singular_values,
    svd,
)
from .problem import SUMMATION
from .statistics import Centre

Array = NDArray[np.float64]

# Lengths of columns within this factor let singular vectors tell the shortest solution.
ALIKE = 1e3


def minimum_norm(
    rcond: float, R: Array, Z: Array, centre: Centre | None = None
) -> tuple[Array, int]:
    """Return the minimum-norm solution of ``R W = Z``, and the rank of R with columns scaled.

    With a centre, R and Z are centred, and the solution and rank are those of ``[1, A] W = B``: it
    meets ``bias + mean_A W = mean_B`` too, and the bias counts in the norm.
    """
    n = R.shape[1]
    norms = column_norms(R)
    unit, scale = R / norms, exact_scale(norms)
    # With the default cut-off vectors are seldom needed, and values alone take less time.
    factors = None if rcond <= EPS * (n + 1) else svd(unit)
    s = singular_values(unit) if factors is None else factors[1]
    largest = s[:1].sum()
    rank = int(np.sum(s > rcond * largest))
    felt = bool((s[rank:] > EPS * n * largest).any())
    known = factors is not None and norms.max(initial=1.0) <= ALIKE * norms.min(initial=1.0)
    basis = None if felt or known else _echelon(R / scale, Z, rank)
    if basis is None:
        U, s, Vt = svd(unit) if factors is None else factors
        basis, scale = (Vt[:rank], (U[:, :rank].T @ Z) / s[:rank, None]), norms
    rows, z = basis
    if rank == n or felt:
        # Of full rank W is unique. Where the cut-off leaves out directions that R still feels, it
        # would change the fit to shorten W along them: W stays the shortest in scaled columns.
        W = rows.T @ z / scale[:, None]
        return (W, rank) if centre is None else (below_bias(W, centre), rank + 1)
    # C W = z holds for every least-squares solution; the shortest lies in the span of C's rows.
    C = rows * scale
    Q, T, order = pivoted_qr(C.T)
    W = Q @ back_substitute(T, z[order], transposed=True)
    return (W, rank) if centre is None else (_share_with_bias(W, Q, centre), rank + 1)


def _echelon(R: Array, Z: Array, rank: int) -> tuple[Array, Array] | None:
    """Return C and z so that ``C W = z`` for all least-squares solutions, or None if not known.

    In the order of the pivots C is ``[I, F]``. Columns of R are of like lengths: what of F is
    rounding is zero, lest in columns of other lengths it looks like a way to a shorter solution.
    """
    n = R.shape[1]
    if not rank or not np.isfinite(R).all():
        return None
    Q, T, order = pivoted_qr(R)
    # In theory pivots may leave more than singular values do.
    if (np.abs(T[rank:, rank:]) > ESTIMATE_FACTOR * n * EPS).any():
        return None
    right = np.hstack([T[:rank, rank:], Q[:, :rank].T @ Z])
    F, z = np.split(back_substitute(T[:rank, :rank], right), [n - rank], axis=1)
    C = np.empty((rank, n))
    C[:, order] = np.hstack([np.eye(rank), np.where(np.abs(F) <= EPS * n, 0.0, F)])
    return C, z


def _share_with_bias(W: Array, Q: Array, centre: Centre) -> Array:
    """Return the shortest [bias; W] with ``bias + mean_A W = mean_B`` that fits like W.

    Along d, the part of the means outside the span of Q, a change of W looks like a bias.
    """
    d = centre.A - Q @ (Q.T @ centre.A)
    d -= Q @ (Q.T @ d)
    d[np.abs(d) <= EPS * (len(d) + SUMMATION) * np.abs(centre.A)] = 0.0
    length = np.hypot(1.0, column_norms(d[:, None])[0] if d.any() else 0.0)
    share = (centre.B - centre.A @ W) / length
    return np.vstack([share / length, W + np.outer(d / length, share)])


def below_bias(W: Array, centre: Centre) -> Array:
    """Return the bias that meets ``bias + mean_A W = mean_B`` above W."""
    return np.vstack([centre.B - centre.A @ W, W])


def below_exact_bias(W: Array, D: Array, centre: Centre) -> Array:
    """Return ``W + D`` below its bias, in longer numbers where there are such."""
    mean = centre.mean.astype(np.longdouble) + centre.low
    bias = mean[centre.n :] - mean[: centre.n] @ W - mean[: centre.n] @ D
    return np.vstack([bias.astype(np.float64), W + D])
