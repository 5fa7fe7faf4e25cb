"""Forms and values of arrays: those of NumPy, SciPy and pandas, and invalid ones."""

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

from trust.fuzz_case import OwnError

Array = NDArray[Any]
Rng = np.random.Generator
HUGE, TINY = np.finfo(np.float64).max, 5e-324


class Raises:
    """Claims to be an array, but raises an error when it is converted."""

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


# The same numbers with another layout, type or shape.
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


def odd(table: dict[str, Callable[..., Any]]) -> st.SearchStrategy[str]:
    """Return a strategy for names of a table, half of them the first, which changes nothing."""
    first, *others = table
    return st.one_of(st.just(first), st.sampled_from(others))


def made(rng: Rng, shape: tuple[int, ...], value: str, form: str) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return formed(rng, VALUES[value](rng, rng.standard_normal(shape)), form)


def formed(rng: Rng, X: Array, form: str) -> Any:
    """Return the same numbers in another form if they can have it, else unchanged."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return FORMS[form](rng, X)
        except (ValueError, TypeError, IndexError, OverflowError, NotImplementedError):
            return X
