"""The networks that are compared, their numbers in the paper, and the experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from ..datasets import DataSet
from ..estimators import KARClassifier
from .baseline import LevenbergMarquardtClassifier
from .protocol import WIDTHS, Coding, one_hot

# The name of the paper's network.
KARNET = "karnet"
# The name of the paper's network with as many hidden units as the baseline.
SAME_WIDTH = "karnet, baseline's width"
# The name of the paper's baseline.
BASELINE = "levenberg-marquardt"
# The names of the paper's networks by number of layers.
DEPTHS: Mapping[int, str] = {2: KARNET, 3: "karnet, 3 layers", 4: "karnet, 4 layers"}
# Means over the sets 1 to 39 that the paper reports: accuracy, and seconds of training.
REPORTED: Mapping[str, Mapping[str, float]] = {
    "accuracy": {KARNET: 0.7939, SAME_WIDTH: 0.8003, BASELINE: 0.6699},
    "cpu": {KARNET: 0.0211, SAME_WIDTH: 0.8003, BASELINE: 180.37},
}
# The paper's outputs for the targets of XOR and seconds, by number of layers and method.
REPORTED_XOR: Mapping[tuple[int, str], tuple[tuple[float, ...], float]] = {
    (2, KARNET): ((0.0, 0.0, 1.0, 1.0), 0.0625),
    (2, BASELINE): ((-0.0758, 0.0665, 0.4302, 1.0988), 1.0781),
    (5, KARNET): ((0.0, 0.0, 1.0, 1.0), 0.125),
    (5, BASELINE): ((-0.1527, 0.0331, -0.2331, 0.0296), 1.0938),
}


@dataclass(frozen=True)
class Method:
    """A network, and how it is trained on a data set."""

    name: str  # in the store
    title: str  # in tables and figures
    kind: Any = KARClassifier  # the class of the estimator
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the estimator
    factors: tuple[int, ...] = (1,)  # sizes of the hidden layers as multiples of the width
    # The widths that cross-validation on the training rows chooses from, the first one of equally
    # good ones; if empty, the paper's width of its baseline is used.
    widths: tuple[int, ...] = WIDTHS
    n_inner_folds: int = 10  # of that cross-validation
    coding: Coding = field(default_factory=Coding)
    slow: bool = False  # if so, only some folds of the first trial are run
    numbers: range = range(1, 43)  # of the data sets that the method is run on
    # A detail that the paper does not specify, and the option that this method takes.
    choice: tuple[str, str] | None = None

    def network(self, width: int, seed: int, time_limit: float) -> Any:
        """Return the unfitted estimator; the time limit, in seconds, is for the baseline only."""
        limit = {"time_limit": time_limit} if self.name == BASELINE else {}
        return self.kind(self.sizes(width), random_state=seed, **self.parameters, **limit)

    def sizes(self, width: int) -> tuple[int, ...]:
        """Return the sizes of the hidden layers."""
        return tuple(factor * width for factor in self.factors)

    def given_width(self, data: DataSet) -> int | None:
        """Return the paper's width of its baseline, or None if the width is to be chosen."""
        # Where the paper's baseline ran out of memory, the largest width was tried.
        return None if self.widths else data.widths.baseline or max(WIDTHS)


DEFAULT = Method(KARNET, "KARnet")
MLP = Method(
    "mlp", "MLPClassifier", MLPClassifier, n_inner_folds=3, slow=True, numbers=range(1, 40)
)
COMPARED = (
    DEFAULT,
    Method(SAME_WIDTH, "KARnet, baseline's width", widths=()),
    Method(BASELINE, "Levenberg-Marquardt", LevenbergMarquardtClassifier, widths=(), slow=True),
    MLP,
    replace(MLP, name="mlp, baseline's width", title="MLPClassifier, baseline's width", widths=()),
)
DEEP = (
    DEFAULT,
    Method(DEPTHS[3], "KARnet, 3 layers", factors=(2, 1)),
    Method(DEPTHS[4], "KARnet, 4 layers", factors=(4, 2, 1)),
)
# The coding with inputs scaled to [-1, 1].
SYMMETRIC = Coding(scaler=partial(MinMaxScaler, (-1, 1)))


def _varied(what: str, option: str, **changes: Any) -> Method:
    return Method(f"karnet, {option}", option, choice=(what, option), **changes)


VARIATIONS = (
    _varied("scaling of inputs", "inputs unscaled", coding=Coding(scaler=None)),
    _varied("scaling of inputs", "inputs standardised", coding=Coding(scaler=StandardScaler)),
    _varied("scaling of inputs", "inputs in [-1, 1]", coding=SYMMETRIC),
    _varied("categories", "categories one-hot", coding=Coding(one_hot)),
    _varied("initial weights", "weights uniform", parameters={"init": "uniform"}),
    _varied("outside logit's domain", "logit clipped", parameters={"activation": "logit_clipped"}),
    _varied("cut-off of the solver", "cut-off 1e-15", parameters={"rcond": 1e-15}),
    _varied("cut-off of the solver", "cut-off 1e-6", parameters={"rcond": 1e-6}),
    _varied("cut-off of the solver", "ridge 1e-6", parameters={"alpha": 1e-6}),
    _varied("equally good widths", "widest of equals", widths=WIDTHS[::-1]),
)
METHODS: Mapping[str, Method] = {method.name: method for method in (*COMPARED, *DEEP, *VARIATIONS)}
EXPERIMENTS_OF_SETS: Mapping[str, tuple[str, ...]] = {
    "uci": tuple(method.name for method in COMPARED),
    "depth": tuple(method.name for method in DEEP),
    "choices": tuple(method.name for method in (DEFAULT, *VARIATIONS)),
}
