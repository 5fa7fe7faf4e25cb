"""Elementwise activations f, their inverses phi, and the intervals on which they are defined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from ._arrays.namespace import erf, expit, is_host, log_expit, log_odds, namespace
from ._util.messages import shown
from ._util.types import Array as Array

__all__ = ["ACTIVATIONS", "Activation", "by_name", "resolve_activation"]

Function = Callable[[Array], Array]
Interval = tuple[float, float]

REALS: Interval = (-np.inf, np.inf)
UNIT: Interval = (0.0, 1.0)
# Machine precision: the distance from a pole of the logit at which it is cut off.
EPS = float(np.finfo(np.float64).eps)
# Largest input of the logit, beyond which it is at its limit and its quotients are not finite.
LARGEST_INPUT = 1e300
# The slope of the leaky rectifier for negative inputs.
LEAK = 0.01
# Largest argument of sinh and exp: the squares of larger results overflow.
EXP_LIMIT = 300.0
# Beyond this the normal density is 0, and its exponent would overflow.
BELL_LIMIT = 40.0
# The prefix of the name of a single layer's output activation if its f has no inverse.
LOG_FOR = "log for "


@dataclass(frozen=True)
class Activation:
    """An elementwise function f and, where there is one, its inverse phi.

    Parameters
    ----------
    name : str
        The name of the activation in messages and tables.
    forward : callable
        f, applied elementwise. It must return finite values for every finite input, also outside
        its domain.
    inverse : callable, optional
        phi, with ``phi(f(x)) == x`` on the domain. None if f has no inverse.
    derivative : callable, optional
        df/dx, elementwise.
    domain : tuple of float
        The open interval on which f is the function it is named after. Outside, `forward` is an
        extension.
    codomain : tuple of float
        The open interval on which phi is defined. Values outside are moved to its edge.
    margin : float
        The distance of that edge from a finite end of the codomain.
    """

    name: str
    forward: Function
    inverse: Function | None = None
    derivative: Function | None = None
    domain: Interval = REALS
    codomain: Interval = REALS
    margin: float = 1e-3

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ValueError(f"the name of an activation must be text, but is {shown(self.name)}.")
        # Compared, not converted: an integer may be too large for a float.
        in_range = _is_number(self.margin) and 0.0 <= self.margin < np.inf
        for part, valid, requirement in (
            ("forward", callable(self.forward), "a function"),
            ("inverse", self.inverse is None or callable(self.inverse), "a function"),
            ("derivative", self.derivative is None or callable(self.derivative), "a function"),
            ("domain", _is_interval(self.domain), "two numbers, the lower one first"),
            ("codomain", _is_interval(self.codomain), "two numbers, the lower one first"),
            ("margin", in_range, "a number that is not negative"),
        ):
            if not valid:
                raise ValueError(
                    f"{part}={shown(getattr(self, part))} of activation {self.name!r} must be "
                    f"{requirement}."
                )

    def __call__(self, x: Array) -> Array:
        """Return f(x)."""
        return self._finite(self.forward(x), "function")

    def __reduce__(self) -> tuple[object, ...]:
        # Activations of the table are pickled and copied by name: lambdas cannot be pickled.
        if ACTIVATIONS.get(self.name) == self:
            return resolve_activation, (self.name,)
        return Activation, tuple(vars(self).values())

    def __getstate__(self) -> dict[str, str]:
        """Return the state in a model file: the name (pickle and copy use `__reduce__`)."""
        if by_name(self.name) != self:
            raise ValueError(
                f"activation {self.name!r} is custom, and a model file cannot hold it: use one of "
                f"karnet.activations, {', '.join(ACTIVATIONS)}."
            )
        return {"name": self.name}

    def __setstate__(self, state: dict[str, str]) -> None:
        known = by_name(state["name"])
        if known is None:
            raise ValueError(f"there is no activation {state['name']!r}.")
        vars(self).update(vars(known))

    @property
    def invertible(self) -> bool:
        """Whether targets can be pulled back through this activation."""
        return self.inverse is not None

    def phi(self, y: Array) -> Array:
        """Return the inverse of y, after values outside the codomain are moved to its edge."""
        if self.inverse is None:
            raise ValueError(f"activation {self.name!r} has no inverse.")
        return self._finite(self.inverse(self.inside(y, self.margin)), "inverse")

    def _finite(self, values: Array, function: str) -> Array:
        if ACTIVATIONS.get(self.name) == self:
            return values
        xp = namespace(values)
        if not bool(xp.all(xp.isfinite(values))):
            raise ValueError(
                f"the {function} of activation {self.name!r} gives NaN or infinity: it must be "
                "finite for all numbers, or the Activation must name its interval of definition."
            )
        return values

    def inside(self, y: Array, margin: float) -> Array:
        """Return y with values outside the codomain moved `margin` inside its finite ends."""
        low, high = self.codomain
        if not np.isfinite(low) and not np.isfinite(high):
            return y
        return namespace(y).clip(y, low + margin, high - margin)

    @property
    def has_edges(self) -> bool:
        """Whether there are values outside the domain of f."""
        return bool(np.isfinite(self.domain).any())

    def outside(self, x: Array) -> NDArray[np.bool_]:
        """Return a mask of the values of x outside the open domain of f."""
        return _outside(x, self.domain)

    def outside_codomain(self, y: Array) -> NDArray[np.bool_]:
        """Return a mask of the values of y outside the open codomain, where phi is not defined."""
        return _outside(y, self.codomain)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _is_interval(value: object) -> bool:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return False
    return all(map(_is_number, value)) and bool(value[0] < value[1])


def _outside(x: Array, interval: Interval) -> NDArray[np.bool_]:
    low, high = interval
    if np.isinf(low) and np.isinf(high):
        return namespace(x).zeros_like(x, dtype=bool if is_host(x) else namespace(x).bool)
    return (x <= low) | (x >= high)


def _logit(x: Array) -> Array:
    # The real part of the complex logarithm of x / (1 - x), cut off at machine precision from the
    # poles at 0 and 1.
    if not is_host(x):
        return log_odds(x, EPS)
    if not isfinite(np.vdot(x, x)):
        x = np.clip(x, -LARGEST_INPUT, LARGEST_INPUT)
    odds = 1.0 - x
    with np.errstate(divide="ignore"):
        np.divide(x, odds, out=odds)
    np.abs(odds, out=odds)
    np.clip(odds, EPS, 1.0 / EPS, out=odds)
    return np.log(odds, out=odds)


def _logit_derivative(x: Array) -> Array:
    with np.errstate(divide="ignore", over="ignore"):
        return _clip(1.0 / (x * (1.0 - x)), -1.0 / EPS, 1.0 / EPS)


def _clip(x: Array, low: float, high: float) -> Array:
    return namespace(x).clip(x, low, high)


def _clipped(x: Array) -> Array:
    return _clip(x, EPS, 1.0 - EPS)


def _where(condition: NDArray[np.bool_], x: Array | float, y: Array | float) -> Array:
    """Return x where the condition holds, else y."""
    xp = namespace(condition)
    if not is_host(condition):
        x, y = (xp.asarray(z, dtype=xp.float64, device=condition.device) for z in (x, y))
    return xp.where(condition, x, y)


def _softplus_inverse(y: Array) -> Array:
    xp = namespace(y)
    return y + xp.log(-xp.expm1(-y))


def _gelu_cdf(x: Array) -> Array:
    return 0.5 * (1.0 + erf(x / sqrt(2.0)))


def _gelu_derivative(x: Array) -> Array:
    near = _clip(x, -BELL_LIMIT, BELL_LIMIT)
    return _gelu_cdf(x) + near * namespace(x).exp(-0.5 * near**2) / sqrt(2.0 * pi)


def _bell(x: Array) -> Array:
    """Return ``1 / sqrt(1 + x^2)``, without overflow."""
    return 1.0 / namespace(x).hypot(namespace(x).ones_like(x), x)


def _named(name: str) -> Function:
    """Return the elementwise function that array libraries have under a name."""
    return lambda x: getattr(namespace(x), name)(x)


_tanh, _sin, _cos = map(_named, ("tanh", "sin", "cos"))

ACTIVATIONS: dict[str, Activation] = {
    a.name: a
    for a in (
        Activation("logit", _logit, expit, _logit_derivative, domain=UNIT),
        Activation(
            "logit_clipped",
            lambda x: _logit(_clipped(x)),
            expit,
            lambda x: _where((x > EPS) & (x < 1.0 - EPS), _logit_derivative(_clipped(x)), 0.0),
            domain=UNIT,
        ),
        Activation("sigmoid", expit, _logit, lambda x: expit(x) * expit(-x), codomain=UNIT),
        Activation(
            "tanh", _tanh, _named("atanh"), lambda x: 1.0 - _tanh(x) ** 2, codomain=(-1.0, 1.0)
        ),
        Activation(
            "arctan",
            _named("atan"),
            _named("tan"),
            lambda x: _bell(x) ** 2,
            codomain=(-pi / 2, pi / 2),
        ),
        Activation(
            "asinh", _named("asinh"), _named("sinh"), _bell, codomain=(-EXP_LIMIT, EXP_LIMIT)
        ),
        Activation(
            "softplus", lambda x: -log_expit(-x), _softplus_inverse, expit, codomain=(0.0, np.inf)
        ),
        Activation(
            "leaky_relu",
            lambda x: namespace(x).maximum(x, LEAK * x),
            lambda y: namespace(y).minimum(y, y / LEAK),
            lambda x: _where(x > 0.0, 1.0, LEAK),
        ),
        Activation("identity", lambda x: x, lambda y: y, lambda x: namespace(x).ones_like(x)),
        Activation(
            "relu",
            lambda x: namespace(x).clip(x, 0.0, None),
            derivative=lambda x: _where(x > 0.0, 1.0, 0.0),
        ),
        Activation("sin", _sin, derivative=_cos),
        Activation("cos", _cos, derivative=lambda x: -_sin(x)),
        Activation("gelu", lambda x: x * _gelu_cdf(x), derivative=_gelu_derivative),
    )
}


def resolve_activation(
    activation: str | Activation | tuple[Function, Function], parameter: str = "activation"
) -> Activation:
    """Return the `Activation` that a name, an `Activation` or a pair (f, phi) stands for.

    Parameters
    ----------
    activation : str, Activation or tuple of two callables
        A key of `ACTIVATIONS`, a ready activation, or f and its inverse.
    parameter : str
        The name of the parameter in the error message.

    Returns
    -------
    Activation
    """
    match activation:
        case Activation():
            return activation
        case str() if activation in ACTIVATIONS:
            return ACTIVATIONS[activation]
        case (forward, inverse) if callable(forward) and callable(inverse):
            return Activation("custom", forward, inverse)
    raise ValueError(
        f"{parameter}={shown(activation)} is not known: give one of {', '.join(ACTIVATIONS)}, "
        "an Activation, or a pair of functions (f, inverse of f)."
    )


def by_name(name: str) -> Activation | None:
    """Return the activation of a name: one of the table, or one that `through_exp` makes."""
    f = ACTIVATIONS.get(name.removeprefix(LOG_FOR))
    return through_exp(f)[1] if f and name.startswith(LOG_FOR) else f


def through_exp(f: Activation) -> tuple[Function, Activation]:
    """Return the input map and the output activation of a single layer with a non-invertible f.

    Theorem 1 of the paper, with phi = exp: the layer solves ``A W = phi(Y)`` for
    ``A = phi(f(X))`` and predicts ``phi^-1(A W)``.
    """
    return ExpOf(f), Activation(LOG_FOR + f.name, _log, _exp, _log_derivative, (0.0, np.inf))


@dataclass(frozen=True)
class ExpOf:
    """The input map exp(f(x))."""

    f: Activation

    def __call__(self, x: Array) -> Array:
        """Return exp(f(x))."""
        return _exp(self.f(x))


def _exp(x: Array) -> Array:
    return namespace(x).exp(_clip(x, -EXP_LIMIT, EXP_LIMIT))


def _log(x: Array) -> Array:
    return namespace(x).log(_clip(x, EPS, np.inf))


def _log_derivative(x: Array) -> Array:
    return 1.0 / _clip(x, EPS, np.inf)
