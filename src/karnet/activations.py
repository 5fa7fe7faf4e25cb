"""Elementwise activations f, their inverses phi, and the intervals both live on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import isfinite

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit, log_expit

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
        if ACTIVATIONS.get(self.name) != self and not np.isfinite(values).all():
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
        return np.clip(y, low + margin, high - margin)

    def outside(self, x: Array) -> NDArray[np.bool_]:
        """Return which of x are outside the open domain of f."""
        return _outside(x, self.domain)

    def outside_codomain(self, y: Array) -> NDArray[np.bool_]:
        """Return which of y are outside the open codomain, where phi is not defined."""
        return _outside(y, self.codomain)


def _outside(x: Array, interval: Interval) -> NDArray[np.bool_]:
    low, high = interval
    if np.isinf(low) and np.isinf(high):
        return np.zeros(x.shape, dtype=bool)
    return np.asarray((x <= low) | (x >= high))


def _logit(x: Array) -> Array:
    # The real part of the complex logarithm of x / (1 - x). The poles at 0 and 1 are cut off where
    # x is no longer told from them.
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
        return np.clip(1.0 / (x * (1.0 - x)), -1.0 / TINY, 1.0 / TINY)


def _clipped(x: Array) -> Array:
    return np.clip(x, TINY, 1.0 - TINY)


def _where_inside(x: Array, derivative: Array) -> Array:
    return np.where((x > TINY) & (x < 1.0 - TINY), derivative, 0.0)


def _softplus_inverse(y: Array) -> Array:
    return y + np.log(-np.expm1(-y))


LEAK = 0.01


def _leaky_relu(x: Array) -> Array:
    return np.maximum(x, LEAK * x)


def _gelu_cdf(x: Array) -> Array:
    return np.asarray(0.5 * (1.0 + erf(x / np.sqrt(2.0))))


def _gelu_derivative(x: Array) -> Array:
    near = np.clip(x, -40.0, 40.0)  # the bell is 0 beyond, and its argument would overflow
    return np.asarray(_gelu_cdf(x) + near * np.exp(-0.5 * near**2) / np.sqrt(2.0 * np.pi))


def _sigmoid_derivative(x: Array) -> Array:
    return np.asarray(expit(x) * expit(-x))


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
            "tanh", np.tanh, np.arctanh, lambda x: 1.0 - np.tanh(x) ** 2, codomain=(-1.0, 1.0)
        ),
        Activation(
            "arctan",
            np.arctan,
            np.tan,
            lambda x: np.hypot(1.0, x) ** -2.0,
            codomain=(-np.pi / 2, np.pi / 2),
        ),
        Activation(
            "asinh",
            np.arcsinh,
            np.sinh,
            lambda x: 1.0 / np.hypot(1.0, x),
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
            lambda y: np.minimum(y, y / LEAK),
            lambda x: np.where(x > 0.0, 1.0, LEAK),
        ),
        Activation("identity", lambda x: x, lambda y: y, np.ones_like),
        Activation(
            "relu", lambda x: np.maximum(x, 0.0), derivative=lambda x: np.where(x > 0.0, 1.0, 0.0)
        ),
        Activation("sin", np.sin, derivative=np.cos),
        Activation("cos", np.cos, derivative=lambda x: -np.sin(x)),
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
        f"{parameter}={activation!r} is not known: give one of {', '.join(ACTIVATIONS)}, "
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
    return np.exp(np.clip(x, -EXP_LIMIT, EXP_LIMIT))


def _log(x: Array) -> Array:
    return np.log(np.maximum(x, TINY))


def _log_derivative(x: Array) -> Array:
    return 1.0 / np.maximum(x, TINY)
