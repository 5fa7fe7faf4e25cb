"""Updates of a statistic: control columns, and removal of rows.

Control columns are right-hand sides with a known solution. For ``B = A X`` the solution is X
however rows were added, merged and removed. Its difference from X is the effect of rounding on all
right-hand sides: measured, not guessed.

Removed rows C in the span of the rows of R, where ``A = Q R``, are ``C = S R``, and
``R'R - C'C = R'(I - S'S) R``. With ``S = P diag(s) V'``, the share ``1 - s^2`` of the products
along each column of V remains, and ``(I - S'S)^(1/2) R`` is a factor of the remaining products.
"""

from __future__ import annotations

from functools import lru_cache
from math import fsum
from typing import TypeVar

import numpy as np

from .._arrays import linalg as algebra
from .._util.types import Array, Indices
from . import lapack
from .lapack import EPS, ESTIMATE_FACTOR, column_norms
from .problem import Problem
from .statistics import Centre, Gram, SufficientStatistic, Triangle

K = TypeVar("K", Gram, Triangle)

# Number of control columns.
N_CONTROLS = 3
# Rounding of a share in units in the last place, per condition number of its direction.
SHARE_ULPS = 32.0
# Relative size of a direction of R, in units of machine precision, with only a few digits.
BLURRED_ULPS = 1e3
# Distance from the span that removed rows may have, in units of the cut-off.
COMPLEMENT_TOLERANCE = 10.0
# Share below which a negative value is not rounding of zero.
NEGATIVE_SHARE = -1e-3


@lru_cache(maxsize=32)
def control_solutions(n: int) -> Array:
    """Return X, random signs."""
    return np.random.RandomState(0).choice([-1.0, 1.0], (n, N_CONTROLS))


def with_controls(statistic: K) -> K:
    """Return a statistic with control columns after its right-hand sides."""
    X = control_solutions(statistic.centre.n)
    centre = _centre_with_controls(statistic.centre, X)
    if isinstance(statistic, Gram):
        return Gram(centre, statistic.AA, np.hstack([statistic.AB, statistic.AA @ X]))
    return Triangle(centre, statistic.R, np.hstack([statistic.Z, statistic.R @ X]))


def _centre_with_controls(old: Centre, X: Array) -> Centre:
    # Exact sums: rounding would look like a loss where columns hardly vary about large means.
    terms = np.vstack([old.A[:, None] * X, old.low[: old.n, None] * X]).T
    try:
        mean = [fsum(row) for row in terms]
        low = [fsum([*row, -total]) for row, total in zip(terms, mean, strict=True)]
    except (OverflowError, ValueError) as error:
        raise ValueError("rows hold values too large to be summed: scale the columns.") from error
    return Centre(old.weight, np.append(old.mean, mean), np.append(old.low, low), old.n)


def with_errors(statistic: K) -> K:
    """Return a statistic with the rounding errors of the control columns in their place.

    Columns of the size of rounding in a single decomposition follow. Gram products have larger
    rounding errors, for which no allowance is made.
    """
    old, X = statistic.centre, control_solutions(statistic.centre.n)
    q = len(old.B) - N_CONTROLS
    mean = np.append(old.mean[: old.n + q], np.zeros(2 * N_CONTROLS))
    centre = Centre(old.weight, mean, np.zeros_like(mean), old.n)
    if isinstance(statistic, Gram):
        AA, AB = statistic.AA, statistic.AB
        errors = AB[:, q:] - AA @ X
        return Gram(centre, AA, np.hstack([AB[:, :q], errors, np.zeros_like(errors)]))
    R, Z = statistic.R, statistic.Z
    signs = control_solutions(len(Z))
    single = EPS * sizes(Z[:, q:]) / np.sqrt(max(len(Z), 1)) * signs
    return Triangle(centre, R, np.hstack([Z[:, :q], Z[:, q:] - R @ X, single]))


def sizes(M: Array) -> Array:
    """Return the Euclidean norms of the columns, without overflow."""
    return np.where(M.any(axis=0), column_norms(M), 0.0)


def spread(statistic: SufficientStatistic, columns: Indices, q: int) -> SufficientStatistic:
    """Return a statistic of q right-hand sides: its own in some columns, and zeros in others."""
    old = statistic.centre
    places = np.append(columns, q + np.arange(N_CONTROLS))

    def placed(M: Array) -> Array:
        among_zeros = np.zeros((*M.shape[:-1], q + N_CONTROLS))
        among_zeros[..., places] = M
        return among_zeros

    mean, low = (np.append(M[: old.n], placed(M[old.n :])) for M in (old.mean, old.low))
    centre = Centre(old.weight, mean, low, old.n)
    if isinstance(statistic, Gram):
        return Gram(centre, statistic.AA, placed(statistic.AB))
    return Triangle(centre, statistic.R, placed(statistic.Z))


def without_rows(p: Problem, part: Triangle, controls: Array) -> Triangle:
    """Return the triangle of a problem without the rows of a part.

    The last right-hand sides are ``B = A X`` for the columns X of `controls`.
    """
    # A ridge needs no cut-off; but where R has no digits, S would have none either.
    whole, cut = p.triangle, EPS * max(p.n_columns, BLURRED_ULPS) if p.alpha else p.rcond
    rest = whole.centre.without(part.centre)
    a, b = rest.step(part.centre)
    R = p.without_noise(whole.R, whole.centre)
    scale = column_norms(R)
    constant = ~R.any(axis=0)
    # Rounding of a constant column must stay rounding compared with the other columns.
    scale[constant] = np.maximum(p.noise(whole.centre) / cut, 1.0)[constant]
    C, D = np.vstack([part.R, a]) / scale, np.vstack([part.Z, b])
    # M holds the directions of the triangle that are above the cut-off.
    M, Z = R / scale, whole.Z
    full = len(M) == p.n and algebra.triangular_rcond(M) > ESTIMATE_FACTOR * p.n * cut
    if full:
        T = algebra.solve_triangle(M, C.T, transposed=True)
    else:
        U, lengths, Vt = lapack.svd(M)
        kept = lapack.significant(lengths, cut)
        lengths, Vt = lengths[kept, None], Vt[kept]
        M, Z, T = lengths * Vt, U[:, kept].T @ Z, (Vt @ C.T) / lengths
        complement, size = np.linalg.norm(C - T.T @ M), np.linalg.norm(C)
        if not complement <= COMPLEMENT_TOLERANCE * cut * (np.linalg.norm(M) + size):
            raise ValueError(
                f"a share of {complement / size:.1e} of them is orthogonal to all rows, so they "
                "were never added."
            )
        if not p.alpha:
            # Directions below the cut-off count with a ridge only.
            D[:, D.shape[1] - controls.shape[1] :] = T.T @ (M @ (scale[:, None] * controls))
    V, s, _ = lapack.svd(T)
    share = (1.0 - s) * (1.0 + s)
    inverse = algebra.solve_triangle(M, V) if full else Vt.T @ (V / lengths)
    rounding = SHARE_ULPS * EPS * (np.linalg.norm(M) * column_norms(inverse))
    # Without a ridge the share must be above rounding; with a ridge it may be zero.
    if (share <= (-rounding if p.alpha else rounding)).any():
        refuse_share(float(share.min()))
    root = np.sqrt(np.clip(share, np.minimum(rounding, 1.0), 1.0))[:, None]
    Z = Z - T @ D
    Z += V @ ((1.0 / root - 1.0) * (V.T @ Z))
    M = M + V @ ((root - 1.0) * (V.T @ M))
    return Triangle(rest, *lapack.triangular(M * scale, Z))


def refuse_share(share: float) -> None:
    """Raise the error for rows whose removal leaves too small a share in one direction."""
    if share < NEGATIVE_SHARE:
        raise ValueError(
            f"in one direction they hold {1.0 - share:.6g} times the products of all rows, so not "
            "all of them were added."
        )
    raise ValueError(
        f"in one direction a share of {share:.1e} of the products would remain, which is rounding: "
        "fit the other rows afresh, or use a ridge."
    )
