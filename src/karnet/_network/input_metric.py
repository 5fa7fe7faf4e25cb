"""The input metric of a network: the mean outer product of its input sensitivities.

After a solve of the output layer, the derivatives of the scores ``A_n W_n`` with respect to the
inputs are known in closed form. Their mean outer product M shows in which directions the inputs
matter (the average gradient outer product). It contains no gradient of a loss.

References
----------
A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in neural
networks and backpropagation-free machine learning models", Science, 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import sqrt

import numpy as np

from .._arrays import namespace as arrays
from .._lstsq.lapack import default_rcond, significant
from .._lstsq.statistics import Sum
from .._rows.memory import Table
from .._util.types import Array
from ..kernels import KERNELS, angles, city_block, euclidean
from .kernel_map import KernelMap
from .layers import Network

# Relative step of the numerical derivative of a kernel's profile.
STEP = 1e-5
# Distance up to which two rows count as equal.
EQUAL = 1e-9
# Largest number of inputs for which the whole metric of a kernel network is formed.
MOST_INPUTS = 300
# Largest number of values of an input for which the centres of each value are added up.
FEW_VALUES = 4
# Rows of a kernel matrix that stay in the cache.
CACHED_ROWS = 64
# A multiple that makes a difference of two values larger than 1.
STEEP = 1e30


def input_metric(network: Network, rows: Table) -> Array:
    """Return M, the weighted mean outer product of the input sensitivities, scaled to trace d.

    M is zero if the scores do not depend on the inputs, and NaN if squares overflow.
    """
    seen = rows.map(lambda X: X, network.width)
    # A derivative may have poles; overflow shows in the result.
    with np.errstate(over="ignore", invalid="ignore"):
        total = seen.reduce(
            lambda X, _, weight: Sum(outer_products(network, X, weight)), small_chunks=True
        )
        return scaled_metric(arrays.to_numpy(total.value))


def scaled_metric(M: Array) -> Array:
    """Return a metric, or its diagonal, scaled to trace d."""
    trace = M.sum() if M.ndim == 1 else np.trace(M)
    if not np.isfinite(trace):
        return np.full_like(M, np.nan)
    return np.asarray(M / trace * len(M)) if trace else M


def outer_products(
    network: Network, X: Array, weight: Array | None, diagonal: bool = False
) -> Array:
    """Return the weighted sum over rows of the outer products, or its diagonal."""
    d = X.shape[1]
    M = arrays.full(X, (d,) if diagonal else (d, d), 0.0)
    root = 1.0 if weight is None else arrays.namespace(weight).sqrt(weight)[:, None]
    for D in sensitivities(network, X):
        D = D * root
        M += arrays.column_squares(D) if diagonal else D.T @ D
    return M


def metric_is_diagonal(kernel: KernelMap, d: int) -> bool:
    """Return whether only the diagonal of the metric of a kernel of d inputs is formed."""
    return KERNELS[kernel.kernel].geometry is city_block or d > MOST_INPUTS


def metric_root(M: Array, floor: float = 0.0) -> Array:
    """Return the symmetric root of a metric or of its diagonal; the identity for zero.

    No eigenvalue of the root is below the share `floor` of the largest.
    """
    values, Q = (M, None) if M.ndim == 1 else np.linalg.eigh(M)
    largest = values.max(initial=0.0)
    if not largest:
        return np.ones_like(M) if Q is None else np.eye(len(M))
    # In the root, rounding errors in place of zeros would have half as many digits.
    values = np.where(significant(values, default_rcond(len(M)), largest), values, 0.0)
    roots = np.sqrt(np.maximum(values, floor**2 * largest))
    return roots if Q is None else np.asarray((Q * roots) @ Q.T)


def sensitivities(network: Network, X: Array) -> Iterator[Array]:
    """Yield, for each output, the derivatives of the scores with respect to the inputs: m x d."""
    *hidden, last = network.layers
    kernel = network.kernel
    if kernel is not None:
        Z, V = arrays.like(X, kernel.Z), arrays.like(X, last.V)
        of_kernel = SLOPES[KERNELS[kernel.kernel].geometry](kernel, X, Z, V)
        for D, v in zip(of_kernel, V.T, strict=True):
            yield D + v @ Z if kernel.direct_links else D
        return
    assert network.input_map is None
    A, slopes = X, []
    for layer in hidden:
        Z = layer.linear(A)
        assert layer.f.derivative is not None
        slopes.append(layer.f.derivative(Z))
        A = layer.f(Z)
    h, xp = A.shape[1], arrays.namespace(A)
    for column in last.V.T:
        weights = arrays.like(A, column)
        D = xp.broadcast_to(weights[:h], A.shape)
        for layer, slope in zip(reversed(hidden), reversed(slopes), strict=True):
            D = (slope * D) @ arrays.like(D, layer.V.T)
        yield D + weights[h:] if network.direct_links else D


def _city_block(kernel: KernelMap, A: Array, Z: Array, V: Array) -> Iterable[Array]:
    K, xp = KERNELS[kernel.kernel](A, Z, kernel.scale), arrays.namespace(A)
    slopes = xp.empty((V.shape[1], *A.shape), dtype=K.dtype, device=K.device)
    n_values, n_cached = np.full(A.shape[1], len(Z)), len(A)
    if arrays.is_host(A):
        n_values = 1 + np.count_nonzero(np.diff(np.sort(Z, axis=0), axis=0), axis=0)
        n_cached = CACHED_ROWS
    few = n_values <= FEW_VALUES
    two = np.flatnonzero(few & (n_values == 2))
    n_together = max(len(Z) // V.shape[1], 1)  # columns whose products take no more than K
    for js in (two[start : start + n_together] for start in range(0, len(two), n_together)):
        slopes[:, :, js] = np.moveaxis(_of_two_values(K, A[:, js], Z[:, js], V), 2, 0)
    for j in np.flatnonzero(few & (n_values != 2)):  # sums over the centres of each value
        values, codes = np.unique(Z[:, j], return_inverse=True)
        of_value = codes[:, None] == np.arange(len(values))
        sums = K @ (of_value[:, :, None] * V[:, None]).reshape(len(Z), -1)
        sums = sums.reshape(len(A), len(values), -1)
        slopes[:, :, j] = np.einsum("ik,ikc->ci", np.sign(values - A[:, [j]]), sums)
    many = [(j, xp.asarray(Z[:, j], copy=True)) for j in np.flatnonzero(~few)]
    for rows in (slice(start, start + n_cached) for start in range(0, len(A), n_cached)):
        for j, column in many:
            # The signs of differences; NumPy's own function takes three times as long.
            signs = column - A[rows, j, None]
            signs *= STEEP
            signs = xp.clip(signs, -1.0, 1.0)
            signs *= K[rows]
            slopes[:, rows, j] = (signs @ V).T
    slopes /= kernel.scale
    return slopes


def _of_two_values(K: Array, A: Array, Z: Array, V: Array) -> Array:
    """Return the sums of ``sign(z - a) K(a, z) v`` over centres with two values in each column.

    The shape is that of A with a last axis for the columns of V.
    """
    low, high = Z.min(axis=0), Z.max(axis=0)
    of_high = (high == Z)[:, :, None] * V[:, None]
    above = (K @ of_high.reshape(len(Z), -1)).reshape(*A.shape, -1)
    below = (K @ V)[:, None] - above
    return np.asarray(np.sign(high - A)[..., None] * above + np.sign(low - A)[..., None] * below)


def _profile_slope(kernel: KernelMap, G: Array, step: Array) -> Array:
    """Return the derivative of the profile at the distances or products G."""
    profile = KERNELS[kernel.kernel].profile
    high, low = (profile(G + sign * step, kernel.scale, kernel.depth) for sign in (1.0, -1.0))
    return (high - low) / (2.0 * step)


def _euclidean(kernel: KernelMap, A: Array, Z: Array, V: Array) -> Iterable[Array]:
    """Return the slopes of a profile of distances: the derivative of a distance is a direction."""
    G, xp = euclidean(A, Z), arrays.namespace(A)
    apart = G > EQUAL
    G = xp.where(apart, G, xp.ones_like(G))
    K = KERNELS[kernel.kernel].profile(G, kernel.scale, kernel.depth)
    W = xp.where(apart, RATES[kernel.kernel](K, G / kernel.scale), xp.zeros_like(G))
    W = W / kernel.scale**2
    # One product for all outputs: a few columns at a time take longer.
    sums = W @ xp.reshape(V[:, :, None] * Z[:, None], (len(Z), -1))
    slopes = (W @ V)[:, :, None] * A[:, None] - xp.reshape(sums, (len(A), V.shape[1], -1))
    return xp.moveaxis(slopes, 1, 0)


def _angular(kernel: KernelMap, A: Array, Z: Array, V: Array) -> Iterable[Array]:
    """Return the slopes of a profile of the cosines between [1, x] and [1, z]."""
    C = np.clip(angles(A, Z), -1.0 + 2.0 * STEP, 1.0 - 2.0 * STEP)
    slope = _profile_slope(kernel, C, np.full_like(C, STEP))
    a, b = (np.sqrt(1.0 + np.sum(M**2, axis=1))[:, None] for M in (A, Z))
    return (slope @ (v[:, None] * Z / b) / a - A * ((slope * C) @ v)[:, None] / a**2 for v in V.T)


# For each kernel K of distances in units of its scale, ``K'(a) / a``.
RATES: dict[str, Callable[[Array, Array], Array]] = {
    "laplace": lambda K, a: -K / a,
    "matern": lambda K, a: -3.0 * K / (1.0 + sqrt(3.0) * a),
    "gaussian": lambda K, a: -K,
}
# For each geometry of a kernel, the sensitivities of ``K(x, Z) V``.
SLOPES: dict[Callable[..., Array], Callable[..., Iterable[Array]]] = {
    city_block: _city_block,
    euclidean: _euclidean,
    angles: _angular,
}
