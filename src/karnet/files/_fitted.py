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

from .._columns.encoder import Dates, Labels, TableEncoder
from .._estimator.ensemble_base import ColumnEncoder, KARNetworkCV, computed_importances
from .._estimator.network_base import KARNetwork
from .._estimator.notebook import networks_of
from .._model.evidence import Evidence
from .._model.fitted import FittedModel
from .._model.output import NumberOutput
from .._network.kernel_map import KernelMap
from .._network.local import LocalNetwork, Tree
from ._check import RefusedError

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
    parts = list(_parts(model))
    for kind, check in CHECKS.items():
        for part in parts:
            try:
                if isinstance(part, kind):
                    check(part)
            except Exception as error:
                reason = f"({type(error).__name__})"
                name = type(part).__name__
                raise RefusedError(f"the parts of a {name} do not fit together {reason}") from error


def _parts(model: Any) -> Iterator[Any]:
    """Yield all objects that a model consists of, including the model."""
    waiting, met = [model], set()
    while waiting:
        part = waiting.pop()
        if id(part) in met or isinstance(part, type | str | np.ndarray):
            continue
        met.add(id(part))
        yield part
        inner = part if isinstance(part, dict | list | tuple) else getattr(part, "__dict__", {})
        waiting += inner.values() if isinstance(inner, dict) else inner


def _expect(condition: bool) -> None:
    if not condition:
        raise ValueError("attributes have different sizes")


def _check_depth(part: KernelMap) -> None:
    _expect(type(part.depth) is int and 0 < part.depth <= DEEPEST)


def _check_tree(tree: Tree) -> None:
    """Check that every way through a tree ends in a leaf."""
    n = len(tree.thresholds)
    _expect(tree.thresholds.shape == (n,) and tree.children.shape == (n, 2))
    _expect(tree.directions.ndim == 2 and len(tree.directions) == n)
    _expect(tree.children.dtype.kind == "i")
    # An inner node comes after its parent, so that no way is a circle.
    inner = tree.children >= 0
    _expect(bool((tree.children[inner] < n).all()))
    _expect(bool((tree.children > np.arange(n)[:, None])[inner].all()))
    leaves = np.sort(-1 - tree.children[~inner])
    _expect(bool(np.array_equal(leaves, np.arange(n + 1) if n else leaves)))


def _check_leaves(network: LocalNetwork) -> None:
    """Check that the leaves of a network have rows of its table."""
    Z, q = network.kernel.Z, network.n_outputs
    _expect(len(network.partitions) > 0 and Z.ndim == 2 and Z.dtype.kind == "f")
    for each in network.partitions:
        n_leaves, starts, rows = len(each.tree.thresholds) + 1, each.starts, each.rows
        _expect(starts.shape == (n_leaves + 1,) and starts.dtype.kind == "i")
        _expect(starts[0] == 0 and starts[-1] == len(rows) and bool((np.diff(starts) > 0).all()))
        _expect(rows.ndim == 1 and _are_numbers_below(rows, len(Z)))
        _expect(each.D.shape == (len(rows), q) and each.b.shape == (n_leaves, q))
        _expect(each.tree.directions.shape[1] == Z.shape[1])


def _check_encoder(encoder: TableEncoder) -> None:
    for column in encoder.columns:
        if isinstance(column, Labels):
            labels = column.labels, column.rare
            _expect(all(each.ndim == 1 and each.dtype.kind == "U" for each in labels))
        for part in column.parts if isinstance(column, Dates) else (column,):
            _expect(type(part.has_gaps) is bool)
            _expect(isinstance(part, Labels) or type(part.fill) is float)


def _check_step(step: ColumnEncoder) -> None:
    if hasattr(step, "n_features_in_"):
        _expect(step.n_features_in_ == len(step.encoder_.columns))


def _check_model(model: FittedModel[Any]) -> None:
    """Check the members of a model, and that its features are those of their views."""
    q, output, n_features = len(model.offset), model.output, len(model.origins)
    _expect(len(model.members) > 0 and model.weights.shape == (len(model.members),))
    _expect(model.offset.shape == (q,))
    _expect(all(network.n_outputs == q for network in model.networks))
    _expect(all(_are_numbers_below(each.view.features, n_features) for each in model.members))
    targets = model.evidence.targets
    if isinstance(output, NumberOutput):
        _expect(output.mean.shape == output.scale.shape == (q,))
        _expect(targets.shape == (len(targets), q) and targets.dtype.kind == "f")
    else:
        _expect(output.n_classes == q and targets.ndim == 1 and _are_numbers_below(targets, q))
    _expect(all(len(each.X_fit_) == len(targets) for each in model.members))
    _check_evidence(model.evidence, n_features, q)


def _check_evidence(known: Evidence, n_features: int, n_outputs: int) -> None:
    """Check that everything that is kept of the rows of a fit has their number."""
    n, kept, sample = len(known.targets), known.kept, known.sample
    _expect(known.left_out.ndim == 2 and known.left_out.shape[1] == n_outputs)
    if isinstance(kept, slice):
        _expect(kept == slice(None) and len(known.left_out) == n)
    else:
        _expect(kept.shape == (n,) and _are_numbers_below(kept, len(known.left_out)))
    _expect(known.honest.shape == (n,) and known.honest.dtype == bool)
    _expect(known.weight is None or known.weight.shape == (n,))
    _expect(sample.numbers.ndim == 1 and _are_numbers_below(sample.numbers, n))
    _expect(sample.X.shape == (len(sample.numbers), n_features))
    _expect(sample.Y.shape == (len(sample.numbers), n_outputs))


def _are_numbers_below(numbers: NDArray[Any], n: int) -> bool:
    return numbers.dtype.kind == "i" and bool(((numbers >= 0) & (numbers < n)).all())


def _check_average(net: KARNetworkCV) -> None:
    if not networks_of(net):
        return
    # The number of features is compared with an array, so that it alone cannot claim memory.
    n = net.model_.n_columns
    _expect(net.input_metric_.shape == (n,))
    known = computed_importances(net)
    _expect(known is None or known.shape == (2, n))
    value = 0.0 if net.model_.encoder is None else np.nan  # columns of any kind may have gaps
    _check_trial(net, n, value)


def _check_network(net: KARNetwork) -> None:
    if not networks_of(net):
        return
    _expect(len(net.activations_) == len(net.layers_))
    (network,) = networks_of(net)
    _expect(all(layer.V.ndim == 2 and layer.w.ndim == 1 for layer in network.layers))
    kernel = network.kernel
    per_feature = network.layers[0].V if kernel is None else kernel.Z.T
    _expect(len(per_feature) <= per_feature.size)
    _check_trial(net, len(per_feature), 0.0)


def _check_trial(net: Any, n_features: int, value: float) -> None:
    """Check the predictions of a fitted estimator for rows of a value."""
    names = getattr(net, "feature_names_in_", None)
    _expect(type(net.n_features_in_) is int and net.n_features_in_ == n_features)
    _expect(names is None or (names.shape == (n_features,) and names.dtype == object))
    # The trial predicts on the CPU, whatever the device of the network.
    trial = object.__new__(type(net))
    vars(trial).update(vars(net), device=None)
    vars(trial).pop("feature_names_in_", None)
    n_classes = max(networks_of(net)[0].n_outputs, 2)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for n_rows in TRIAL_ROWS:
            _check_predictions(trial, np.full((n_rows, n_features), value), n_classes)


def _check_predictions(net: Any, rows: NDArray[Any], n_classes: int) -> None:
    methods = ("predict", "decision_function", "predict_proba", "predict_interval")
    predictions = {name: getattr(net, name)(rows) for name in methods if hasattr(net, name)}
    _expect(all(len(each) == len(rows) for each in predictions.values()))
    if hasattr(net, "classes_"):
        del predictions["predict"]
        _expect(net.classes_.shape == (n_classes,))
        _expect(predictions["predict_proba"].shape == (len(rows), n_classes))
    if hasattr(net, "predict_set"):
        sets = net.predict_set(rows)
        _expect(sets.shape == (len(rows), n_classes) and sets.dtype == bool)
    for each in predictions.values():
        _expect(each.dtype.kind == "f" and bool(np.isfinite(each).all()))


def _check_one_hot(encoder: OneHotEncoder) -> None:
    if not hasattr(encoder, "categories_"):
        return
    _expect(all(each.ndim == 1 for each in encoder.categories_))
    _expect(encoder._compute_n_features_outs() == encoder._n_features_outs)
    _expect(len(encoder.categories_) == len(encoder._n_features_outs))
    dropped = encoder._drop_idx_after_grouping
    _expect(dropped is None or len(dropped) == len(encoder.categories_))
    if getattr(encoder, "_infrequent_enabled", False):
        mappings = encoder._default_to_infrequent_mappings
        columns = zip(encoder.categories_, encoder._infrequent_indices, mappings, strict=True)
        for categories, infrequent, codes in columns:
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


# The check of each type: parts of networks before networks, which predict.
CHECKS: dict[Any, Callable[[Any], None]] = {
    KernelMap: _check_depth,
    Tree: _check_tree,
    LocalNetwork: _check_leaves,
    TableEncoder: _check_encoder,
    ColumnEncoder: _check_step,
    FittedModel: _check_model,
    KARNetwork: _check_network,
    KARNetworkCV: _check_average,
    OneHotEncoder: _check_one_hot,
    TfidfVectorizer: _check_vocabulary,
    BaseEstimator: _check_columns,
}
