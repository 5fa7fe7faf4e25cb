"""The KAR network: its prediction and the pull-back of targets, as pure functions.

Letters are those of the paper. A network has n layers with weights ``W_k = [w_k; V_k]``, the first
row being the bias, activations f_k and their inverses phi_k::

    A_1 = [1, X]      A_{k+1} = [1, f_k(A_k W_k)]      G = f_n(A_n W_n)

Training pulls the target back, ``B_n = phi_n(Y)`` and ``B_k = phi_k((B_{k+1} - 1 w_{k+1})
V_{k+1}^+)``, and then solves ``A_k W_k = B_k`` for k = 1 ... n (the paper's Theorem 3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import svd

from .._arrays import linalg as algebra
from .._arrays import namespace as arrays
from .._arrays.devices import is_out_of_memory
from .._arrays.threads import one_thread_if_narrow
from .._lstsq.lapack import Cholesky, significant
from .._lstsq.solve import choose_solver
from .._rows.memory import SIZES, Rows, block_slices, chunk_slices, dense, in_order
from .._util.types import Array
from ..activations import Activation, Function
from .kernel_map import KernelMap

# Least number of rows in which values outside the domain are counted, where not all are read.
COUNTED_ROWS = 2**14
# Relative cut-off of V^+: weights solved in an earlier sweep have low rank.
PINV_RCOND = 1e-8


@dataclass(frozen=True)
class Layer:
    """One layer, ``f(A V + w)``."""

    V: Array
    w: Array
    f: Activation

    def linear(self, A: Any) -> Array:
        """Return ``A V + w``; training and prediction share this expression."""
        if isinstance(A, np.ndarray) and isinstance(self.V, np.ndarray):
            Z: Array = A @ self.V
            Z += self.w
            return Z
        return algebra.affine(A, arrays.like(A, self.V), arrays.like(A, self.w))

    def carefully(self, A: Array) -> Array:
        """Return ``A V + w`` of NumPy arrays whose products may overflow."""
        return np.asarray(algebra.careful_affine(A, self.V, self.w))

    def back(self, Y: Array) -> Array:
        """Return ``(phi(Y) - w) V^+``: the output of the layer below for which this one gives Y."""
        if type(Y) is np.ndarray:
            return self._times_inverse(self.f.phi(Y) - self.w)
        return _through_svd(self.V)(self.f.phi(Y) - arrays.like(Y, self.w))

    @cached_property
    def _times_inverse(self) -> Function:
        """The map from B to ``B V^+``."""
        quick = choose_solver(*self.V.shape) == "cholesky"
        return (quick and _through_gram(self.V)) or _through_svd(self.V)


def _through_gram(V: Array) -> Function | None:
    """Return the map from B to ``B V^+``, or None if V is too close to singular."""
    tall = V.shape[0] >= V.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        factor = Cholesky.trusted((V.T @ V if tall else V @ V.T).T, PINV_RCOND)
    if factor is None:
        return None

    def apply(B: Array) -> Array:
        return factor.solve(B.T).T @ V.T if tall else factor.solve(V @ B.T).T

    def refined(B: Array) -> Array:
        X = apply(B)
        return X + apply(B - X @ V)

    return refined


def _through_svd(V: Array) -> Function:
    U, s, Qt = svd(V, full_matrices=False)
    kept = significant(s, PINV_RCOND)
    U, s, Qt = U[:, kept], s[kept], Qt[kept]

    def apply(B: Array) -> Array:
        return B @ arrays.like(B, Qt.T / s) @ arrays.like(B, U.T)

    return apply


@dataclass(frozen=True)
class Network:
    """Hidden layers and an output layer, and the maps between the inputs and the first layer."""

    layers: tuple[Layer, ...]
    # Whether the mapped input is joined to the last hidden layer.
    direct_links: bool = False
    # Applied to the inputs on their device: a kernel map in place of infinitely wide layers.
    input_map: Function | None = None

    @property
    def width(self) -> int:
        """The largest number of columns of a block on its way through the layers."""
        return max(max(layer.V.shape) for layer in self.layers)

    @property
    def n_outputs(self) -> int:
        """The number of outputs."""
        return int(self.layers[-1].w.shape[0])

    @property
    def kernel(self) -> KernelMap | None:
        """The map in place of infinitely wide layers; None if all widths are finite."""
        return self.input_map if isinstance(self.input_map, KernelMap) else None

    def features(self, X: Array) -> Array:
        """Return the columns that the output layer sees, for rows of NumPy."""
        return forward_through(self.layers[:-1], self.direct_links, self.input_map)(X)

    def scores(self, X: Any, device: str | None = None) -> Array:
        """Return the scores of all rows."""
        return scores(self, X, device)


def outputs(network: Network, X: Any, device: str | None = None) -> Array:
    """Return the output G of the network, computed as in `scores`."""
    return scores(network, X, device, activated=True)


def scores(network: Network, X: Any, device: str | None = None, activated: bool = False) -> Array:
    """Return ``A_n W_n``, the output before the last activation, computed in blocks of rows.

    With a device, blocks of NumPy inputs are copied there and the scores are copied back.
    """
    predict, width = _predictor(network, activated), network.width
    if not arrays.is_host(X):
        blocks = block_slices(X.shape[0], width, Rows(X, X).block_size)
        return arrays.joined([predict(dense(arrays.some_rows(X, rows))) for rows in blocks])
    Z = np.empty((X.shape[0], network.layers[-1].V.shape[1]))

    def write(rows: slice) -> None:
        for chunk in chunk_slices(rows, width):
            Z[chunk] = predict(dense(X[chunk]))

    def write_from_device(rows: slice) -> None:
        assert device is not None
        try:
            Z[rows] = arrays.to_numpy(predict(arrays.upload(dense(X[rows]), device)))
            return
        except Exception as error:
            if rows.stop - rows.start <= SIZES.shortest or not is_out_of_memory(error):
                raise
        middle = (rows.start + rows.stop) // 2
        write_from_device(slice(rows.start, middle))
        write_from_device(slice(middle, rows.stop))

    if device is not None:
        blocks = block_slices(len(Z), width, SIZES.copied)
        deque(in_order(write_from_device, blocks, SIZES.copy_threads), maxlen=0)
        return Z
    blocks = block_slices(len(Z), width)
    parts = blocks if len(blocks) > 1 else chunk_slices(blocks[0], width)
    with one_thread_if_narrow(len(Z), width) if len(parts) == 1 else nullcontext():
        deque(in_order(write, parts), maxlen=0)
    return Z


def _predictor(network: Network, activated: bool) -> Function:
    """Return the function from a block of viewed inputs to its scores or outputs."""
    *below, last = network.layers
    links, input_map = network.direct_links, network.input_map
    before_last = forward_through(below, links, input_map)

    def predict(block: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            Z = last.linear(before_last(block))
            if arrays.is_host(Z) and not np.isfinite(Z).all():
                carefully = forward_through(below, links, input_map, Layer.carefully)
                Z = last.carefully(carefully(block))
            return last.f(Z) if activated else Z

    return predict


def forward_through(
    layers: Sequence[Layer],
    direct_links: bool,
    input_map: Function | None,
    linear: Callable[[Layer, Array], Array] = Layer.linear,
) -> Callable[..., Array]:
    """Return the function from X to the input of the next layer: its A without the column of ones.

    If the function is given a list `counters`, it appends the number of rows, and for each layer
    the number of values outside the domain of its activation.
    """

    def forward(X: Array, counters: list[Array] | None = None) -> Array:
        X = X if input_map is None else input_map(X)
        A, counts = X, [float(X.shape[0])]
        for layer in layers:
            Z = linear(layer, A)
            if counters is not None:
                counts.append(count_outside(layer.f, Z))
            A = layer.f(Z)
        if counters is not None:
            counters.append(arrays.stacked(counts))
        return arrays.joined([A, X], axis=1) if direct_links and layers else A

    return forward


def count_outside(f: Activation, Z: Array) -> Any:
    """Return the number of values outside the domain of f.

    On a device the values of evenly spaced rows are counted: a pass over memory takes a large part
    of the time of a fit.
    """
    if not f.has_edges:
        return 0.0
    if type(Z) is np.ndarray:
        return float(np.count_nonzero(f.outside(Z)))
    step = max(Z.shape[0] // COUNTED_ROWS, 1)
    some = arrays.some_rows(Z, slice(None, None, step))
    xp, outside = arrays.namespace(Z), f.outside(some)
    return arrays.float64(xp.count_nonzero(outside)) * (Z.shape[0] / some.shape[0])


def pull_back(Y: Array, upper: Sequence[Layer]) -> Array:
    """Return the output of a layer for which the layers above it give Y.

    From the last layer down, ``Y <- (phi(Y) - 1 w) V^+``. The target of a layer's least-squares
    problem is phi of the result. For the output layer, `upper` is empty.
    """
    for layer in reversed(upper):
        Y = layer.back(Y)
    return Y
