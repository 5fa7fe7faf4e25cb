"""Minimum-norm least squares: checks, the choice of a solver, and what to do if it fails."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgWarning

from .._arrays.threads import one_thread_if_narrow
from .._rows.memory import Rows
from .._util.checks import all_finite, check_one_of, real
from .._util.checks import check_non_negative as check_non_negative
from .._util.messages import shown
from .lapack import LIMITS, default_rcond
from .problem import Observe, Problem, Reduce, Sample
from .solvers import DUAL, PRIMAL
from .statistics import Gram, Stack, Triangle

Array = NDArray[np.float64]
# From the fastest to the most careful: each one that cannot be trusted hands over to the next.
SOLVERS = ("cholesky", "qr", "svd")
# Who asks for a cut-off above this expects columns that depend on each other.
EXPECTED = 1e-12


@dataclass(frozen=True)
class Solution:
    """A least-squares solution and how it was found.

    Attributes
    ----------
    coef : ndarray of shape (n,) or (n, q); with bias (n + 1,) or (n + 1, q)
        The coefficients, the bias first.
    rank : int
        The numerical rank of the matrix solved with, its column of ones included. With a ridge
        every column counts, unless the ridge is too small to be felt.
    solver : {"cholesky", "qr", "svd"}
        The solver that was really used.
    """

    coef: Array
    rank: int
    solver: str


@dataclass(frozen=True)
class Observed(Solution):
    """A solution, and what was observed of its fit if that needed no pass of its own.

    And the statistic it was found from: any of its forms.
    """

    observed: Array | None = None
    statistic: Gram | Triangle | Stack | None = None


def lstsq(
    A: ArrayLike,
    B: ArrayLike,
    *,
    bias: bool = False,
    alpha: float = 0.0,
    solver: str = "auto",
    rcond: float | None = None,
) -> Solution:
    """Minimise ``||A W - B||^2 + alpha ||W||^2`` and, of all minimisers, the norm of W.

    Parameters
    ----------
    A : array-like of shape (m, n)
        The matrix. Any shape and any rank will do.
    B : array-like of shape (m,) or (m, q)
        The right-hand sides.
    bias : bool
        Put a column of ones before A. For ``alpha=0`` its coefficient counts in the norm like any
        other, for ``alpha>0`` it is free of the penalty: below full column rank the limit
        ``alpha -> 0`` therefore differs from the solution at 0.
    alpha : float
        The ridge.
    solver : {"auto", "cholesky", "qr", "svd"}
        "cholesky" forms the normal equations (which square the condition number of A) and refines
        their solution against the data; "qr" factorises A; "svd" goes on to the singular
        values. A solver that cannot be trusted with the matrix hands over to the next, with a
        warning if it was asked for by name. "auto" starts at "qr" for small problems, at
        "cholesky" for large ones.
    rcond : float, optional
        Singular values of A at most this much times the largest count as zero. They are taken after
        the columns were centred (with bias) and scaled to unit length, so units of measurement do
        not matter. By default, machine precision times the number of columns. With a larger one, W
        is the shortest solution in scaled columns if it leaves out directions that A still feels.

    Returns
    -------
    Solution

    Examples
    --------
    >>> from karnet import lstsq
    >>> lstsq([[1.0, 1.0], [1.0, 1.0]], [2.0, 2.0])
    Solution(coef=array([1., 1.]), rank=1, solver='svd')
    """
    A, B, vector = _checked(A, B)
    if not isinstance(bias, (bool, np.bool_)):
        raise ValueError(f"bias={shown(bias)} must be True or False.")
    m, n = A.shape
    if m == 0:
        # Every W fits no rows, and 0 is the shortest.
        found = Solution(np.zeros((n + bias, B.shape[1])), 0, "svd")
    else:
        rows = Rows(A, B)
        with one_thread_if_narrow(m, n):
            found = solve(
                rows.reduce,
                m,
                n,
                bias=bool(bias),
                alpha=alpha,
                solver=solver,
                rcond=rcond,
                sample=lambda step: rows.every(step).reduce,
            )
    return Solution(found.coef[:, 0] if vector else found.coef, found.rank, found.solver)


def _checked(A: ArrayLike, B: ArrayLike) -> tuple[Array, Array, bool]:
    M, right = real("A", A, (2,)), real("B", B, (1, 2))
    if len(M) != len(right):
        raise ValueError(f"A and B must have as many rows, but have {len(M)} and {len(right)}.")
    return M, right[:, None] if right.ndim == 1 else right, right.ndim == 1


def check_rcond(rcond: Any) -> float | None:
    """Return a relative cut-off below 1, or None for the default."""
    if rcond is not None and check_non_negative("rcond", rcond) >= 1.0:
        raise ValueError(f"rcond={shown(rcond)} must be below 1: it is relative to the largest.")
    return None if rcond is None else float(rcond)


def check_solver(solver: Any) -> str:
    """Return the name of a solver, or "auto"."""
    return check_one_of("solver", solver, ("auto", *SOLVERS))


def solve(
    reduce: Reduce,
    m: int,
    n: int,
    *,
    bias: bool = False,
    alpha: float = 0.0,
    solver: str = "auto",
    rcond: float | None = None,
    sample: Sample | None = None,
    observe: Observe | None = None,
    fast_products: bool = False,
) -> Observed:
    """Minimise what `lstsq` minimises, over rows that are read through a reduction.

    Parameters
    ----------
    reduce : callable
        ``reduce(statistic)`` calls ``statistic(A, B, weight)`` on blocks of rows and returns the
        merged result. It is called once or more.
    m, n : int
        The number of rows in all, and of columns of A.
    bias, alpha, solver, rcond
        As in `lstsq`.
    sample : callable, optional
        ``sample(step)`` is a reduction as `reduce`, over every step-th row. With it matrices of low
        rank are solved faster.
    observe : callable, optional
        ``observe(fit, B, weight)`` on blocks of rows is merged into what is observed, if the data
        are read again after the solution is known to many digits.
    fast_products : bool
        Whether Gram products take so little time that a sample need not say first if they help.

    Returns
    -------
    Observed
    """
    solver = check_solver(solver)
    rcond = check_rcond(rcond)
    cut_off = default_rcond(n + bias) if rcond is None else rcond
    alpha = check_non_negative("alpha", alpha)
    problem = Problem(reduce, m, n, bias, alpha, cut_off, sample, observe, fast_products)
    wide = m < (n if alpha else problem.columns)
    methods = DUAL if wide else PRIMAL
    singular = rcond is not None and rcond > EXPECTED and not alpha
    first = choose_solver(m, n, singular) if solver == "auto" else solver
    names = iter(SOLVERS[SOLVERS.index(first) :])
    with np.errstate(all="ignore"):
        while (found := methods[name := next(names)](problem)) is None:
            pass  # the last one always answers
    refuse_overflow(found.coef)
    if solver not in ("auto", name):
        warnings.warn(
            f"solver={solver!r} cannot be trusted with this matrix; {name!r} was used.",
            LinAlgWarning,
            stacklevel=3,
        )
    return Observed(found.coef, found.rank, name, found.observed, found.statistic)


def refuse_overflow(coef: Array) -> None:
    """Raise an error if the solution is not finite."""
    if not all_finite(coef):
        raise ValueError(
            "the least-squares solution overflows: A or B holds values too large to be squared; "
            "scale the columns."
        )


def choose_solver(m: int, n: int, singular: bool = False) -> str:
    """Return the solver that "auto" starts with; for a matrix likely singular, no Gram products."""
    return "cholesky" if m * n * min(m, n) > LIMITS.product and not singular else "qr"
