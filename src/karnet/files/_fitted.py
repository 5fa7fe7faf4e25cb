"""The check that the fitted attributes of a loaded model fit together.

A file may hold arrays of any shape. Networks are checked by predicting a few rows. Encoders pass
indices to compiled code, which does not check them, so the indices themselves are checked.
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

# The numbers of rows that a network predicts; a shape that fits one by chance does not fit both.
TRIAL_ROWS = (2, 3)
# The largest number of layers.
DEEPEST = 10_000
# The number of dimensions of the attributes that transformers have per feature, features last.
PER_FEATURE = {
    **dict.fromkeys(("mean_", "scale_", "var_", "center_", "min_", "data_min_", "data_max_"), 1),
    **dict.fromkeys(("data_range_", "max_abs_", "statistics_", "lambdas_", "variances_"), 1),
    **dict.fromkeys(("quantiles_", "components_"), 2),
}


def check_fitted(model: Any) -> None:
    """Raise an error if the attributes of a model, or of a part of it, do not fit together."""
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
    """Yield all objects that a model consists of, including the model."""
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
        raise ValueError("attributes have different sizes")


def _check_network(net: KARNetwork) -> None:
    if not hasattr(net, "layers_"):
        return
    deepest = getattr(net._input_map, "depth", 1)
    _expect(type(deepest) is int and 0 < deepest <= DEEPEST)
    first = net.X_fit_.shape[1] if hasattr(net, "X_fit_") else net.coefs_[0].shape[0]
    layers = net._network().layers
    _expect(all(layer.V.ndim == 2 and layer.w.ndim == 1 for layer in layers))
    _expect(len(net.activations_) == len(net.layers_))
    _check_predictions(net, first, len(layers[-1].w))


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
    _check_predictions(net, net.n_features_in_, len(net.estimators_[0].intercept_))


def _check_predictions(net: Any, n_features: int, q: int) -> None:
    """Check the predictions for a few rows, computed on the CPU whatever the device."""
    # The number of features is compared with an array, so that it alone cannot claim memory.
    _expect(type(net.n_features_in_) is int and net.n_features_in_ == n_features <= _widest(net))
    names = getattr(net, "feature_names_in_", None)
    _expect(names is None or (names.shape == (n_features,) and names.dtype == object))
    trial = object.__new__(type(net))
    vars(trial).update(vars(net), device=None)
    vars(trial).pop("feature_names_in_", None)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for n_rows in TRIAL_ROWS:
            _check_rows(trial, np.zeros((n_rows, n_features)), 2 if q == 1 else q)


def _check_rows(net: Any, rows: NDArray[Any], n_classes: int) -> None:
    predictions = [net.predict(rows)]
    if hasattr(net, "classes_"):
        _expect(net.classes_.shape == (n_classes,))
        predictions += [net.decision_function(rows), net.predict_proba(rows)]
        _expect(predictions[-1].shape == (len(rows), n_classes))
    if hasattr(net, "predict_interval"):
        predictions.append(net.predict_interval(rows))
    _expect(all(len(each) == len(rows) for each in predictions))
    numbers = predictions[1:] if hasattr(net, "classes_") else predictions
    _expect(all(each.dtype.kind == "f" and np.isfinite(each).all() for each in numbers))


def _widest(net: Any) -> int:
    """Return an upper bound on the number of features from the arrays of a network."""
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
        for categories, infrequent, codes in zip(
            encoder.categories_,
            encoder._infrequent_indices,
            encoder._default_to_infrequent_mappings,
            strict=True,
        ):
            _expect((infrequent is None) == (codes is None))
            if codes is not None:
                _expect(codes.shape == categories.shape and codes.dtype.kind in "iu")
                n_frequent = len(categories) - infrequent.size
                _expect(bool(((codes >= 0) & (codes <= n_frequent)).all()))


def _check_vocabulary(vectorizer: TfidfVectorizer) -> None:
    if hasattr(vectorizer, "vocabulary_"):
        columns = list(vectorizer.vocabulary_.values())
        _expect(all(isinstance(each, int | np.integer) for each in columns))
        _expect(sorted(columns) == list(range(len(columns))))


def _check_columns(part: BaseEstimator) -> None:
    """Check that a transformer's attributes per feature have the right number of features."""
    if not type(part).__module__.startswith("sklearn.") or not hasattr(part, "n_features_in_"):
        return
    for name, dimensions in PER_FEATURE.items():
        values = vars(part).get(name)
        if values is not None:
            _expect(len(values.shape) == dimensions and values.shape[-1] == part.n_features_in_)


# The check of each type.
CHECKS: dict[type, Callable[[Any], None]] = {
    KARNetwork: _check_network,
    KARNetworkCV: _check_average,
    OneHotEncoder: _check_one_hot,
    TfidfVectorizer: _check_vocabulary,
    BaseEstimator: _check_columns,
}
