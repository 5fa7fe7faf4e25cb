"""Data sets that need no file: from scikit-learn's wheel, or made by their rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from ._tidy import Cells


def _cells(names: str, rows: Iterable[Sequence[Any]]) -> Cells:
    return Cells([*names.split(), "target"], np.array(list(rows), dtype=object))


def _beside(X: NDArray[Any], y: Iterable[Any]) -> list[list[Any]]:
    return [[*row, label] for row, label in zip(X.tolist(), y, strict=True)]


def iris() -> Cells:
    """Return Iris as UCI has it, which the paper used: two rows differ from Fisher's."""
    X, y = load_iris(return_X_y=True)
    X[[34, 37]] = [4.9, 3.1, 1.5, 0.1]
    labels = np.array(["Iris-setosa", "Iris-versicolor", "Iris-virginica"])[y]
    return _cells("sepal_length sepal_width petal_length petal_width", _beside(X, labels))


def wine() -> Cells:
    """Return Wine; the classes are 1, 2, 3."""
    X, y = load_wine(return_X_y=True)
    names = (
        "alcohol malic_acid ash alcalinity magnesium phenols flavanoids nonflav_phenols "
        "proanth color hue od280 proline"
    )
    return _cells(names, _beside(X, y + 1))


def wdbc() -> Cells:
    """Return the diagnoses M and B from 10 measures of cells: mean, standard error and worst."""
    X, y = load_breast_cancer(return_X_y=True)
    measures = (
        "radius texture perimeter area smoothness compactness concavity concave_points "
        "symmetry fractal_dim"
    )
    names = [f"{name}_{kind}" for kind in ("mean", "se", "worst") for name in measures.split()]
    return _cells(" ".join(names), _beside(X, np.array(["M", "B"])[y]))


def balance_scale() -> Cells:
    """Return every pair of weights and distances up to 5, and the side to which the scale tips."""
    names = "left_weight left_distance right_weight right_distance"
    sides = {-1: "R", 0: "B", 1: "L"}
    return _cells(
        names,
        (
            (a, b, c, d, sides[int(np.sign(a * b - c * d))])
            for a, b, c, d in product(range(1, 6), repeat=4)
        ),
    )


LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def tic_tac_toe() -> Cells:
    """Return every board on which a game can end, x moving first: positive if x has won.

    In UCI's order: x has won, o has won, nobody has.
    """
    ends = {board: _winner(board) for board in product("xob", repeat=9)}
    rows = [
        (*board, "positive" if winner == "x" else "negative")
        for winner in ("x", "o", "nobody")
        for board, end in ends.items()
        if end == winner
    ]
    return _cells("tl tm tr ml mm mr bl bm br", rows)


def _winner(board: tuple[str, ...]) -> str | None:
    """Return who has won, or nobody; None if no game ends on this board."""
    x, o = (any(all(board[k] == player for k in line) for line in LINES) for player in "xo")
    lead = board.count("x") - board.count("o")
    if x and not o and lead == 1:
        return "x"
    if o and not x and lead == 0:
        return "o"
    return "nobody" if not x and not o and lead == 1 and "b" not in board else None


SHUTTLE_VALUES = {
    "stability": ("stab", "xstab"),
    "error": ("XL", "LX", "MM", "SS"),
    "sign": ("pp", "nn"),
    "wind": ("head", "tail"),
    "magnitude": ("Low", "Medium", "Strong", "OutOfRange"),
    "visibility": ("yes", "no"),
}
# One rule per line, in the order of the features above; * is any value.
SHUTTLE_RULES = """
*     *  *  *    *          no  auto
xstab *  *  *    *          yes noauto
stab  LX *  *    *          yes noauto
stab  XL *  *    *          yes noauto
stab  MM nn tail *          yes noauto
*     *  *  *    OutOfRange yes noauto
stab  SS *  *    Low        yes auto
stab  SS *  *    Medium     yes auto
stab  SS *  *    Strong     yes auto
stab  MM pp head Low        yes auto
stab  MM pp head Medium     yes auto
stab  MM pp tail Low        yes auto
stab  MM pp tail Medium     yes auto
stab  MM pp head Strong     yes noauto
stab  MM pp tail Strong     yes auto
"""


def shuttle() -> Cells:
    """Return the 15 rules of the shuttle's landing, each spelled out for all it leaves open.

    A case that two rules cover appears twice.
    """
    rows: list[tuple[str, ...]] = []
    for rule in SHUTTLE_RULES.strip().splitlines():
        *given, label = rule.split()
        choices = [
            every if value == "*" else (value,)
            for value, every in zip(given, SHUTTLE_VALUES.values(), strict=True)
        ]
        rows += [(*row, label) for row in product(*choices)]
    return _cells(" ".join(SHUTTLE_VALUES), rows)


MONKS_VALUES = (3, 3, 2, 3, 4, 2)


def monks(rule: Callable[[Sequence[int]], bool]) -> Cells:
    """Return the whole space of the six attributes and whether each point obeys the rule."""
    space = product(*(range(1, n + 1) for n in MONKS_VALUES))
    return _cells("a1 a2 a3 a4 a5 a6", ((*a, int(rule(a))) for a in space))


def _drawn(X: NDArray[Any], y: NDArray[np.int64], names: str, n_train: int) -> Cells:
    part = ["train"] * n_train + ["test"] * (len(y) - n_train)
    rows = zip(X.tolist(), part, y.tolist(), strict=True)
    return _cells(f"{names} split", ([*row, side, label] for row, side, label in rows))


SEGMENTS = "1110111 0010010 1011101 1011011 0111010 1101011 1101111 1010010 1111111 1111011"


def led() -> Cells:
    """Return digits on a display of seven segments, each inverted with probability 0.1."""
    rng = np.random.RandomState(1984)
    segments = np.array([[int(on) for on in digit] for digit in SEGMENTS.split()])
    y = rng.randint(10, size=6000)
    X = segments[y] ^ (rng.uniform(size=(6000, 7)) < 0.1)
    return _drawn(X, y, "led1 led2 led3 led4 led5 led6 led7", 2000)


def waveform() -> Cells:
    """Return Breiman's waves: two of three triangles, mixed at random, in 21 places with noise."""
    rng = np.random.RandomState(1984)
    place = np.arange(1, 22)
    left, middle, right = (np.maximum(6 - np.abs(place - peak), 0) for peak in (7, 11, 15))
    first, second = np.array([left, left, middle]), np.array([right, middle, right])
    y = rng.randint(3, size=3600)
    share = rng.uniform(size=(3600, 1))
    X = share * first[y] + (1 - share) * second[y] + rng.standard_normal((3600, 21))
    # The published generator prints two digits.
    return _drawn(np.round(X, 2), y, " ".join(f"x{k}" for k in place), 600)


BUILT_IN: MappingProxyType[str, Callable[[], Cells]] = MappingProxyType(
    {
        "shuttle-landing-control": shuttle,
        "monks-1": lambda: monks(lambda a: a[0] == a[1] or a[4] == 1),
        "monks-2": lambda: monks(lambda a: sum(value == 1 for value in a) == 2),
        "monks-3": lambda: monks(
            lambda a: (a[4] == 3 and a[3] == 1) or (a[4] != 4 and a[1] != 3),
        ),
        "tic-tac-toe": tic_tac_toe,
        "wdbc": wdbc,
        "iris": iris,
        "balance-scale": balance_scale,
        "wine": wine,
        "waveform": waveform,
        "led": led,
    }
)
