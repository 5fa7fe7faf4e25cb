"""Minimum-norm least squares: argument checks and the choice of a solver."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgWarning

from .._arrays.threads import one_thread_if_narrow
from .._rows.memory import Rows
from .._util.checks import all_finite, check_flag, check_one_of, real
from .._util.checks import check_non_negative as check_non_negative
from .._util.messages import shown
from .._util.types import Array
from .lapack import LIMITS, default_rcond
from .problem import OverColumns, Problem, Reduce, ReduceSample
from .problem import Solution as Solution
from .solvers import DUAL, PRIMAL, solve_in_turn

# From the fastest to the most careful.
SOLVERS = tuple(PRIMAL)
# Cut-off above which "auto" expects dependent columns and skips Gram products.
SINGULAR_RCOND = 1e-12


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
        The matrix, of any shape and rank.
    B : array-like of shape (m,) or (m, q)
        The right-hand sides.
    bias : bool
        Put a column of ones before A. For ``alpha=0`` its coefficient counts in the norm like any
        other, for ``alpha>0`` it is not penalised: below full column rank the limit
        ``alpha -> 0`` therefore differs from the solution at 0.
    alpha : float
        The ridge.
    solver : {"auto", "cholesky", "sketch", "qr", "svd"}
        "cholesky" forms the normal equations (which square the condition number of A) and refines
        their solution against the data; "sketch" does so for columns of A that random combinations
        of its rows show to be independent, made nearly orthogonal first where they are
        ill-conditioned; "qr" factorises A; "svd" computes the singular values too.
        A solver that cannot be trusted with the matrix hands over to the next, with a warning if it
        was requested by name. "auto" starts with "qr" for small problems and with "cholesky" for
        large ones.
    rcond : float, optional
        Singular values of A up to this share of the largest count as zero. Columns are centred
        (with bias) and scaled to unit length before, so units of measurement do not matter. By
        default, machine precision times the number of columns. If a larger cut-off leaves out
        directions that are not rounding, W is the shortest solution in scaled columns.

    Returns
    -------
    Solution

    Examples
    --------
    >>> from karnet import lstsq
    >>> lstsq([[1.0, 1.0], [1.0, 1.0]], [2.0, 2.0])
    Solution(coef=array([1., 1.]), rank=1, solver='svd')
    """
    A, B = real("A", A, (2,)), real("B", B, (1, 2))
    if len(A) != len(B):
        raise ValueError(
            f"A and B must have the same number of rows, but have {len(A)} and {len(B)}."
        )
    vector = B.ndim == 1
    B = B[:, None] if vector else B
    bias = check_flag("bias", bias)
    m, n = A.shape
    if m == 0:
        # Every W fits no rows, and 0 is the shortest.
        solution = Solution(np.zeros((n + bias, B.shape[1])), 0, "svd")
    else:
        rows = Rows(A, B)

        def sample(step: int) -> Reduce:
            return rows.every(step).reduce

        with one_thread_if_narrow(m, n):
            solution = solve(
                rows.reduce, m, n, bias=bias, alpha=alpha, solver=solver, rcond=rcond, sample=sample
            )
    coef = solution.coef[:, 0] if vector else solution.coef
    return Solution(coef, solution.rank, solution.solver)


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
    sample: ReduceSample | None = None,
    columns: OverColumns | None = None,
    tolerance: float | None = None,
) -> Solution:
    """Solve the problem of `lstsq` for m rows of n columns that are read through a reduction.

    The reduction is called once or more. With a sample of rows, and a reduction over some columns,
    ill-conditioned matrices are solved faster. Normal equations are refined if their solution may
    have a larger error than the tolerance; by default, if it may have lost half a digit.
    """
    solver = check_solver(solver)
    rcond = check_rcond(rcond)
    cut_off = default_rcond(n + bias) if rcond is None else rcond
    alpha = check_non_negative("alpha", alpha)
    problem = Problem(reduce, m, n, bias, alpha, cut_off, sample, columns, tolerance)
    wide = m < (n if alpha else problem.n_columns)
    singular = rcond is not None and rcond > SINGULAR_RCOND and not alpha
    first = choose_solver(m, n, singular) if solver == "auto" else solver
    with np.errstate(all="ignore"):
        solution = solve_in_turn(DUAL if wide else PRIMAL, problem, first)
    refuse_overflow(solution.coef)
    if solver not in ("auto", solution.solver):
        warnings.warn(
            f"solver={solver!r} cannot be trusted with this matrix; {solution.solver!r} was used.",
            LinAlgWarning,
            stacklevel=3,
        )
    return solution


def refuse_overflow(coef: Array) -> None:
    """Raise an error if the solution is not finite."""
    if not all_finite(coef):
        raise ValueError(
            "the least-squares solution overflows: A or B holds values too large to be squared; "
            "scale the columns."
        )


def choose_solver(m: int, n: int, singular: bool = False) -> str:
    """Return the first solver for "auto": "qr" for small problems, "sketch" for singular ones.

    Singular matrices of few columns are decomposed faster than they are sketched.
    """
    narrow = singular and n < LIMITS.sampled_columns
    if narrow or m * n * min(m, n) <= LIMITS.product:
        return "qr"
    return "sketch" if singular else "cholesky"
