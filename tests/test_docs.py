"""What documentation shows works when it is typed in."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from pathlib import Path

import numpy as np
import pytest

import karnet
from karnet import KARClassifier
from karnet.accumulate import Accumulator

from .test_imports import modules

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_examples_of_docstrings(module):
    assert doctest.testmod(module).failed == 0


def test_the_readme_s_lines_of_python_run():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec("\n".join(blocks), {})
    accuracies = [float(line.split()[0]) for line in printed.getvalue().splitlines()]
    assert len(accuracies) == len(blocks) == 2
    assert min(accuracies) > 0.9


def test_the_lines_of_the_guide_to_updates_run():
    rng = np.random.default_rng(0)
    X, A, B = rng.standard_normal((300, 4)), rng.standard_normal((40, 5)), rng.standard_normal(40)
    y = (X[:, 0] > 0).astype(int)
    other = KARClassifier((200,), hidden="random", alpha=1e-3, random_state=0).fit(X, y)
    names = {"X1": X[:150], "y1": y[:150], "X2": X[150:], "y2": y[150:], "other": other}
    names |= {"A": A, "B": B, "others": Accumulator(5, 1).add(A, B)}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs/updates.md").read_text(), re.S):
        exec(block, names)
    assert names["net"].layers_[-1].statistic is None
    assert names["net"].score(X, y) > 0.9


def test_the_changelog_and_the_licence_are_there():
    assert "Unreleased" in (ROOT / "CHANGELOG.md").read_text()
    assert "BSD 3-Clause" in (ROOT / "LICENSE").read_text()
    assert karnet.__version__
