r"""Kernels of infinitely wide random layers, in closed form.

For hidden units ``f(x v + w)`` with random weights, the mean over units of ``f(x) f(z)`` tends to a
kernel K(x, z) as the layer grows wide, and least squares in the dual needs only K. The kernel
depends on the activation and on the distribution of the weights:

=============  ==================================================================================
"laplace_l1"   cosines of independent Cauchy weights: ``exp(-sum_j |x_j - z_j| / s)``
"laplace"      cosines of isotropic Cauchy weights: ``exp(-||x - z|| / s)``
"matern"       cosines of Student weights, 3 degrees of freedom: ``(1 + a) exp(-a)``, ``a = sqrt(3)
               ||x - z|| / s``
"gaussian"     cosines of Gaussian weights: ``exp(-||x - z||^2 / (2 s^2))``
"relu"         rectified units of Gaussian weights, `depth` layers: the arc-cosine kernel
"tangent"      the same with all layers trained: the neural tangent kernel
=============  ==================================================================================

References
----------
A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", 2007.
Y. Cho and L. Saul, "Kernel Methods for Deep Learning", 2009.
A. Jacot, F. Gabriel and C. Hongler, "Neural Tangent Kernel", 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np

from ._arrays import linalg as algebra
from ._arrays import namespace as arrays
from ._util.types import Array

__all__ = ["KERNELS", "Kernel"]

# Fewest columns of which those of two values are treated apart.
MANY_COLUMNS = 10
# Sums of differences below this share of all are rounding errors.
DIGITS = 1e-12
# Cosines that differ from 1 by at most so many times the machine precision are 1.
ROUNDING = 32.0


@dataclass(frozen=True)
class Kernel:
    """A kernel, computed in two steps: one that all scales and depths share, and one for each.

    Attributes
    ----------
    name : str
        Its key in `KERNELS`.
    geometry : callable
        Maps two sets of rows, m x d and k x d, to an m x k matrix of distances or products.
    profile : callable
        Maps that matrix, the scale and the depth to the kernel matrix.
    scaled : bool
        Whether the kernel depends on the scale; otherwise it depends on the depth.
    """

    name: str
    geometry: Callable[[Array, Array], Array]
    profile: Callable[[Array, float, int], Array]
    scaled: bool

    def __call__(self, X: Array, Z: Array, scale: float = 1.0, depth: int = 1) -> Array:
        """Return the kernel matrix of two sets of rows, given as arrays of the same library."""
        return self.profile(self.geometry(X, Z), scale, depth)


def city_block(X: Array, Z: Array) -> Array:
    """Return the sums of absolute differences."""
    return _distances(X, Z, 1)


def euclidean(X: Array, Z: Array) -> Array:
    """Return the Euclidean distances, exact for equal rows."""
    return _distances(X, Z, 2)


def lower_geometry(kernel: Kernel, A: Array) -> Array:
    """Return the distances of the rows of A to each other; NumPy's only below the diagonal."""
    return algebra.lower_distances(A, 1 if kernel.geometry is city_block else 2)


def lower_profile(kernel: Kernel, G: Array, scale: float) -> Array:
    """Return the kernel matrix of distances; NumPy's only below the diagonal."""
    if not arrays.is_host(G):
        return kernel.profile(G, scale, 1)
    K = np.empty_like(G)
    for rows in algebra.cached_rows(*G.shape):
        columns = slice(rows.stop)
        K[rows, columns] = kernel.profile(G[rows, columns], scale, 1)
    return K


def kernel_blocks(
    kernel: Kernel, X: Array, Z: Array, scale: float, depth: int = 1
) -> Iterator[tuple[slice, Array]]:
    """Yield slices of the rows of X and their kernel with the rows of Z.

    Blocks of NumPy's single precision stay in the cache of a core.
    """
    if not kernel.scaled or not arrays.is_single(X) or len(X) <= algebra.FEW_ROWS:
        yield slice(len(X)), kernel(X, Z, scale, depth)
        return
    for rows, D in algebra.distance_blocks(X, Z, 1 if kernel.geometry is city_block else 2):
        yield rows, kernel.profile(D, scale, 1)


def _distances(X: Array, Z: Array, p: int) -> Array:
    if not X.shape[1]:
        return arrays.full(X, (X.shape[0], Z.shape[0]), 0.0)  # rows without columns are equal
    few = X.shape[1] < MANY_COLUMNS or min(X.shape[0], Z.shape[0]) <= algebra.FEW_ROWS
    if few or not arrays.is_host(X) or arrays.is_single(X):
        return algebra.distances(X, Z, p)
    low, high = np.minimum(X.min(axis=0), Z.min(axis=0)), np.maximum(X.max(axis=0), Z.max(axis=0))
    two = np.all([np.all((low == M) | (high == M), axis=0) for M in (X, Z)], axis=0)
    if two.sum() < MANY_COLUMNS:
        return algebra.distances(X, Z, p)
    D = _sums_of_differences(X[:, two] > low[two], Z[:, two] > low[two], (high - low)[two] ** p)
    if not two.all():
        D += algebra.distances(X[:, ~two], Z[:, ~two], p) ** p
    return D if p == 1 else np.sqrt(D, out=D)


def _sums_of_differences(P: Array, Q: Array, size: Array) -> Array:
    """Return the sums of the sizes of those columns in which rows of bits P and Q differ."""
    P, Q = P.astype(np.float64), Q.astype(np.float64)
    # For bits, |p - q| is p + q - 2 p q: one product of matrices.
    left = np.column_stack([-2.0 * size * P, P @ size, np.ones(len(P))])
    D = left @ np.column_stack([Q, np.ones(len(Q)), Q @ size]).T
    rounding = DIGITS * size.sum()
    D[rounding > D] = 0.0
    return D


def _laplace(D: Array, scale: float, depth: int) -> Array:
    return arrays.exp_in_place(D / -scale)


def _matern(D: Array, scale: float, depth: int) -> Array:
    K = D * (sqrt(3.0) / scale)
    return (1.0 + K) * arrays.exp_in_place(-K)


def _gaussian(D: Array, scale: float, depth: int) -> Array:
    K = D / (sqrt(2.0) * scale)
    K *= -K
    return arrays.exp_in_place(K)


def angles(X: Array, Z: Array) -> Array:
    """Return the cosines of the angles between rows [1, x] and [1, z], exact for equal rows."""
    U, V = (_unit(arrays.joined([arrays.full(M, (M.shape[0], 1), 1.0), M], axis=1)) for M in (X, Z))
    xp = arrays.namespace(U)
    C = xp.clip(U @ V.T, -1.0, 1.0)
    # An angle has half of the digits of its cosine: a rounding error of 1e-16 would become 1e-8.
    nearly_one = 1.0 - ROUNDING * xp.finfo(C.dtype).eps
    return xp.where(nearly_one > C, C, xp.ones_like(C))


def _unit(M: Array) -> Array:
    xp = arrays.namespace(M)
    M = M / xp.max(xp.abs(M), axis=1, keepdims=True)  # squares then do not overflow
    return M / xp.linalg.vector_norm(M, axis=1, keepdims=True)


def _relu(C: Array, scale: float, depth: int) -> Array:
    for _ in range(depth):
        C = _arc_cosine(C)[0]
    return C


def _tangent(C: Array, scale: float, depth: int) -> Array:
    K = C
    for _ in range(depth):
        C, slope = _arc_cosine(C)
        K = C + K * slope
    return K / (depth + 1.0)


def _arc_cosine(C: Array) -> tuple[Array, Array]:
    """Return the means of ``f(u) f(v)`` and ``f'(u) f'(v)`` for the rectifier f and cosines C."""
    xp = arrays.namespace(C)
    slope = 1.0 - xp.acos(C) / pi
    value = xp.sqrt(xp.clip(1.0 - C * C, 0.0, None)) / pi + C * slope
    return xp.clip(value, None, 1.0), slope


KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Kernel("laplace_l1", city_block, _laplace, scaled=True),
        Kernel("laplace", euclidean, _laplace, scaled=True),
        Kernel("matern", euclidean, _matern, scaled=True),
        Kernel("gaussian", euclidean, _gaussian, scaled=True),
        Kernel("relu", angles, _relu, scaled=False),
        Kernel("tangent", angles, _tangent, scaled=False),
    )
}
