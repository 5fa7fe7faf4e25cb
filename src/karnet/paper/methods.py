"""The networks that are compared, and which experiment compares which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from ..datasets import DataSet
from ..estimators import KARClassifier
from .baseline import LevenbergMarquardtClassifier
from .protocol import WIDTHS, Coding, one_hot

__all__ = ["EXPERIMENTS_OF_SETS", "METHODS", "Method"]

# From hidden layer sizes, a seed and a limit in seconds to an unfitted estimator.
Make = Callable[[tuple[int, ...], int, float], Any]
# What the paper's baseline was tried with where it ran out of memory.
LARGEST_WIDTH = max(WIDTHS)
IN_UNIT_INTERVAL = Coding()


def _karnet(sizes: tuple[int, ...], seed: int, _: float, **parameters: Any) -> KARClassifier:
    return KARClassifier(sizes, random_state=seed, **parameters)


def _levenberg_marquardt(
    sizes: tuple[int, ...], seed: int, time_limit: float
) -> LevenbergMarquardtClassifier:
    return LevenbergMarquardtClassifier(sizes, time_limit=time_limit, random_state=seed)


def _mlp(sizes: tuple[int, ...], seed: int, _: float) -> MLPClassifier:
    return MLPClassifier(sizes, random_state=seed)


@dataclass(frozen=True)
class Method:
    """A network and the way it is brought to a data set.

    Parameters
    ----------
    name : str
        What it is called in the store.
    title : str
        What it is called in tables and figures.
    make : callable
        Gives the unfitted estimator for hidden layer sizes, a seed and a limit in seconds.
    factors : tuple of int
        Sizes of the hidden layers in units of the width.
    widths : tuple of int
        What the width is chosen from, by cross-validation inside the training part; of equally good
        ones the first. Empty: it is the one that the paper gives for its baseline.
    n_inner_folds : int
        Folds of that cross-validation.
    coding : Coding
        How inputs become numbers.
    slow : bool
        Whether it takes so long that only some folds of the first trial are run.
    numbers : range
        Numbers of the data sets it is tried on.
    choice : tuple of two str or None
        What the paper leaves open and is varied here, and the option taken.
    """

    name: str
    title: str
    make: Make = _karnet
    factors: tuple[int, ...] = (1,)
    widths: tuple[int, ...] = WIDTHS
    n_inner_folds: int = 10
    coding: Coding = IN_UNIT_INTERVAL
    slow: bool = False
    numbers: range = range(1, 43)
    choice: tuple[str, str] | None = None

    def sizes(self, width: int) -> tuple[int, ...]:
        """Return the sizes of the hidden layers."""
        return tuple(factor * width for factor in self.factors)

    def given_width(self, data: DataSet) -> int | None:
        """Return the width if it is given and not to be chosen."""
        if self.widths:
            return None
        return data.widths.baseline or LARGEST_WIDTH


DEFAULT = Method("karnet", "KARnet")
MLP = Method("mlp", "MLPClassifier", _mlp, n_inner_folds=3, slow=True, numbers=range(1, 40))
COMPARED = (
    DEFAULT,
    Method("karnet, baseline's width", "KARnet, baseline's width", widths=()),
    Method(
        "levenberg-marquardt",
        "Levenberg-Marquardt",
        _levenberg_marquardt,
        widths=(),
        slow=True,
    ),
    MLP,
    replace(MLP, name="mlp, baseline's width", title="MLPClassifier, baseline's width", widths=()),
)
DEPTHS = (
    DEFAULT,
    Method("karnet, 3 layers", "KARnet, 3 layers", factors=(2, 1), slow=True),
    Method("karnet, 4 layers", "KARnet, 4 layers", factors=(4, 2, 1), slow=True),
)


def _varied(what: str, option: str, **changes: Any) -> Method:
    return Method(f"karnet, {option}", option, choice=(what, option), **changes)


VARIATIONS = (
    _varied("scaling of inputs", "inputs unscaled", coding=Coding(scaler=None)),
    _varied("scaling of inputs", "inputs standardised", coding=Coding(scaler=StandardScaler)),
    _varied(
        "scaling of inputs",
        "inputs in [-1, 1]",
        coding=Coding(scaler=partial(MinMaxScaler, (-1, 1))),
    ),
    _varied("categories", "categories one-hot", coding=Coding(one_hot)),
    _varied("initial weights", "weights uniform", make=partial(_karnet, init="uniform")),
    _varied(
        "outside logit's domain", "logit clipped", make=partial(_karnet, activation="logit_clipped")
    ),
    _varied("cut-off of the solver", "cut-off 1e-15", make=partial(_karnet, rcond=1e-15)),
    _varied("cut-off of the solver", "cut-off 1e-6", make=partial(_karnet, rcond=1e-6)),
    _varied("cut-off of the solver", "ridge 1e-6", make=partial(_karnet, alpha=1e-6)),
    _varied("equally good widths", "widest of equals", widths=WIDTHS[::-1]),
)

METHODS: Mapping[str, Method] = MappingProxyType(
    {method.name: method for method in (*COMPARED, *DEPTHS, *VARIATIONS)}
)
EXPERIMENTS_OF_SETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "uci": tuple(method.name for method in COMPARED),
        "depth": tuple(method.name for method in DEPTHS),
        "choices": tuple(method.name for method in (DEFAULT, *VARIATIONS)),
    }
)
