"""Additive networks: each hidden unit sees one input, so that scores are sums of curves.

A unit computes ``max(0, x_j - t)`` for one input and one of its quantiles t. Curves of the inputs
are therefore piecewise linear, and the output layer is the ridge solution for all of them.
"""

from __future__ import annotations

import numpy as np

from .._util.types import Array
from ..activations import ACTIVATIONS
from ..loo import RidgePath
from .infinite_width import RidgeTargets
from .layers import Layer, Network

# Largest number of units of an input, and of all inputs.
UNITS_OF_INPUT = 7
MOST_UNITS = 1000
# The rounding error of a sum of shares.
ROUNDING = 1e-9


def fit_additive(A: Array, targets: RidgeTargets) -> Network | None:
    """Fit an additive network to rows A, with the ridge of the least leave-one-out error.

    None is returned if there are more inputs than units, no inputs, or constant targets.
    """
    d = A.shape[1]
    n_units = min(UNITS_OF_INPUT, MOST_UNITS // d) if d else 0
    if not n_units or not np.ptp(targets.Y, axis=0).any():
        return None
    hidden = _hinges(A, targets.weight / targets.weight.sum(), n_units)
    path = RidgePath.of(hidden.f(hidden.linear(A)), targets.Y, targets.weight)
    if not len(path.eigenvalues):
        return None
    alphas = targets.ridges * path.eigenvalues.mean()
    errors = np.array([targets.error(left_out) for left_out in path.loo_path(alphas)])
    # Of equal errors, that of the largest ridge.
    b, *W = path.coef(float(alphas[errors == errors.min()][-1]))
    return Network((hidden, Layer(np.array(W), b, ACTIVATIONS["identity"])))


def _hinges(A: Array, share: Array, n_units: int) -> Layer:
    """Return the layer of units ``max(0, x_j - t)``, at most `n_units` of each input."""
    ends = [_ends(A[:, j], share, n_units) for j in range(A.shape[1])]
    inputs = np.repeat(np.arange(A.shape[1]), [len(each) for each in ends])
    V = np.zeros((A.shape[1], len(inputs)))
    V[inputs, np.arange(len(inputs))] = 1.0
    return Layer(V, -np.concatenate(ends), ACTIVATIONS["relu"])


def _ends(x: Array, share: Array, n_units: int) -> Array:
    """Return the values from which on the units of an input rise, the least value first.

    They are all values but the largest, or quantiles; `share` are the shares of the rows.
    """
    values, codes = np.unique(x, return_inverse=True)
    if len(values) > n_units + 1:
        upto = np.cumsum(np.bincount(codes, share))
        at = np.searchsorted(upto, np.arange(1, n_units) / n_units - ROUNDING)
        values = np.unique(np.concatenate([values[:1], values[at], values[-1:]]))
    return np.asarray(values[:-1])
