"""The types and functions that a model file may hold: all others are refused.

Classes of karnet stand in a file under this module's name and a tag of their own, as in
``karnet.files.types.Triangle``, wherever they are defined. All other types stand under their own
name.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

__all__ = [
    "ACTIVATION",
    "ALLOWED",
    "DATACLASSES",
    "ESTIMATORS",
    "FORMAT_1",
    "SKRUB",
    "TAGS",
    "TIMES",
    "TRUSTED",
    "by_tag",
    "name_of",
    "resolved",
]

# The minor version of skrub whose types are listed here; the extra `table` pins it.
SKRUB = "0.11"

# Every class of karnet that is written into a file, by a tag that stays when the class moves.
TAGS = {
    "Accumulator": "karnet.accumulate.Accumulator",
    "Activation": "karnet.activations.Activation",
    "Centre": "karnet._lstsq.statistics.Centre",
    "ExpOf": "karnet.activations.ExpOf",
    "Gram": "karnet._lstsq.statistics.Gram",
    "Indicators": "karnet._ensemble.views.Indicators",
    "InfiniteLayers1": "karnet.files._format_1.InfiniteLayers1",
    "KARClassifier": "karnet.estimators.KARClassifier",
    "KARClassifierCV": "karnet.selection.KARClassifierCV",
    "KARRegressor": "karnet.estimators.KARRegressor",
    "KARRegressorCV": "karnet.selection.KARRegressorCV",
    "KernelMap": "karnet._network.infinite_width.KernelMap",
    "Layer": "karnet._network.layers.Layer",
    "Member": "karnet._ensemble.member.Member",
    "Member1": "karnet.files._format_1.Member1",
    "Moments": "karnet._lstsq.statistics.Moments",
    "Network": "karnet._network.layers.Network",
    "Plan": "karnet.learner.Plan",
    "ProductsWith1": "karnet.files._format_1.ProductsWith1",
    "Ranks": "karnet._ensemble.views.Ranks",
    "Report": "karnet.learner.Report",
    "RidgePath": "karnet.loo.RidgePath",
    "Shape": "karnet._ensemble.member.Shape",
    "Stack": "karnet._lstsq.statistics.Stack",
    "Standard": "karnet._ensemble.views.Standard",
    "Stretched": "karnet._ensemble.views.Stretched",
    "Triangle": "karnet._lstsq.statistics.Triangle",
}
# Where files of format 1 say that these classes are; those whose fields have changed end in 1.
FORMAT_1 = {
    "_infinite": ("InfiniteLayers1", "ProductsWith1"),
    "_members": ("Member1", "Shape"),
    "_statistics": ("Centre", "Gram", "Moments", "Stack", "Triangle"),
    "_views": ("Indicators", "Ranks", "Standard", "Stretched"),
    "accumulate": ("Accumulator",),
    "activations": ("Activation", "ExpOf"),
    "estimators": ("KARClassifier", "KARRegressor"),
    "learner": ("Plan", "Report"),
    "loo": ("RidgePath",),
    "selection": ("KARClassifierCV", "KARRegressorCV"),
}
ACTIVATION = f"{__name__}.Activation"
ESTIMATORS = frozenset(f"{__name__}.{tag}" for tag in TAGS if tag.startswith("KAR"))
# Of a dataclass a file has the fields, and nothing else. A field that is added later needs a
# default, which stands in for it in older files. Activations are kept by name.
DATACLASSES = frozenset(f"{__name__}.{tag}" for tag in TAGS) - ESTIMATORS - {ACTIVATION}

SKLEARN = (
    "sklearn.compose._column_transformer.ColumnTransformer",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.compose._target.TransformedTargetRegressor",
    "sklearn.decomposition._pca.PCA",
    "sklearn.decomposition._truncated_svd.TruncatedSVD",
    "sklearn.feature_extraction.text.TfidfTransformer",
    "sklearn.feature_extraction.text.TfidfVectorizer",
    "sklearn.feature_selection._variance_threshold.VarianceThreshold",
    "sklearn.impute._base.MissingIndicator",
    "sklearn.impute._base.SimpleImputer",
    "sklearn.impute._knn.KNNImputer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.RepeatedKFold",
    "sklearn.model_selection._split.RepeatedStratifiedKFold",
    "sklearn.model_selection._split.ShuffleSplit",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.model_selection._split.StratifiedShuffleSplit",
    "sklearn.pipeline.FeatureUnion",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.MaxAbsScaler",
    "sklearn.preprocessing._data.MinMaxScaler",
    "sklearn.preprocessing._data.Normalizer",
    "sklearn.preprocessing._data.PowerTransformer",
    "sklearn.preprocessing._data.QuantileTransformer",
    "sklearn.preprocessing._data.RobustScaler",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._encoders.OneHotEncoder",
    "sklearn.preprocessing._encoders.OrdinalEncoder",
    "sklearn.preprocessing._function_transformer.FunctionTransformer",
    "sklearn.preprocessing._polynomial.PolynomialFeatures",
)

# What a fitted TableVectorizer holds, with its default encoders.
VECTORISER = (
    "pandas.DatetimeTZDtype",
    "pandas.core.dtypes.dtypes.DatetimeTZDtype",
    "polars.datatypes.classes.Datetime",
    "skrub._apply_to_each_col.ApplyToEachCol",
    "skrub._check_input.CheckInputDataFrame",
    "skrub._clean_categories.CleanCategories",
    "skrub._clean_null_strings.CleanNullStrings",
    "skrub._datetime_encoder.DatetimeEncoder",
    "skrub._drop_uninformative.DropUninformative",
    "skrub._duration_to_float.DurationToFloat",
    "skrub._select_cols.Drop",
    "skrub._string_encoder.StringEncoder",
    "skrub._table_vectorizer.PassThrough",
    "skrub._table_vectorizer.ShortReprDict",
    "skrub._table_vectorizer.TableVectorizer",
    "skrub._to_datetime.ToDatetime",
    "skrub._to_float.ToFloat",
    "skrub._to_str.ToStr",
    "skrub.selectors._base.All",
    "skrub.selectors._base.And",
    "skrub.selectors._base.Cols",
    "skrub.selectors._base.Filter",
    "skrub.selectors._base.Sub",
)
PREDICATES = (
    "skrub._dataframe._common.is_any_date",
    "skrub._dataframe._common.is_categorical",
    "skrub._dataframe._common.is_numeric",
    "skrub._table_vectorizer._created_by_predicate",
    "skrub.selectors._selectors._cardinality_below",
)

SCALARS = (
    "numpy.bool",
    "numpy.datetime64",
    "numpy.float16",
    "numpy.float32",
    "numpy.float64",
    "numpy.int16",
    "numpy.int32",
    "numpy.int64",
    "numpy.int8",
    "numpy.str_",
    "numpy.timedelta64",
    "numpy.uint16",
    "numpy.uint32",
    "numpy.uint64",
    "numpy.uint8",
)
TYPES = ("builtins.bool", "builtins.float", "builtins.int", "builtins.object", "builtins.str")
TIMES = ("datetime.timedelta", "datetime.timezone", "zoneinfo.ZoneInfo")

# For each kind of node that skops may be given, what it may be made of.
ALLOWED: dict[str, frozenset[str]] = {
    "JsonNode": frozenset({"builtins.str"}),
    "DictNode": frozenset({"builtins.dict"}),
    "ListNode": frozenset({"builtins.list"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "NdArrayNode": frozenset({"numpy.ndarray", *SCALARS}),
    "DTypeNode": frozenset({"numpy.dtype"}),
    "TypeNode": frozenset({*TYPES, *SCALARS, "numpy.number"}),
    "FunctionNode": frozenset(PREDICATES),
    "ConstructorFromReduceNode": frozenset(TIMES),
    "ObjectNode": DATACLASSES.union(ESTIMATORS, {ACTIVATION}, SKLEARN, VECTORISER),
}
TRUSTED = sorted(frozenset().union(*ALLOWED.values()))
_TAG_OF = {path: tag for tag, path in TAGS.items()}


def __getattr__(tag: str) -> Any:
    """Return the class that a tag stands for, so that skops finds it here."""
    if tag in TAGS:
        return resolved(TAGS[tag])
    raise AttributeError(f"module {__name__!r} has no attribute {tag!r}")


def resolved(name: str) -> Any:
    """Return the type or function of a listed name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last, None)


def name_of(thing: Any) -> str:
    """Return the name of a type or function in a file: for a class of karnet, by its tag."""
    path = f"{getattr(thing, '__module__', None)}.{thing.__name__}"
    return f"{__name__}.{_TAG_OF[path]}" if path in _TAG_OF else path


def by_tag(schema: str) -> str:
    """Return the tree of a file of format 1 with the classes of karnet named by their tags."""

    def tagged(node: re.Match[str]) -> str:
        module, name = node.groups()
        for tag in FORMAT_1.get(module, ()):
            if name in (tag, tag.removesuffix("1")):
                return f'"__module__":"{__name__}","__class__":"{tag}"'
        return node[0]

    pattern = r'"__module__":\s*"karnet\.(\w+)",\s*"__class__":\s*"(\w+)"'
    return re.sub(pattern, tagged, schema)
