"""The layers of a fitted network: lines of units, singular values and pulled-back targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.linalg import svd
from sklearn.metrics import r2_score

from .._estimator.network_base import start_of_fit
from .._estimator.notebook import networks_of
from .._network.layers import forward_through
from .._rows.memory import evenly_spaced
from .._util.types import AnyArray, Array
from ..inspection._spectrum import spectra
from ..learner import PULLED_BACK_RCOND, hidden_problem, indicator, output_problem
from ..loo import RidgePath, accuracy

# The largest number of singular values that are sent of each layer, and of lines.
MOST_VALUES, MOST_LINES = 200, 200
# The largest number of rows of kernels whose singular values are computed for every picture.
MOST_ROWS = 400
# The largest number of points whose outputs are shown for each layer.
MOST_SHOWN = 1000


def ridge_path(net: Any, X: Array, y: AnyArray) -> tuple[RidgePath, AnyArray | None]:
    """Return the ridge solutions of the output layer of a network, and the codes of classes.

    Hidden layers stay as they are. The targets are the class indicator, or centred numbers.
    """
    (network,) = networks_of(net)
    classes = getattr(net, "classes_", None)
    codes = None if classes is None else np.searchsorted(classes, y)
    Y = (y - y.mean())[:, None] if codes is None else indicator(codes, len(net.classes_))
    if network.kernel is not None:
        return RidgePath.of_kernel(network.kernel(X), Y, bias=net.fit_intercept), codes
    return RidgePath.of(network.features(X), Y, bias=net.fit_intercept), codes


def left_out_score(net: Any, X: Array, y: AnyArray) -> float | None:
    """Return the accuracy or R^2 of leave-one-out predictions of the output layer.

    A pulled-back layer is solved with a cut-off for singular values, for which a ridge of its
    square stands here.
    """
    if len(y) < 3:
        return None
    path, codes = ridge_path(net, X, y)
    least = 0.0
    if net.hidden == "pullback" and net.hidden_layer_sizes:
        least = PULLED_BACK_RCOND**2 * float(path.eigenvalues.max(initial=0.0))
    left_out = path.loo(max(net.alpha, least))
    if codes is not None:
        return accuracy(codes, left_out)
    return float(r2_score(path.B, left_out))


def unit_lines(net: Any) -> Array:
    """Return the lines ``a x + b = 0`` in the plane along which hidden units are at their middle.

    The middle of an activation is that of its domain, such as 1/2 of the logit, and 0 otherwise.
    Only a single hidden layer above two inputs has lines. The rows are (a, b), in the coordinates
    of the inputs of the network.
    """
    if len(getattr(net, "coefs_", ())) != 2 or net.coefs_[0].shape[0] != 2:
        return np.empty((0, 3))
    low, high = net.activations_[0].domain
    middle = 0.5 * (low + high) if np.isfinite([low, high]).all() else 0.0
    return np.column_stack([net.coefs_[0].T, net.intercepts_[0] - middle])[:MOST_LINES]


def singular_values(net: Any, X: Array) -> list[dict[str, Any]]:
    """Return the relative singular values of the inputs of each layer that was solved."""
    dense = not hasattr(net, "coefs_")
    if dense and len(X) > MOST_ROWS:
        return []
    return [
        {
            "name": each.name,
            "rank": each.rank,
            "columns": len(each.values),
            "rcond": each.rcond,
            "values": np.maximum(each.values[:MOST_VALUES], 1e-18).tolist(),
        }
        for each in spectra(net, X)
    ]


def reports(net: Any) -> list[dict[str, Any]]:
    """Return rank, solver and residual of each layer; an average has one entry for each network."""
    if not hasattr(net, "layers_"):
        shapes = [member.shape for member in net.estimators_]
        return [{"name": f"{each.kernel}, {each.view}", "solver": "cholesky"} for each in shapes]
    last = len(net.layers_) - 1
    return [
        {
            "name": "output layer" if k == last else f"layer {k + 1}",
            "rank": each.rank,
            "solver": each.solver,
            "residual": each.residual,
            "outside": each.outside,
        }
        for k, each in enumerate(net.layers_)
    ]


def pulled_back(net: Any, X: Array, y: AnyArray) -> list[dict[str, Any]]:
    """Return, for each layer of the paper's network, its targets and its outputs in a plane.

    The targets B_k are pulled back from the output through the initial weights, and the outputs
    ``A_k W_k`` are their least-squares fit. Both are shown in the plane of the two main directions
    of the targets, or of the outputs if the targets lie on a line.
    """
    if net.hidden != "pullback" or not net.hidden_layer_sizes:
        return []
    (plan, drawn, Y), rows = start_of_fit(net, X, y)
    layers, shown = networks_of(net)[0].layers, []
    some = evenly_spaced(len(X), MOST_SHOWN)
    for k, layer in enumerate(layers):
        last = k == len(layers) - 1
        problem = output_problem(plan, Y) if last else hidden_problem(plan, Y, drawn[k:])
        A = forward_through(layers[:k], plan.direct_links and last, plan.input_map)(X[some])
        B, Z = problem.targets(rows.y[some]).B, layer.linear(A)
        name = "output layer" if last else f"layer {k + 1}"
        fit = {"name": name, "units": int(B.shape[1]), "residual": net.layers_[k].residual}
        shown.append(fit | _in_a_plane(B, Z) | {"rows": some.tolist()})
    return shown


def _in_a_plane(B: Array, Z: Array) -> dict[str, Any]:
    """Return targets and outputs in two coordinates, between 0 and 1."""
    centre = B.mean(axis=0)
    both = np.vstack([B, Z]) - centre
    first = svd(B - centre, full_matrices=False)[2][:1]
    rest = both - both @ first.T @ first
    # A single unit has no second direction.
    second = svd(rest, full_matrices=False)[2][:1] * (B.shape[1] > 1)
    places = both @ np.vstack([first, second]).T
    low, high = places.min(axis=0), places.max(axis=0)
    # One unit for both axes, so that distances are seen.
    size = float((high - low).max()) or 1.0
    places = 0.5 + (places - 0.5 * (low + high)) / size
    return {
        "targets": np.round(places[: len(B)], 4).ravel().tolist(),
        "outputs": np.round(places[len(B) :], 4).ravel().tolist(),
    }
