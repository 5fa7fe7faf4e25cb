"""Parameters of every wrong type, size and kind for all public constructors."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV, lstsq
from karnet.accumulate import Accumulator
from karnet.activations import ACTIVATIONS, Activation
from trust.fuzz_case import Case, OwnError, finite

RNG = np.random.default_rng(5)
X, Y = RNG.standard_normal((6, 2)), np.array([0, 1, 2, 0, 1, 2])


def raises(*_: Any) -> Any:
    raise OwnError("a function that raises")


def keeps(x: Any) -> Any:
    return x


class Mute:
    """Raises an error when it is printed."""

    def __repr__(self) -> str:
        raise OwnError("nothing to show")


ODD: dict[str, Any] = {
    **{repr(each): each for each in (None, True, False, 0, 1, -1, 2, 3, 10**30, -(10**400))},
    **{repr(each): each for each in (0.0, -0.0, 0.5, 1.0, 2.5, -1e-300, 1e308, 5e-324, 1e-3)},
    **{str(each): each for each in (np.nan, np.inf, -np.inf, 1j)},
    **{repr(each): each for each in ("", "x", "auto", "normal", "\x00", "é" * 50, b"normal")},
    **{repr(each): each for each in ((), [], {}, set(), (1,), [3, 2], (0,), (-1,), (2.0,), ("3",))},
    **{repr(each): each for each in ((np.inf,), (np.inf, 2), ((3,),), (None,), (np.nan,), (True,))},
    "np.int8(3)": np.int8(3),
    "np.float32(0.5)": np.float32(0.5),
    "np.bool_": np.bool_(True),
    "np.str_": np.str_("tanh"),
    "0-d": np.array(1),
    "0-d of inf": np.array(np.inf),
    "array": np.array([2, 2]),
    "empty array": np.empty(0),
    "3-d": np.ones((1, 2, 3)),
    "array of NaN": np.array([np.nan]),
    "object array": np.array([None, "a"], dtype=object),
    "a function": keeps,
    "a function that raises": raises,
    "a pair": (keeps, keeps),
    "a pair that raises": (raises, raises),
    "a pair and more": (keeps, keeps, keeps),
    "a type": int,
    "a module": np,
    "a generator": np.random.default_rng(0),
    "a RandomState": np.random.RandomState(0),
    "nothing to show": Mute(),
    "range": range(2),
    "dict of classes": {0: 1.0, 1: 2.0},
    "dict of others": {"a": "b"},
    "dict of NaN": {0: np.nan},
    "a network": KARClassifier((2,)),
    "huge layer": (10**12,),
    "endless layer": (10**30,),
    "many layers": (1,) * 60,
    "cpu": "cpu",
    "cuda:99": "cuda:99",
}
VALID: dict[str, st.SearchStrategy[Any]] = {
    "hidden_layer_sizes": st.sampled_from([(), (3,), (4, 2), (np.inf,), 5]),
    "activation": st.sampled_from([*ACTIVATIONS, ACTIVATIONS["tanh"]]),
    "output_activation": st.sampled_from([None, *ACTIVATIONS]),
    "hidden": st.sampled_from(["pullback", "random", "metric"]),
    "alpha": st.sampled_from([0.0, 1e-300, 1e-6, 1.0, 1e300]),
    "rcond": st.sampled_from([None, 0.0, 1e-300, 1e-12, 0.1, 0.999]),
    "solver": st.sampled_from(["auto", "cholesky", "qr", "svd"]),
    "n_sweeps": st.integers(1, 3),
    "n_rounds": st.integers(1, 3),
    "fit_intercept": st.booleans(),
    "direct_links": st.booleans(),
    "init": st.sampled_from(["normal", "uniform", "cauchy"]),
    "random_state": st.sampled_from([0, None, 2**32 - 1]),
    "class_weight": st.sampled_from([None, "balanced"]),
    "device": st.none(),
}
# Parameters for which large numbers are valid, but would take hours.
COUNTS = ("n_sweeps", "n_rounds", "n_estimators", "time_budget")


def _odd(name: str) -> st.SearchStrategy[str]:
    few = [key for key in ODD if not (name in COUNTS and key.startswith("1000"))]
    return st.sampled_from(few)


@st.composite
def parameter_cases(draw: Any) -> Case:
    """Draw valid parameters, and one to three unusual ones."""
    kind = draw(
        st.sampled_from([KARClassifier, KARRegressor, "lstsq", "Accumulator", "Activation"])
    )
    if isinstance(kind, str):
        return draw(_CALLS[kind])
    names = [name for name in VALID if name in kind().get_params()]
    given = draw(st.fixed_dictionaries({}, optional={name: VALID[name] for name in names}))
    wrong = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    odd = {name: draw(_odd(name)) for name in wrong}
    method = draw(st.sampled_from(["fit", "partial_fit"]))

    def run() -> None:
        net = kind(**given | {name: ODD[key] for name, key in odd.items()})
        finite(getattr(net, method)(X, Y).predict(X))

    return Case(f"{kind.__name__}.{method} {odd} with {given}", run)


@st.composite
def cv_parameter_cases(draw: Any) -> Case:
    """Draw unusual parameters of the estimators that select all hyper-parameters."""
    kind = draw(st.sampled_from([KARClassifierCV, KARRegressorCV]))
    names = [name for name in kind().get_params() if name != "n_estimators" or draw(st.booleans())]
    wrong = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    odd = {name: draw(_odd(name)) for name in wrong}

    def run() -> None:
        given = {"n_estimators": 1, **{name: ODD[key] for name, key in odd.items()}}
        net = kind(**given).fit(X, Y)
        finite(net.predict(X))
        if kind is KARRegressorCV:
            finite(net.predict_interval(X, coverage=ODD[key]) if key else 0)

    key = draw(st.sampled_from(["", *ODD]))
    return Case(f"{kind.__name__} {odd}, coverage {key}", run)


@st.composite
def _lstsq_case(draw: Any) -> Case:
    odd = {
        name: draw(st.sampled_from(list(ODD)))
        for name in draw(st.sets(st.sampled_from(["bias", "alpha", "solver", "rcond"]), min_size=1))
    }

    def run() -> None:
        finite(lstsq(X, Y, **{name: ODD[key] for name, key in odd.items()}).coef)

    return Case(f"lstsq {odd}", run)


@st.composite
def _accumulator_case(draw: Any) -> Case:
    names = ["n", "q", "bias", "alpha", "rcond", "form", "solve"]
    odd = {
        name: draw(st.sampled_from(list(ODD)))
        for name in draw(st.sets(st.sampled_from(names), min_size=1, max_size=3))
    }

    def run() -> None:
        given = {"n": 2, "q": 1} | {name: ODD[key] for name, key in odd.items()}
        ridge = given.pop("solve", None)
        finite(Accumulator(**given).add(X, Y).solve(ridge).coef)

    return Case(f"Accumulator {odd}", run)


@st.composite
def _activation_case(draw: Any) -> Case:
    parts = ["name", "forward", "inverse", "derivative", "domain", "codomain", "margin"]
    # A type that is called with an array raises its own errors.
    odd = {
        name: draw(st.sampled_from([key for key in ODD if key != "a type"]))
        for name in draw(st.sets(st.sampled_from(parts), min_size=1, max_size=2))
    }
    hidden = draw(st.sampled_from(["pullback", "random", "metric"]))

    def run() -> None:
        own = {"name": "own", "forward": np.tanh, "inverse": np.arctanh, "codomain": (-1.0, 1.0)}
        f = Activation(**own | {name: ODD[key] for name, key in odd.items()})
        finite(KARRegressor((3,), activation=f, hidden=hidden, random_state=0).fit(X, Y).predict(X))

    return Case(f"Activation {odd}, {hidden}", run)


_CALLS = {
    "lstsq": _lstsq_case(),
    "Accumulator": _accumulator_case(),
    "Activation": _activation_case(),
}
