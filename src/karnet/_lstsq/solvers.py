"""The solvers of one least-squares problem, for tall and wide matrices: Cholesky, sketch, QR, SVD.

All have one contract: a solver returns the solution of a problem, or None if it cannot be trusted
with the matrix. They form chains from the fastest to the most careful solver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import blas

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._util.types import Array
from . import lapack
from .lapack import EPS, ESTIMATE_FACTOR, LIMITS, Cholesky, column_norms
from .minimum_norm import MinimumNorm, with_bias
from .problem import Problem, Solution, residual_products, unit_diagonal, with_ridge
from .sketch import SLOW_RATE, solve_by_sketch
from .statistics import SHORT_SUM, Centre, Gram, Stack, Triangle

Solver = Callable[[Problem], Solution | None]

# Share of the least reciprocal condition of normal equations below which, in a sample of rows,
# normal equations of all rows are not tried: a sample is conditioned a little worse.
HOPELESS_SHARE = 0.3
# Most steps of refinement against the data, which restore the digits that normal equations lose.
MAX_STEPS = 3
# The same for products in single precision.
MAX_STEPS_SINGLE = 12
# Reciprocal condition of a triangle above which the order of rows and columns hardly matters.
WELL_CONDITIONED = 1e-5
# Ratio of mean_A W to the coefficients W above which the bias needs a refined W.
FAR_MEAN = 8.0


def solve_in_turn(solvers: dict[str, Solver], p: Problem, first: str) -> Solution:
    """Return the solution of the first solver, from the one named `first` on, that gives one."""
    names = list(solvers)
    for name in names[names.index(first) :]:
        solution = solvers[name](p)
        if solution is not None:
            return solution
    raise AssertionError("the last solver of a chain solves every problem.")


def _primal_cholesky(p: Problem) -> Solution | None:
    if p.sampled_rcond < HOPELESS_SHARE * lapack.least_rcond(p.rcond):
        return None
    gram = p.reduce(partial(Gram.of, bias=p.bias))
    solution = from_gram(p, gram, refine=True)
    if solution is not None or not gram.single:
        return solution
    return from_gram(p, p.reduce(partial(Gram.of, bias=p.bias, careful=True)), refine=True)


def from_gram(p: Problem, gram: Gram, refine: bool = False) -> Solution | None:
    """Return the solution of the normal equations ``(A'A + alpha) W = A'B``.

    Columns are scaled to unit length; with `refine`, lost digits are restored against the data.
    """
    scale, AA = unit_diagonal(algebra.add_to_diagonal(gram.AA, p.alpha))
    varies = bool(arrays.namespace(scale).all(scale > p.noise(gram.centre)))
    if not varies or not lapack.safe_to_square(scale, gram.AB):
        return None
    factor = Cholesky.trusted(AA.T, p.rcond)
    if factor is None:
        return None
    near = gram.centre.near(scale)

    def solve(AB: Array) -> Array:
        return factor.solve(AB / scale[:, None]) / scale[:, None]

    def correction(W: Array) -> Array:
        of_block = partial(residual_products, gram.centre, near, W)
        return solve(p.reduce(of_block, small_chunks=True).first - p.alpha * W)

    W = solve(gram.AB)
    least = LIMITS.exact / np.sqrt(len(scale)) if p.tolerance is None else EPS / p.tolerance
    exact = factor.reciprocal_condition >= least
    if refine and (gram.single or not exact):
        refined = _refined(W, correction, scale, MAX_STEPS_SINGLE if gram.single else MAX_STEPS)
        if refined is None:
            return None
        W = refined
    coef = _coef(p, arrays.to_numpy(W), arrays.on_host(gram.centre))
    # Products in single precision cannot be used without the rows.
    return Solution(coef, p.n_columns, "cholesky", None if gram.single else gram)


def _primal_qr(p: Problem) -> Solution | None:
    R, Z = _triangular_system(p)
    if len(R) < p.n:
        return None
    least = ESTIMATE_FACTOR * p.n * p.rcond
    # Unit columns have at most sqrt(n) times the condition number of optimally scaled ones.
    reciprocal = algebra.triangular_rcond(R)
    if reciprocal <= p.n**0.5 * least and algebra.triangular_rcond(R / column_norms(R)) <= least:
        return None
    by_rows = p.few_rows and reciprocal < WELL_CONDITIONED
    W = _from_pivoted_rows(p) if by_rows else algebra.solve_triangle(R, Z)
    return Solution(_coef(p, W, p.triangle.centre), p.n_columns, "qr", p.triangle)


def _primal_svd(p: Problem) -> Solution | None:
    R, Z = p.centred_rows()[:2] if p.few_rows else _triangular_system(p)
    return _shortest(p, R, Z, p.triangle.centre, p.triangle)


def _shortest(
    p: Problem, R: Array, Z: Array, centre: Centre, statistic: Triangle | Stack
) -> Solution:
    """Return the solution of minimum norm of ``R W = Z``; with a ridge, the bias does not count."""
    shared = p.bias and not p.alpha
    inverse = MinimumNorm.of(p.rcond, R, centre if shared else None)
    W = inverse.solve(Z)
    coef = inverse.coef(W) if shared else _coef(p, W, centre)
    rank = inverse.rank + (p.bias and not shared)
    return Solution(coef, rank, "svd", statistic)


def _from_pivoted_rows(p: Problem) -> Array:
    """Return the solution at full rank from the rows themselves, the largest first.

    With pivoting, rows and columns of all sizes keep their digits.
    """
    A, B, _ = p.centred_rows()
    scale = algebra.powers_of_2(column_norms(A))
    Q, R, order = lapack.pivoted_qr(A / scale)
    W = np.empty((p.n, B.shape[1]))
    W[order] = algebra.solve_triangle(R, Q.T @ B)
    return W / scale[:, None]


def _triangular_system(p: Problem) -> tuple[Array, Array]:
    """Return R and Z so that ``R W = Z`` has the solution of the centred problem."""
    R, Z = p.without_noise(p.triangle.R, p.triangle.centre), p.triangle.Z
    return with_ridge(R, Z, p.alpha) if p.alpha else (R, Z)


def _dual_cholesky(p: Problem) -> Solution | None:
    A, B, centre = _dual_system(p)
    # BLAS reads A by columns, and so sees A'.
    K = blas.dsyrk(1.0, A.T, trans=1)
    factor = Cholesky.trusted(K, p.rcond) if lapack.safe_to_square(np.diag(K), B) else None
    if factor is None:
        return None

    def shortest(B: Array) -> Array:
        return np.asarray(blas.dgemm(1.0, A.T, factor.solve(B)))

    def correction(W: Array) -> Array:
        return shortest(B - blas.dgemm(1.0, A.T, W, trans_a=1))

    W = _refined(shortest(B), correction, np.ones(A.shape[1]))
    return None if W is None else _dual_solution(p, W, centre, "cholesky")


def _dual_qr(p: Problem) -> Solution | None:
    if not p.alpha and p.low_rank_triangle is not None:
        return None
    A, B, centre = _dual_system(p)
    Q, R = lapack.sorted_qr(A.T)
    reciprocal = algebra.triangular_rcond(R)
    if reciprocal <= ESTIMATE_FACTOR * p.m * p.rcond:
        return None
    if reciprocal < WELL_CONDITIONED and len(Q) <= SHORT_SUM:
        Q, R, order = lapack.pivoted_qr(A.T)
        B = B[order]
    return _dual_solution(p, Q @ algebra.solve_triangle(R, B, transposed=True), centre, "qr")


def _dual_svd(p: Problem) -> Solution | None:
    if not p.alpha and p.low_rank_triangle is not None:
        return _primal_svd(p)
    A, B, centre = p.centred_rows()
    if not p.alpha:
        return _shortest(p, A, B, centre, _rows(p))
    U, s, Vt = lapack.svd(A)
    kept = lapack.significant(s, p.rcond)
    filtered = (s[kept] / (s[kept] ** 2 + p.alpha))[:, None]
    W = Vt[kept].T @ (filtered * (U[:, kept].T @ B))
    singular = np.sqrt(p.alpha) <= p.rcond * s[:1].sum()
    rank = int(kept.sum()) + p.bias if singular else p.n_columns
    return Solution(_coef(p, W, centre), rank, "svd", _rows(p))


def _dual_system(p: Problem) -> tuple[Array, Array, Centre | None]:
    """Return A and B so that the shortest W with ``A W = B`` is the solution.

    Here a ridge adds columns to the right of A, as it adds rows below A in the primal space: the
    shortest solution of ``[A, sqrt(alpha) I] [W; E] = B`` contains the ridge solution.
    """
    if not p.alpha:
        return p.stack.A, p.stack.B, None
    A, B, centre = p.centred_rows()
    return np.hstack([A, np.sqrt(p.alpha) * np.eye(p.m)]), B, centre


def _dual_solution(p: Problem, W: Array, centre: Centre | None, solver: str) -> Solution:
    if centre is None:
        return Solution(W, p.m, solver, _rows(p))
    return Solution(_coef(p, W[: p.n], centre), p.n_columns, solver, _rows(p))


def _rows(p: Problem) -> Stack:
    """Return the rows as one array."""
    return Stack((p.stack.A,), (p.stack.B,))


def _refining_bias(solver: Solver) -> Solver:
    """Return the solver with a second run, for the residual, where means are far from zero.

    That is done for few rows: a bias is a difference of means, and any rounding of the other
    coefficients changes it.
    """

    def twice(p: Problem) -> Solution | None:
        solution = solver(p)
        if solution is None or not (p.bias and p.few_rows) or solution.rank < p.n_columns:
            return solution
        if not isinstance(solution.statistic, (Gram, Triangle)):  # products in single precision
            return solution
        centre, W = solution.statistic.centre, solution.coef[1:]
        if not arrays.is_host(centre.mean):
            centre = arrays.on_host(centre)
        if not _far(centre, solution.coef):
            return solution

        def of_residual(statistic: Callable[..., Any], /, *how: Any, **named: Any) -> Any:
            def of_block(A: Array, B: Array, weight: Array | None) -> Any:
                A, B = centre.subtract(A, B, None)
                return statistic(A, B - A @ arrays.like(A, W), weight)

            return p.reduce(of_block, *how, **named)

        rest = solver(replace(p, reduce=of_residual, sample=None))
        if rest is None:
            return solution
        # The bias is computed in extended precision where NumPy has it.
        mean, D = centre.mean.astype(np.longdouble) + centre.low, rest.coef[1:]
        exact = mean[p.n :] - mean[: p.n] @ W - mean[: p.n] @ D
        return replace(solution, coef=np.vstack([exact.astype(np.float64), W + D]))

    return twice


def _far(centre: Centre, coef: Array) -> bool:
    """Return whether rounding of the other coefficients is most of the error of a bias."""
    if centre.A @ centre.A <= FAR_MEAN**2:  # a bound of the terms below that takes less time
        return False
    squares = coef[1:] ** 2
    terms = centre.A**2 @ squares
    others = np.maximum(FAR_MEAN**2 * squares.max(axis=0, initial=0.0), (coef[0] / FAR_MEAN) ** 2)
    return bool((terms > others).any())


# Chains of solvers for tall and for wide matrices.
PRIMAL: dict[str, Solver] = {
    "cholesky": _refining_bias(_primal_cholesky),
    "sketch": solve_by_sketch,
    "qr": _refining_bias(_primal_qr),
    "svd": _refining_bias(_primal_svd),
}
DUAL: dict[str, Solver] = {
    "cholesky": _dual_cholesky,
    "sketch": lambda p: None,
    "qr": _dual_qr,
    "svd": _dual_svd,
}


def _coef(p: Problem, W: Array, centre: Centre) -> Array:
    return with_bias(W, centre) if p.bias else W


def _refined(
    W: Array, correction: Callable[[Array], Array], scale: Array, n_steps: int = MAX_STEPS
) -> Array | None:
    """Return W after steps of refinement, or None if they do not restore all digits.

    The remaining error is the last step times the rate at which steps shrink.
    """
    before = _size(W, scale)
    for _ in range(n_steps):
        D = correction(W)
        W = W + D
        step, size = _size(D, scale), _size(W, scale)
        if step * step <= EPS * size * before:
            return W
        if not step <= SLOW_RATE * before:
            return None
        before = step
    return None


def _size(W: Array, scale: Array) -> float:
    return float(arrays.namespace(W).linalg.vector_norm(scale[:, None] * W))
