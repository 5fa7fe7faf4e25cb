"""Sketch and apply: the triangle of a tall matrix from matrix products, whatever its condition.

A sketch S A holds a few random combinations of the rows of A. Lengths ``||A x||`` and ``||S A x||``
differ by less than a factor 2 for all x. Its QR decomposition therefore tells which columns of A
are independent, and gives a triangle R for which ``Q = A_1 R^-1``, with A_1 the independent
columns, has a condition number of about 3. Gram products of Q then keep all digits. Where A_1 is
well-conditioned itself, its own products do, and R is the unit matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._rows.memory import Block
from .._util.types import Array, Indices
from . import lapack
from .lapack import EPS, column_norms
from .minimum_norm import MinimumNorm, with_bias, without_rounding
from .problem import Problem, Reduce, Solution, residual_products, with_ridge
from .statistics import (
    NEAR_SQUARED_MEAN,
    Centre,
    Gram,
    Pair,
    Triangle,
    block_centre,
    minus,
    weighted,
)

# Rows of the sketch to which each row of A is added: with one, a few large rows can hide others.
N_COPIES = 4
# Rows of the sketch per column of A.
ROWS_PER_COLUMN = 4
# Numbers in a sketch above which one for each level of a tree of merges takes too much memory.
LARGE_SKETCH = 2**20
# Share of the cut-off below which a column of the sketch depends on those before.
DEPENDENT_SHARE = 0.2
# The same at least, in units of machine precision: rounding in the sketch.
DEPENDENT_ULPS = 32.0
# Reciprocal condition of the independent columns above which their own products are used.
PLAIN_RCOND = 1e-5
# Least reciprocal condition of Q, times the root of its number of columns: about 0.2 is usual.
LEAST_RCOND_OF_Q = 0.03
# Reciprocal condition of R above which its inverse keeps enough digits to be refined: to multiply
# by it takes less time in memory than to solve.
INVERTED_RCOND = 1e-8
# Factor by which singular values in a sketch may be off.
CERTAIN_FACTOR = 3.0
# Share of independent columns above which products of all columns take less time than a selection.
MOST_COLUMNS = 0.95
# Rows of a triangle from which on a device computes its singular values faster than the host.
LARGE_SVD = 512
# Most steps of refinement.
MAX_STEPS = 4
# Corrections are rounding below this share of the rounding error of residuals, in the worst case.
QUIET = 3e-3
# Corrections may be rounding below this share.
NOISE = 0.3
# Ratio of successive corrections above which refinement does not converge.
SLOW_RATE = 0.1


def hashed_places(start: int, n_rows: int, n_sums: int, x: Any) -> tuple[Any, Any]:
    """Return the sums to which each row is added, and its signs there, as arrays like x.

    Both are a hash of the number of the row, so that they do not depend on how rows are cut. Each
    of the copies of a row has its own range of sums.
    """
    xp, each = arrays.namespace(x), n_sums // N_COPIES
    rows = arrays.indices(x, n_rows) + start
    values = [algebra.hashed(rows, polynomial) for polynomial in algebra.POLYNOMIALS[:N_COPIES]]
    places = [(value // 2) % each + copy * each for copy, value in enumerate(values)]
    signs = [1.0 - 2.0 * arrays.float64(value % 2) for value in values]
    return xp.stack(places, axis=1), xp.stack(signs, axis=1)


@dataclass(frozen=True)
class Sketch:
    """Signed sums of the rows of A, and of the ones, times the roots of their weights."""

    centre: Centre
    SA: Array
    S1: Array

    @classmethod
    def of(
        cls, A: Array, B: Array, weight: Array | None, bias: bool, shift: Array | None, start: int
    ) -> Sketch:
        """Return the statistic of one block of rows, after a shift is subtracted from them."""
        n_sums = ROWS_PER_COLUMN * A.shape[1]
        places, signs = hashed_places(start, A.shape[0], n_sums, A)
        if weight is not None:
            signs = signs * arrays.namespace(weight).sqrt(weight)[:, None]
        if shift is not None:
            A = minus(A, arrays.like(A, shift))
        ones = arrays.full(A, (A.shape[0], 1 if bias else 0), 1.0)
        sums = [algebra.signed_sums(each, places, signs, n_sums) for each in (A, ones)]
        return cls(block_centre(A, B, weight, bias), *sums)

    def merge(self, other: Sketch, /) -> Sketch:
        """Return the sketch of the rows of both."""
        centre = self.centre.merge(other.centre)
        return Sketch(centre, self.SA + other.SA, self.S1 + other.S1)

    @property
    def large(self) -> bool:
        """Whether sketches take so much memory that they are added up in sequence."""
        return bool(self.SA.shape[0] * self.SA.shape[1] > LARGE_SKETCH)

    def absorb(self, other: Sketch, /) -> Sketch:
        """Return the sketch of the rows of both, in the memory of this one."""
        sums = self.SA
        sums += other.SA
        return Sketch(self.centre.merge(other.centre), sums, self.S1 + other.S1)

    def about_means(self) -> Array:
        """Return the sketch of the rows about their means."""
        # Every row is added N_COPIES times.
        Y = self.SA / np.sqrt(N_COPIES)
        for ones in (self.S1[:, k] for k in range(self.S1.shape[1])):
            Y -= ones[:, None] * (self.centre.A / np.sqrt(N_COPIES))
        return Y


@dataclass(frozen=True)
class Basis:
    """Independent columns A_1, and all columns in terms of these.

    D scales columns to similar lengths; then ``A D^-1`` is about ``A_1 D_1^-1 R^-1 [R, S]``.
    """

    columns: Indices | None  # the numbers of the columns A_1; None for all columns in their order
    scale: Array  # the diagonal of D
    scale_1: Array  # the diagonal of D_1
    R: Array  # the triangle of A_1 D_1^-1 in the sketch
    RS: Array  # [R, S], with columns in the order of A
    rest: float  # the part of the sketch outside A_1, relative to its largest column
    reciprocal_condition: float  # of R

    @classmethod
    def of(cls, Y: Array, rcond: float) -> Basis | None:
        """Return the basis of the columns of a sketch Y, or None if none can be trusted."""
        xp, n = arrays.namespace(Y), Y.shape[1]
        scale = algebra.powers_of_2(xp.sqrt(arrays.column_squares(Y)))
        R = algebra.triangle(Y / scale)
        least = max(DEPENDENT_SHARE * rcond, DEPENDENT_ULPS * EPS)
        reciprocal = algebra.triangular_rcond(R)
        if reciprocal > lapack.ESTIMATE_FACTOR * least:
            return cls(None, scale, scale, R, R, 0.0, reciprocal)
        order = algebra.independent_first(R)
        R = algebra.triangle(arrays.selected_columns(R, order))
        sizes = np.abs(arrays.to_numpy(xp.linalg.diagonal(R)))
        largest = sizes.max(initial=0.0)
        dependent = np.flatnonzero(sizes <= least * largest)
        r = int(dependent[0]) if len(dependent) else n
        rest = float(xp.max(xp.abs(R[r:, r:]))) / largest if r < n and largest else 0.0
        if not r or rest > lapack.ESTIMATE_FACTOR * least:
            return None
        RS = arrays.selected_columns(R[:r, :], np.argsort(order))
        scale_1, R = arrays.selected(scale, order[:r]), R[:r, :r]
        return cls(order[:r], scale, scale_1, R, RS, rest, algebra.triangular_rcond(R))

    @property
    def well_conditioned(self) -> bool:
        """Whether the products of A_1 keep enough digits to be refined."""
        return bool(self.reciprocal_condition * np.sqrt(self.R.shape[0]) >= PLAIN_RCOND)

    @cached_property
    def coordinates(self) -> Array:
        """All columns as combinations of the independent ones, ``R^-1 [R, S]``."""
        return algebra.solve_triangle(self.R, self.RS)

    def rows_of_independent(self, M: Array) -> Array:
        """Return the rows of M that belong to independent columns of A."""
        return M if self.columns is None else arrays.selected(M, self.columns)

    def of_independent(self, W: Array) -> Array:
        """Return coefficients of A_1 with the same fit as coefficients W of A."""
        if self.columns is None:
            return W
        F, scale, scale_1 = map(arrays.to_numpy, (self.coordinates, self.scale, self.scale_1))
        return (F @ (scale[:, None] * W)) / scale_1[:, None]


@dataclass(frozen=True)
class SketchedTriangle:
    """The triangle ``T = L [R, S] D`` of A, where ``L'L`` are the Gram products of Q."""

    basis: Basis
    centre: Centre
    L: Array
    T: Array  # on the device of the rows
    triangle: Triangle

    @classmethod
    def of(cls, p: Problem) -> SketchedTriangle | None:
        """Return the triangle of a problem, or None if a sketch cannot be trusted with it."""
        if p.sampled is None or not lapack.safe_to_square(p.sampled.AA):
            return None
        centre, Y = _sketch(p, p.sampled)
        if not lapack.safe_to_square(Y):
            return None
        basis = Basis.of(Y, lapack.default_rcond(p.n) if p.alpha else p.rcond)
        if basis is None:
            return None
        G, C = _products_of(p, basis, centre)
        L = algebra.cholesky_factor(G)
        if L is None or (not basis.well_conditioned and _scaled_rcond(L) < LEAST_RCOND_OF_Q):
            return None
        T = (L @ (basis.coordinates if basis.well_conditioned else basis.RS)) * basis.scale
        Z = algebra.solve_triangle(L, C, transposed=True)
        return cls(basis, centre, L, T, arrays.on_host(Triangle(centre, T, Z)))

    def inverse(self, p: Problem) -> MinimumNorm:
        """Return the map from Z to the solution W of ``T W = Z``."""
        T, centre, basis = self.triangle.R, self.triangle.centre if p.bias else None, self.basis
        # The singular values of T are those of the triangle in the sketch to a factor of 2.
        if algebra.certain_rcond(basis.R) <= CERTAIN_FACTOR * p.rcond:
            small = min(T.shape) < LARGE_SVD
            return MinimumNorm.of(p.rcond, T if small else self.T, centre, vectors=True)
        if basis.columns is None:
            return MinimumNorm(p.n_columns, self._from_rows, centre)
        F = without_rounding(basis.coordinates, p.n)
        if basis.rest <= lapack.default_rcond(p.n):
            return MinimumNorm.in_rows(F * basis.scale, self._to_rows, centre)
        norms = column_norms(T)
        unit = F * (basis.scale / arrays.like(F, norms))
        shortest = MinimumNorm.in_rows(unit, self._to_rows, centre).solve
        return MinimumNorm(len(T) + p.bias, lambda Z: shortest(Z) / norms[:, None], centre)

    def _from_rows(self, Z: Array) -> Array:
        """Return W from Z at full rank."""
        return arrays.to_numpy(self._to_rows(Z) / self.basis.scale[:, None])

    def _to_rows(self, Z: Array) -> Array:
        """Return coefficients of A_1 D_1^-1 from Z."""
        z = algebra.solve_triangle(self.L, arrays.like(self.L, Z))
        return z if self.basis.well_conditioned else algebra.solve_triangle(self.basis.R, z)

    def correction(self, p: Problem, W: Array) -> tuple[Array, Array]:
        """Return Q'E for the residuals E of W, and the norms of E."""
        basis, near = self.basis, self.centre.near(self.basis.scale)
        # To select most columns would take longer than products with all of them.
        some = basis.columns is not None and 2 * len(basis.columns) < p.n
        reduce, centre = (
            _over_independent(p, basis, self.centre) if some else (p.reduce, self.centre)
        )
        W = basis.of_independent(W) if some else W
        sums = reduce(partial(residual_products, centre, near, W), small_chunks=True)
        C = sums.first if some else basis.rows_of_independent(sums.first)
        C = C / basis.scale_1[:, None]
        if not basis.well_conditioned:
            C = algebra.solve_triangle(basis.R, C, transposed=True)
        dZ = arrays.to_numpy(algebra.solve_triangle(self.L, C, transposed=True))
        return dZ, np.sqrt(arrays.to_numpy(sums.second))


def _scaled_rcond(R: Array) -> float:
    """Return the reciprocal condition of a triangle, comparable between sizes."""
    return algebra.triangular_rcond(R) * float(np.sqrt(R.shape[0]))


def _rows_rcond(R: Array) -> float:
    """Return the reciprocal condition of a triangle after its rows are scaled alike.

    It bounds the digits that its inverse loses: these do not depend on the scale of rows.
    """
    xp = arrays.namespace(R)
    return algebra.triangular_rcond(R / algebra.powers_of_2(xp.max(xp.abs(R), axis=1))[:, None])


def _sketch(p: Problem, sampled: Gram) -> tuple[Centre, Array]:
    """Return the centre, and the sketch of the rows about it with zeros for constant columns."""
    shift, xp = None, arrays.namespace(sampled.AA)
    if p.bias:
        squares, mean = xp.linalg.diagonal(sampled.AA), sampled.centre.A
        # Means that are far from zero are subtracted first: the sketch would lose digits.
        if bool(xp.any(sampled.centre.weight * mean**2 > NEAR_SQUARED_MEAN * squares)):
            shift = mean
    sketch = p.reduce(partial(Sketch.of, bias=p.bias, shift=shift), numbered=True)
    centre, Y = sketch.centre, sketch.about_means()
    del sketch
    if shift is not None:
        zeros = xp.zeros_like(centre.B)
        centre = centre.shifted(arrays.joined([arrays.like(zeros, shift), zeros]))
    if p.bias:
        norms, xp = arrays.column_squares(Y) ** 0.5, arrays.namespace(Y)
        Y = xp.where(norms <= p.noise(centre), 0.0, Y)
    return centre, Y


def _products_of(p: Problem, basis: Basis, centre: Centre) -> tuple[Array, Array]:
    """Return Q'Q and Q'B, where Q is ``A_1 D_1^-1`` if that is well-conditioned."""
    near, scale, columns = centre.near(basis.scale), basis.scale_1, basis.columns
    if not basis.well_conditioned:
        reduce, centre = _over_independent(p, basis, centre)
        R = basis.R * scale
        inverse = arrays.is_host(R) and _rows_rcond(basis.R) > INVERTED_RCOND
        R = algebra.inverse_triangle(R) if inverse else R
        both = reduce(partial(_products, centre, near, R, inverse))
        return both.first, both.second
    some = columns is not None and len(columns) < MOST_COLUMNS * p.n
    reduce, centre = _over_independent(p, basis, centre) if some else (p.reduce, centre)
    both = reduce(partial(_products, centre, near, None, False))
    G, C = both.first, both.second
    if not some:
        G, C = basis.rows_of_independent(G), basis.rows_of_independent(C)
        G = G if columns is None else arrays.selected_columns(G, columns)
    return G / (scale[:, None] * scale), C / scale[:, None]


def _over_independent(p: Problem, basis: Basis, centre: Centre) -> tuple[Reduce, Centre]:
    """Return the reduction over rows of A_1, and their centre."""
    if basis.columns is None:
        return p.reduce, centre
    return p.over_columns(basis.columns), centre.of_columns(basis.columns)


def _products(centre: Centre, near: bool, R: Array | None, inverse: bool, *block: *Block) -> Pair:
    """Return Q'Q and Q'B of a block of rows, where ``Q = A R^-1``, or A without R.

    If `inverse`, R is given as its inverse. Near means are subtracted from the products of A.
    """
    if R is None and near:
        return _products_about_zero(centre, *block)
    Q, B = centre.subtract(*block)
    if R is not None:
        apply = algebra.times_triangle if inverse else algebra.over_triangle
        Q = apply(Q, arrays.like(Q, R), overwrite=bool(centre.weight) and arrays.is_host(Q))
    return Pair(algebra.symmetric_product(Q), algebra.narrow_product(Q, B))


def _products_about_zero(centre: Centre, A: Array, B: Array, weight: Array | None) -> Pair:
    right = arrays.joined([B - centre.B, arrays.full(A, (A.shape[0], 1), 1.0)], axis=1)
    A, right = weighted(A, right, weight)
    mean, products = centre.A[:, None], algebra.narrow_product(A, right)
    sums, total = products[:, -1:], right[:, -1:].T @ right
    AA = algebra.symmetric_product(A)
    AA -= sums * mean.T + mean * (sums - total[0, -1] * mean).T
    return Pair(AA, products[:, :-1] - mean * total[:, :-1])


def solve_by_sketch(p: Problem) -> Solution | None:
    """Return the solution from the triangle by a sketch, refined against the data."""
    found = SketchedTriangle.of(p)
    if found is None:
        return None
    triangle = found.triangle
    inverse = found.inverse(p) if not p.alpha else _ridge_inverse(p, triangle.R)
    W = _refined(p, found, inverse)
    if W is None:
        return None
    if not p.alpha:
        return Solution(inverse.coef(W), inverse.rank, "sketch", triangle)
    coef = with_bias(W, triangle.centre) if p.bias else W
    return Solution(coef, inverse.rank + p.bias, "sketch", triangle)


def _ridge_inverse(p: Problem, T: Array) -> MinimumNorm:
    """Return the map to the solution from the right-hand side of the triangle with a ridge."""
    R, _ = with_ridge(T, np.empty((len(T), 0)), p.alpha)
    if algebra.triangular_rcond(R / column_norms(R)) > lapack.ESTIMATE_FACTOR * p.n * p.rcond:
        return MinimumNorm(p.n, partial(algebra.solve_triangle, R), None)
    return MinimumNorm.of(p.rcond, R)


def _refined(p: Problem, found: SketchedTriangle, inverse: MinimumNorm) -> Array | None:
    """Return the refined solution, or None if it does not converge.

    Each right-hand side is refined as long as its corrections shrink. A small correction after
    which the next one is as large was rounding, and is taken back.
    """
    T, Z = found.triangle.R, found.triangle.Z
    scale, rcond = arrays.to_numpy(found.basis.scale)[:, None], found.basis.reciprocal_condition
    full = len(T) == p.n and inverse.rank >= p.n and not p.alpha

    def solve(Z: Array, W: Array | None = None) -> Array:
        return inverse.solve(with_ridge(T, Z, p.alpha, W)[1] if p.alpha else Z)

    W = last = solve(Z)
    before, size_before = _norms(Z), _norms(scale * W)
    active = before >= 0.0
    for _ in range(MAX_STEPS):
        dZ, residual = found.correction(p, W)
        D, noise = solve(dZ, W), EPS * residual / rcond
        # Along directions below the cut-off, residuals are not orthogonal to A.
        step = _norms(dZ if full else T @ D)
        slow = active & (step > np.maximum(SLOW_RATE * before, QUIET * noise))
        if (before > NOISE * noise)[slow].any():
            return None
        W = np.where(slow, last, W)
        active &= ~slow & (step > QUIET * noise)
        if not active.any():
            return W
        last, W = W, W + np.where(active, D, 0.0)
        size, total = _norms(scale * D), _norms(scale * W)
        converged = (size * size <= EPS * total * size_before) & (step > NOISE * noise)
        if converged[active].all():
            return W
        before, size_before = step, size
    return None


def _norms(M: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", M, M)))
