"""Whether the fitted parts of what was loaded fit together: a file may say anything.

Networks are asked for an answer once. Encoders hand places in sparse matrices to compiled code,
which writes there unseen: those are looked at themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder

from .._estimator.ensemble_base import KARNetworkCV
from .._estimator.network_base import KARNetwork
from ._check import RefusedError
from ._format_1 import upgrade

__all__ = ["check_fitted"]

# Numbers of rows that a network is asked about, and layers that it has at most.
ASKED, DEEPEST = (2, 3), 10_000
# What transformers keep for each feature, and in how many dimensions, features last.
PER_FEATURE = {
    **dict.fromkeys(("mean_", "scale_", "var_", "center_", "min_", "data_min_", "data_max_"), 1),
    **dict.fromkeys(("data_range_", "max_abs_", "statistics_", "lambdas_", "variances_"), 1),
    **dict.fromkeys(("quantiles_", "components_"), 2),
}


def check_fitted(model: Any) -> None:
    """Raise an error if fitted parts of a model, or of any in it, do not fit together."""
    for part in _parts(model):
        upgrade(part)
        for kind, check in CHECKS.items():
            if isinstance(part, kind):
                try:
                    check(part)
                except RefusedError:
                    raise
                except Exception as error:
                    raise RefusedError(
                        f"the parts of a {type(part).__name__} do not fit together "
                        f"({type(error).__name__})"
                    ) from error


def _parts(model: Any) -> Iterator[Any]:
    """Yield all objects that a model is made of, itself included."""
    waiting, met = [model], set()
    while waiting:
        part = waiting.pop()
        if id(part) in met or isinstance(part, type | str | np.ndarray):
            continue
        met.add(id(part))
        yield part
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part
        else:
            waiting += getattr(part, "__dict__", {}).values()


def _expect(condition: bool) -> None:
    if not condition:
        raise ValueError("parts differ in their sizes")


def _check_network(net: KARNetwork) -> None:
    if not hasattr(net, "layers_"):
        return
    deepest = getattr(net._input_map, "depth", 1)
    _expect(type(deepest) is int and 0 < deepest <= DEEPEST)
    first = net.X_fit_.shape[1] if hasattr(net, "X_fit_") else net.coefs_[0].shape[0]
    layers = net._network().layers
    _expect(all(layer.V.ndim == 2 and layer.w.ndim == 1 for layer in layers))
    _expect(len(net.activations_) == len(net.layers_))
    _check_answers(net, first, len(layers[-1].w))


def _check_average(net: KARNetworkCV) -> None:
    if not hasattr(net, "estimators_"):
        return
    for member in net.estimators_:
        features = member.view.features
        _expect(all(each.V.ndim == 2 and each.w.ndim == 1 for each in member.network.layers))
        for depth in (member.shape.depth, member.kernel_map.depth):
            _expect(type(depth) is int and 0 < depth <= DEEPEST)
        _expect(bool(((features >= 0) & (features < net.n_features_in_)).all()))
    if hasattr(net, "_mean"):
        _expect(net._mean.shape == net._scale.shape == net.estimators_[0].intercept_.shape)
    _check_answers(net, net.n_features_in_, len(net.estimators_[0].intercept_))


def _check_answers(net: Any, n_features: int, q: int) -> None:
    """Ask for answers as the network would give them anywhere, whatever device it has."""
    # Widths are known from arrays, so that a number alone cannot ask for memory.
    _expect(type(net.n_features_in_) is int and net.n_features_in_ == n_features <= _widest(net))
    names = getattr(net, "feature_names_in_", None)
    _expect(names is None or (names.shape == (n_features,) and names.dtype == object))
    trial = object.__new__(type(net))
    vars(trial).update(vars(net), device=None)
    vars(trial).pop("feature_names_in_", None)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        # What fits some number of rows by chance does not fit another.
        for n_rows in ASKED:
            _check_some(trial, np.zeros((n_rows, n_features)), 2 if q == 1 else q)


def _check_some(net: Any, rows: NDArray[Any], n_classes: int) -> None:
    answers = [net.predict(rows)]
    if hasattr(net, "classes_"):
        _expect(net.classes_.shape == (n_classes,))
        answers += [net.decision_function(rows), net.predict_proba(rows)]
        _expect(answers[-1].shape == (len(rows), n_classes))
    if hasattr(net, "predict_interval"):
        answers.append(net.predict_interval(rows))
    _expect(all(len(each) == len(rows) for each in answers))
    numbers = answers[1:] if hasattr(net, "classes_") else answers
    _expect(all(each.dtype.kind == "f" and np.isfinite(each).all() for each in numbers))


def _widest(net: Any) -> int:
    """Return the most features that the arrays of a network could speak of."""
    if hasattr(net, "estimators_"):
        return len(net.feature_importances_)
    arrays: list[NDArray[Any]] = [net.X_fit_] if hasattr(net, "X_fit_") else [net.coefs_[0]]
    return max(array.size for array in arrays)


def _check_one_hot(encoder: OneHotEncoder) -> None:
    if not hasattr(encoder, "categories_"):
        return
    _expect(all(each.ndim == 1 for each in encoder.categories_))
    _expect(encoder._compute_n_features_outs() == encoder._n_features_outs)
    _expect(len(encoder.categories_) == len(encoder._n_features_outs))
    dropped = encoder._drop_idx_after_grouping
    _expect(dropped is None or len(dropped) == len(encoder.categories_))
    if getattr(encoder, "_infrequent_enabled", False):
        for known, few, places in zip(
            encoder.categories_,
            encoder._infrequent_indices,
            encoder._default_to_infrequent_mappings,
            strict=True,
        ):
            _expect((few is None) == (places is None))
            if places is not None:
                _expect(places.shape == known.shape and places.dtype.kind in "iu")
                _expect(bool(((places >= 0) & (places <= len(known) - few.size)).all()))


def _check_vocabulary(vectorizer: TfidfVectorizer) -> None:
    if hasattr(vectorizer, "vocabulary_"):
        places = list(vectorizer.vocabulary_.values())
        _expect(all(isinstance(each, int | np.integer) for each in places))
        _expect(sorted(places) == list(range(len(places))))


def _check_columns(part: BaseEstimator) -> None:
    """Check that what scikit-learn's transformers keep for each feature is there for each."""
    if not type(part).__module__.startswith("sklearn.") or not hasattr(part, "n_features_in_"):
        return
    for name, dimensions in PER_FEATURE.items():
        kept = vars(part).get(name)
        if kept is not None:
            _expect(len(kept.shape) == dimensions and kept.shape[-1] == part.n_features_in_)


CHECKS: dict[type, Callable[[Any], None]] = {
    KARNetwork: _check_network,
    KARNetworkCV: _check_average,
    OneHotEncoder: _check_one_hot,
    TfidfVectorizer: _check_vocabulary,
    BaseEstimator: _check_columns,
}
