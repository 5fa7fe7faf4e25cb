"""The solvers of one least-squares problem: Cholesky, QR and SVD, in the primal and the dual space.

A solver returns coefficients and rank, or None if it cannot be trusted with the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .lapack import (
    EPS,
    ESTIMATE_FACTOR,
    LIMITS,
    Cholesky,
    back_substitute,
    column_norms,
    exact_scale,
    largest_first,
    pivoted_qr,
    safe_to_square,
    sorted_qr,
    svd,
    triangular,
    triangular_rcond,
)
from .minimum_norm import below_bias, below_exact_bias, minimum_norm
from .problem import Problem, centred_rows, noise, unit_diagonal
from .statistics import SHORT, Centre, Gram, Pair, Stack, Sum, Triangle

Array = NDArray[np.float64]

# Steps of refinement against the data, to restore the digits that normal equations lose, and the
# rate of shrinking from step to step above which they never will. Products in single precision
# take more.
MAX_STEPS, SLOW, MORE_STEPS = 3, 0.1, 12

# Reciprocal condition of a triangle from which on neither the order of rows nor that of columns
# matters much.
WELL = 1e-5
# Means that the other coefficients are multiplied with, beside them and beside the bias, from which
# on both are refined.
FAR = 8.0
# Share of the squared error that the last refinement may change before it has to be seen anew.
NOTICED = 1e-9

NONE = Sum(np.zeros(0))


@dataclass  # not frozen, as a Problem is not
class Found:
    """Coefficients and rank; what was observed of their fit, if it was seen in passing.

    And the statistic they were found from.
    """

    coef: Array
    rank: int
    observed: Array | None = None
    statistic: Gram | Triangle | Stack | None = None


Solver = Callable[[Problem], Found | None]
Function = Callable[[Array], Array]


def _primal_cholesky(p: Problem) -> Found | None:
    if p.looks_singular:
        return None
    gram = p.reduce(partial(Gram.of, bias=p.bias))
    found = _through_gram(p, gram)
    if found is None and gram.single:
        found = _through_gram(p, p.reduce(partial(Gram.of, bias=p.bias, careful=True)))
    return found


def _through_gram(p: Problem, gram: Gram) -> Found | None:
    normal = _normal_equations(p, gram)
    if normal is None:
        return None
    solve_normal, scale, exact = normal
    observed: list[Array | None] = [None]
    # The problem itself need not travel to where the rows are.
    centre, alpha, observe = gram.centre, p.alpha, p.observe
    near = centre.near(scale)

    def correction(W: Array) -> Array:
        def of_block(A: Array, B: Array, weight: Array | None) -> Pair:
            if not near:
                A, B = centre.subtract(A, B, None)
            # Means that are near are taken off the products, else off the rows.
            fit = A @ arrays.like(A, W)
            means = [arrays.like(A, each) for each in (centre.A, centre.B)]
            if near:
                fit, B = fit - means[0] @ arrays.like(A, W), B - means[1]
            xp, error = arrays.namespace(A), B - fit
            weighted = error if weight is None else error * weight[:, None]
            AE = A.T @ weighted
            if near:
                AE -= means[0][:, None] * xp.sum(weighted, axis=0)
            if not observe:
                return Pair(Sum(AE), NONE)
            tally = observe(fit + means[1], B + means[1], weight).value
            squares = arrays.stacked([xp.sum(error * weighted)])
            return Pair(Sum(AE), Sum(arrays.joined([tally, squares])))

        found = p.reduce(of_block, small_chunks=True)
        D = solve_normal(found.first.value - alpha * W)
        if observe:
            tally, squares = np.split(arrays.to_numpy(found.second.value), [-1])
            same = p.n * _size(D, scale) ** 2 <= NOTICED * squares[0]
            observed[0] = tally if same else None
        return D

    W = solve_normal(gram.AB)
    if exact and not gram.single:
        refined: Array | None = W
    else:
        refined = _refined(W, correction, scale, MORE_STEPS if gram.single else MAX_STEPS)
    if refined is None:
        return None
    coef = _with_bias(p, arrays.to_numpy(refined), arrays.on_host(gram.centre))
    # In single precision the products alone would not be enough.
    return Found(coef, p.columns, observed[0], None if gram.single else gram)


def from_gram(p: Problem, gram: Gram) -> Found | None:
    """Return what Gram products alone give, with no data to refine it against."""
    normal = _normal_equations(p, gram)
    if normal is None:
        return None
    solve_normal, _, _ = normal
    return Found(_with_bias(p, solve_normal(gram.AB), gram.centre), p.columns)


def _normal_equations(p: Problem, gram: Gram) -> tuple[Function, Array, bool] | None:
    """Return their solver, the lengths of the columns, and whether no refinement is needed."""
    scale, AA = unit_diagonal(algebra.add_to_diagonal(gram.AA, p.alpha))
    if not bool(arrays.namespace(scale).all(scale > noise(p, gram.centre))) or not safe_to_square(
        scale, gram.AB
    ):
        return None
    scaled = Cholesky.trusted(AA.T, p.rcond)
    if scaled is None:
        return None

    def solve_normal(AB: Array) -> Array:
        return scaled.solve(AB / scale[:, None]) / scale[:, None]

    return solve_normal, scale, bool(scaled.reciprocal_condition >= LIMITS.exact / np.sqrt(p.n))


def _primal_qr(p: Problem) -> Found | None:
    R, Z = _triangular_system(p)
    if len(R) < p.n:
        return None
    least = ESTIMATE_FACTOR * p.n * p.rcond
    # Columns of unit length are at most sqrt(n) times worse than those of the best lengths.
    reciprocal = triangular_rcond(R)
    if reciprocal <= p.n**0.5 * least and triangular_rcond(R / column_norms(R)) <= least:
        return None
    W = _from_rows(p) if p.few and reciprocal < WELL else back_substitute(R, Z)
    return Found(_with_bias(p, W, p.triangle.centre), p.columns, statistic=p.triangle)


def _primal_svd(p: Problem) -> Found | None:
    R, Z = centred_rows(p)[:2] if p.few else _triangular_system(p)
    if p.bias and not p.alpha:
        coef, rank = minimum_norm(p.rcond, R, Z, p.triangle.centre)
    else:
        W, rank = minimum_norm(p.rcond, R, Z)
        coef, rank = _with_bias(p, W, p.triangle.centre), rank + p.bias
    return Found(coef, rank, statistic=p.triangle)


def _from_rows(p: Problem) -> Array:
    """Return the solution for full rank from the rows themselves, the largest first.

    With pivots, rows and columns of all sizes keep their digits.
    """
    A, B, _ = centred_rows(p)
    scale = exact_scale(column_norms(A))
    Q, R, order = pivoted_qr(A / scale)
    W = np.empty((p.n, B.shape[1]))
    W[order] = back_substitute(R, Q.T @ B)
    return W / scale[:, None]


def _triangular_system(p: Problem) -> tuple[Array, Array]:
    """Return R and Z so that ``R W = Z`` has the solution of the centred problem."""
    R, Z = without_noise(p), p.triangle.Z
    if p.alpha:
        A = np.vstack([R, np.sqrt(p.alpha) * np.eye(p.n)])
        B = np.vstack([Z, np.zeros((p.n, Z.shape[1]))])
        order = largest_first(A)
        R, Z = triangular(A[order], B[order])
    return R, Z


def without_noise(p: Problem) -> Array:
    """Return R of the triangle, with zeros for columns that were constant."""
    R = p.triangle.R
    if not p.bias:
        return R
    return np.where(column_norms(R) <= noise(p, p.triangle.centre), 0.0, R)


def _dual_cholesky(p: Problem) -> Found | None:
    A, B, centre = _dual_system(p)
    # As BLAS sees it, A lies in columns: it is A' there.
    K = blas.dsyrk(1.0, A.T, trans=1)
    factor = Cholesky.trusted(K, p.rcond) if safe_to_square(np.diag(K), B) else None
    if factor is None:
        return None

    def shortest(B: Array) -> Array:
        return np.asarray(blas.dgemm(1.0, A.T, factor.solve(B)))

    def correction(W: Array) -> Array:
        return shortest(B - blas.dgemm(1.0, A.T, W, trans_a=1))

    W = _refined(shortest(B), correction, np.ones(A.shape[1]))
    return None if W is None else _from_dual(p, W, centre)


def _dual_qr(p: Problem) -> Found | None:
    if not p.alpha and p.short is not None:
        return None
    A, B, centre = _dual_system(p)
    Q, R = sorted_qr(A.T)
    reciprocal = triangular_rcond(R)
    if reciprocal <= ESTIMATE_FACTOR * p.m * p.rcond:
        return None
    if reciprocal < WELL and len(Q) <= SHORT:
        Q, R, order = pivoted_qr(A.T)
        B = B[order]
    return _from_dual(p, Q @ back_substitute(R, B, transposed=True), centre)


def _dual_svd(p: Problem) -> Found | None:
    if not p.alpha and p.short is not None:
        return _primal_svd(p)
    A, B, centre = centred_rows(p)
    if not p.alpha:
        coef, rank = minimum_norm(p.rcond, A, B, centre if p.bias else None)
        return Found(coef, rank, statistic=_rows_kept(p))
    U, s, Vt = svd(A)
    felt = s > p.rcond * s[:1].sum()
    filtered = (s[felt] / (s[felt] ** 2 + p.alpha))[:, None]
    W = Vt[felt].T @ (filtered * (U[:, felt].T @ B))
    singular = np.sqrt(p.alpha) <= p.rcond * s[:1].sum()
    rank = int(felt.sum()) + p.bias if singular else p.columns
    return Found(_with_bias(p, W, centre), rank, statistic=_rows_kept(p))


def _dual_system(p: Problem) -> tuple[Array, Array, Centre | None]:
    """Return A and B so that the shortest W with ``A W = B`` is the solution.

    A ridge adds columns beside A here, as it adds rows below A in the primal space: the shortest
    solution of ``[A, sqrt(alpha) I] [W; E] = B`` holds the ridge solution.
    """
    if not p.alpha:
        return p.stack.A, p.stack.B, None
    A, B, centre = centred_rows(p)
    return np.hstack([A, np.sqrt(p.alpha) * np.eye(p.m)]), B, centre


def _from_dual(p: Problem, W: Array, centre: Centre | None) -> Found:
    if centre is None:
        return Found(W, p.m, statistic=_rows_kept(p))
    return Found(_with_bias(p, W[: p.n], centre), p.columns, statistic=_rows_kept(p))


def _rows_kept(p: Problem) -> Stack:
    """Return the rows in one piece."""
    return Stack((p.stack.A,), (p.stack.B,))


def _refining(solver: Solver) -> Solver:
    """Return the solver with a second run, for what is left, where columns lie far from zero.

    If rows are few, that is: a bias is a difference of means, and feels each digit of the others.
    """

    def twice(p: Problem) -> Found | None:
        found = solver(p)
        if found is None or not (p.bias and p.few) or found.rank < p.columns:
            return found
        if not isinstance(found.statistic, (Gram, Triangle)):  # it was in single precision
            return found
        centre, W = found.statistic.centre, found.coef[1:]
        if not arrays.is_host(centre.mean):
            centre = arrays.on_host(centre)
        if not _far(centre, found.coef):
            return found

        def left(statistic: Callable[..., Any], /, small_chunks: bool = False) -> Any:
            def of_block(A: Array, B: Array, weight: Array | None) -> Any:
                A, B = centre.subtract(A, B, None)
                return statistic(A, B - A @ arrays.like(A, W), weight)

            return p.reduce(of_block, small_chunks)

        rest = solver(replace(p, reduce=left, sample=None, observe=None))
        if rest is None:
            return found
        return replace(found, coef=below_exact_bias(W, rest.coef[1:], centre))

    return twice


def _far(centre: Centre, coef: Array) -> bool:
    """Return whether rounding of the other coefficients is most of what a bias is wrong by."""
    if centre.A @ centre.A <= FAR**2:  # which bounds what follows, in less time
        return False
    squares = coef[1:] ** 2
    terms = centre.A**2 @ squares
    others = np.maximum(FAR**2 * squares.max(axis=0, initial=0.0), (coef[0] / FAR) ** 2)
    return bool((terms > others).any())


PRIMAL: dict[str, Solver] = {
    "cholesky": _refining(_primal_cholesky),
    "qr": _refining(_primal_qr),
    "svd": _refining(_primal_svd),
}
DUAL: dict[str, Solver] = {"cholesky": _dual_cholesky, "qr": _dual_qr, "svd": _dual_svd}


def _with_bias(p: Problem, W: Array, centre: Centre) -> Array:
    return below_bias(W, centre) if p.bias else W


def _refined(
    W: Array, correction: Callable[[Array], Array], scale: Array, n_steps: int = MAX_STEPS
) -> Array | None:
    """Return W after steps of refinement, or None if they do not restore all digits.

    The last step times the rate at which steps shrink is what is left of the error.
    """
    before = _size(W, scale)
    for _ in range(n_steps):
        D = correction(W)
        W = W + D
        step, size = _size(D, scale), _size(W, scale)
        if step * step <= EPS * size * before:
            return W
        if not step <= SLOW * before:
            return None
        before = step
    return None


def _size(W: Array, scale: Array) -> float:
    return float(arrays.namespace(W).linalg.vector_norm(scale[:, None] * W))
