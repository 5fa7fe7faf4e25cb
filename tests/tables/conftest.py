"""Sizes at which tests of tables are quick."""

from __future__ import annotations

import pytest


@pytest.fixture
def sizes():
    """Return the sizes of tables; imported here, as tables need optional libraries."""
    from karnet.tables._sizes import SIZES

    return SIZES


@pytest.fixture
def few_widths(monkeypatch, sizes):
    """Choose the width of the paper's network from two."""
    monkeypatch.setattr(sizes, "paper_widths", (1, 5))


@pytest.fixture
def small_sample(monkeypatch, sizes):
    """Encode large files by few rows, and fit few units."""
    monkeypatch.setattr(sizes, "sample_rows", 150)
    monkeypatch.setattr(sizes, "hidden_units", 20)
