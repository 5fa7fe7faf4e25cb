"""Factorisations that `karnet.loo` is made of, beside the constant, and checks of what it is given.

The vector t, the roots of the weights at length one, is what a bias takes out of the rows. A
reflection that takes it to the first axis leaves a matrix with one row less and nothing along t:
its factors, lifted back, are orthogonal to t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack

from .._arrays import namespace as arrays
from .._util.checks import real
from .lapack import EPS, largest
from .solve import choose_solver

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Reciprocal condition of a Gram matrix (the square of that of A) from which on its eigenvectors
# will do: what they lose, machine precision over this, stays below 1e-9.
GRAM = 1e-6
# What is left of 1 after a subtraction from which on its digits will do.
LEFT = 1e-3
# Largest value whose squares, times weights, can be summed.
LARGEST = 1e140
# The least weight beside the largest, and at all, beside which others can be left out.
APART, LEAST_WEIGHT = 1e-15, 1e-290


def constant(weight: Array, bias: bool) -> Array:
    """Return t: the roots of the weights at length one, or zeros without bias."""
    return np.asarray(np.sqrt(weight / weight.sum()) if bias else np.zeros(len(weight)))


def reflected(t: Array, M: Array) -> Array:
    """Return the rows of M but for the first after a reflection that takes t there."""
    return np.asarray(M[1:] - np.outer(t[1:], (M[0] + t @ M) / (1.0 + t[0])))


def lifted(t: Array, Q: Array) -> Array:
    """Return what the reflection takes to rows of zeros and Q: columns orthogonal to t."""
    along = t[1:] @ Q
    return np.vstack([-along, Q - np.outer(t[1:], along / (1.0 + t[0]))])


def factorised(A: Array) -> tuple[Array, Array, Array, str]:
    """Return U, the squares of the singular values that are not rounding, V, and how."""
    found = _through_gram(A) if choose_solver(*A.shape) == "cholesky" else None
    if found is not None:
        return *found, "eigh"
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    felt = (s > EPS * max(A.shape) * s[:1].sum()) & (s**2 > 0.0)
    return U[:, felt], s[felt] ** 2, Vt[felt].T, "svd"


def _through_gram(A: Array) -> tuple[Array, Array, Array] | None:
    """Return U, the eigenvalues and V, or None if the eigenvalues lie too far apart."""
    tall = len(A) >= A.shape[1]
    eigenvalues, Q = np.linalg.eigh(A.T @ A if tall else A @ A.T)
    if not eigenvalues[0] > GRAM * eigenvalues[-1]:
        return None
    other = (A @ Q if tall else A.T @ Q) / np.sqrt(eigenvalues)
    return (other, eigenvalues, Q) if tall else (Q, eigenvalues, other)


def left_out_errors(
    residual: Array, remaining: Array, weight: Array | None = None, floor: float = 0.0
) -> Array:
    """Return the errors of exact leave-one-out predictions from the residuals of one fit.

    Integer weights are repeats, and one copy is left out: a weight above 1 is reduced by 1, and a
    row of weight 1 or less is left out as a whole.

    Parameters
    ----------
    residual : array of shape (m, q)
        The residuals of the fit, times the roots of the weights.
    remaining : array of shape (m,)
        One minus the leverage of each row, all copies together.
    weight : array of shape (m,), optional
        The weights of the rows.
    floor : float
        Least share of a row that is not rounding: a smaller share is raised to it.

    Returns
    -------
    array of shape (m, q)
    """
    xp = arrays.namespace(remaining)
    if weight is not None:
        copy = 1.0 / xp.clip(weight, 1.0, None)
        remaining = (1.0 - copy) + copy * remaining
    if floor:
        remaining = xp.clip(remaining, floor, None)
    return residual / (remaining if weight is None else xp.sqrt(weight) * remaining)[:, None]


def less_than_one(R: Array, M: Array) -> Array | None:
    """Return ``(I - R R')^-1 M``, or None if too few digits of the difference are left."""
    if not M.size:
        return M
    L, info = lapack.dpotrf(np.eye(len(R)) - R @ R.T, clean=0)
    # For the norm 1, LAPACK estimates the reciprocal of the norm of the inverse.
    if info != 0 or not lapack.dpocon(L, 1.0)[0] >= LEFT:
        return None
    return np.asarray(lapack.dpotrs(L, M)[0])


def checked_rows(
    name: str, A: ArrayLike, B: ArrayLike, weight: ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Return A, B and the weights (ones if there are none) as arrays, if they may be used."""
    M, right = real(name, A, (2,)), real("B", B, (2,))
    if not 0 < len(M) == len(right):
        raise ValueError(
            f"{name} and B must have as many rows, and at least one, but have {len(M)} and "
            f"{len(right)}."
        )
    weights = np.ones(len(M)) if weight is None else real("weight", weight, (1,))
    if len(weights) != len(M) or not (weights > 0.0).all():
        raise ValueError(
            f"weight must hold a positive number for each of the {len(M)} rows: leave out rows of "
            "weight zero before."
        )
    for what, values in ((name, M), ("B", right), ("weight", weights)):
        if largest(values) > LARGEST:
            raise ValueError(f"{what} holds values too large to be squared: divide all of them.")
    return M, right, weights


def check_left_out(weight: Array) -> None:
    """Raise an error if too little would be left of some rows to learn from."""
    if len(weight) == 1 and weight[0] <= 1.0:
        raise ValueError("one row leaves none to learn from: leave-one-out needs two.")
    if not weight.min() > max(APART * weight.max(), LEAST_WEIGHT):
        raise ValueError(
            f"leaving out rows needs weights within {1.0 / APART:.0e} of each other, and above "
            f"{LEAST_WEIGHT:.0e}."
        )


def checked_split(split: ArrayLike, weight: Array) -> Indices:
    """Return the numbers of the rows left out together, if they are there and others stay."""
    check_left_out(weight)
    rows, m = np.asarray(split), len(weight)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(np.unique(rows)) != len(rows):
        raise ValueError("a split must be a list of distinct row numbers.")
    if len(rows) and not 0 <= rows.min() <= rows.max() < m:
        raise ValueError(f"a split must hold row numbers from 0 to {m - 1}.")
    if len(rows) == m:
        raise ValueError(f"a split of all {m} rows leaves none to learn from: leave out fewer.")
    return rows.astype(np.intp)
