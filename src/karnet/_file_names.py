"""The names that a model file may hold, written out: all others are refused, saving and loading."""

from __future__ import annotations

__all__ = [
    "ACTIVATION",
    "ALLOWED",
    "DATACLASSES",
    "ESTIMATORS",
    "OURS",
    "SKRUB",
    "TIMES",
    "TRUSTED",
]

# The minor version of skrub whose types are listed here; the extra `table` pins it.
SKRUB = "0.11"

ESTIMATORS = (
    "karnet.estimators.KARClassifier",
    "karnet.estimators.KARRegressor",
    "karnet.selection.KARClassifierCV",
    "karnet.selection.KARRegressorCV",
)
# Dataclasses that fitted estimators hold. A file has their fields, and nothing else of them. One
# that is added later needs a default, which it then has in files from before.
DATACLASSES = (
    "karnet._infinite.InfiniteLayers",
    "karnet._infinite.ProductsWith",
    "karnet._members.Member",
    "karnet._members.Shape",
    "karnet._statistics.Centre",
    "karnet._statistics.Gram",
    "karnet._statistics.Moments",
    "karnet._statistics.Stack",
    "karnet._statistics.Triangle",
    "karnet._views.Indicators",
    "karnet._views.Ranks",
    "karnet._views.Standard",
    "karnet._views.Stretched",
    "karnet.accumulate.Accumulator",
    "karnet.activations.ExpOf",
    "karnet.learner.Plan",
    "karnet.learner.Report",
    "karnet.loo.RidgePath",
)
# These are kept by name.
ACTIVATION = "karnet.activations.Activation"
OURS = frozenset((*ESTIMATORS, *DATACLASSES, ACTIVATION))

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
    "ObjectNode": OURS.union(SKLEARN, VECTORISER),
}
TRUSTED = sorted(frozenset().union(*ALLOWED.values()))
