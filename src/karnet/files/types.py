"""The types and functions that a model file may hold: all others are refused.

A file names a class of karnet by this module and a tag, as in ``karnet.files.types.Triangle``,
wherever the class is defined. All other types and functions are named by their own module.
"""

from __future__ import annotations

import importlib
from typing import Any

# The minor version of skrub whose types are listed here; the extra `table` pins it.
SKRUB = "0.11"

# The classes of karnet in a file. A tag never changes; the path is where the class is now.
TAGS = {
    "Accumulator": "karnet.accumulate.Accumulator",
    "Activation": "karnet.activations.Activation",
    "Calibration": "karnet._model.calibration.Calibration",
    "Centre": "karnet._lstsq.statistics.Centre",
    "ClassOutput": "karnet._model.output.ClassOutput",
    "ColumnEncoder": "karnet._estimator.ensemble_base.ColumnEncoder",
    "Dates": "karnet._columns.encoder.Dates",
    "Evidence": "karnet._model.evidence.Evidence",
    "ExpOf": "karnet.activations.ExpOf",
    "FittedModel": "karnet._model.fitted.FittedModel",
    "Gram": "karnet._lstsq.statistics.Gram",
    "Indicators": "karnet._search.views.Indicators",
    "KARClassifier": "karnet.estimators.KARClassifier",
    "KARClassifierCV": "karnet.selection.KARClassifierCV",
    "KARRegressor": "karnet.estimators.KARRegressor",
    "KARRegressorCV": "karnet.selection.KARRegressorCV",
    "KernelMap": "karnet._network.kernel_map.KernelMap",
    "Labels": "karnet._columns.encoder.Labels",
    "Layer": "karnet._network.layers.Layer",
    "LocalNetwork": "karnet._network.local.LocalNetwork",
    "Member": "karnet._search.member.Member",
    "Moments": "karnet._lstsq.statistics.Moments",
    "Network": "karnet._network.layers.Network",
    "NumberOutput": "karnet._model.output.NumberOutput",
    "Numbers": "karnet._columns.encoder.Numbers",
    "Partition": "karnet._network.local.Partition",
    "Plan": "karnet.learner.Plan",
    "Ranks": "karnet._search.views.Ranks",
    "Report": "karnet.learner.Report",
    "RowSample": "karnet._model.evidence.RowSample",
    "Shape": "karnet._search.member.Shape",
    "Stack": "karnet._lstsq.statistics.Stack",
    "Standard": "karnet._search.views.Standard",
    "Stretched": "karnet._search.views.Stretched",
    "TableEncoder": "karnet._columns.encoder.TableEncoder",
    "Tree": "karnet._network.local.Tree",
    "Triangle": "karnet._lstsq.statistics.Triangle",
    "WithScores": "karnet._search.views.WithScores",
}
_TAG_OF = {path: tag for tag, path in TAGS.items()}
# Classes of scikit-learn, by module.
SKLEARN = {
    "compose._column_transformer": "ColumnTransformer _RemainderColsList make_column_selector",
    "compose._target": "TransformedTargetRegressor",
    "decomposition._pca": "PCA",
    "decomposition._truncated_svd": "TruncatedSVD",
    "feature_extraction.text": "TfidfTransformer TfidfVectorizer",
    "feature_selection._variance_threshold": "VarianceThreshold",
    "impute._base": "MissingIndicator SimpleImputer",
    "impute._knn": "KNNImputer",
    "model_selection._split": "KFold RepeatedKFold RepeatedStratifiedKFold ShuffleSplit "
    "StratifiedKFold StratifiedShuffleSplit",
    "pipeline": "FeatureUnion Pipeline",
    "preprocessing._data": "MaxAbsScaler MinMaxScaler Normalizer PowerTransformer "
    "QuantileTransformer RobustScaler StandardScaler",
    "preprocessing._encoders": "OneHotEncoder OrdinalEncoder",
    "preprocessing._function_transformer": "FunctionTransformer",
    "preprocessing._polynomial": "PolynomialFeatures",
}
# Classes of skrub in a fitted TableVectorizer with its default encoders, and for some columns, by
# module.
VECTORIZER = {
    "_apply_to_cols": "ApplyToCols",
    "_apply_to_each_col": "ApplyToEachCol",
    "_check_input": "CheckInputDataFrame",
    "_clean_categories": "CleanCategories",
    "_clean_null_strings": "CleanNullStrings",
    "_datetime_encoder": "DatetimeEncoder",
    "_drop_uninformative": "DropUninformative",
    "_duration_to_float": "DurationToFloat",
    "_select_cols": "Drop",
    "_string_encoder": "StringEncoder",
    "_table_vectorizer": "PassThrough ShortReprDict TableVectorizer",
    "_to_datetime": "ToDatetime",
    "_to_float": "ToFloat",
    "_to_str": "ToStr",
    "selectors._base": "All And Cols Filter Sub",
}
# Functions of skrub by which a TableVectorizer selects columns, by module.
PREDICATES = {
    "_dataframe._common": "is_any_date is_categorical is_numeric",
    "_table_vectorizer": "_created_by_predicate",
    "selectors._selectors": "_cardinality_below",
}
# The types of NumPy's scalars.
SCALARS = (
    "bool datetime64 float16 float32 float64 int16 int32 int64 int8 str_ timedelta64 uint16 uint32 "
    "uint64 uint8"
)


def _listed(by_module: dict[str, str], library: str = "") -> frozenset[str]:
    """Return the full names of a library's types or functions."""
    return frozenset(
        f"{library}{module}.{name}" for module, names in by_module.items() for name in names.split()
    )


ACTIVATION = f"{__name__}.Activation"
ENCODER = f"{__name__}.ColumnEncoder"
ESTIMATORS = frozenset(f"{__name__}.{tag}" for tag in TAGS if tag.startswith("KAR"))
# A file holds exactly the fields of a dataclass. Activations are stored by name.
DATACLASSES = frozenset(f"{__name__}.{tag}" for tag in TAGS) - ESTIMATORS - {ACTIVATION, ENCODER}
TIMES = _listed({"datetime": "timedelta timezone", "zoneinfo": "ZoneInfo"})
# For each kind of node that skops reads, the types or functions that it may name.
ALLOWED: dict[str, frozenset[str]] = {
    "JsonNode": frozenset({"builtins.str"}),
    "DictNode": frozenset({"builtins.dict"}),
    "ListNode": frozenset({"builtins.list"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "NdArrayNode": _listed({"numpy": f"ndarray {SCALARS}"}),
    "DTypeNode": frozenset({"numpy.dtype"}),
    "TypeNode": _listed({"builtins": "bool float int object str", "numpy": f"number {SCALARS}"}),
    "FunctionNode": _listed(PREDICATES, "skrub."),
    "ConstructorFromReduceNode": TIMES,
    "ObjectNode": DATACLASSES
    | ESTIMATORS
    | {ACTIVATION, ENCODER}
    | _listed(SKLEARN, "sklearn.")
    | _listed(VECTORIZER, "skrub.")
    # The types of dates in a table.
    | _listed({"pandas": "DatetimeTZDtype", "pandas.core.dtypes.dtypes": "DatetimeTZDtype"})
    | {"polars.datatypes.classes.Datetime"},
}
TRUSTED = sorted(frozenset().union(*ALLOWED.values()))


def __getattr__(tag: str) -> Any:
    """Return the class of karnet with this tag, so that skops finds it here."""
    if tag in TAGS:
        return resolved(TAGS[tag])
    raise AttributeError(f"module {__name__!r} has no attribute {tag!r}")


def resolved(name: str) -> Any:
    """Return the type or function of a listed name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last, None)


def name_of(thing: Any) -> str:
    """Return the name of a type or function in a file."""
    path = f"{getattr(thing, '__module__', None)}.{thing.__name__}"
    return f"{__name__}.{_TAG_OF[path]}" if path in _TAG_OF else path
