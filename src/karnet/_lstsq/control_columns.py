"""Right-hand sides with a known solution, which measure the rounding error in a statistic.

For ``B = A X`` the solution is X however rows were added, merged and removed. Its difference from
X is the effect of rounding on all right-hand sides: measured, not guessed.
"""

from __future__ import annotations

from functools import lru_cache
from math import fsum
from typing import TypeVar

import numpy as np

from .._util.types import Array, Indices
from .lapack import EPS, column_norms
from .statistics import Centre, Gram, SufficientStatistic, Triangle

K = TypeVar("K", Gram, Triangle)

N_CONTROLS = 3


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
