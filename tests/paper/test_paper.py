"""The paper's case studies come out as the paper has them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from karnet import KARRegressor
from karnet.cli import main
from karnet.paper import iris, xor

STRUCTURES = [(2,), (3, 3, 3, 3)]


@pytest.mark.parametrize("output", ["logit", "identity"])
@pytest.mark.parametrize("init", ["normal", "uniform"])
@pytest.mark.parametrize("sizes", STRUCTURES)
def test_xor_is_learned_by_two_layers_and_by_five(sizes, init, output):
    right = [
        np.abs(net.fit(xor.X, xor.TARGETS).predict(xor.X) - xor.TARGETS).max() < 1e-3
        for net in (
            KARRegressor(sizes, output_activation=output, init=init, random_state=seed)
            for seed in range(50)
        )
    ]
    assert sum(right) >= 45
    if init == "normal":
        assert right[0]


@pytest.mark.parametrize("n_hidden", [1, 4])
@pytest.mark.parametrize("bias", [False, True])
def test_iris_is_represented_exactly_from_as_many_weights_as_rows(n_hidden, bias):
    square = 90 - bias
    for seed in range(10):
        data = iris.split(seed)
        for h in (square - 1, square, 93):
            net = iris.network((h,) * n_hidden, bias, seed).fit(data.X, data.y)
            sse = iris.sum_of_squares(net, data)
            if h < square:
                assert sse > 1e-6
            else:
                assert sse < 1e-12
                assert net.score(data.X, data.y) == 1.0


def test_iris_splits_hold_90_distinct_rows_and_the_rest():
    data = iris.split(3)
    assert len(np.unique(data.X, axis=0)) == len(data.X) == 90
    assert len(data.X_test) == 60
    np.testing.assert_array_equal(np.bincount(data.y), [30, 30, 30])


def test_reproduce_prints_the_tables_asked_for_and_where_the_report_is(capsys, tmp_path):
    out = ["--out", str(tmp_path)]
    for name, title in (("xor", "XOR"), ("iris", "five-layer"), ("rounding", "20 other orders")):
        main(["reproduce", name, *out])
        printed = capsys.readouterr().out
        assert title in printed
        assert ("XOR" in printed) == (name == "xor")
        assert printed.splitlines()[-1] == f"The report is in {tmp_path / 'report.html'}."
    written = (tmp_path / "report.html").read_text()
    assert "karnet reproduce rounding --out" in written
    main(["reproduce", "report", *out])
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_reproduce_runs_data_sets_and_takes_a_run_up_again(capsys, tmp_path):
    options = ["--folds", "2", "--jobs", "1", "--time-limit", "0", "--out", str(tmp_path / "new")]
    main(["reproduce", "uci", "--sets", "iris", *options])
    printed = capsys.readouterr().out
    assert "17  iris" in printed
    assert "79.39 %" in printed
    first = (tmp_path / "new" / "results.csv").read_text().splitlines()
    main(["reproduce", "uci", "--sets", "17", "24-24", "--slow-folds", "2", *options])
    assert "24  wine" in capsys.readouterr().out
    second = (tmp_path / "new" / "results.csv").read_text().splitlines()
    # The lines of iris are the same to the last digit of their times: nothing was fitted again.
    assert set(first) < set(second)
    assert len(second) == 1 + 5 * 2 * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "uci", "--sets", "irs"], "--sets irs is not known"),
        (["reproduce", "--sets", "irs"], "--sets irs is not known"),
        (["reproduce", "uci", "--sets", "bupa", "--data", "."], "'bupa' is not available here"),
        (["datasets", "--data", "no such folder"], "no such folder"),
    ],
)
def test_what_goes_wrong_is_said_in_one_sentence(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("module", ["rich.progress", "pandas", "matplotlib"])
def test_a_missing_extra_is_named(module, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SystemExit):
        main(["reproduce", "uci"])
    assert "pip install 'karnet[paper]'" in capsys.readouterr().err


def test_datasets_are_listed_with_their_sources(capsys, monkeypatch):
    monkeypatch.delenv("KARNET_DATA", raising=False)
    main(["datasets"])
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 42 + 6
    assert "built in" in printed


@pytest.mark.parametrize("arguments", [["--help"], ["reproduce", "--help"], ["--version"]])
def test_the_command_line_says_what_it_can_do(arguments, capsys):
    main(arguments)
    printed = capsys.readouterr().out
    assert "reproduce" in printed or "karnet 0" in printed


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["x"],
        ["reproduce", "uci", "--trials", "0"],
        ["reproduce", "xorr"],
        ["reproduce", "uci", "--time-limit", "-1"],
    ],
)
def test_what_the_command_line_does_not_know_ends_with_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
