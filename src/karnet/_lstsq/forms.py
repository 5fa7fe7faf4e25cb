"""The two forms of a kept statistic, Gram products and a triangle, and when to take which."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, eigvalsh

from .lapack import EPS, Cholesky, column_norms, triangular
from .problem import Problem, noise
from .statistics import Gram, Stack, Triangle, centred

Array = NDArray[np.float64]
Known = Gram | Triangle

# Condition of A above which a triangle is taken: from Gram products machine precision times its
# square is lost.
LIMIT = 1e3


def lengths(known: Known) -> Array:
    """Return the lengths of the columns of A about their means; 1 for a column of zeros."""
    if isinstance(known, Triangle):
        return column_norms(known.R)
    squares = np.diag(known.AA)
    return np.sqrt(np.where(squares > 0.0, squares, 1.0))


def condition(p: Problem, gram: Gram) -> float:
    """Return the condition of A, columns centred and at unit length, with the ridge of p."""
    AA = gram.AA + p.alpha * np.eye(p.n)
    with np.errstate(invalid="ignore"):
        scale = np.sqrt(np.diag(AA))
    if not p.n or not (scale > noise(p, gram.centre)).all() or not np.isfinite(scale).all():
        return np.inf if p.n else 1.0
    K = AA / np.outer(scale, scale)
    factor = Cholesky.of(K.T)
    if factor is not None and factor.reciprocal_condition * LIMIT**2 >= 1.0:
        return float(1.0 / np.sqrt(factor.reciprocal_condition))
    # LAPACK's estimate is for another norm: it may be well above the condition itself.
    least, *_, most = eigvalsh(K)
    return float(np.sqrt(most / least)) if least > 0.0 else np.inf


def least_share(p: Problem, whole: Gram, rest: Gram) -> float:
    """Return the least share of the products of all rows that some direction has in the rest."""
    if condition(p, whole) == np.inf:
        return 0.0
    both = [each.AA + p.alpha * np.eye(p.n) for each in (rest, whole)]
    scale = np.sqrt(np.diag(both[1]))
    return float(eigvalsh(*(AA / np.outer(scale, scale) for AA in both))[0])


def as_triangle(known: Known) -> Triangle:
    """Return a triangle of the same products, which has no more digits than they have."""
    if isinstance(known, Triangle):
        return known
    if not known.AA.any():
        return Triangle(known.centre, known.AA[:0], known.AB[:0])
    scale = lengths(known)
    eigenvalues, Q = eigh(known.AA / np.outer(scale, scale))
    # What is rounding in A'A need not be in A'B, so it is not left out.
    root = np.sqrt(np.maximum(eigenvalues, EPS * eigenvalues[-1]))[:, None]
    Z = (Q.T @ (known.AB / scale[:, None])) / root
    return Triangle(known.centre, *triangular(root * Q.T * scale, Z))


def as_gram(triangle: Triangle) -> Gram:
    """Return the products of a triangle."""
    return Gram(triangle.centre, triangle.R.T @ triangle.R, triangle.R.T @ triangle.Z)


def triangle_of_rows(rows: Stack, bias: bool) -> Triangle:
    """Return the triangle of rows that were kept themselves, times the roots of their weights."""
    if not bias:
        return Triangle.of(rows.A, rows.B, None, bias=False)
    root = rows.A[:, :1]
    centre, A, B = centred(rows.A[:, 1:] / root, rows.B / root, root[:, 0] ** 2, bias=True)
    return Triangle(centre, *triangular(A, B))
