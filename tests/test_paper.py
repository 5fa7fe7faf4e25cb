"""The paper's case studies come out as the paper has them."""

from __future__ import annotations

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


def test_reproduce_prints_every_table(capsys):
    main(["reproduce"])
    printed = capsys.readouterr().out
    for title in ("XOR", "two-layer network", "five-layer network", "in 20 other orders"):
        assert title in printed
    main(["reproduce", "xor"])
    assert "Iris" not in capsys.readouterr().out


def test_the_command_line_says_what_it_can_do(capsys):
    for arguments, code in ((["--help"], 0), (["reproduce", "--help"], 0), ([], 2), (["x"], 2)):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == code
    assert "reproduce" in capsys.readouterr().out
