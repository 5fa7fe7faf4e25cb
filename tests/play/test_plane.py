"""Pictures of the plane are fits of the library; requests that cannot be used get a sentence."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

pytest.importorskip("starlette")

from karnet import KARClassifier, KARClassifierCV, KARRegressor
from karnet.play import Plane
from karnet.play._presets import PRESETS
from karnet.play._request import MODELS
from karnet.play._wire import GarbageError, packed, parsed, reply, unpacked

RANDOM = {"model": "random", "sizes": [15], "activation": "tanh", "ridge": 1e-3, "scale": 2.0}


def preset(name):
    return Plane().answer({"kind": "preset", "name": name})[0]


def request(name="moons", grid=20, **changes):
    found = preset(name)
    model = found["model"] | changes.pop("model", {})
    message = {"kind": "fit", "task": found["task"], "points": found["points"], "model": model}
    return message | {"grid": grid} | changes


def rows(message):
    points = np.reshape(message["points"], (-1, 3))
    return points[:, :2], points[:, 2].astype(int)


def grid(n):
    middle = -0.2 + (1.2 - -0.2) / n * (np.arange(n) + 0.5)
    return np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_fitted_well_by_its_settings(name):
    figures, arrays = Plane().answer(request(name))
    assert figures["score"] > 0.8
    assert figures["n"] * 3 == len(preset(name)["points"])
    assert set(arrays) == ({"curve"} if preset(name)["task"] == "curve" else {"surface", "lines"})


def test_the_surface_is_the_prediction_of_the_paper_s_network():
    message = request("iris petals", model={"sizes": [8, 5]})
    figures, arrays = Plane().answer(message)
    X, y = rows(message)
    net = KARClassifier((8, 5), random_state=0).fit(X, y)
    expected = net.predict_proba(grid(20)).T.reshape(3, 20, 20)
    np.testing.assert_array_equal(arrays["surface"], expected)
    assert figures["score"] == net.score(X, y)
    assert [layer["rank"] for layer in figures["layers"]] == [each.rank for each in net.layers_]


def test_random_layers_see_scaled_inputs_and_their_lines_are_in_the_plane():
    message = request(model=RANDOM)
    _, arrays = Plane().answer(message)
    X, y = rows(message)
    net = KARClassifier((15,), activation="tanh", hidden="random", alpha=1e-3, random_state=0).fit(
        2.0 * (2.0 * X - 1.0), y
    )
    places = grid(20)
    expected = net.predict_proba(2.0 * (2.0 * places - 1.0)).T.reshape(2, 20, 20)
    np.testing.assert_array_equal(arrays["surface"], expected)
    inputs = 2.0 * (2.0 * places - 1.0) @ net.coefs_[0] + net.intercepts_[0]
    lines = arrays["lines"]
    np.testing.assert_allclose(places @ lines[:, :2].T + lines[:, 2], inputs, atol=1e-12)


def test_the_curve_is_the_prediction_of_a_regressor():
    message = request("noisy sine", model={"ridge": 1e-4})
    _, arrays = Plane().answer(message)
    X, _ = rows(message)
    net = KARRegressor((100,), activation="tanh", hidden="random", alpha=1e-4, random_state=0)
    net.fit(3.0 * (2.0 * X[:, :1] - 1.0), X[:, 1])
    x, height = arrays["curve"].T
    np.testing.assert_array_equal(height, net.predict(3.0 * (2.0 * x[:, None] - 1.0)))


@pytest.mark.parametrize("task", ["classes", "curve"])
def test_the_left_out_score_is_that_of_refits(task):
    message = request("four classes" if task == "classes" else "noisy sine", model=RANDOM)
    message["points"] = message["points"][: 3 * 30] + message["points"][-3 * 30 :]
    figures, _ = Plane().answer(message)
    X, y = rows(message)
    X, y = (X, y) if task == "classes" else (X[:, :1], X[:, 1])
    X = 2.0 * (2.0 * X - 1.0)
    kind = KARClassifier if task == "classes" else KARRegressor
    net = kind((15,), activation="tanh", output_activation="identity", hidden="random", alpha=1e-3)
    net.set_params(random_state=0)
    left_out = np.array(
        [
            net.fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0]
            for i in range(len(y))
        ]
    )
    expected = (
        np.mean(left_out == y)
        if task == "classes"
        else 1.0 - np.sum((left_out - y) ** 2) / np.sum((y - y.mean()) ** 2)
    )
    assert figures["left_out"] == pytest.approx(expected, abs=1e-9)


def test_the_estimator_that_selects_everything_scores_itself():
    message = request("iris petals", model={"model": "cv"})
    figures, _ = Plane().answer(message)
    assert figures["left_out"] == KARClassifierCV(random_state=0).fit(*rows(message)).best_score_
    assert figures["ridge"] is None


def test_an_erased_point_is_forgotten_exactly():
    plane, message = Plane(), request(model=RANDOM)
    assert plane.answer(message)[0]["how"] == "full fit"
    fewer = message | {"points": message["points"][3:]}
    figures, arrays = plane.answer(fewer)
    assert figures["how"] == "exact removal of 1 point, without a new fit"
    # A finer picture of the same points is no other fit.
    finer = plane.answer(fewer | {"grid": 30})[0]
    assert (finer["how"], finer["fit_ms"]) == (figures["how"], figures["fit_ms"])
    again, refit = Plane().answer(fewer)
    assert again["how"] == "full fit"
    np.testing.assert_allclose(arrays["surface"], refit["surface"], atol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"model": "paper", "sizes": [5], "activation": "logit"}},
        {"model": {"model": "metric"}},
        {"model": {"ridge": None}},
        {"model": {"ridge": 0.0, "sizes": [300]}},
    ],
    ids=str,
)
def test_networks_whose_hidden_layers_or_ridge_would_change_are_fitted_again(change):
    message = request(model=RANDOM | change["model"])
    plane = Plane()
    plane.answer(message)
    assert plane.answer(message | {"points": message["points"][3:]})[0]["how"] == "full fit"


def test_a_moved_point_and_the_last_point_of_a_class_are_no_removals():
    plane, message = Plane(), request("xor", model=RANDOM)
    message["points"] += [0.5, 0.5, 2]
    plane.answer(message)
    assert plane.answer(message | {"points": message["points"][:-3]})[0]["how"] == "full fit"
    plane.answer(message)
    moved = [0.1, *message["points"][1:-3]]
    assert plane.answer(message | {"points": moved})[0]["how"] == "full fit"


def test_outputs_of_the_paper_s_layers_meet_their_targets_on_xor():
    figures, _ = Plane().answer(request("xor", model={"sizes": [3, 3]}, layers=True))
    assert [layer["name"] for layer in figures["targets"]] == ["layer 1", "layer 2", "output layer"]
    for layer in figures["targets"][1:]:
        np.testing.assert_allclose(layer["targets"], layer["outputs"], atol=2e-2)
    # Two classes have two targets in every layer.
    for layer in figures["targets"]:
        assert len({tuple(each) for each in np.reshape(layer["targets"], (-1, 2)).tolist()}) == 2


@pytest.mark.parametrize("name", ["moons", "noisy sine"])
@pytest.mark.parametrize("model", MODELS)
def test_the_lines_of_python_make_the_same_model(name, model):
    activation = "relu" if model in ("infinite", "metric") else "tanh"
    message = request(name, model={"model": model, "sizes": [10], "activation": activation})
    plane = Plane()
    figures, _ = plane.answer(message)
    code = plane.answer(message | {"kind": "code"})[0]["code"]
    assert len(code.splitlines()) <= 10
    names = {}
    exec(code.replace("print(net.score(X, y))", "score = net.score(X, y)"), names)
    assert names["score"] == figures["score"]


BAD = [
    ({}, "at least two classes|points"),
    ({"points": [0.0, 0.0]}, "3 numbers"),
    ({"points": [0.0, "x", 1]}, "numbers only"),
    ({"points": [0.0, float("nan"), 1]}, "within 100"),
    ({"points": [10**400, 0, 1]}, "within 100"),
    ({"points": [0.0, 0.0, 7]}, "classes"),
    ({"points": [0.0, 0.0, 0] * 10_001}, "at most 10000"),
    ({"points": [0.0, 0.0, 0] * 9}, "two classes"),
    ({"points": {"a": 1}}, "points"),
    ({"task": "dance"}, "task"),
    ({"grid": 10**9}, "grid"),
    ({"grid": 20.5}, "whole"),
    ({"layers": "yes"}, "layers"),
    ({"model": []}, "object"),
    ({"model": {"model": "deep"}}, "model"),
    ({"model": {"magic": 1}}, "magic"),
    ({"model": {"sizes": [10] * 9}}, "at most 5"),
    ({"model": {"sizes": [10**9]}}, "units"),
    ({"model": {"sizes": "10"}}, "sizes"),
    ({"model": {"ridge": -1}}, "ridge"),
    ({"model": {"ridge": "big"}}, "ridge"),
    ({"model": {"seed": True}}, "seed"),
    ({"model": {"scale": None}}, "scale"),
    ({"model": {"activation": "relu"}}, "inverse"),
    ({"model": {"model": "infinite", "activation": "tanh"}}, "infinite"),
]


@pytest.mark.parametrize(("change", "words"), BAD, ids=lambda each: str(each)[:40])
def test_what_cannot_be_used_gets_one_sentence(change, words):
    message = (
        {"kind": "fit", "points": [0, 0, 0, 1, 1, 1, 0.5, 0, 1]} if change else {"kind": "fit"}
    )
    answer = json.loads(reply(Plane(), message | change | {"id": 7}))
    assert answer["id"] == 7
    assert "\n" not in answer["error"]
    assert "internal" not in answer["error"]
    assert re.search(words, answer["error"])


def test_many_points_are_refused_by_infinite_width_only():
    points = np.random.default_rng(0).random((1600, 3)).round(4)
    points[:, 2] = points[:, 0] > 0.5
    message = {"kind": "fit", "points": points.ravel().tolist(), "grid": 16}
    model = {"model": "infinite", "activation": "relu", "ridge": 0.1}
    assert "random layers" in json.loads(reply(Plane(), message | {"model": model}))["error"]
    assert Plane().answer(message | {"model": RANDOM})[0]["score"] > 0.9


@pytest.mark.parametrize("text", [None, "", "{", "[" * 100_000, "3", "[]", "null", '"x"'])
def test_a_message_that_is_no_object_is_garbage(text):
    with pytest.raises(GarbageError, match="must be a JSON object"):
        parsed(text)


def test_an_unknown_error_is_one_sentence_too():
    class Broken:
        def answer(self, message):
            raise KeyError("two\nlines")

    error = json.loads(reply(Broken(), {"id": 1}))["error"]
    assert error.startswith("An internal error, KeyError")
    assert "\n" not in error


def test_answers_are_read_as_they_were_packed():
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([1e300, np.nan])}
    values, found = unpacked(packed({"x": np.float64("nan"), "y": "é"}, arrays))
    assert values == {"x": None, "y": "é"}
    np.testing.assert_array_equal(found["a"], arrays["a"])
    np.testing.assert_array_equal(found["b"], [np.inf, np.nan])
