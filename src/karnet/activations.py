"""Elementwise activations f, their inverses phi, and the intervals both live on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import isfinite, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from ._arrays.namespace import erf, expit, is_host, log_expit, log_odds, namespace
from ._util.messages import shown

__all__ = ["ACTIVATIONS", "Activation", "by_name", "resolve_activation"]

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
Interval = tuple[float, float]

REALS: Interval = (-np.inf, np.inf)
TINY = float(np.finfo(np.float64).eps)
HUGE = 1e300
# What the name of a single layer's output activation starts with, if its f has no inverse.
LOG_FOR = "log for "


@dataclass(frozen=True)
class Activation:
    """An elementwise function f and, where there is one, its inverse phi.

    Parameters
    ----------
    name : str
        What the activation is called in messages and tables.
    forward : callable
        f, applied elementwise. It must return finite values for every finite input, also outside
        its domain.
    inverse : callable, optional
        phi, with ``phi(f(x)) == x`` on the domain. None if f has no inverse.
    derivative : callable, optional
        df/dx, elementwise.
    domain : tuple of float
        The open interval on which f is the function it is named after. Outside, `forward` is an
        extension; `outside` tells which values are there.
    codomain : tuple of float
        The open interval on which phi is defined. Values outside are moved to its edge.
    margin : float
        How far inside a finite end of the codomain that edge lies.
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
        for part in ("forward", "inverse", "derivative"):
            value = getattr(self, part)
            if not callable(value) and (part == "forward" or value is not None):
                raise ValueError(
                    f"{part}={shown(value)} of activation {self.name!r} must be a function."
                )
        for part in ("domain", "codomain"):
            if not _is_interval(value := getattr(self, part)):
                raise ValueError(
                    f"{part}={shown(value)} of activation {self.name!r} must be two numbers, the "
                    "lower one first."
                )
        if not _is_number(self.margin) or not 0.0 <= self.margin < np.inf:
            raise ValueError(
                f"margin={shown(self.margin)} of activation {self.name!r} must be a number that is "
                "not negative."
            )

    def __call__(self, x: Array) -> Array:
        """Return f(x)."""
        return self._finite(self.forward(x), "function")

    def __reduce__(self) -> tuple[object, ...]:
        # Those of the table are pickled and copied by name: lambdas cannot be pickled.
        if ACTIVATIONS.get(self.name) == self:
            return resolve_activation, (self.name,)
        state = tuple(getattr(self, field.name) for field in fields(self))
        return Activation, state

    def __getstate__(self) -> dict[str, str]:
        """Return what a model file keeps: the name (pickle and copy use `__reduce__` instead)."""
        if by_name(self.name) != self:
            raise ValueError(
                f"activation {self.name!r} is a custom one, which a model file cannot hold: it "
                f"holds those of karnet.activations alone, {', '.join(ACTIVATIONS)}."
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
        """Return the inverse of y, values outside the codomain moved to its edge first."""
        if self.inverse is None:
            raise ValueError(f"activation {self.name!r} has no inverse.")
        return self._finite(self.inverse(self.inside(y, self.margin)), "inverse")

    def _finite(self, values: Array, what: str) -> Array:
        if ACTIVATIONS.get(self.name) == self:
            return values
        xp = namespace(values)
        if not bool(xp.all(xp.isfinite(values))):
            raise ValueError(
                f"the {what} of activation {self.name!r} gives NaN or infinity: it must be finite "
                "for all numbers, or the Activation must name the interval it is defined on."
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
        """Return which of x are outside the open domain of f."""
        return _outside(x, self.domain)

    def outside_codomain(self, y: Array) -> NDArray[np.bool_]:
        """Return which of y are outside the open codomain, where phi is not defined."""
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
    # The real part of the complex logarithm of x / (1 - x). The poles at 0 and 1 are cut off where
    # x is no longer told from them.
    if not is_host(x):
        return log_odds(x, TINY)
    if not isfinite(np.vdot(x, x)):
        x = np.clip(x, -HUGE, HUGE)  # there is a limit at infinity
    odds = 1.0 - x
    with np.errstate(divide="ignore"):
        np.divide(x, odds, out=odds)
    np.abs(odds, out=odds)
    np.clip(odds, TINY, 1.0 / TINY, out=odds)
    return np.log(odds, out=odds)


def _logit_derivative(x: Array) -> Array:
    with np.errstate(divide="ignore", over="ignore"):
        return _clip(1.0 / (x * (1.0 - x)), -1.0 / TINY, 1.0 / TINY)


def _clip(x: Array, low: float, high: float) -> Array:
    return namespace(x).clip(x, low, high)


def _clipped(x: Array) -> Array:
    return _clip(x, TINY, 1.0 - TINY)


def _where(condition: NDArray[np.bool_], x: Array | float, y: Array | float) -> Array:
    """Return x where the condition holds, else y."""
    xp = namespace(condition)
    if not is_host(condition):
        x, y = (xp.asarray(z, dtype=xp.float64, device=condition.device) for z in (x, y))
    return xp.where(condition, x, y)


def _where_inside(x: Array, derivative: Array) -> Array:
    return _where((x > TINY) & (x < 1.0 - TINY), derivative, 0.0)


def _softplus_inverse(y: Array) -> Array:
    xp = namespace(y)
    return y + xp.log(-xp.expm1(-y))


LEAK = 0.01


def _leaky_relu(x: Array) -> Array:
    return namespace(x).maximum(x, LEAK * x)


def _gelu_cdf(x: Array) -> Array:
    return 0.5 * (1.0 + erf(x / sqrt(2.0)))


def _gelu_derivative(x: Array) -> Array:
    near = _clip(x, -40.0, 40.0)  # the bell is 0 beyond, and its argument would overflow
    return _gelu_cdf(x) + near * namespace(x).exp(-0.5 * near**2) / sqrt(2.0 * pi)


def _sigmoid_derivative(x: Array) -> Array:
    return expit(x) * expit(-x)


def _tanh(x: Array) -> Array:
    return namespace(x).tanh(x)


def _bell(x: Array) -> Array:
    """Return ``1 / sqrt(1 + x^2)``, without overflow."""
    return 1.0 / namespace(x).hypot(namespace(x).ones_like(x), x)


def _sin(x: Array) -> Array:
    return namespace(x).sin(x)


def _cos(x: Array) -> Array:
    return namespace(x).cos(x)


UNIT: Interval = (0.0, 1.0)
# Beyond these the squares of sinh and exp overflow.
SINH_LIMIT = EXP_LIMIT = 300.0

ACTIVATIONS: dict[str, Activation] = {
    a.name: a
    for a in (
        Activation("logit", _logit, expit, _logit_derivative, domain=UNIT),
        Activation(
            "logit_clipped",
            lambda x: _logit(_clipped(x)),
            expit,
            lambda x: _where_inside(x, _logit_derivative(_clipped(x))),
            domain=UNIT,
        ),
        Activation("sigmoid", expit, _logit, _sigmoid_derivative, codomain=UNIT),
        Activation(
            "tanh",
            _tanh,
            lambda y: namespace(y).atanh(y),
            lambda x: 1.0 - _tanh(x) ** 2,
            codomain=(-1.0, 1.0),
        ),
        Activation(
            "arctan",
            lambda x: namespace(x).atan(x),
            lambda y: namespace(y).tan(y),
            lambda x: _bell(x) ** 2,
            codomain=(-np.pi / 2, np.pi / 2),
        ),
        Activation(
            "asinh",
            lambda x: namespace(x).asinh(x),
            lambda y: namespace(y).sinh(y),
            _bell,
            codomain=(-SINH_LIMIT, SINH_LIMIT),
        ),
        Activation(
            "softplus",
            lambda x: -log_expit(-x),
            _softplus_inverse,
            expit,
            codomain=(0.0, np.inf),
        ),
        Activation(
            "leaky_relu",
            _leaky_relu,
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
        The parameter's name, for the error message.

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
    """Return the activation of a name: one of the table, or what `through_exp` makes of one."""
    f = ACTIVATIONS.get(name.removeprefix(LOG_FOR))
    return through_exp(f)[1] if f and name.startswith(LOG_FOR) else f


def through_exp(f: Activation) -> tuple[Function, Activation]:
    """Return the input map and the output activation of a single layer with a non-invertible f.

    Theorem 1 of the paper, with phi = exp: the layer solves ``A W = phi(Y)`` for
    ``A = phi(f(X))`` and answers ``phi^-1(A W)``.
    """
    return ExpOf(f), Activation(LOG_FOR + f.name, _log, _exp, _log_derivative, (0.0, np.inf))


@dataclass(frozen=True)
class ExpOf:
    f: Activation

    def __call__(self, x: Array) -> Array:
        return _exp(self.f(x))


def _exp(x: Array) -> Array:
    return namespace(x).exp(_clip(x, -EXP_LIMIT, EXP_LIMIT))


def _log(x: Array) -> Array:
    return namespace(x).log(_clip(x, TINY, np.inf))


def _log_derivative(x: Array) -> Array:
    return 1.0 / _clip(x, TINY, np.inf)
