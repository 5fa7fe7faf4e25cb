"""Model files: a saved estimator is loaded bit for bit; what cannot be saved is refused."""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import is_dataclass, replace
from pathlib import Path
from zipfile import ZipFile
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn import config_context
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import karnet
from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV, load, save
from karnet._network.infinite_width import RidgeTargets
from karnet._search.views import VIEWS, Stretched, WithScores
from karnet.activations import ACTIVATIONS, Activation
from karnet.files.types import (
    ALLOWED,
    DATACLASSES,
    ESTIMATORS,
    SKRUB,
    TAGS,
    TRUSTED,
    name_of,
    resolved,
)
from karnet.kernels import KERNELS
from tests.files import kept
from tests.members import member_of

RNG = np.random.default_rng(0)
X = RNG.uniform(0.05, 0.95, (40, 3))
NEW = RNG.uniform(0.0, 1.0, (25, 3))
CLASSES = {2: np.array(["no", "yes"]), 3: np.array(["a", "bb", "ccc"])}
TARGETS = {
    "two classes": CLASSES[2][(X[:, 0] > X[:, 1]).astype(int)],
    "three classes": CLASSES[3][np.argmax(X, axis=1)],
    "one output": np.sin(3 * X[:, 0]) + X[:, 1],
    "two outputs": np.column_stack([X[:, 0] * X[:, 1], np.cos(2 * X[:, 2])]),
}
# Settings that divide these rows.
LEAVES = {
    "leaf": 12,
    "smallest_leaf": 6,
    "largest_leaf": 12,
    "most_rows_of_leaf": 12,
    "tuned_rows": 12,
}
every_task = pytest.mark.parametrize("task", TARGETS)


def fitted(task, **parameters):
    of_classes = "classes" in task
    estimator = (KARClassifier if of_classes else KARRegressor)(random_state=0, **parameters)
    return estimator.fit(X, TARGETS[task])


METHODS = ("predict", "predict_proba", "decision_function", "predict_interval", "predict_set")


def assert_comes_back(estimator, path, rows=NEW):
    """Save and load; the same predictions, bit for bit, and the same file if saved again."""
    save(estimator, path)
    again = load(path)
    assert type(again) is type(estimator)
    for method in METHODS:
        if hasattr(estimator, method):
            np.testing.assert_array_equal(
                getattr(again, method)(rows), getattr(estimator, method)(rows), strict=True
            )
    save(again, path.with_suffix(".again"))
    assert path.read_bytes() == path.with_suffix(".again").read_bytes()
    return again


# Saving and loading


@every_task
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_plain_networks_come_back(task, activation, tmp_path):
    f = ACTIVATIONS[activation]
    kinds = [{"hidden_layer_sizes": ()}, {"hidden_layer_sizes": (5, 4), "hidden": "random"}]
    if f.invertible:
        kinds.append({"hidden_layer_sizes": (4,), "direct_links": True})
    if f.derivative is not None and f.domain[0] == -np.inf:
        kinds.append({"hidden_layer_sizes": (6,), "hidden": "metric", "alpha": 1e-3})
    if activation in ("relu", "cos", "sin"):
        kinds.append({"hidden_layer_sizes": (np.inf,), "hidden": "random", "alpha": 1e-3})
    for kind in kinds:
        assert_comes_back(fitted(task, activation=activation, **kind), tmp_path / "net.karnet")


@every_task
@pytest.mark.parametrize("leaves", [{}, LEAVES], ids=["one", "several"])
def test_estimators_that_select_hyper_parameters_come_back(task, leaves, tmp_path, settings):
    settings(**leaves)
    kind = KARClassifierCV if "classes" in task else KARRegressorCV
    estimator = kind(random_state=0).fit(X, TARGETS[task])
    divided = [len(list(member.network.leaves())) > 1 for member in estimator.estimators_]
    assert all(divided) == any(divided) == bool(leaves)
    again = assert_comes_back(estimator, tmp_path / "net.karnet")
    assert again.best_score_ == estimator.best_score_


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("view", VIEWS)
def test_members_of_all_kinds_come_back(kernel, view, tmp_path):
    rows = np.column_stack([X, RNG.integers(0, 4, len(X))])
    targets = RidgeTargets(TARGETS["two outputs"], np.ones(len(X)), np.logspace(-3, 0, 3))
    seen = VIEWS[view](rows, targets.weight)
    p = len(seen.features)
    shown = (
        seen,
        Stretched(seen, np.linspace(0.5, 1.0, p)),
        Stretched(seen, np.eye(p) + 0.1),
        WithScores.of(seen, rows, targets),
    )
    members = tuple(member_of(each, kernel, rows, targets, 20, n_trees=2) for each in shown)
    estimator = KARRegressorCV(random_state=0).fit(rows, TARGETS["two outputs"])
    weights = np.array([0.2, 0.3, 0.6, 0.1])
    estimator.model_ = replace(estimator.model_, members=members, weights=weights)
    assert_comes_back(estimator, tmp_path / "net.karnet", rows + 0.01)


@pytest.mark.parametrize("kind", sorted(ESTIMATORS))
def test_unfitted_estimators_come_back(kind, tmp_path):
    blank = resolved(kind)(random_state=3)
    save(blank, tmp_path / "net.karnet")
    assert repr(load(tmp_path / "net.karnet")) == repr(blank)


def test_parameters_of_all_kinds_come_back(tmp_path):
    init = [np.ones((4, 2)), np.ones((3, 2))]
    net = KARClassifier(
        np.array([2]), activation=ACTIVATIONS["tanh"], init=init, class_weight={"a": 1.5, "bb": 1}
    )
    save(net, tmp_path / "net.karnet")
    again = load(tmp_path / "net.karnet")
    assert again.class_weight == net.class_weight
    assert again.activation == net.activation
    np.testing.assert_equal(again.init, init)
    np.testing.assert_equal(again.hidden_layer_sizes, net.hidden_layer_sizes)
    again = assert_comes_back(
        KARClassifierCV(
            cv=StratifiedKFold(3),
            class_weight={True: 2.0, False: 1.0},
            n_estimators=1,
            random_state=0,
        ).fit(X, X[:, 0] > 0.5),
        tmp_path / "net.karnet",
    )
    assert again.class_weight == {True: 2.0, False: 1.0}


def test_keys_of_all_types_come_back(tmp_path):
    nested = {"a": {1: "one", np.int64(2): {}}, 3: 0.5, 0.25: None, np.str_("b"): [np.float32(1)]}
    save(KARClassifierCV(cv=nested), tmp_path / "net.karnet")
    assert load(tmp_path / "net.karnet").cv == nested


def test_a_file_has_shared_arrays_once_and_is_the_same_each_time(tmp_path):
    net = fitted("two classes", hidden_layer_sizes=(np.inf,), hidden="random", activation="relu")
    again = assert_comes_back(net, tmp_path / "net.karnet")
    assert again.X_fit_ is again._input_map.Z


def test_a_loaded_estimator_is_fitted_and_pickled_like_the_saved_one(tmp_path):
    import pickle

    net = fitted("three classes", hidden_layer_sizes=(6,), hidden="random", activation="relu")
    again = assert_comes_back(net, tmp_path / "net.karnet")
    twice = pickle.loads(pickle.dumps(again)).fit(X, TARGETS["three classes"])
    np.testing.assert_array_equal(twice.predict_proba(NEW), net.predict_proba(NEW))


@every_task
@pytest.mark.parametrize("width", [5, 80])
def test_a_loaded_estimator_continues_partial_fit(task, width, tmp_path):
    y, other = TARGETS[task], tmp_path / "other.karnet"
    net = fitted(task, hidden_layer_sizes=(width,), hidden="random", alpha=1e-3)
    for rows in (slice(9), slice(9, 30)):
        save(net, other)
        again = load(other).partial_fit(X[rows], y[rows])
        np.testing.assert_array_equal(
            again.predict(NEW), net.partial_fit(X[rows], y[rows]).predict(NEW)
        )
    assert_comes_back(net, tmp_path / "net.karnet")


@pytest.mark.parametrize(
    "labels", [np.array([3, 5]), np.array([0.5, 1.5]).astype(str), [True, False]]
)
def test_labels_keep_their_type(labels, tmp_path):
    y = np.asarray(labels)[(X[:, 0] > 0.5).astype(int)]
    assert_comes_back(KARClassifier((3,), random_state=0).fit(X, y), tmp_path / "net.karnet")
    named = KARClassifier((3,), random_state=0).fit(X, y.astype(object))
    assert_comes_back(named, tmp_path / "net.karnet")


def test_arrays_of_other_libraries_are_saved_as_numpy_arrays(tmp_path):
    torch = pytest.importorskip("torch")
    net = KARRegressor((4,), random_state=0)
    with config_context(array_api_dispatch=True):
        net.fit(torch.asarray(X), torch.asarray(TARGETS["one output"]))
        expected = net.predict(torch.asarray(NEW)).numpy()
    assert isinstance(net.coefs_[0], torch.Tensor)
    save(net, tmp_path / "net.karnet")
    np.testing.assert_allclose(load(tmp_path / "net.karnet").predict(NEW), expected, rtol=1e-9)


# Pipelines and tables


def table(n=40):
    return pd.DataFrame(
        {
            "number": X[:n, 0],
            "gaps": np.where(X[:n, 1] < 0.3, np.nan, X[:n, 1]),
            "whole": np.arange(n) % 17,
            "kind": np.array(["x", "y", "z"])[np.arange(n) % 3],
            "flag": np.arange(n) % 2 == 0,
            "day": pd.date_range("2020-01-01", periods=n).astype(str),
            "stamp": pd.date_range("2020-01-01", periods=n, tz="UTC"),
            "zone": pd.date_range("2020-01-01", periods=n, tz=ZoneInfo("Europe/Paris")),
            "text": [f"some words {k % 33} and {k % 5}" for k in range(n)],
            "sort": pd.Categorical(np.array(["u", "v"])[np.arange(n) % 2]),
        }
    )


PIPELINES = {
    "scalers": make_pipeline(StandardScaler(), RobustScaler(), MinMaxScaler(), PowerTransformer()),
    "union": FeatureUnion([("a", QuantileTransformer(n_quantiles=9)), ("b", "passthrough")]),
    "by column": make_column_transformer((StandardScaler(), [0, 2]), remainder="passthrough"),
    "nothing": FunctionTransformer(),
}


@pytest.mark.parametrize("before", PIPELINES)
def test_pipelines_come_back(before, tmp_path):
    net = make_pipeline(PIPELINES[before], KARRegressor((4,), random_state=0))
    assert_comes_back(net.fit(X, TARGETS["one output"]), tmp_path / "net.karnet")


def test_a_table_by_column_comes_back(tmp_path):
    columns = ColumnTransformer(
        [
            (
                "numbers",
                make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
                ["gaps"],
            ),
            ("kinds", OneHotEncoder(handle_unknown="ignore", min_frequency=2), ["kind", "sort"]),
            ("orders", OrdinalEncoder(), ["flag"]),
            ("rest", MinMaxScaler(), make_column_selector("number|whole", dtype_include=np.number)),
        ]
    ).set_output(transform="default")
    net = make_pipeline(columns, KARClassifier((4,), random_state=0))
    assert_comes_back(net.fit(table(), TARGETS["two classes"]), tmp_path / "net", table()[::-1])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_vectoriser_comes_back(library, tmp_path):
    skrub = pytest.importorskip("skrub")
    rows = table()
    if library == "polars":
        pytest.importorskip("pyarrow")
        rows = pytest.importorskip("polars").from_pandas(rows)
    net = make_pipeline(
        skrub.TableVectorizer(), SimpleImputer(), KARClassifier((4,), random_state=0)
    )
    assert_comes_back(net.fit(rows, TARGETS["two classes"]), tmp_path / "net.karnet", rows)
    assert (tmp_path / "net.karnet").stat().st_size < 1e5


# The format


def test_a_file_is_one_of_skops(tmp_path):
    save(fitted("two classes", hidden_layer_sizes=(3,)), tmp_path / "net.karnet")
    untrusted = skops.io.get_untrusted_types(file=tmp_path / "net.karnet")
    assert set(untrusted) <= {f"karnet.files.types.{tag}" for tag in TAGS}
    again = skops.io.load(tmp_path / "net.karnet", trusted=TRUSTED)
    assert isinstance(again, KARClassifier)


def test_every_listed_name_is_of_its_kind():
    for loader, names in ALLOWED.items():
        for name in names:
            module = name.rpartition(".")[0]
            if name.startswith("pandas.") or module.endswith("_column_transformer"):
                continue  # the module differs between versions
            thing = resolved(name)
            assert (loader == "FunctionNode") != isinstance(thing, type), name
            assert name_of(thing) == name
    assert all(is_dataclass(resolved(name)) for name in DATACLASSES)


def test_the_list_is_for_the_skrub_of_the_extra():
    import tomllib

    project = Path(karnet.__file__).parents[2] / "pyproject.toml"
    if project.exists():
        extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
        major, minor = map(int, SKRUB.split("."))
        assert f"skrub>={SKRUB},<{major}.{minor + 1}" in extras["table"]


def test_tags_are_of_one_class_each():
    assert len({resolved(path) for path in TAGS.values()}) == len(TAGS)


def test_a_file_names_no_module_of_karnet_but_that_of_the_tags(tmp_path):
    save(KARRegressorCV(random_state=0).fit(kept.X, kept.X[:, 0]), tmp_path / "net.karnet")
    with ZipFile(tmp_path / "net.karnet") as archive:
        schema = archive.read("schema.json").decode()
    assert set(re.findall(r'"__module__":"(karnet[^"]*)"', schema)) == {"karnet.files.types"}


@pytest.mark.parametrize("name", kept.MODELS)
def test_models_of_all_kinds_come_back(name, tmp_path):
    assert_comes_back(kept.fitted(name), tmp_path / "net.karnet", kept.ROWS)


# Refusals and failures


def custom(x):
    return x


REFUSED = {
    "pair": KARClassifier(activation=(np.tan, np.arctan)),
    "custom": KARClassifier(activation=Activation("custom", custom, custom)),
    "same name": KARClassifier(output_activation=replace(ACTIVATIONS["tanh"], margin=0.1)),
    "function": make_pipeline(FunctionTransformer(np.log1p), KARClassifier()),
    "lambda": KARClassifierCV(cv=lambda: None),
    "dispatched": make_pipeline(FunctionTransformer(np.mean), KARClassifier()),
    "generator": KARClassifier(random_state=np.random.RandomState(0)),
    "cache": make_pipeline(StandardScaler(), KARClassifier(), memory="somewhere"),
    "complex": KARClassifier(init=[np.ones(2, dtype=complex)]),
    "key": KARClassifier(class_weight={None: 1.0}),
    "keys": KARClassifier(class_weight={1: 1.0, "1": 2.0}),
    "foreign": KARClassifier(init=[pd.Series([1.0])]),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_unsupported_parts_are_refused(kind, tmp_path):
    with pytest.raises(ValueError, match=r"cannot hold|no functions|pickles") as refusal:
        save(REFUSED[kind], tmp_path / "net.karnet")
    assert str(refusal.value).count(". ") == 0
    assert not list(tmp_path.iterdir())


def test_custom_activations_of_fitted_networks_are_refused(tmp_path):
    pair = (np.arctan, lambda y: np.tan(np.clip(y, -1.5, 1.5)))
    net = KARClassifier((3,), activation=pair, random_state=0).fit(X, TARGETS["two classes"])
    net.activation = "arctan"
    with pytest.raises(ValueError, match="custom"):
        save(net, tmp_path / "net.karnet")


def test_an_object_that_contains_itself_is_refused(tmp_path):
    net = KARClassifier()
    net.init = [net]
    with pytest.raises(ValueError, match="contains itself"):
        save(net, tmp_path / "net.karnet")


def test_a_refused_object_runs_no_code(tmp_path):
    touched = []

    class Sly:
        def __reduce__(self):
            touched.append(self)
            return os.system, ("true",)

        __getstate__ = __reduce__

    with pytest.raises(ValueError, match="Sly"):
        save(KARClassifier(init=[Sly()]), tmp_path / "net.karnet")
    assert not touched


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "net.karnet"
    save(KARClassifier((3,)), path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("numpy.lib.format.write_array", full)
    with pytest.raises(OSError, match=r"No space.*net\.karnet"):
        save(fitted("two classes"), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        save(KARClassifier(), tmp_path / "nowhere" / "net.karnet")
    assert error.value.filename == str(tmp_path / "nowhere" / "net.karnet")
    with pytest.raises(FileNotFoundError, match="nothing"):
        load(tmp_path / "nothing.karnet")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="folder"):
        save(KARClassifier(), tmp_path / "folder")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_permissions_follow_the_umask_and_links_are_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "net.karnet")
    save(KARClassifier(), tmp_path / "link")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "net.karnet").stat().st_mode) == 0o666 & ~mask
    assert (tmp_path / "link").is_symlink()


def test_highly_compressible_arrays_are_not_compressed(tmp_path):
    net = fitted("one output", hidden_layer_sizes=(5,), hidden="random")
    net.coefs_ = [np.zeros((3, 200_000)), np.zeros((200_000, 1))]
    net.intercepts_ = [np.zeros(200_000), np.zeros(1)]
    save(net, tmp_path / "net.karnet")
    assert (tmp_path / "net.karnet").stat().st_size > 8e6
    assert not load(tmp_path / "net.karnet").coefs_[0].any()
