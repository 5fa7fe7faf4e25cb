"""The KAR network: forward and pull-back, as pure functions.

Letters are the paper's. A network has n layers with weights ``W_k = [w_k; V_k]``, the first row the
bias, activations f_k and their inverses phi_k::

    A_1 = [1, X]      A_{k+1} = [1, f_k(A_k W_k)]      G = f_n(A_n W_n)

Learning pulls the target back, ``B_n = phi_n(Y)`` and ``B_k = phi_k((B_{k+1} - 1 w_{k+1})
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
from .._arrays.threads import one_thread_if_narrow
from .._lstsq.lapack import normal_solver
from .._lstsq.solve import choose_solver
from .._rows.memory import SIZES, Rows, block_slices, chunk_slices, dense, in_order
from ..activations import Activation, Array, Function

__all__ = ["Layer", "Network", "forward_through", "outputs", "pull_back", "scores"]

# Cut-off of V^+: weights that an earlier sweep learned are of low rank.
PINV_RCOND = 1e-8


@dataclass(frozen=True)
class Layer:
    """One layer, ``f(A V + w)``."""

    V: Array
    w: Array
    f: Activation

    def linear(self, A: Array) -> Array:
        """Return ``A V + w``; learning and prediction both come through this one expression."""
        return algebra.affine(A, arrays.like(A, self.V), arrays.like(A, self.w))

    def carefully(self, A: Array) -> Array:
        """Return ``A V + w`` of NumPy's arrays for numbers whose products overflow."""
        return np.asarray(algebra.careful_affine(A, self.V, self.w))

    def back(self, Y: Array) -> Array:
        """Return ``(phi(Y) - w) V^+``: what the layer below should give for this one to give Y."""
        B = self.f.phi(Y) - arrays.like(Y, self.w)
        return self._times_inverse(B) if arrays.is_host(B) else _through_svd(self.V)(B)

    @cached_property
    def _times_inverse(self) -> Function:
        """The map from B to ``B V^+``."""
        quick = choose_solver(*self.V.shape) == "cholesky"
        return (quick and _through_gram(self.V)) or _through_svd(self.V)


def _through_gram(V: Array) -> Function | None:
    """Return the map from B to ``B V^+``, or None if V is too near to singular."""
    tall = V.shape[0] >= V.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        solve_normal = normal_solver((V.T @ V if tall else V @ V.T).T, PINV_RCOND)
    if solve_normal is None:
        return None

    def apply(B: Array) -> Array:
        return solve_normal(B.T).T @ V.T if tall else solve_normal(V @ B.T).T

    def refined(B: Array) -> Array:
        X = apply(B)
        return X + apply(B - X @ V)

    return refined


def _through_svd(V: Array) -> Function:
    U, s, Qt = svd(V, full_matrices=False)
    kept = s > PINV_RCOND * s[0]
    U, s, Qt = U[:, kept], s[kept], Qt[kept]

    def apply(B: Array) -> Array:
        return B @ arrays.like(B, Qt.T / s) @ arrays.like(B, U.T)

    return apply


@dataclass(frozen=True)
class Network:
    """Layers, and how the input reaches them.

    Attributes
    ----------
    layers : tuple of Layer
        The hidden layers and, last, the output layer.
    direct_links : bool
        Whether the input is joined to the last hidden layer.
    input_map : callable, optional
        What the input goes through first.
    """

    layers: tuple[Layer, ...]
    direct_links: bool = False
    input_map: Function | None = None


def scores(network: Network, X: Any, device: str | None = None) -> Array:
    """Return ``A_n W_n``, the output before the last activation, block by block of rows.

    Blocks of NumPy's are copied to the device, if one is given, and the answers back.
    """
    return _answers(network, X, False, device)


def outputs(network: Network, X: Any, device: str | None = None) -> Array:
    """Return the network's output G, as `scores` does what it is the activation of."""
    return _answers(network, X, True, device)


def _answers(network: Network, X: Any, activated: bool, device: str | None) -> Array:
    *below, last = network.layers
    links, input_map = network.direct_links, network.input_map
    before_last = forward_through(below, links, input_map)
    carefully = forward_through(below, links, input_map, Layer.carefully)
    width = max(max(layer.V.shape) for layer in network.layers)

    def answer(block: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            Z = last.linear(before_last(block))
            if arrays.is_host(Z) and not np.isfinite(Z).all():
                Z = last.carefully(carefully(block))
            return last.f(Z) if activated else Z

    if not arrays.is_host(X):
        blocks = block_slices(X.shape[0], width, Rows(X, X).block_size)
        return arrays.joined([answer(dense(arrays.some_rows(X, rows))) for rows in blocks])
    Z = np.empty((X.shape[0], last.V.shape[1]))

    def write(rows: slice) -> None:
        if device is not None:
            Z[rows] = arrays.to_numpy(answer(arrays.upload(dense(X[rows]), device)))
            return
        for chunk in chunk_slices(rows, width):
            Z[chunk] = answer(dense(X[chunk]))

    if device is not None:
        deque(
            in_order(write, block_slices(len(Z), width, SIZES.copied), SIZES.copy_threads), maxlen=0
        )
        return Z
    blocks = block_slices(len(Z), width)
    parts = blocks if len(blocks) > 1 else chunk_slices(blocks[0], width)
    with one_thread_if_narrow(len(Z), width) if len(parts) == 1 else nullcontext():
        deque(in_order(write, parts), maxlen=0)
    return Z


def forward_through(
    layers: Sequence[Layer],
    direct_links: bool,
    input_map: Function | None,
    linear: Callable[[Layer, Array], Array] = Layer.linear,
) -> Callable[..., Array]:
    """Return the function from X to what the next layer sees: its A without the column of ones.

    How many rows it was, and how many values were outside the domain of each layer, is added to the
    list `counters` if the function is given one.
    """

    def forward(X: Array, counters: list[Array] | None = None) -> Array:
        X = X if input_map is None else input_map(X)
        A, counts = X, [float(X.shape[0])]
        for layer in layers:
            Z = linear(layer, A)
            if counters is not None:
                counts.append(count(layer.f.outside(Z)) if layer.f.has_edges else 0.0)
            A = layer.f(Z)
        if counters is not None:
            counters.append(arrays.stacked(counts))
        return arrays.joined([A, X], axis=1) if direct_links and layers else A

    return forward


def count(condition: Any) -> Any:
    """Return for how many values a condition holds; elsewhere without waiting for it."""
    if arrays.is_host(condition):
        return float(np.count_nonzero(condition))
    xp = arrays.namespace(condition)
    return arrays.float64(xp.count_nonzero(condition))


def pull_back(Y: Array, upper: Sequence[Layer]) -> Array:
    """Return what a layer should give for the layers above it to give Y.

    From the last layer down, ``Y <- (phi(Y) - 1 w) V^+``. The target of a layer's least-squares
    problem is phi of the result.

    Parameters
    ----------
    Y : array of shape (rows, q)
        Outputs of the network.
    upper : sequence of Layer
        The layers above, from the next one to the last; for the last layer itself, none.

    Returns
    -------
    array of shape (rows, h)
    """
    for layer in reversed(upper):
        Y = layer.back(Y)
    return Y
