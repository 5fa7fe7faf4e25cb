"""A request of the page: the points and the model, each value checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from .._util.checks import check_flag, check_one_of
from .._util.messages import shown
from .._util.types import AnyArray, Array
from ..activations import ACTIVATIONS

# The part of the plane that is shown, along each axis; points lie between 0 and 1.
LOW, HIGH = -0.2, 1.2
# The models of the menu: how hidden layers are fitted.
MODELS = ("paper", "random", "infinite", "metric", "cv")
INITS = ("normal", "uniform", "cauchy")
# The largest number of classes, of points, and of points above infinitely wide layers.
MOST_CLASSES, MOST_POINTS, MOST_IN_DUAL = 4, 10_000, 1500
# The largest number of layers and of units in a layer.
MOST_LAYERS, MOST_UNITS = 5, 1000
# The number of grid points along each axis.
SMALLEST_GRID, LARGEST_GRID = 16, 128
# Numbers of a point in a message: its place and its class.
NUMBERS = 3


@dataclass(frozen=True)
class Choice:
    """The model that is fitted."""

    model: str = "paper"
    sizes: tuple[int, ...] = (10,)  # units of each hidden layer; for infinite width, its length
    activation: str = "logit"
    init: str = "normal"
    ridge: float | None = 0.0  # None: the ridge of least leave-one-out error
    bias: bool = True  # of the output layer
    direct_links: bool = False
    scale: float = 1.0  # inputs of random layers lie between -scale and scale
    seed: int = 0

    @classmethod
    def of(cls, given: Any) -> Choice:
        """Return the settings of a message."""
        known = cls()
        values = _object("model", given)
        unknown = [name for name in values if not hasattr(known, name)]
        if unknown:
            raise ValueError(f"there is no setting {shown(unknown[0])}.")
        values = {name: values.get(name, getattr(known, name)) for name in vars(known)}
        ridge = values["ridge"]
        return cls(
            check_one_of("model", values["model"], MODELS),
            _sizes(values["sizes"]),
            check_one_of("activation", values["activation"], tuple(ACTIVATIONS)),
            check_one_of("init", values["init"], INITS),
            None if ridge is None else number("ridge", ridge, 0.0, 1e6),
            check_flag("bias", values["bias"]),
            check_flag("direct_links", values["direct_links"]),
            number("scale", values["scale"], 0.01, 100.0),
            whole("seed", values["seed"], 0, 9999),
        )


@dataclass(frozen=True)
class Request:
    """Points and the model that is fitted to them.

    Attributes
    ----------
    task : {"classes", "curve"}
        Whether the model separates classes in the plane, or predicts heights over one input.
    points : ndarray of shape (n, 3)
        The places of the points, and their classes.
    settings : Choice
        The model.
    grid : int
        The number of grid points along each axis of the picture.
    layers : bool
        Whether the targets of each layer are wanted.
    """

    task: str
    points: Array
    settings: Choice
    grid: int = 64
    layers: bool = False

    @classmethod
    def of(cls, message: Any) -> Request:
        """Return the request of a message, or raise an error of one sentence."""
        given = _object("a request", message)
        return cls(
            check_one_of("task", given.get("task", "classes"), ("classes", "curve")),
            _points(given.get("points")),
            Choice.of(given.get("model", {})),
            whole("grid", given.get("grid", 64), SMALLEST_GRID, LARGEST_GRID),
            check_flag("layers", given.get("layers", False)),
        )

    def check_points(self) -> None:
        """Raise an error if a model cannot be fitted to these points."""
        n = len(self.points)
        if self.task == "classes" and len(np.unique(self.y)) < 2:
            raise ValueError("Add points of at least two classes.")
        if n < 2:
            raise ValueError("Add at least two points.")
        if self.settings.model == "infinite" and n > MOST_IN_DUAL:
            raise ValueError(
                f"Infinite width takes at most {MOST_IN_DUAL} points here, because its cost grows "
                "with their cube: choose random layers."
            )

    @property
    def X(self) -> Array:
        """The inputs of the model, before they are scaled."""
        return self.points[:, :2] if self.task == "classes" else self.points[:, :1]

    @property
    def y(self) -> AnyArray:
        """The targets: classes as integers, or heights."""
        return self.points[:, 2].astype(int) if self.task == "classes" else self.points[:, 1]


def _object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object, but is {shown(value)}.")
    return value


def number(name: str, value: Any, low: float, high: float) -> float:
    """Return a number of a message that lies between two others."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        raise ValueError(f"{name}={shown(value)} must be a number from {low:g} to {high:g}.")
    return float(value)


def whole(name: str, value: Any, low: int, high: int) -> int:
    """Return a whole number of a message that lies between two others."""
    given = number(name, value, low, high)
    if given != int(given):
        raise ValueError(f"{name}={shown(value)} must be a whole number.")
    return int(given)


def _sizes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)) or len(value) > MOST_LAYERS:
        raise ValueError(f"sizes={shown(value)} must be a list of at most {MOST_LAYERS} numbers.")
    return tuple(whole("units", each, 1, MOST_UNITS) for each in value)


def _points(values: Any) -> Array:
    """Return points from a flat list of places and classes."""
    if not isinstance(values, list) or len(values) % NUMBERS:
        raise ValueError(f"points must be a list with {NUMBERS} numbers for each point.")
    if len(values) > NUMBERS * MOST_POINTS:
        raise ValueError(f"there may be at most {MOST_POINTS} points: erase some.")
    if not all(type(each) in (int, float) for each in values):
        raise ValueError("points must hold numbers only.")
    points = _as_floats(values).reshape(-1, NUMBERS)
    if not np.isfinite(points).all() or np.abs(points).max(initial=0.0) > 100.0:
        raise ValueError("points must lie within 100 of the origin.")
    if not np.isin(points[:, 2], np.arange(MOST_CLASSES)).all():
        raise ValueError(f"the classes of points must be whole numbers below {MOST_CLASSES}.")
    return points


def _as_floats(values: Sequence[float]) -> Array:
    """Return numbers as an array; integers too large for it become infinite."""
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:
        return np.array([v if isfinite(float(f"{v}")) else np.inf for v in values])
