"""The examples run, and show what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs an example, draws to nowhere, and returns its names."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    yield lambda name: runpy.run_path(str(EXAMPLES / f"{name}.py"))
    plt.close("all")


def test_five_sites_get_the_pooled_network(run, capsys):
    ran = run("five_sites")
    assert ran["difference"] < 1e-4
    assert ran["forgotten"] < 1e-8
    assert "difference from the pooled network" in capsys.readouterr().out


def test_the_method_by_hand_is_the_estimator_s(run):
    assert run("method_in_pictures")["difference"] < 1e-4


def test_xor_is_learned(run):
    assert min(run("xor")["right"].values()) >= 49


def test_moons_need_more_than_linear_scores(run):
    scores = run("moons")["scores"]
    assert scores["pull-back"] < 0.9 < 0.95 < min(scores["random"], scores["KARClassifierCV"])


def test_ninety_flowers_are_fitted_by_ninety_weights(run, capsys):
    run("iris_widths")
    printed = capsys.readouterr().out
    assert "with output bias: exact from 89" in printed
    assert "without: exact from 90" in printed


def test_blocks_give_the_network_of_all_rows(run):
    assert run("streaming")["same"]


def test_a_device_gives_the_network_of_this_machine(run):
    ran = run("gpu")
    assert not ran["installed"] or ran["difference"] < 1e-9


def test_a_graph_gives_the_probabilities_of_its_pipeline(run):
    pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxruntime")
    assert run("onnx_graph")["difference"] < 1e-4


def test_a_mixed_table_is_learned_and_kept(run):
    pytest.importorskip("skrub")
    pytest.importorskip("skops")
    ran = run("mixed_table")
    assert ran["score"] > 0.9
    assert 0.84 < ran["inside"] < 0.96
    assert ran["same"]


def test_a_model_says_what_it_knows(run):
    ran = run("what_does_it_know")
    # Two columns that say the same have less importance each.
    assert max(ran["both"]) < ran["once"]
    assert ran["low"] < ran["prediction"] < ran["high"]
    assert ran["auroc"] > 0.7
