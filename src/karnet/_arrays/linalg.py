"""Products, distances and factorisations of arrays of any library, on their devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from scipy.sparse import csc_array
from scipy.spatial.distance import cdist

from .devices import SETTINGS, is_cuda, own_function
from .devices import slow_in_float64 as slow_in_float64
from .namespace import (
    float64,
    full,
    indices,
    is_host,
    joined,
    like,
    namespace,
    row_squares,
    to_numpy,
)

# Columns from which on part of a symmetric product is mirrored on a device.
MIRRORED_COLUMNS = 512
# Blocks of columns of such a product: of 4 x 4 blocks, 10 are computed.
MIRRORED_BLOCKS = 4
# Blocks have a multiple of this number of columns: matrix products of odd shapes take several times
# as long.
ALIGNED_COLUMNS = 64
# Columns of a triangle that are solved for at a time on a device.
TRIANGLE_BLOCK = 128
# Rows over which a product is summed in float32 before float64 takes over.
SINGLE_ROWS = 2**12
# Largest number of columns that LAPACK treats as one block.
LAPACK_BLOCK = 64
# Rows of a triangle up to which LAPACK inverts it.
SMALL_TRIANGLE = 64
# Columns from which on a matrix product is faster than the sum of their differences.
FEWEST_MULTIPLIED = 8
# Rows up to which a matrix product takes longer to prepare than it saves.
FEW_ROWS = 8
# Distances from which on a matrix product is faster in double precision too.
MANY_DISTANCES = 2**19
# A sum of squares is a rounding error below this share of the terms of which it is the difference,
# in double and in single precision.
SQUARE_DIGITS = {"d": 1e-14, "f": 5e-6}
# Numbers of a block of distances that stays in the cache of a core.
CACHED = 2**16
# Distances on a device that are computed at a time.
MULTIPLIED = 2**28
# The modulus of hashed integers; products of two remainders fit into 64 bits.
PRIME = 2**31 - 1
# Random coefficients of polynomials that hash integers.
POLYNOMIALS = tuple(map(tuple, np.random.RandomState(0).randint(1, PRIME, (4, 4)).tolist()))
# The largest finite number, for products that overflow.
LARGEST = float(np.finfo(np.float64).max)


def add_to_diagonal(A: Any, value: float) -> Any:
    """Return ``A + value I``."""
    if not value:
        return A
    return A + value * namespace(A).eye(A.shape[0], dtype=A.dtype, device=A.device)


def add_outer(K: Any, scale: float, x: Any) -> None:
    """Add ``scale x x'`` to a symmetric matrix K, in its memory."""
    if is_host(K) and K.flags.c_contiguous and K.size:
        blas.dger(scale, x, x, a=K.T, overwrite_a=1)
    else:
        K += scale * (x[:, None] * x)


def affine(A: Any, V: Any, w: Any) -> Any:
    """Return ``A V + w``, on a GPU as one product ``[A, 1] [V; w]`` if it is bound by memory."""
    if is_cuda(A) and V.shape[1] >= 2 * V.shape[0]:
        # Columns of zeros: matrix products of odd shapes take several times as long.
        pad = -(V.shape[0] + 1) % 8
        ones, zeros = full(A, (A.shape[0], 1), 1.0), full(A, (A.shape[0], pad), 0.0)
        below = full(A, (pad, V.shape[1]), 0.0)
        return joined([A, ones, zeros], axis=1) @ joined([V, w[None, :], below])
    Z = A @ V
    Z += w
    return Z


def careful_affine(A: Any, V: Any, w: Any) -> Any:
    """Return ``A V + w`` of NumPy arrays, with no overflow on the way and a finite result."""
    return careful_product(np.hstack([A, np.ones((len(A), 1))]), np.vstack([V, w]))


def careful_product(A: Any, B: Any) -> Any:
    """Return ``A B`` of NumPy arrays, clipped to the range of float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        P = A @ B
        if not np.isfinite(P).all():
            # Rows and columns are scaled to about 1 by powers of 2, and scaled back in the end.
            rows = np.frexp(np.abs(A).max(axis=1, keepdims=True, initial=0.0))[1]
            columns = np.frexp(np.abs(B).max(axis=0, keepdims=True, initial=0.0))[1]
            P = np.ldexp(np.ldexp(A, -rows) @ np.ldexp(B, -columns), rows + columns)
    return np.clip(P, -LARGEST, LARGEST)


def single_product(A: Any) -> Any:
    """Return ``A'A`` to about single precision: a sum of float32 products of a few rows each."""
    xp = namespace(A)
    single = xp.astype(A, xp.float32)
    K = xp.zeros((A.shape[1], A.shape[1]), dtype=xp.float64, device=A.device)
    for start in range(0, A.shape[0], SINGLE_ROWS):
        part = single[start : start + SINGLE_ROWS, :]
        K += xp.astype(part.T @ part, xp.float64)
    return K


def symmetric_product(A: Any) -> Any:
    """Return ``A'A``."""
    n = A.shape[1]
    if is_host(A) or n < MIRRORED_COLUMNS:
        return A.T @ A  # NumPy computes one half and mirrors it
    width = -(-n // (MIRRORED_BLOCKS * ALIGNED_COLUMNS)) * ALIGNED_COLUMNS
    K = namespace(A).empty((n, n), dtype=A.dtype, device=A.device)
    for start in range(0, n, width):
        stop = min(start + width, n)
        K[start:stop, start:] = A[:, start:stop].T @ A[:, start:]
        K[stop:, start:stop] = K[start:stop, stop:].T
    return K


def narrow_product(A: Any, B: Any) -> Any:
    """Return ``A'B`` for few columns of B; as ``(B'A)'`` it takes half the time in memory."""
    return (B.T @ A).T if is_host(A) else A.T @ B


def qr(A: Any, B: Any) -> tuple[Any, Any]:
    """Return R and Q'B of a QR decomposition of A; both are on a device."""
    n, k, both = A.shape[1], min(A.shape), joined([A, B], axis=1)
    own, xp = own_function(A, "triangle"), namespace(A)
    R = xp.linalg.qr(both).R if own is None else own(both)
    return xp.triu(R[:k, :n]), R[:k, n:]


def triangle(A: Any) -> Any:
    """Return R of a QR decomposition of A."""
    if is_host(A):
        return np.triu(lapack.dgeqrf(A, lwork=LAPACK_BLOCK * A.shape[1])[0][: min(A.shape)])
    own, xp = own_function(A, "triangle"), namespace(A)
    return xp.linalg.qr(A).R if own is None else own(A)


def triangular_rcond(R: Any) -> float:
    """Return the reciprocal condition number of an upper triangle R, in the norm of column sums.

    In memory LAPACK estimates it: R is its own LU factorisation.
    """
    if is_host(R):
        return float(lapack.dgecon(R, lapack.dlange("1", R))[0]) if R.size else 1.0
    xp, inverse = namespace(R), inverse_triangle(R)
    norms = [float(xp.max(xp.sum(xp.abs(each), axis=0))) for each in (R, inverse)]
    return 1.0 / (norms[0] * norms[1]) if 0.0 < norms[0] * norms[1] < np.inf else 0.0


def certain_rcond(R: Any) -> float:
    """Return a lower bound of the smallest over the largest singular value of a triangle R."""
    xp, inverse = namespace(R), inverse_triangle(R)
    product = float(xp.linalg.vector_norm(R)) * float(xp.linalg.vector_norm(inverse))
    return 1.0 / product if 0.0 < product < np.inf else 0.0


def _typed(library: Any, name: str, x: Any) -> Any:
    """Return a function of BLAS or LAPACK for the precision of x."""
    return getattr(library, ("s" if x.dtype == np.float32 else "d") + name)


def inverse_triangle(R: Any) -> Any:
    """Return the inverse of an upper triangle R; values below the diagonal are not read.

    It is not finite if R is singular. On one thread, LAPACK's function takes longer than products
    of halves.
    """
    xp, n, half = namespace(R), R.shape[0], R.shape[0] // 2
    if not is_host(R):
        return solve_triangle(R, xp.eye(n, dtype=R.dtype, device=R.device))
    if n <= SMALL_TRIANGLE:
        inverse, info = _typed(lapack, "trtri", R)(R) if R.size else (R, 0)
        return np.full_like(R, np.inf) if info else np.triu(inverse)
    inverse, product = np.zeros((n, n), R.dtype, order="F"), _typed(blas, "trmm", R)
    A = inverse[:half, :half] = inverse_triangle(R[:half, :half])
    C = inverse[half:, half:] = inverse_triangle(R[half:, half:])
    inverse[:half, half:] = product(1.0, C, product(-1.0, A, R[:half, half:]), side=1)
    return inverse


def independent_first(R: Any) -> NDArray[np.intp]:
    """Return an order of the columns of R in which each depends little on those before."""
    if is_host(R):
        return np.asarray(lapack.dgeqp3(R, lwork=(R.shape[1] + 1) * LAPACK_BLOCK)[1] - 1)
    own = own_function(R, "pivots")
    if own is None:
        return independent_first(to_numpy(R))
    # The pivots of an LU decomposition, after random combinations of the rows.
    order = list(range(R.shape[1]))
    for i, j in enumerate(own((random_signs(R.shape[0], R) @ R).T)):
        order[i], order[j] = order[j], order[i]
    return np.array(order)


def random_signs(n: int, x: Any) -> Any:
    """Return an n x n matrix of random signs, of the library of x on the device of x."""
    numbers = hashed(indices(x, n * n), POLYNOMIALS[0])
    return namespace(x).reshape(1.0 - 2.0 * float64(numbers % 2), (n, n))


def hashed(numbers: Any, polynomial: tuple[int, ...]) -> Any:
    """Return a cubic polynomial of integers modulo `PRIME`, its coefficients the highest first.

    For random coefficients, the values for any four numbers are independent.
    """
    numbers, value = numbers % PRIME, 0
    for coefficient in polynomial:
        value = (value * numbers + coefficient) % PRIME
    return value


def cholesky_factor(K: Any, overwrite: bool = False) -> Any:
    """Return the upper triangle R with ``K = R'R``, or None if K is not positive definite.

    In memory, Fortran order and `overwrite` save a copy.
    """
    if is_host(K):
        R, info = _typed(lapack, "potrf", K)(K, clean=1, overwrite_a=overwrite)
        return None if info else R
    own, xp = own_function(K, "cholesky_factor"), namespace(K)
    try:
        R = xp.linalg.cholesky(K).T if own is None else own(K)
    except np.linalg.LinAlgError:
        return None
    return R if R is not None and float(xp.sum(R)) < np.inf else None


def times_triangle(A: Any, R: Any, overwrite: bool = False) -> Any:
    """Return ``A R`` for an upper triangle R."""
    if is_host(A):
        return np.asarray(blas.dtrmm(1.0, R, A.T, trans_a=1, overwrite_b=overwrite)).T
    return A @ R


def signed_sums(A: Any, places: Any, signs: Any, n_sums: int) -> Any:
    """Return sums of rows of A: each row is added, with its signs, at its places."""
    if is_host(A):
        starts = np.arange(0, places.size + 1, places.shape[1])
        S = csc_array((signs.ravel(), places.ravel(), starts), shape=(n_sums, len(A)))
        return S @ A
    own = own_function(A, "signed_sums")
    if own is not None:
        return own(A, places, signs, n_sums)
    return like(A, signed_sums(to_numpy(A), to_numpy(places), to_numpy(signs), n_sums))


def powers_of_2(x: Any) -> Any:
    """Return powers of 2 near positive numbers, and 1 for zero: division by them does not round."""
    if is_host(x):
        return np.where(x > 0.0, np.ldexp(1.0, np.frexp(x)[1] - 1), 1.0)
    xp = namespace(x)
    return xp.where(x > 0.0, xp.exp2(xp.floor(xp.log2(xp.where(x > 0.0, x, 1.0)))), 1.0)


def solve_triangle(R: Any, B: Any, transposed: bool = False) -> Any:
    """Return the solution of ``R X = B``, or of ``R' X = B``, for an upper triangle R."""
    if is_host(R):
        solve = _typed(blas, "trsm", R)
        return np.asarray(solve(1.0, R, B, trans_a=int(transposed))) if B.size else B
    own, xp = own_function(R, "solve_triangle"), namespace(R)
    if own is not None:
        return own(R, B, transposed)
    R = xp.triu(R)
    return xp.linalg.solve(R.T if transposed else R, B)


def over_triangle(A: Any, R: Any, overwrite: bool = False) -> Any:
    """Return ``A R^-1`` for an upper triangle R; entries below the diagonal are ignored."""
    if is_host(A):
        return np.asarray(blas.dtrsm(1.0, R, A.T, trans_a=1, overwrite_b=overwrite)).T
    # A triangular solver would take twice as long as products with inverses of diagonal blocks.
    Q = namespace(A).empty(A.shape, dtype=A.dtype, device=A.device)
    for start in range(0, R.shape[0], TRIANGLE_BLOCK):
        block = slice(start, min(start + TRIANGLE_BLOCK, R.shape[0]))
        rest = A[:, block] - Q[:, :start] @ R[:start, block] if start else A[:, block]
        Q[:, block] = rest @ inverse_triangle(R[block, block])
    return Q


def cholesky(K: Any) -> tuple[Callable[[Any], Any], float]:
    """Return the map from M to ``K^-1 M`` and the reciprocal condition number of K.

    K is symmetric and on a device. Its inverse is computed for the condition number, which is 0 if
    K is not positive definite.
    """
    own = own_function(K, "cholesky")
    factor = _cholesky(K) if own is None else own(K)
    if factor is None:
        return (lambda M: M), 0.0
    xp = namespace(K)
    norms = [xp.max(xp.sum(xp.abs(each), axis=0)) for each in (K, factor[1])]
    product = float(norms[0] * norms[1])
    return factor[0], 1.0 / product if 1.0 <= product < np.inf else 0.0


def _cholesky(K: Any) -> tuple[Callable[[Any], Any], Any] | None:
    """Return the map from M to ``K^-1 M`` and the inverse of K by the array standard."""
    xp = namespace(K)
    try:
        L = xp.linalg.cholesky(K)
        inverse = xp.linalg.inv(K)
    except np.linalg.LinAlgError:
        return None
    if not float(xp.sum(L)) < np.inf:  # CuPy returns NaN for a matrix that is not definite
        return None
    return (lambda M: xp.linalg.solve(K, M)), inverse


def distances(X: Any, Z: Any, p: int) -> Any:
    """Return the Manhattan (p=1) or Euclidean (p=2) distances between rows of X and rows of Z.

    The distance of equal rows is exactly 0.
    """
    if is_host(X):
        large = p == 2 and X.shape[1] >= FEWEST_MULTIPLIED and len(X) * len(Z) >= MANY_DISTANCES
        if len(Z) and (large or (X.dtype == np.float32 and len(X) > FEW_ROWS)):
            return _cached_distances(X, Z, p)
        D = np.asarray(cdist(X, Z, {1: "cityblock", 2: "euclidean"}[p]))
        return D.astype(X.dtype, copy=False)
    if p == 2 and X.shape[1] >= FEWEST_MULTIPLIED and is_cuda(X):
        return _multiplied_distances(X, Z)
    by_columns = is_cuda(X) and X.shape[1] <= SETTINGS.few_columns
    own = None if by_columns else own_function(X, "distances")
    if own is not None:
        return own(X, Z, p)
    xp = namespace(X)
    total = xp.zeros((X.shape[0], Z.shape[0]), dtype=X.dtype, device=X.device)
    for j in range(X.shape[1]):
        difference = X[:, j : j + 1] - Z[:, j]
        total += xp.abs(difference) if p == 1 else difference * difference
    return total if p == 1 else xp.sqrt(total)


def _multiplied_distances(X: Any, Z: Any) -> Any:
    """Return Euclidean distances on a device: products of matrices in double precision."""
    xp, centre = namespace(X), namespace(Z).mean(Z, axis=0)
    P, Q = (float64(M - centre) for M in (X, Z))
    squares = [row_squares(M) for M in (P, Q)]
    D = xp.empty((X.shape[0], Z.shape[0]), dtype=X.dtype, device=X.device)
    step = max(MULTIPLIED // max(Z.shape[0], 1), 1)
    for rows in (slice(start, start + step) for start in range(0, X.shape[0], step)):
        sums = squares[0][rows, None] + squares[1]
        total = sums - 2.0 * (P[rows] @ Q.T)
        total = xp.where(total <= SQUARE_DIGITS["d"] * sums, xp.zeros_like(total), total)
        D[rows] = xp.astype(xp.sqrt(total), X.dtype)
    return D


def lower_distances(X: Any, p: int) -> Any:
    """Return the distances between the rows of X; NumPy's are undefined above the diagonal."""
    return _cached_distances(X, X, p, lower=True) if is_host(X) else distances(X, X, p)


def _cached_distances(X: Any, Z: Any, p: int, lower: bool = False) -> Any:
    """Return distances between rows; if `lower` is set, only those below the diagonal."""
    D = np.empty((len(X), len(Z)), dtype=X.dtype)
    for rows, block in distance_blocks(X, Z, p, lower):
        D[rows, : block.shape[1]] = block
    return D


def distance_blocks(X: Any, Z: Any, p: int, lower: bool = False) -> Iterator[tuple[slice, Any]]:
    """Yield slices of the rows of X and their distances, computed in the cache of a core.

    Squares of differences are summed by one matrix product. For Manhattan distances, columns of two
    values belong to it too: their difference is a square over its size. If `lower` is set, the
    distances above the diagonal are left out, apart from a few near it.
    """
    d, single = X.shape[1], X.dtype
    squared, others = np.full((2, d), [[d >= FEWEST_MULTIPLIED], [d < FEWEST_MULTIPLIED]])
    centre, unit = Z.mean(axis=0), np.ones(1)
    if p == 1:
        low = np.minimum(X.min(axis=0), Z.min(axis=0))
        high = np.maximum(X.max(axis=0), Z.max(axis=0))
        squared = np.all([np.all((low == M) | (high == M), axis=0) for M in (X, Z)], axis=0)
        squared &= low < high
        squared &= squared.sum() >= FEWEST_MULTIPLIED
        others = (low < high) & ~squared
        centre, unit = low, np.sqrt((high - low)[squared], dtype=np.float64)
    # Roots of sums lose half of the digits, but sums of few values do not.
    dtype = X.dtype if p == 1 else np.dtype(np.float64)
    P, Q = (((M - centre)[:, squared] / unit).astype(dtype) for M in (X, Z))
    squares = [np.sum(M * M, axis=1) for M in (P, Q)]
    # The last two columns add the squares of both rows.
    left = np.column_stack([-2.0 * P, np.ones(len(P), dtype), squares[0]])
    right = np.ascontiguousarray(np.column_stack([Q, squares[1], np.ones(len(Q), dtype)]).T)
    # Rows whose distance is a rounding error have almost the same squares.
    rounding = 2.0 * SQUARE_DIGITS[dtype.char] * squares[0]
    X, Z = (np.ascontiguousarray(M[:, others], dtype=np.float64) for M in (X, Z))
    for rows in cached_rows(len(X), len(Z)):
        columns = slice(rows.stop if lower else len(Z))
        shape = rows.stop - rows.start, len(range(len(Z))[columns])
        total = np.zeros(shape, single)
        if squared.any():
            product = left[rows] @ right[:, columns]
            if product.min() <= rounding[rows].max():
                product[product <= rounding[rows, None]] = 0.0
            total = product.astype(single, copy=False)
        if p == 2 and squared.all():
            np.sqrt(total, out=total)
        if others.any():
            metric = "cityblock" if p == 1 else "euclidean"
            total += cdist(X[rows], Z[columns], metric).astype(single, copy=False)
        yield rows, total


def cached_rows(n_rows: int, n_columns: int) -> list[slice]:
    """Return slices of the rows of a matrix, each of which stays in the cache."""
    step = max(CACHED // max(n_columns, 1), 1)
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
