"""The minimum-norm least-squares solution for small matrices of any rank."""

from __future__ import annotations

import numpy as np

from .._util.types import Array
from . import lapack
from .lapack import EPS, ESTIMATE_FACTOR, back_substitute, column_norms, default_rcond, significant
from .problem import MEAN_ULPS
from .statistics import Centre

# Largest ratio of column norms at which singular vectors give the solution of minimum norm.
SIMILAR_NORMS = 1e3


def minimum_norm(
    rcond: float, R: Array, Z: Array, centre: Centre | None = None
) -> tuple[Array, int]:
    """Return the minimum-norm solution of ``R W = Z``, and the rank of R with columns scaled.

    With a centre, R and Z are centred, and the solution and rank are those of ``[1, A] W = B``: the
    solution satisfies ``bias + mean_A W = mean_B`` too, and the bias counts in the norm.
    """
    n = R.shape[1]
    norms = column_norms(R)
    unit, scale = R / norms, lapack.exact_scale(norms)
    # With the default cut-off, vectors are seldom needed, and the values alone take less time.
    factors = None if rcond <= default_rcond(n + 1) else lapack.svd(unit)
    s = lapack.singular_values(unit) if factors is None else factors[1]
    rank = int(np.sum(significant(s, rcond)))
    # Whether the cut-off leaves out directions that are not rounding.
    truncated = bool(significant(s, default_rcond(n))[rank:].any())
    similar = norms.max(initial=1.0) <= SIMILAR_NORMS * norms.min(initial=1.0)
    by_vectors = truncated or (factors is not None and similar)
    basis = None if by_vectors else _echelon(R / scale, Z, rank)
    if basis is None:
        U, s, Vt = lapack.svd(unit) if factors is None else factors
        basis, scale = (Vt[:rank], (U[:, :rank].T @ Z) / s[:rank, None]), norms
    rows, z = basis
    if rank == n or truncated:
        # At full rank W is unique. Along directions that are left out but not rounding, a shorter W
        # would change the fit: W stays the solution of minimum norm in scaled columns.
        W = rows.T @ z / scale[:, None]
        return (W, rank) if centre is None else (with_bias(W, centre), rank + 1)
    # C W = z holds for every least-squares solution; the shortest is in the span of the rows of C.
    C = rows * scale
    Q, T, order = lapack.pivoted_qr(C.T)
    W = Q @ back_substitute(T, z[order], transposed=True)
    return (W, rank) if centre is None else (_shared_with_bias(W, Q, centre), rank + 1)


def _echelon(R: Array, Z: Array, rank: int) -> tuple[Array, Array] | None:
    """Return C and z with ``C W = z`` for all least-squares solutions, or None if that fails.

    In the order of the pivots C is ``[I, F]``. The columns of R have similar norms, so rounding in
    F can be recognised and set to zero: in columns of other norms it would seem to allow a shorter
    solution.
    """
    n = R.shape[1]
    if not rank or not np.isfinite(R).all():
        return None
    Q, T, order = lapack.pivoted_qr(R)
    # In theory, more can be left after pivoting than the singular values say.
    if (np.abs(T[rank:, rank:]) > ESTIMATE_FACTOR * n * EPS).any():
        return None
    right = np.hstack([T[:rank, rank:], Q[:, :rank].T @ Z])
    F, z = np.split(back_substitute(T[:rank, :rank], right), [n - rank], axis=1)
    C = np.empty((rank, n))
    C[:, order] = np.hstack([np.eye(rank), np.where(np.abs(F) <= EPS * n, 0.0, F)])
    return C, z


def _shared_with_bias(W: Array, Q: Array, centre: Centre) -> Array:
    """Return the shortest [bias; W] with ``bias + mean_A W = mean_B`` and the same fit as W.

    Along d, the part of the means outside the span of Q, a change of W acts like a bias.
    """
    d = centre.A - Q @ (Q.T @ centre.A)
    d -= Q @ (Q.T @ d)
    d[np.abs(d) <= EPS * (len(d) + MEAN_ULPS) * np.abs(centre.A)] = 0.0
    length = np.hypot(1.0, column_norms(d[:, None])[0] if d.any() else 0.0)
    share = (centre.B - centre.A @ W) / length
    return np.vstack([share / length, W + np.outer(d / length, share)])


def with_bias(W: Array, centre: Centre) -> Array:
    """Return [bias; W] with ``bias + mean_A W = mean_B``."""
    return np.vstack([centre.B - centre.A @ W, W])


def with_exact_bias(W: Array, D: Array, centre: Centre) -> Array:
    """Return [bias; W + D], the bias computed in extended precision where NumPy has it."""
    mean = centre.mean.astype(np.longdouble) + centre.low
    bias = mean[centre.n :] - mean[: centre.n] @ W - mean[: centre.n] @ D
    return np.vstack([bias.astype(np.float64), W + D])
