"""Unusual arrays for all functions that take rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV, lstsq
from karnet.accumulate import Accumulator
from karnet.blocks import Blocks
from karnet.loo import RidgePath, choose_alpha
from trust.fuzz_case import BrokenError, Case, finite
from trust.fuzz_forms import FORMS, VALUES, Rng, formed, made, odd

SHAPES = st.tuples(
    st.sampled_from([0, 1, 2, 3, 5, 8, 8, 12, 12]), st.sampled_from([0, 1, 2, 3, 4, 9])
)
odd_inputs = st.tuples(odd(VALUES), odd(FORMS))
ESTIMATORS = {"classifier": KARClassifier, "regressor": KARRegressor}


def odd_targets(rng: Rng, m: int, kind: str, of_classes: bool) -> Any:
    """Return plain or unusual targets, by the name of their values and form."""
    if of_classes:
        plain = rng.integers(0, 3, m)
        plain[:3] = np.arange(3)[:m]
    else:
        plain = rng.standard_normal(m)
    value, _, form = kind.partition("|")
    if kind == "labels":
        return np.array(["a", "b", "c"])[np.abs(np.round(plain)).astype(int) % 3]
    if kind == "two columns":
        return np.column_stack([plain, plain])
    if kind == "plain|as it is":
        return plain
    return made(rng, (m,), value, form) if not of_classes else formed(rng, plain, form)


TARGETS = st.one_of(
    st.just("plain|as it is"),
    st.just("plain|as it is"),
    st.sampled_from(["labels", "two columns"]),
    st.builds("{}|{}".format, odd(VALUES), odd(FORMS)),
)
odd_weights = st.one_of(
    st.none(), st.none(), st.none(), st.builds("{}|{}".format, odd(VALUES), odd(FORMS))
)


def _weights(rng: Rng, m: int, kind: str | None) -> Any:
    if kind is None:
        return None
    value, _, form = kind.partition("|")
    weights = made(rng, (m,), value, form)
    return np.abs(weights) if value == "plain" and form == "as it is" else weights


# What is done with them


def _unchanged(net: Any, act: Callable[[], Any]) -> Any:
    """Call a method of a network, which must not change the network if it fails."""
    before = dict(vars(net))
    try:
        return act()
    except Exception:
        after = vars(net)
        if before.keys() != after.keys() or any(before[key] is not after[key] for key in before):
            raise BrokenError("an error changed the network") from None
        raise


def _fit(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
    _unchanged(net, lambda: net.fit(X, y, weight))
    finite(net.predict(X))


def _fitted(net: Any, rng: Rng) -> Any:
    y = np.array([0, 1, 2, 0, 1, 2, 0])
    return net.fit(rng.standard_normal((7, 2)), y if hasattr(net, "class_weight") else y * 0.5)


def _predict(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
    net = _fitted(net, np.random.default_rng(0))
    methods = ["predict", "predict_proba", "decision_function"]
    methods += ["predict_interval", "predict_set"]
    for method in methods:
        if hasattr(net, method):
            finite(_unchanged(net, lambda method=method: getattr(net, method)(X)))


def _score(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
    net = _fitted(net, np.random.default_rng(0))
    _unchanged(net, lambda: net.score(X, y, sample_weight=weight))


def _update(name: str) -> Callable[..., None]:
    def act(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
        net = _fitted(net, np.random.default_rng(0))
        _unchanged(net, lambda: getattr(net, name)(X, y, sample_weight=weight))
        finite(net.predict(np.ones((3, 2))))

    return act


def _first(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
    _unchanged(net, lambda: net.partial_fit(X, y, sample_weight=weight))
    finite(_unchanged(net, lambda: net.partial_fit(Z, y, sample_weight=weight)).predict(Z))


def _merge(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
    other = type(net)(**net.get_params())
    if hasattr(X, "shape"):
        other.fit(X, y, weight)
    else:
        other = X
    net = _fitted(net, np.random.default_rng(0))
    finite(_unchanged(net, lambda: net.merge(other)).predict(np.ones((3, 2))))


def _blocks(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
    part = (X, y) if weight is None else (X, y, weight)
    _unchanged(net, lambda: net.fit_blocks([part, part]))
    finite(net.predict(X))


def _from_arrays(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
    _unchanged(net, lambda: net.fit_blocks(Blocks.from_arrays(X, y, weight)))
    finite(net.predict(X))


def _lstsq(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
    finite(lstsq(X, y, bias=net.fit_intercept, alpha=net.alpha, solver=net.solver).coef)


def _accumulate(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
    shape = getattr(X, "shape", ())
    n = shape[1] if len(shape) == 2 else 2
    empty = Accumulator(n, 1, alpha=net.alpha, bias=net.fit_intercept)
    once = empty.add(X, y, weight)
    finite(once.solve().coef)
    finite(once.merge(once).remove(X, y, weight).solve().coef)


def _path(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
    targets = y[:, None] if isinstance(y, np.ndarray) and y.ndim == 1 else y
    path = RidgePath.of(X, targets, weight, net.fit_intercept)
    finite(path.coef(net.alpha or 1.0))
    finite(path.loo(1.0))
    path.kfold(1.0, [[0], [len(Z) - 1]])
    choose_alpha(path)


def _kernel(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
    with np.errstate(all="ignore"):
        K = X @ X.T if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind == "f" else X
    targets = y[:, None] if isinstance(y, np.ndarray) and y.ndim == 1 else y
    path = RidgePath.of_kernel(K, targets, weight, net.fit_intercept)
    finite(path.dual_coef(1.0)[1])
    finite(path.loo(1.0))


ACTIONS: dict[str, Callable[..., None]] = {
    "fit": _fit,
    "predict": _predict,
    "score": _score,
    "partial_fit, first": _first,
    "partial_fit": _update("partial_fit"),
    "forget": _update("forget"),
    "merge": _merge,
    "fit_blocks": _blocks,
    "Blocks.from_arrays": _from_arrays,
    "lstsq": _lstsq,
    "Accumulator": _accumulate,
    "RidgePath.of": _path,
    "RidgePath.of_kernel": _kernel,
}
WIDTHS: list[tuple[tuple[float, ...], str, str]] = [
    ((), "pullback", "logit"),
    ((3,), "pullback", "logit"),
    ((4, 2), "pullback", "tanh"),
    ((1,), "random", "relu"),
    ((20,), "random", "cos"),
    ((4, 2), "random", "tanh"),
    ((np.inf,), "random", "relu"),
    ((np.inf,), "random", "cos"),
    ((3,), "metric", "tanh"),
    ((4, 2), "metric", "relu"),
]


@st.composite
def networks(draw: Any) -> dict[str, Any]:
    """Draw compatible parameters."""
    sizes, hidden, activation = draw(st.sampled_from(WIDTHS))
    return {
        "hidden_layer_sizes": sizes,
        "hidden": hidden,
        "activation": activation,
        "alpha": draw(st.sampled_from([0.0, 1e-6, 1.0])),
        "direct_links": draw(st.booleans()),
        "fit_intercept": draw(st.booleans()),
        "random_state": 0,
    }


@st.composite
def array_cases(draw: Any, actions: tuple[str, ...] = tuple(ACTIONS)) -> Case:
    """Draw a network, rows, targets and weights, and the method to call."""
    action, kind = draw(st.sampled_from(actions)), draw(st.sampled_from(list(ESTIMATORS)))
    network = draw(networks())
    return _case(draw, action, f"{kind} {network}", ESTIMATORS[kind](**network))


def _case(draw: Any, action: str, about: str, net: Any) -> Case:
    seed, (m, d) = draw(st.integers(0, 2**32 - 1)), draw(SHAPES)
    d = draw(st.sampled_from([d, 2, 2, 2]))
    value, form = draw(odd_inputs)
    target, weighted = draw(TARGETS), draw(odd_weights)
    of_classes = hasattr(net, "class_weight") and action not in ("lstsq", "Accumulator")

    def run() -> None:
        rng = np.random.default_rng(seed)
        X, Z = made(rng, (m, d), value, form), rng.standard_normal((m, d))
        y, weight = odd_targets(rng, m, target, of_classes), _weights(rng, m, weighted)
        ACTIONS[action](net, X, y, weight, Z)

    data = f"{action}; X: {m} x {d}, {value}, {form}; y: {target}; weights: {weighted}; seed {seed}"
    return Case(f"{data}; {about}", run)


@st.composite
def cv_cases(draw: Any) -> Case:
    """Draw rows, targets and weights for the estimators that select all hyper-parameters."""
    kind = draw(st.sampled_from([KARClassifierCV, KARRegressorCV]))
    settings = {"n_estimators": draw(st.integers(1, 2)), "cv": draw(st.sampled_from([None, 2]))}
    settings |= {"width": draw(st.sampled_from([3, 1500])), "random_state": 0}
    action = draw(st.sampled_from(["fit", "fit", "predict", "score"]))
    net = kind(**settings)
    net.fit_intercept, net.alpha = True, 0.0
    return _case(draw, action, f"{kind.__name__} {settings}", kind(**settings))
