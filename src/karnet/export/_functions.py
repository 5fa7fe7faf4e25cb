"""Activations, kernels and views as nodes of an ONNX graph that computes in double precision.

onnxruntime implements only a few functions for doubles. The others are composed of these, with an
error of a few units in the last place; where there is no formula, a polynomial is used.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from numpy.typing import NDArray
from scipy.special import erfcx

from .._search.views import Indicators, Ranks, Standard, Stretched, View, WithScores
from .._util.types import Array
from ..activations import EPS, LARGEST_INPUT, LEAK, LOG_FOR, Activation, by_name
from ..kernels import KERNELS
from ._graph import Graph, Value

Function = Callable[[Graph, str], str]

# The arctangent is a polynomial up to this tangent, and is reduced to smaller ones above it.
LARGEST_POLYNOMIAL_TANGENT = float(np.tan(np.pi / 8.0))
# From here on, adding 1 to the square of a number does not change it.
LARGE_FOR_ARCSINH = 1e9


# Elementwise functions


def _polynomial(g: Graph, x: Value, f: Callable[[Array], Array], b: float, degree: int) -> str:
    """Return f(x) for x between 0 and b, by interpolation at Chebyshev nodes."""
    best = Chebyshev.interpolate(f, degree, domain=[0.0, b])
    coefficients = best.convert(kind=Polynomial, domain=[0.0, b]).coef
    u = g.op("Sub", g.op("Mul", x, 2.0 / b), 1.0)
    total: Value = float(coefficients[-1])
    for each in coefficients[-2::-1]:
        total = g.op("Add", g.op("Mul", total, u), float(each))
    return str(total)


def _log1p(g: Graph, z: str) -> str:
    """Return log(1 + z), corrected for the rounding of 1 + z."""
    u = g.op("Add", z, 1.0)
    rounded = g.op("Sub", u, 1.0)
    tiny = g.op("Equal", rounded, 0.0)
    ratio = g.op("Div", z, g.op("Where", tiny, 1.0, rounded))
    return g.op("Where", tiny, z, g.op("Mul", g.op("Log", u), ratio))


def _arctan(g: Graph, x: str) -> str:
    size, narrow = g.op("Abs", x), LARGEST_POLYNOMIAL_TANGENT
    steep, middle = g.op("Greater", size, 1.0 / narrow), g.op("Greater", size, narrow)
    turned = g.op("Div", g.op("Sub", size, 1.0), g.op("Add", size, 1.0))
    inverse = g.op("Neg", g.op("Reciprocal", g.op("Max", size, 1.0)))
    r = g.op("Where", steep, inverse, g.op("Where", middle, turned, size))
    start = g.op("Where", steep, np.pi / 2, g.op("Where", middle, np.pi / 4, 0.0))
    square = g.op("Mul", r, r)
    slope = _polynomial(g, square, lambda z: np.arctan(np.sqrt(z)) / np.sqrt(z), narrow**2, 12)
    return g.op("Mul", g.op("Add", start, g.op("Mul", r, slope)), g.op("Sign", x))


def _arccos(g: Graph, c: str) -> str:
    half = g.op("Sqrt", g.op("Div", g.op("Sub", 1.0, c), g.op("Add", c, 1.0)))
    return g.op("Mul", _arctan(g, half), 2.0)


def _arcsinh(g: Graph, x: str) -> str:
    size = g.op("Abs", x)
    near = g.op("Min", size, LARGE_FOR_ARCSINH)
    square = g.op("Mul", near, near)
    root = g.op("Sqrt", g.op("Add", square, 1.0))
    small = _log1p(g, g.op("Add", near, g.op("Div", square, g.op("Add", root, 1.0))))
    large = g.op("Add", g.op("Log", g.op("Max", size, 1.0)), float(np.log(2.0)))
    angle = g.op("Where", g.op("Less", size, LARGE_FOR_ARCSINH), small, large)
    return g.op("Mul", angle, g.op("Sign", x))


def _softplus(g: Graph, x: str) -> str:
    tail = _log1p(g, g.op("Exp", g.op("Neg", g.op("Abs", x))))
    return g.op("Add", g.op("Max", x, 0.0), tail)


def _gelu(g: Graph, x: str) -> str:
    z = g.op("Mul", g.op("Abs", x), float(np.sqrt(0.5)))
    t = g.op("Div", 2.0, g.op("Add", z, 2.0))
    scaled_tail = _polynomial(g, t, lambda t: erfcx(2.0 / t - 2.0) / t, 1.0, 36)
    bell = g.op("Exp", g.op("Neg", g.op("Mul", z, z)))
    half = g.op("Mul", g.op("Mul", g.op("Mul", bell, t), scaled_tail), 0.5)
    share = g.op("Where", g.op("Less", x, 0.0), half, g.op("Sub", 1.0, half))
    return g.op("Mul", x, share)


def _cos(g: Graph, x: str) -> str:
    half = g.op("Sin", g.op("Mul", x, 0.5))
    return g.op("Sub", 1.0, g.op("Mul", g.op("Mul", half, half), 2.0))


def _logit(g: Graph, x: str) -> str:
    x = g.op("Clip", x, -LARGEST_INPUT, LARGEST_INPUT)
    odds = g.op("Abs", g.op("Div", x, g.op("Sub", 1.0, x)))
    return g.op("Log", g.op("Clip", odds, EPS, 1.0 / EPS))


# The functions of `ACTIVATIONS`, by name.
FUNCTIONS: dict[str, Function] = {
    "logit": _logit,
    "logit_clipped": lambda g, x: _logit(g, g.op("Clip", x, EPS, 1.0 - EPS)),
    "sigmoid": lambda g, x: g.op("Sigmoid", x),
    "tanh": lambda g, x: g.op("Tanh", x),
    "arctan": _arctan,
    "asinh": _arcsinh,
    "softplus": _softplus,
    "leaky_relu": lambda g, x: g.op("Max", x, g.op("Mul", x, LEAK)),
    "identity": lambda g, x: x,
    "relu": lambda g, x: g.op("Max", x, 0.0),
    "sin": lambda g, x: g.op("Sin", x),
    "cos": _cos,
    "gelu": _gelu,
}


def known(f: Activation) -> Activation:
    """Return an activation, or raise an error if it is a custom one."""
    if by_name(f.name) != f:
        raise ValueError(
            f"activation {f.name!r} is a custom one, which cannot be exported to ONNX: use one of "
            f"{', '.join(FUNCTIONS)}."
        )
    return f


def activated(g: Graph, f: Activation, x: str) -> str:
    """Return f(x) for an activation that is not a custom one."""
    if known(f).name.startswith(LOG_FOR):
        return g.op("Log", g.op("Max", x, EPS))
    return FUNCTIONS[f.name](g, x)


# Kernels


def kernel_of(g: Graph, name: str, x: str, Z: Array, scale: float, depth: int) -> str:
    """Return the kernel matrix of the rows of x and Z for a kernel of `KERNELS`."""
    if not KERNELS[name].scaled:
        return _kernel_of_angles(g, name, x, Z, depth)
    D = _distances(g, x, Z, absolute=name == "laplace_l1")
    if name == "gaussian":
        a = g.op("Div", D, float(np.sqrt(2.0) * scale))
        return g.op("Exp", g.op("Neg", g.op("Mul", a, a)))
    if name == "matern":
        a = g.op("Mul", D, float(np.sqrt(3.0) / scale))
        return g.op("Mul", g.op("Add", a, 1.0), g.op("Exp", g.op("Neg", a)))
    return g.op("Exp", g.op("Div", D, -float(scale)))


def _distances(g: Graph, x: str, Z: Array, absolute: bool) -> str:
    """Return the distances between the rows of x and Z.

    They are summed column by column: equal rows have a distance of exactly zero, and no array is
    larger than the result.
    """

    def add(g: Graph, D: str, column: str, centres: str) -> str:
        gap = g.op("Sub", g.op("Unsqueeze", column, np.array([1])), centres)
        return g.op("Add", D, g.op("Abs", gap) if absolute else g.op("Mul", gap, gap))

    n_rows = g.op("Gather", g.op("Shape", x), np.array([0]))
    shape = g.op("Concat", n_rows, np.array([len(Z)]), axis=0)
    D = g.op("Expand", np.zeros((1, 1)), shape)
    if Z.shape[1]:
        D = g.scan(add, [g.op("Transpose", x, perm=[1, 0]), Z.T], D)
    return D if absolute else g.op("Sqrt", D)


def _kernel_of_angles(g: Graph, name: str, x: str, Z: Array, depth: int) -> str:
    rows = np.hstack([np.ones((len(Z), 1)), Z])
    V = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    square = g.op("ReduceSum", g.op("Mul", x, x), np.array([1]), keepdims=1)
    cosine = g.op("Div", g.product(x, V[:, 1:].T, V[:, 0]), g.op("Sqrt", g.op("Add", square, 1.0)))
    C = K = g.op("Clip", cosine, -1.0, 1.0)
    for _ in range(depth):
        slope = g.op("Sub", 1.0, g.op("Mul", _arccos(g, C), 1.0 / np.pi))
        rest = g.op("Max", g.op("Sub", 1.0, g.op("Mul", C, C)), 0.0)
        value = g.op("Add", g.op("Mul", g.op("Sqrt", rest), 1.0 / np.pi), g.op("Mul", C, slope))
        C = g.op("Min", value, 1.0)
        K = g.op("Add", C, g.op("Mul", K, slope))
    return C if name == "relu" else g.op("Div", K, depth + 1.0)


# Views


def seen_through(g: Graph, view: View, x: str, known_views: dict[int, str]) -> str:
    """Return the rows of x transformed by a view, of which the graph has each only once."""
    if id(view) not in known_views:
        known_views[id(view)] = _seen_through(g, view, x, known_views)
    return known_views[id(view)]


def _seen_through(g: Graph, view: View, x: str, known_views: dict[int, str]) -> str:
    match view:
        case Standard():
            z = _columns(g, x, view.features)
            z = g.op("Min", g.op("Max", z, view.low), view.high)
            return g.op("Div", g.op("Sub", z, view.mean), view.scale)
        case Ranks():
            return _ranks(g, view, x, np.arange(len(view.features)))
        case Indicators():
            return _indicators(g, view, x)
        case WithScores():
            z, (hidden, last) = seen_through(g, view.view, x, known_views), view.network.layers
            A = activated(g, hidden.f, g.product(z, hidden.V, hidden.w))
            return g.op("Concat", z, g.product(A, last.V, last.w), axis=1)
        case Stretched():
            z = seen_through(g, view.view, x, known_views)
            return g.op("Mul", z, view.root) if view.root.ndim == 1 else g.product(z, view.root)


def _columns(g: Graph, x: str, which: NDArray[np.intp]) -> str:
    return g.op("Gather", x, np.asarray(which, dtype=np.int64), axis=1)


def _ranks(g: Graph, view: Ranks, x: str, which: NDArray[np.intp]) -> str:
    """Return some columns of a view, interpolated between nodes found by bisection."""
    z = _columns(g, x, view.features[which])
    if not len(which):
        return z
    nodes = [view.nodes[k] for k in which]
    steps = int(np.ceil(np.log2(max(len(values) for values, _ in nodes))))
    table = np.full((3, len(nodes), 2**steps), np.inf)
    for k, (values, scores) in enumerate(nodes):
        slopes = np.append(np.diff(scores) / np.diff(values), 0.0)
        table[:, k, : len(values)] = values, scores, slopes

    def interpolate(g: Graph, x: str, values: str, scores: str, slopes: str) -> str:
        x = g.op("Max", x, g.op("Gather", values, np.array([0])))
        index = g.op("Expand", np.array([0]), g.op("Shape", x))
        for step in 2 ** np.arange(steps)[::-1]:
            next_index = g.op("Add", index, np.array(step))
            reached = g.op("LessOrEqual", g.op("Gather", values, next_index), x)
            index = g.op("Where", reached, next_index, index)
        rise = g.op("Sub", x, g.op("Gather", values, index))
        rise = g.op("Mul", rise, g.op("Gather", slopes, index))
        return g.op("Add", g.op("Gather", scores, index), rise)

    columns = g.scan(interpolate, [g.op("Transpose", z, perm=[1, 0]), *table])
    return g.op("Transpose", columns, perm=[1, 0])


def _indicators(g: Graph, view: Indicators, x: str) -> str:
    plain = _ranks(g, view.ranks, x, view.plain)
    if not view.columns:
        return plain
    features, values, shares, scales = map(np.array, zip(*view.columns, strict=True))
    z = _columns(g, x, features)
    equal = g.op("Equal", z, values)
    if g.single:  # an input may be the rounding of a value
        equal = g.op("Or", equal, g.op("Equal", z, values.astype(np.float32).astype(np.float64)))
    indicators = g.op("Div", g.op("Sub", g.cast(equal, "DOUBLE"), shares), scales)
    return g.op("Concat", plain, indicators, axis=1) if len(view.plain) else indicators
