"""Points to start from: the paper's XOR, and data sets of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._util.checks import check_one_of
from .._util.types import AnyArray, Array

# Digits of a coordinate: those of the paper's XOR.
DIGITS = 4
Points = tuple[Array, AnyArray]


def preset(name: Any, seed: int) -> dict[str, Any]:
    """Return the points of a preset, and the settings that suit it."""
    make, task, settings = PRESETS[check_one_of("preset", name, tuple(PRESETS))]
    X, c = make(np.random.default_rng(seed))
    points = np.column_stack([np.round(X, DIGITS), c])
    return {"preset": name, "task": task, "points": points.ravel().tolist(), "model": settings}


def _unit(X: Array) -> Array:
    """Return places scaled to the unit square, with the same unit on both axes."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(0.5 + (X - 0.5 * (low + high)) / (high - low).max())


def _xor(rng: np.random.Generator) -> Points:
    """Return the paper's four points: the corners are moved slightly, as in the paper."""
    X = np.array([[0.0, 0.0], [0.9991, 0.9991], [0.9990, 0.0], [0.0, 0.9990]])
    return X, np.array([0, 0, 1, 1])


def _moons(rng: np.random.Generator) -> Points:
    from sklearn.datasets import make_moons  # takes long, and the first picture is XOR

    X, c = make_moons(200, noise=0.15, random_state=int(rng.integers(2**31)))
    return _unit(X), c


def _spirals(rng: np.random.Generator) -> Points:
    n = 100
    angle = 3.0 * np.pi * np.sqrt(np.linspace(0.05, 1.0, n))
    arms = [
        angle[:, None] * np.column_stack([np.cos(angle + s), np.sin(angle + s)])
        for s in (0.0, np.pi)
    ]
    X = np.vstack(arms) + rng.normal(0.0, 0.15, (2 * n, 2))
    return _unit(X), np.repeat([0, 1], n)


def _iris(first: int, second: int) -> Callable[[np.random.Generator], Points]:
    def points(rng: np.random.Generator) -> Points:
        from sklearn.datasets import load_iris

        X, c = load_iris(return_X_y=True)
        X = X[:, [first, second]]
        return (X - X.min(axis=0)) / np.ptp(X, axis=0), c

    return points


def _checkerboard(rng: np.random.Generator) -> Points:
    X = rng.random((240, 2))
    return X, np.floor(3.0 * X).sum(axis=1).astype(int) % 2


def _four(rng: np.random.Generator) -> Points:
    centres = np.array([[0.25, 0.25], [0.75, 0.3], [0.3, 0.75], [0.75, 0.75]])
    c = np.repeat(np.arange(4), 40)
    return np.clip(centres[c] + rng.normal(0.0, 0.1, (160, 2)), 0.0, 1.0), c


def _sine(rng: np.random.Generator) -> Points:
    x = np.sort(rng.random(60))
    height = 0.5 + 0.35 * np.sin(2.0 * np.pi * 1.5 * x) + rng.normal(0.0, 0.06, len(x))
    return np.column_stack([x, height]), np.zeros(len(x))


PAPER = {"model": "paper", "activation": "logit", "ridge": 0.0}
TANH = {"model": "random", "sizes": [100], "activation": "tanh", "ridge": None, "scale": 3.0}
RELU = {"model": "random", "sizes": [200], "activation": "relu", "ridge": None, "scale": 3.0}
GAUSS = {"model": "infinite", "sizes": [1], "activation": "cos", "ridge": None, "scale": 5.0}
# The points, the task and the settings of each preset.
PRESETS: dict[str, tuple[Callable[[np.random.Generator], Points], str, dict[str, Any]]] = {
    "xor": (_xor, "classes", PAPER | {"sizes": [2]}),
    "moons": (_moons, "classes", TANH),
    "spirals": (_spirals, "classes", GAUSS),
    "iris petals": (_iris(2, 3), "classes", PAPER | {"sizes": [20]}),
    "iris sepals": (_iris(0, 1), "classes", TANH),
    "checkerboard": (_checkerboard, "classes", RELU | {"scale": 5.0}),
    "four classes": (_four, "classes", TANH),
    "noisy sine": (_sine, "curve", TANH),
}
