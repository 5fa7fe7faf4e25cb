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

import numpy as np

from .._arrays import namespace as arrays
from .._lstsq.lapack import default_rcond, significant
from .._lstsq.statistics import Sum
from .._rows.memory import Table
from .._util.types import Array
from ..kernels import KERNELS, angles, city_block, euclidean
from .infinite_width import KernelMap
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
# Largest number of rows over which the metric of a kernel network is averaged.
METRIC_ROWS = 300


def input_metric(network: Network, rows: Table) -> Array:
    """Return M, the weighted mean outer product of the input sensitivities, scaled to trace d.

    The rows are as the view of the network shows them. M is zero if the scores do not depend on the
    inputs, and NaN if squares overflow.
    """
    seen = rows.map(lambda X: X, network.width)
    # A derivative may have poles; overflow shows in the result.
    with np.errstate(over="ignore", invalid="ignore"):
        total = seen.reduce(
            lambda X, _, weight: Sum(outer_products(network, X, weight)), small_chunks=True
        )
        return _scaled(arrays.to_numpy(total.value))


def _scaled(M: Array) -> Array:
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


def kernel_metric(network: Network, A: Array, weight: Array) -> Array:
    """Return the input metric of a kernel network over rows A as its view shows them.

    For a kernel of city-block distances, and for many inputs, it is the diagonal only. The mean is
    over a regular sample of the rows if there are many.
    """
    kernel = network.input_map
    assert isinstance(kernel, KernelMap)
    step = -(-len(A) // METRIC_ROWS)
    A, weight = A[::step], weight[::step]
    return _scaled(outer_products(network, A, weight, metric_is_diagonal(kernel, A.shape[1])))


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
    """Yield, for each output, the derivatives of the scores with respect to the inputs: m x d.

    The inputs are those that the view of the network shows. Kernels are computed in NumPy.
    """
    *hidden, last = network.layers
    kernel = network.input_map
    if isinstance(kernel, KernelMap):
        of_kernel = SLOPES[KERNELS[kernel.kernel].geometry](kernel, X, kernel.Z, last.V)
        for D, v in zip(of_kernel, last.V.T, strict=True):
            yield D + v @ kernel.Z if kernel.direct_links else D
        return
    assert kernel is None
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
    K = KERNELS[kernel.kernel](A, Z, kernel.scale)
    slopes, columns = np.empty((V.shape[1], *A.shape), dtype=K.dtype), np.ascontiguousarray(Z.T)
    n_values = 1 + np.count_nonzero(np.diff(np.sort(Z, axis=0), axis=0), axis=0)
    for j in np.flatnonzero(n_values <= FEW_VALUES):  # sums over the centres of each value
        values, codes = np.unique(Z[:, j], return_inverse=True)
        of_value = codes[:, None] == np.arange(len(values))
        sums = K @ (of_value[:, :, None] * V[:, None]).reshape(len(Z), -1)
        sums = sums.reshape(len(A), len(values), -1)
        slopes[:, :, j] = np.einsum("ik,ikc->ci", np.sign(values - A[:, [j]]), sums)
    for rows in (slice(start, start + CACHED_ROWS) for start in range(0, len(A), CACHED_ROWS)):
        signs = np.empty_like(K[rows])
        for j in np.flatnonzero(n_values > FEW_VALUES):
            # The signs of differences; NumPy's own function takes three times as long.
            np.subtract(columns[j], A[rows, j, None], out=signs)
            signs *= STEEP
            np.clip(signs, -1.0, 1.0, out=signs)
            signs *= K[rows]
            slopes[:, rows, j] = (signs @ V).T
    slopes /= kernel.scale
    return slopes


def _profile_slope(kernel: KernelMap, G: Array, step: Array) -> Array:
    """Return the derivative of the profile at the distances or products G."""
    profile = KERNELS[kernel.kernel].profile
    high, low = (profile(G + sign * step, kernel.scale, kernel.depth) for sign in (1.0, -1.0))
    return np.asarray((high - low) / (2.0 * step))


def _euclidean(kernel: KernelMap, A: Array, Z: Array, V: Array) -> Iterable[Array]:
    """Return the slopes of a profile of distances: the derivative of a distance is a direction."""
    G = euclidean(A, Z)
    apart = G > EQUAL
    slope = np.where(apart, _profile_slope(kernel, G, STEP * np.where(apart, G, 1.0)), 0.0)
    W = slope / np.where(apart, G, 1.0)
    # One product for all outputs: a few columns at a time take longer.
    sums = W @ (V[:, :, None] * Z[:, None]).reshape(len(Z), -1)
    slopes = (W @ V)[:, :, None] * A[:, None] - sums.reshape(len(A), V.shape[1], -1)
    return np.moveaxis(slopes, 1, 0)


def _angular(kernel: KernelMap, A: Array, Z: Array, V: Array) -> Iterable[Array]:
    """Return the slopes of a profile of the cosines between [1, x] and [1, z]."""
    C = np.clip(angles(A, Z), -1.0 + 2.0 * STEP, 1.0 - 2.0 * STEP)
    slope = _profile_slope(kernel, C, np.full_like(C, STEP))
    a, b = (np.sqrt(1.0 + np.sum(M**2, axis=1))[:, None] for M in (A, Z))
    return (slope @ (v[:, None] * Z / b) / a - A * ((slope * C) @ v)[:, None] / a**2 for v in V.T)


# For each geometry of a kernel, the sensitivities of ``K(x, Z) V``.
SLOPES: dict[Callable[..., Array], Callable[..., Iterable[Array]]] = {
    city_block: _city_block,
    euclidean: _euclidean,
    angles: _angular,
}
