"""Factorisations for `karnet.loo`, orthogonal to the constant, and checks of its arguments.

The unit vector t holds the roots of the weights; a bias removes its direction from the rows. A
reflection that maps t to the first axis leaves a matrix with one row less: its factors, mapped
back, are orthogonal to t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpocon

from .._arrays import namespace as arrays
from .._util.checks import real
from .._util.types import Array, Indices
from .lapack import Cholesky, default_rcond, largest, significant
from .solve import choose_solver

# Least reciprocal condition of a Gram matrix (the square of that of A) for its eigenvectors to be
# used: their relative error, machine precision over this, stays below 1e-9.
GRAM_RCOND = 1e-6
# Result of a subtraction from 1 below which too few of its digits are left.
LEAST_DIFFERENCE = 1e-3
# Largest value whose squares, times weights, can be summed.
LARGEST_VALUE = 1e140
# Least weight, compared with the largest, of a row that can be left out.
WEIGHT_RATIO = 1e-15
# Least weight of a row that can be left out.
LEAST_WEIGHT = 1e-290


def constant(weight: Array, bias: bool) -> Array:
    """Return t: the roots of the weights, normalised to unit length, or zeros without bias."""
    return np.asarray(np.sqrt(weight / weight.sum()) if bias else np.zeros(len(weight)))


def reflected(t: Array, M: Array) -> Array:
    """Return all rows but the first of M after the reflection that maps t to the first axis."""
    return np.asarray(M[1:] - np.outer(t[1:], (M[0] + t @ M) / (1.0 + t[0])))


def lifted(t: Array, Q: Array) -> Array:
    """Return the reflection of Q below a row of zeros: columns orthogonal to t."""
    along = t[1:] @ Q
    return np.vstack([-along, Q - np.outer(t[1:], along / (1.0 + t[0]))])


def factorised(A: Array) -> tuple[Array, Array, Array, str]:
    """Return U, the squares of the significant singular values, V, and the factorisation used."""
    if choose_solver(*A.shape) == "cholesky":
        tall = len(A) >= A.shape[1]
        eigenvalues, Q = np.linalg.eigh(A.T @ A if tall else A @ A.T)
        if eigenvalues[0] > GRAM_RCOND * eigenvalues[-1]:
            other = (A @ Q if tall else A.T @ Q) / np.sqrt(eigenvalues)
            return (other, eigenvalues, Q, "eigh") if tall else (Q, eigenvalues, other, "eigh")
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    kept = significant(s, default_rcond(max(A.shape))) & (s**2 > 0.0)
    return U[:, kept], s[kept] ** 2, Vt[kept].T, "svd"


def left_out_divisor(remaining: Array, weight: Array | None = None, floor: float = 0.0) -> Array:
    """Return the divisor that turns the residuals of a fit into exact leave-one-out errors.

    Residuals are times the roots of the weights. The last axis of `remaining` holds one minus the
    leverage of each row, all copies together. Integer weights are repeats, and one copy is left
    out: a weight above 1 is reduced by 1, and a row of weight 1 or less is left out as a whole. A
    share of a row below `floor` is rounding, and is raised to it.
    """
    xp = arrays.namespace(remaining)
    if weight is not None:
        copy = 1.0 / xp.clip(weight, 1.0, None)
        remaining = (1.0 - copy) + copy * remaining
    if floor:
        remaining = xp.clip(remaining, floor, None)
    return remaining if weight is None else xp.sqrt(weight) * remaining


def solve_identity_minus(R: Array, M: Array) -> Array | None:
    """Return ``(I - R R')^-1 M``, or None if the difference has lost too many digits."""
    if not M.size:
        return M
    factor = Cholesky.of(np.eye(len(R)) - R @ R.T)
    # For a norm of 1, LAPACK's estimate is the reciprocal of the norm of the inverse.
    if factor is None or not dpocon(factor.R, 1.0)[0] >= LEAST_DIFFERENCE:
        return None
    return factor.solve(M)


def checked_rows(
    name: str, A: ArrayLike, B: ArrayLike, weight: ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Return A, B and the weights (ones by default) as arrays that are safe to factorise."""
    M, right = real(name, A, (2,)), real("B", B, (2,))
    if not 0 < len(M) == len(right):
        raise ValueError(
            f"{name} and B must have the same number of rows, at least one, but have {len(M)} and "
            f"{len(right)}."
        )
    weights = np.ones(len(M)) if weight is None else real("weight", weight, (1,))
    if len(weights) != len(M) or not (weights > 0.0).all():
        raise ValueError(
            f"weight must hold a positive number for each of the {len(M)} rows: drop rows of "
            "weight zero before."
        )
    for label, values in ((name, M), ("B", right), ("weight", weights)):
        if largest(values) > LARGEST_VALUE:
            raise ValueError(f"{label} holds values too large to be squared: scale them down.")
    return M, right, weights


def check_left_out(weight: Array) -> None:
    """Raise an error if leaving out a row would leave no weight to fit."""
    if len(weight) == 1 and weight[0] <= 1.0:
        raise ValueError("one row leaves none to fit: leave-one-out needs two.")
    if not weight.min() > max(WEIGHT_RATIO * weight.max(), LEAST_WEIGHT):
        raise ValueError(
            f"leaving out rows needs weights within {1.0 / WEIGHT_RATIO:.0e} of each other and "
            f"above {LEAST_WEIGHT:.0e}."
        )


def checked_split(split: ArrayLike, weight: Array) -> Indices:
    """Return the numbers of the rows left out together, if they exist and other rows remain."""
    check_left_out(weight)
    rows, m = np.asarray(split), len(weight)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(np.unique(rows)) != len(rows):
        raise ValueError("a split must be a list of distinct row numbers.")
    if len(rows) and not 0 <= rows.min() <= rows.max() < m:
        raise ValueError(f"a split must hold row numbers from 0 to {m - 1}.")
    if len(rows) == m:
        raise ValueError(f"a split of all {m} rows leaves none to fit: leave out fewer.")
    return rows.astype(np.intp)
