"""Arrays of every kind that NumPy, SciPy and pandas know, and of none, to all that takes rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from scipy import sparse

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV, lstsq
from karnet.accumulate import Accumulator
from karnet.blocks import Blocks
from karnet.loo import RidgePath, choose_alpha

from .fuzz_case import BrokenError, Case, OwnError, finite

__all__ = ["array_cases", "cv_cases", "networks", "odd_inputs", "odd_targets", "odd_weights"]

Array = NDArray[Any]
Rng = np.random.Generator
HUGE, TINY = np.finfo(np.float64).max, 5e-324


class Raises:
    """Says that it is an array, and raises when it is asked for it."""

    shape = (4, 2)

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise OwnError("no array after all")


def _sprinkled(value: Any) -> Callable[[Rng, Array], Array]:
    def change(rng: Rng, X: Array) -> Array:
        X = X.copy()
        X[rng.random(X.shape) < 0.2] = value
        return X

    return change


def _object(*values: Any) -> Callable[[Rng, Array], Array]:
    def change(rng: Rng, X: Array) -> Array:
        X = X.astype(object)
        for value in values:
            X.reshape(-1)[rng.integers(max(X.size, 1)) :][:1] = value
        return X

    return change


def _overlapping(rng: Rng, X: Array) -> Array:
    flat = rng.standard_normal(sum(X.shape) + 1)
    return as_strided(flat, X.shape, (8, 8)) if X.ndim == 2 else flat[: X.shape[0]]


def _read_only(rng: Rng, X: Array) -> Array:
    X = X.copy()
    X.flags.writeable = False
    return X


# Same numbers, laid out, typed or sized otherwise.
FORMS: dict[str, Callable[[Rng, Array], Any]] = {
    "as it is": lambda rng, X: X,
    "every second row": lambda rng, X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda rng, X: X[::-1],
    "turned twice": lambda rng, X: X.T.copy().T,
    "overlapping": _overlapping,
    "one value": lambda rng, X: np.broadcast_to(X.reshape(-1)[:1].sum(), X.shape),
    "read-only": _read_only,
    "other byte order": lambda rng, X: X.astype(X.dtype.newbyteorder()),
    "float32": lambda rng, X: X.astype(np.float32),
    "float16": lambda rng, X: X.astype(np.float16),
    "long double": lambda rng, X: X.astype(np.longdouble),
    "int8": lambda rng, X: np.round(X).astype(np.int8),
    "uint64": lambda rng, X: rng.integers(0, 2**64, X.shape, np.uint64),
    "int64": lambda rng, X: rng.integers(-(2**63), 2**63 - 1, X.shape),
    "bool": lambda rng, X: X > 0,
    "list": lambda rng, X: X.tolist(),
    "tuple": lambda rng, X: tuple(map(tuple, X)) if X.ndim == 2 else tuple(X),
    "memoryview": lambda rng, X: memoryview(np.ascontiguousarray(X)),
    "matrix": lambda rng, X: np.asmatrix(X),
    "masked": lambda rng, X: np.ma.masked_array(X, rng.random(X.shape) < 0.1),
    "nothing masked": lambda rng, X: np.ma.masked_array(X),
    "record": lambda rng, X: np.rec.fromarrays(X.T if X.ndim == 2 and X.size else [X]),
    "object": _object(),
    "large integers as objects": _object(10**30, -(10**25)),
    "endless integers": _object(10**400),
    "None": _object(None),
    "words": _object("a", "1.5"),
    "lists as objects": _object([1.0], (2, 3)),
    "an array in an array": _object(np.ones(2)),
    "complex": lambda rng, X: X + 1j,
    "text": lambda rng, X: X.astype(str),
    "other text": lambda rng, X: np.where(X > 0, "yes", "no"),
    "bytes": lambda rng, X: X.astype("S8"),
    "new text": lambda rng, X: X.astype(str).astype(np.dtypes.StringDType()),
    "dates": lambda rng, X: np.round(X).astype("datetime64[D]"),
    "durations": lambda rng, X: np.round(X).astype("timedelta64[s]"),
    "0-d": lambda rng, X: np.array(1.5),
    "a number": lambda rng, X: 3,
    "a word": lambda rng, X: "rows",
    "bytes at all": lambda rng, X: b"1234",
    "nothing": lambda rng, X: None,
    "a set": lambda rng, X: {1, 2, 3, 4},
    "a dict": lambda rng, X: {"a": X},
    "a range": lambda rng, X: range(X.shape[0]),
    "a generator": lambda rng, X: (row for row in X),
    "a function": lambda rng, X: np.sin,
    "raises": lambda rng, X: Raises(),
    "1-d": lambda rng, X: X.reshape(-1),
    "3-d": lambda rng, X: X[..., None],
    "no rows": lambda rng, X: X[:0],
    "no columns": lambda rng, X: X[:, :0] if X.ndim == 2 else X[:, None][:, :0],
    "one row less": lambda rng, X: X[1:],
    "ragged": lambda rng, X: [list(row)[: k % 3] for k, row in enumerate(np.atleast_2d(X))],
    "CSR": lambda rng, X: sparse.csr_array(np.atleast_2d(X)),
    "CSR, integers": lambda rng, X: sparse.csr_matrix(np.round(np.atleast_2d(X)).astype(int)),
    "CSC": lambda rng, X: sparse.csc_matrix(np.atleast_2d(X)),
    "COO": lambda rng, X: sparse.coo_array(np.atleast_2d(X)),
    "COO, twice": lambda rng, X: sparse.coo_matrix(
        (np.ones(4), ([0, 0, 0, 0], [0, 0, 0, 0])), shape=np.atleast_2d(X).shape or (1, 1)
    ),
    "LIL": lambda rng, X: sparse.lil_matrix(np.atleast_2d(X)),
    "DOK": lambda rng, X: sparse.dok_array(np.atleast_2d(X)),
    "DIA": lambda rng, X: sparse.dia_array(np.atleast_2d(X)),
    "BSR": lambda rng, X: sparse.bsr_array(np.atleast_2d(X)),
    "empty CSR": lambda rng, X: sparse.csr_array(np.atleast_2d(X).shape),
    "frame": lambda rng, X: pd.DataFrame(X, columns=[f"c{k}" for k in range(X[0:1].size)]),
    "frame, other names": lambda rng, X: pd.DataFrame(X).rename(columns=lambda k: f"x{9 - k}"),
    "frame, one name": lambda rng, X: pd.DataFrame(X).rename(columns=lambda k: "c"),
    "frame, mixed names": lambda rng, X: pd.DataFrame(X).rename(columns={0: "c"}),
    "frame, large integers": lambda rng, X: pd.DataFrame(np.round(X)).astype("Int64"),
    "frame, gaps": lambda rng, X: pd.DataFrame(X > 0).astype("boolean").where(X > -1),
    "frame, categories": lambda rng, X: pd.DataFrame(np.round(X)).astype("category"),
    "frame, text": lambda rng, X: pd.DataFrame(X).astype("string"),
    "frame, dates": lambda rng, X: pd.DataFrame(np.round(X).astype("datetime64[s]")),
    "frame, rows named": lambda rng, X: pd.DataFrame(X, index=[f"r{k}" for k in range(len(X))]),
    "frame, many names": lambda rng, X: pd.concat({"a": pd.DataFrame(X)}, axis=1),
    "frame, sparse": lambda rng, X: pd.DataFrame(X).astype(pd.SparseDtype(float)),
    "frame, complex": lambda rng, X: pd.DataFrame(X + 1j),
    "frame, no columns": lambda rng, X: pd.DataFrame(index=range(len(X))),
    "series": lambda rng, X: pd.Series(X.reshape(-1)),
    "series, categories": lambda rng, X: pd.Series(np.round(X.reshape(-1))).astype("category"),
    "index": lambda rng, X: pd.Index(X.reshape(-1)),
}
# Other numbers.
VALUES: dict[str, Callable[[Rng, Array], Array]] = {
    "plain": lambda rng, X: X,
    "NaN": _sprinkled(np.nan),
    "infinity": _sprinkled(np.inf),
    "minus infinity": _sprinkled(-np.inf),
    "largest": _sprinkled(HUGE),
    "1e308": lambda rng, X: np.sign(X) * 1e308,
    "subnormal": lambda rng, X: X * TINY,
    "all magnitudes": lambda rng, X: X * 10.0 ** rng.uniform(-300, 300, X.shape),
    "columns of all magnitudes": lambda rng, X: X * 10.0 ** rng.uniform(-300, 300, X.shape[-1:]),
    "zeros": lambda rng, X: X * 0.0,
    "minus zero": lambda rng, X: X * -0.0,
    "whole": lambda rng, X: np.round(X),
    "alike": lambda rng, X: X[rng.integers(0, max(len(X), 1), len(X))] if len(X) else X,
    "large offset": lambda rng, X: X + 1e15,
}


def _odd(table: dict[str, Callable[..., Any]]) -> st.SearchStrategy[str]:
    """Return a strategy for names of a table: half of them the first, which changes nothing."""
    first, *others = table
    return st.one_of(st.just(first), st.sampled_from(others))


def _made(rng: Rng, shape: tuple[int, ...], value: str, form: str) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = VALUES[value](rng, rng.standard_normal(shape))
        try:
            return FORMS[form](rng, X)
        except (ValueError, TypeError, IndexError, OverflowError, NotImplementedError):
            return X  # there is no such form of this shape


SHAPES = st.tuples(
    st.sampled_from([0, 1, 2, 3, 5, 8, 8, 12, 12]), st.sampled_from([0, 1, 2, 3, 4, 9])
)
odd_inputs = st.tuples(_odd(VALUES), _odd(FORMS))
ESTIMATORS = {"classifier": KARClassifier, "regressor": KARRegressor}


def odd_targets(rng: Rng, m: int, kind: str, of_classes: bool) -> Any:
    """Return targets, plain ones or odd ones, by the name of a form."""
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
    return _made(rng, (m,), value, form) if not of_classes else _coded(rng, plain, form)


def _coded(rng: Rng, plain: Array, form: str) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return FORMS[form](rng, plain)
        except (ValueError, TypeError, IndexError, OverflowError, NotImplementedError):
            return plain


TARGETS = st.one_of(
    st.just("plain|as it is"),
    st.just("plain|as it is"),
    st.sampled_from(["labels", "two columns"]),
    st.builds("{}|{}".format, _odd(VALUES), _odd(FORMS)),
)
odd_weights = st.one_of(
    st.none(), st.none(), st.none(), st.builds("{}|{}".format, _odd(VALUES), _odd(FORMS))
)


def _weights(rng: Rng, m: int, kind: str | None) -> Any:
    if kind is None:
        return None
    value, _, form = kind.partition("|")
    weights = _made(rng, (m,), value, form)
    return np.abs(weights) if value == "plain" and form == "as it is" else weights


# What is done with them


def _unchanged(net: Any, act: Callable[[], Any]) -> Any:
    """Do something with a fitted network, which stays as it was if that fails."""
    before = dict(vars(net))
    try:
        return act()
    except Exception:
        after = vars(net)
        if before.keys() != after.keys() or any(before[key] is not after[key] for key in before):
            raise BrokenError("a failure left the network changed") from None
        raise


def _fit(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
    _unchanged(net, lambda: net.fit(X, y, weight))
    finite(net.predict(X))


def _fitted(net: Any, rng: Rng) -> Any:
    y = np.array([0, 1, 2, 0, 1, 2, 0])
    return net.fit(rng.standard_normal((7, 2)), y if hasattr(net, "class_weight") else y * 0.5)


def _predict(net: Any, X: Any, y: Any, weight: Any, Z: Any) -> None:
    net = _fitted(net, np.random.default_rng(0))
    methods = ["predict", "predict_proba", "decision_function", "predict_interval"]
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
    """Draw parameters that go together."""
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
    """Draw a network, rows, targets and weights, and what is done with them."""
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
        X, Z = _made(rng, (m, d), value, form), rng.standard_normal((m, d))
        y, weight = odd_targets(rng, m, target, of_classes), _weights(rng, m, weighted)
        ACTIONS[action](net, X, y, weight, Z)

    told = f"{action}; X: {m} x {d}, {value}, {form}; y: {target}; weights: {weighted}; seed {seed}"
    return Case(f"{told}; {about}", run)


@st.composite
def cv_cases(draw: Any) -> Case:
    """Draw rows, targets and weights for the estimators that settle everything themselves."""
    kind = draw(st.sampled_from([KARClassifierCV, KARRegressorCV]))
    settings = {"n_estimators": draw(st.integers(1, 2)), "cv": draw(st.sampled_from([None, 2]))}
    settings |= {"width": draw(st.sampled_from([3, 1500])), "random_state": 0}
    action = draw(st.sampled_from(["fit", "fit", "predict", "score"]))
    net = kind(**settings)
    net.fit_intercept, net.alpha = True, 0.0
    return _case(draw, action, f"{kind.__name__} {settings}", kind(**settings))
