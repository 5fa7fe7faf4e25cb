"""Right-hand sides of known solution, carried along to see what rounding does to a statistic.

For ``B = A X`` with X known, the solution is X however rows were added, merged and removed. What
is found beside it is what rounding did to all right-hand sides: measured, not guessed.
"""

from __future__ import annotations

from functools import lru_cache
from math import fsum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .forms import Known
from .lapack import EPS, column_norms
from .statistics import Centre, Gram, Triangle

Array = NDArray[np.float64]
K = TypeVar("K", Gram, Triangle)

N_CONTROLS = 3


@lru_cache(maxsize=32)
def controls(n: int) -> Array:
    """Return X, the known solutions: signs."""
    return np.random.RandomState(0).choice([-1.0, 1.0], (n, N_CONTROLS))


def controlled(known: Known) -> Known:
    """Return a statistic with control columns beside its right-hand sides."""
    old, X = known.centre, controls(known.centre.n)
    # Exact, or it would look like a loss where columns hardly vary about large means.
    terms = [[*(old.A * x), *(old.low[: old.n] * x)] for x in X.T]
    try:
        mean = [fsum(each) for each in terms]
        low = [fsum([*each, -total]) for each, total in zip(terms, mean, strict=True)]
    except (OverflowError, ValueError) as error:
        raise ValueError("rows hold values too large to be summed: scale the columns.") from error
    centre = Centre(old.weight, np.append(old.mean, mean), np.append(old.low, low), old.n)
    if isinstance(known, Gram):
        return Gram(centre, known.AA, np.hstack([known.AB, known.AA @ X]))
    return Triangle(centre, known.R, np.hstack([known.Z, known.R @ X]))


def with_errors(known: K) -> K:
    """Return a statistic with what rounding made of the control columns in their place.

    Beside them stand columns of the size that rounding has in a single decomposition; Gram products
    have more, and that is no excuse for them.
    """
    old, X = known.centre, controls(known.centre.n)
    q = len(old.B) - N_CONTROLS
    mean = np.append(old.mean[: old.n + q], np.zeros(2 * N_CONTROLS))
    centre = Centre(old.weight, mean, np.zeros_like(mean), old.n)
    if isinstance(known, Gram):
        errors = known.AB[:, q:] - known.AA @ X
        return Gram(centre, known.AA, np.hstack([known.AB[:, :q], errors, np.zeros_like(errors)]))
    Z = known.Z[:, q:]
    single = EPS * sizes(Z) / np.sqrt(max(len(Z), 1)) * controls(len(Z))
    return Triangle(centre, known.R, np.hstack([known.Z[:, :q], Z - known.R @ X, single]))


def sizes(M: Array) -> Array:
    """Return the Euclidean norms of the columns, without overflow."""
    return np.where(M.any(axis=0), column_norms(M), 0.0)


def spread(known: Known, columns: NDArray[np.intp], q: int) -> Known:
    """Return a statistic of q right-hand sides: its own in some columns, and zeros in others."""
    old = known.centre
    places = np.append(columns, q + np.arange(N_CONTROLS))

    def placed(M: Array) -> Array:
        wide = np.zeros((*M.shape[:-1], q + N_CONTROLS))
        wide[..., places] = M
        return wide

    mean, low = (np.append(M[: old.n], placed(M[old.n :])) for M in (old.mean, old.low))
    centre = Centre(old.weight, mean, low, old.n)
    if isinstance(known, Gram):
        return Gram(centre, known.AA, placed(known.AB))
    return Triangle(centre, known.R, placed(known.Z))
