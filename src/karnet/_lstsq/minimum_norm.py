"""The least-squares solution of minimum norm, for matrices of any rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._util.types import Array
from . import lapack
from .lapack import EPS, ESTIMATE_FACTOR, Cholesky, column_norms
from .problem import MEAN_ULPS
from .statistics import Centre

# Least reciprocal condition of normal equations for which steps of refinement restore all digits.
LEAST_RCOND = 1e-10
# The number of steps.
N_STEPS = 2
# Largest ratio of column norms at which singular vectors give the solution of minimum norm.
SIMILAR_NORMS = 1e3

Map = Callable[[Array], Array]


@dataclass(frozen=True)
class MinimumNorm:
    """The rank of a matrix R, and the map from Z to the shortest W with ``R W = Z``.

    With a centre, R is centred, and the rank is that of [1, A].
    """

    rank: int
    solve: Map
    centre: Centre | None
    # The projection to the space of the rows of R; None if W does not depend on the bias.
    projected: Map | None = None

    @classmethod
    def of(
        cls, rcond: float, R: Array, centre: Centre | None = None, vectors: bool = False
    ) -> MinimumNorm:
        """Compute the rank of R with columns scaled, and solutions at this rank.

        With the default cut-off, singular vectors are seldom needed, and the values alone take less
        time; `vectors` says that they are likely to be.
        """
        n, here = R.shape[1], arrays.to_numpy(R)
        norms = column_norms(here)
        unit, scale = R / arrays.like(R, norms), algebra.powers_of_2(norms)
        vectors = vectors or rcond > lapack.default_rcond(n + 1)
        factors = lapack.svd(unit) if vectors else None
        s = lapack.singular_values(unit) if factors is None else factors[1]
        rank = int(np.sum(lapack.significant(s, rcond)))
        # Whether the cut-off leaves out directions that are not rounding.
        truncated = bool(lapack.significant(s, lapack.default_rcond(n))[rank:].any())
        similar = norms.max(initial=1.0) <= SIMILAR_NORMS * norms.min(initial=1.0)
        by_vectors = truncated or (factors is not None and similar)
        echelon = None if by_vectors else _echelon(here / scale, rank)
        if echelon is None:
            U, s, Vt = lapack.svd(unit) if factors is None else factors
            to_rows, scale = lambda Z: (U[:, :rank].T @ Z) / s[:rank, None], norms
            echelon = Vt[:rank], to_rows
        rows, to_rows = echelon
        if rank == n or truncated:
            # At full rank W is unique. Along directions that are left out but not rounding, a
            # shorter W would change the fit: W stays the shortest solution in scaled columns.
            return cls(rank + _one(centre), lambda Z: rows.T @ to_rows(Z) / scale[:, None], centre)
        return cls.in_rows(rows * scale, to_rows, centre)

    @classmethod
    def in_rows(cls, C: Array, to_rows: Map, centre: Centre | None) -> MinimumNorm:
        """Return the shortest solutions of ``C W = z``, where ``z = to_rows(Z)``.

        The shortest is in the span of the rows of C.
        """
        from_rows = _through_gram(C) or _through_qr(arrays.to_numpy(C))

        def projected(d: Array) -> Array:
            return from_rows(C @ arrays.like(C, d))

        return cls(C.shape[0] + _one(centre), lambda Z: from_rows(to_rows(Z)), centre, projected)

    def coef(self, W: Array) -> Array:
        """Return the coefficients for W, after the bias if there is a centre.

        They satisfy ``bias + mean_A W = mean_B``, and the bias counts in the norm.
        """
        if self.centre is None:
            return W
        if self.projected is None:
            return with_bias(W, self.centre)
        return _shared_with_bias(W, self.projected, self.centre)


def _through_gram(C: Array) -> Map | None:
    """Return the map from z to the shortest W with ``C W = z``; None for ill-conditioned rows."""
    lengths = arrays.row_squares(C)[:, None] ** 0.5
    C = C / lengths
    factor = Cholesky.of(C @ C.T)
    if factor is None or factor.reciprocal_condition < LEAST_RCOND:
        return None

    def solve(z: Array) -> Array:
        z = z / lengths
        W = C.T @ factor.solve(z)
        for _ in range(N_STEPS):
            W = W + C.T @ factor.solve(z - C @ W)
        return arrays.to_numpy(W)

    return solve


def _through_qr(C: Array) -> Map:
    Q, T, order = lapack.pivoted_qr(C.T)
    return lambda z: Q @ algebra.solve_triangle(T, arrays.to_numpy(z)[order], transposed=True)


def _one(centre: Centre | None) -> int:
    return int(centre is not None)


def _echelon(R: Array, rank: int) -> tuple[Array, Map] | None:
    """Return C and the map from Z to z so that ``C W = z`` for all least-squares solutions W.

    In the order of the pivots C is ``[I, F]``. The columns of R have similar norms, so rounding in
    F can be recognised and set to zero: in columns of other norms it would seem to allow a shorter
    solution. The result is None if too much is left after the pivots.
    """
    n = R.shape[1]
    if not rank or not np.isfinite(R).all():
        return None
    Q, T, order = lapack.pivoted_qr(R)
    # In theory, more can be left after pivoting than the singular values say.
    if (np.abs(T[rank:, rank:]) > ESTIMATE_FACTOR * n * EPS).any():
        return None
    T11, Q1 = T[:rank, :rank], Q[:, :rank]
    F = algebra.solve_triangle(T11, T[:rank, rank:])
    C = np.empty((rank, n))
    C[:, order] = np.hstack([np.eye(rank), without_rounding(F, n)])
    return C, lambda Z: algebra.solve_triangle(T11, Q1.T @ Z)


def without_rounding(F: Array, n: int) -> Array:
    """Return F with zeros for numbers that are rounding in combinations of n similar columns."""
    xp = arrays.namespace(F)
    return xp.where(xp.abs(F) <= EPS * n, 0.0, F)


def _shared_with_bias(W: Array, projected: Map, centre: Centre) -> Array:
    """Return the shortest [bias; W] with ``bias + mean_A W = mean_B`` and the same fit as W.

    Along d, the part of the means outside the space of the rows, a change of W acts like a bias.
    """
    mean = centre.A[:, None]
    d = mean - projected(mean)
    d = (d - projected(d))[:, 0]
    d[np.abs(d) <= EPS * (len(d) + MEAN_ULPS) * np.abs(centre.A)] = 0.0
    length = np.hypot(1.0, column_norms(d[:, None])[0] if d.any() else 0.0)
    share = (centre.B - centre.A @ W) / length
    return np.vstack([share / length, W + np.outer(d / length, share)])


def with_bias(W: Array, centre: Centre) -> Array:
    """Return [bias; W] with ``bias + mean_A W = mean_B``."""
    return np.vstack([centre.B - centre.A @ W, W])
