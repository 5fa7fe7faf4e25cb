"""The solvers of one least-squares problem: Cholesky, QR and SVD, for tall and wide matrices.

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
from .._rows.memory import Block
from .._util.types import Array
from . import lapack
from .lapack import EPS, ESTIMATE_FACTOR, LIMITS, Cholesky, back_substitute, column_norms
from .problem import MEAN_ULPS, Observe, Problem, Solution, unit_diagonal
from .statistics import SHORT_SUM, Centre, Gram, Pair, Stack, Triangle

Solver = Callable[[Problem], Solution | None]

# Most steps of refinement against the data, which restore the digits that normal equations lose.
MAX_STEPS = 3
# The same for products in single precision.
MAX_STEPS_SINGLE = 12
# Ratio of successive steps above which refinement does not converge fast enough.
SLOW_RATE = 0.1
# Reciprocal condition of a triangle above which the order of rows and columns hardly matters.
WELL_CONDITIONED = 1e-5
# Ratio of mean_A W to the coefficients W above which the bias needs a refined W.
FAR_MEAN = 8.0
# Change of the squared error by the last refinement, relative, above which the fit is read again.
NOTICEABLE_CHANGE = 1e-9
# Largest ratio of column norms at which singular vectors give the solution of minimum norm.
SIMILAR_NORMS = 1e3


def solve_in_turn(solvers: dict[str, Solver], p: Problem, first: str) -> Solution:
    """Return the solution of the first solver, from the one named `first` on, that gives one."""
    names = list(solvers)
    for name in names[names.index(first) :]:
        solution = solvers[name](p)
        if solution is not None:
            return solution
    raise AssertionError("the last solver of a chain solves every problem.")


def _primal_cholesky(p: Problem) -> Solution | None:
    if p.looks_singular:
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
    near, observed = gram.centre.near(scale), None

    def solve(AB: Array) -> Array:
        return factor.solve(AB / scale[:, None]) / scale[:, None]

    def correction(W: Array) -> Array:
        nonlocal observed
        of_block = partial(_residual_products, gram.centre, near, p.observe, W)
        sums = p.reduce(of_block, small_chunks=True)
        D = solve(sums.first - p.alpha * W)
        if p.observe:
            tally, squares = np.split(arrays.to_numpy(sums.second), [-1])
            same = p.n * _size(D, scale) ** 2 <= NOTICEABLE_CHANGE * squares[0]
            observed = tally if same else None
        return D

    W = solve(gram.AB)
    exact = factor.reciprocal_condition >= LIMITS.exact / np.sqrt(len(scale))
    if refine and (gram.single or not exact):
        refined = _refined(W, correction, scale, MAX_STEPS_SINGLE if gram.single else MAX_STEPS)
        if refined is None:
            return None
        W = refined
    coef = _coef(p, arrays.to_numpy(W), arrays.on_host(gram.centre))
    # Products in single precision cannot be used without the rows.
    return Solution(coef, p.n_columns, "cholesky", observed, None if gram.single else gram)


def _residual_products(
    centre: Centre, near: bool, observe: Observe | None, W: Array, *block: *Block
) -> Pair:
    """Return ``A'(B - A W)`` about the means for a block of rows and, if asked for, observations.

    Near means are subtracted from the products, others from the rows. This function is sent to the
    process that holds the rows, and so refers to no `Problem`.
    """
    A, B, weight = block
    if not near:
        A, B = centre.subtract(A, B, None)
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
        return Pair(AE, np.zeros(0))
    tally = observe(fit + means[1], B + means[1], weight).value
    squares = arrays.stacked([xp.sum(error * weighted)])
    return Pair(AE, arrays.joined([tally, squares]))


def _primal_qr(p: Problem) -> Solution | None:
    R, Z = _triangular_system(p)
    if len(R) < p.n:
        return None
    least = ESTIMATE_FACTOR * p.n * p.rcond
    # Unit columns have at most sqrt(n) times the condition number of optimally scaled ones.
    reciprocal = lapack.triangular_rcond(R)
    if reciprocal <= p.n**0.5 * least and lapack.triangular_rcond(R / column_norms(R)) <= least:
        return None
    by_rows = p.few_rows and reciprocal < WELL_CONDITIONED
    W = _from_pivoted_rows(p) if by_rows else back_substitute(R, Z)
    return Solution(_coef(p, W, p.triangle.centre), p.n_columns, "qr", None, p.triangle)


def _primal_svd(p: Problem) -> Solution | None:
    R, Z = p.centred_rows()[:2] if p.few_rows else _triangular_system(p)
    if p.bias and not p.alpha:
        coef, rank = minimum_norm(p.rcond, R, Z, p.triangle.centre)
    else:
        W, rank = minimum_norm(p.rcond, R, Z)
        coef, rank = _coef(p, W, p.triangle.centre), rank + p.bias
    return Solution(coef, rank, "svd", None, p.triangle)


def _from_pivoted_rows(p: Problem) -> Array:
    """Return the solution at full rank from the rows themselves, the largest first.

    With pivoting, rows and columns of all sizes keep their digits.
    """
    A, B, _ = p.centred_rows()
    scale = lapack.exact_scale(column_norms(A))
    Q, R, order = lapack.pivoted_qr(A / scale)
    W = np.empty((p.n, B.shape[1]))
    W[order] = back_substitute(R, Q.T @ B)
    return W / scale[:, None]


def _triangular_system(p: Problem) -> tuple[Array, Array]:
    """Return R and Z so that ``R W = Z`` has the solution of the centred problem."""
    R, Z = p.without_noise(p.triangle.R, p.triangle.centre), p.triangle.Z
    if p.alpha:
        A = np.vstack([R, np.sqrt(p.alpha) * np.eye(p.n)])
        B = np.vstack([Z, np.zeros((p.n, Z.shape[1]))])
        order = lapack.largest_first(A)
        R, Z = lapack.triangular(A[order], B[order])
    return R, Z


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
    reciprocal = lapack.triangular_rcond(R)
    if reciprocal <= ESTIMATE_FACTOR * p.m * p.rcond:
        return None
    if reciprocal < WELL_CONDITIONED and len(Q) <= SHORT_SUM:
        Q, R, order = lapack.pivoted_qr(A.T)
        B = B[order]
    return _dual_solution(p, Q @ back_substitute(R, B, transposed=True), centre, "qr")


def _dual_svd(p: Problem) -> Solution | None:
    if not p.alpha and p.low_rank_triangle is not None:
        return _primal_svd(p)
    A, B, centre = p.centred_rows()
    if not p.alpha:
        coef, rank = minimum_norm(p.rcond, A, B, centre if p.bias else None)
        return Solution(coef, rank, "svd", None, _rows(p))
    U, s, Vt = lapack.svd(A)
    kept = lapack.significant(s, p.rcond)
    filtered = (s[kept] / (s[kept] ** 2 + p.alpha))[:, None]
    W = Vt[kept].T @ (filtered * (U[:, kept].T @ B))
    singular = np.sqrt(p.alpha) <= p.rcond * s[:1].sum()
    rank = int(kept.sum()) + p.bias if singular else p.n_columns
    return Solution(_coef(p, W, centre), rank, "svd", None, _rows(p))


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
        return Solution(W, p.m, solver, None, _rows(p))
    return Solution(_coef(p, W[: p.n], centre), p.n_columns, solver, None, _rows(p))


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

        def of_residual(statistic: Callable[..., Any], /, small_chunks: bool = False) -> Any:
            def of_block(A: Array, B: Array, weight: Array | None) -> Any:
                A, B = centre.subtract(A, B, None)
                return statistic(A, B - A @ arrays.like(A, W), weight)

            return p.reduce(of_block, small_chunks)

        rest = solver(replace(p, reduce=of_residual, sample=None, observe=None))
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
    "qr": _refining_bias(_primal_qr),
    "svd": _refining_bias(_primal_svd),
}
DUAL: dict[str, Solver] = {"cholesky": _dual_cholesky, "qr": _dual_qr, "svd": _dual_svd}


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


def minimum_norm(
    rcond: float, R: Array, Z: Array, centre: Centre | None = None
) -> tuple[Array, int]:
    """Return the minimum-norm solution of ``R W = Z``, and the rank of R with columns scaled.

    With a centre, R and Z are centred, and the solution and rank are those of ``[1, A] W = B``: the
    solution satisfies ``bias + mean_A W = mean_B`` too, and the bias counts in the norm.
    """
    n = R.shape[1]
    norms = column_norms(R)
    unit, scale = R / norms, lapack.exact_scale(norms)
    # With the default cut-off, vectors are seldom needed, and the values alone take less time.
    factors = None if rcond <= lapack.default_rcond(n + 1) else lapack.svd(unit)
    s = lapack.singular_values(unit) if factors is None else factors[1]
    rank = int(np.sum(lapack.significant(s, rcond)))
    # Whether the cut-off leaves out directions that are not rounding.
    truncated = bool(lapack.significant(s, lapack.default_rcond(n))[rank:].any())
    similar = norms.max(initial=1.0) <= SIMILAR_NORMS * norms.min(initial=1.0)
    by_vectors = truncated or (factors is not None and similar)
    basis = None if by_vectors else _echelon(R / scale, Z, rank)
    if basis is None:
        U, s, Vt = lapack.svd(unit) if factors is None else factors
        basis, scale = (Vt[:rank], (U[:, :rank].T @ Z) / s[:rank, None]), norms
    rows, z = basis
    if rank == n or truncated:
        # At full rank W is unique. Along directions that are left out but not rounding, a shorter W
        # would change the fit: W stays the solution of minimum norm in scaled columns.
        W = rows.T @ z / scale[:, None]
        return (W, rank) if centre is None else (with_bias(W, centre), rank + 1)
    # C W = z holds for every least-squares solution; the shortest is in the span of the rows of C.
    C = rows * scale
    Q, T, order = lapack.pivoted_qr(C.T)
    W = Q @ back_substitute(T, z[order], transposed=True)
    return (W, rank) if centre is None else (_shared_with_bias(W, Q, centre), rank + 1)


def _echelon(R: Array, Z: Array, rank: int) -> tuple[Array, Array] | None:
    """Return C and z with ``C W = z`` for all least-squares solutions, or None if that fails.

    In the order of the pivots C is ``[I, F]``. The columns of R have similar norms, so rounding in
    F can be recognised and set to zero: in columns of other norms it would seem to allow a shorter
    solution.
    """
    n = R.shape[1]
    if not rank or not np.isfinite(R).all():
        return None
    Q, T, order = lapack.pivoted_qr(R)
    # In theory, more can be left after pivoting than the singular values say.
    if (np.abs(T[rank:, rank:]) > ESTIMATE_FACTOR * n * EPS).any():
        return None
    right = np.hstack([T[:rank, rank:], Q[:, :rank].T @ Z])
    F, z = np.split(back_substitute(T[:rank, :rank], right), [n - rank], axis=1)
    C = np.empty((rank, n))
    C[:, order] = np.hstack([np.eye(rank), np.where(np.abs(F) <= EPS * n, 0.0, F)])
    return C, z


def _shared_with_bias(W: Array, Q: Array, centre: Centre) -> Array:
    """Return the shortest [bias; W] with ``bias + mean_A W = mean_B`` and the same fit as W.

    Along d, the part of the means outside the span of Q, a change of W acts like a bias.
    """
    d = centre.A - Q @ (Q.T @ centre.A)
    d -= Q @ (Q.T @ d)
    d[np.abs(d) <= EPS * (len(d) + MEAN_ULPS) * np.abs(centre.A)] = 0.0
    length = np.hypot(1.0, column_norms(d[:, None])[0] if d.any() else 0.0)
    share = (centre.B - centre.A @ W) / length
    return np.vstack([share / length, W + np.outer(d / length, share)])


def with_bias(W: Array, centre: Centre) -> Array:
    """Return [bias; W] with ``bias + mean_A W = mean_B``."""
    return np.vstack([centre.B - centre.A @ W, W])
