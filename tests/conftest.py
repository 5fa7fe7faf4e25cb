"""Settings of all tests: SciPy's array API, and no network."""

from __future__ import annotations

import os

# scikit-learn computes with arrays of other libraries only if this was set before SciPy's import.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import pytest

from karnet._arrays.devices import SETTINGS
from karnet._ensemble.average import SEARCH_SIZES
from karnet._lstsq.lapack import LIMITS
from karnet._rows.memory import SIZES
from tests.offline import ASKED, forbid_network

forbid_network()


@pytest.fixture
def block_sizes(monkeypatch):
    """Return a function that changes sizes of blocks for one test: ``block_sizes(block=2**13)``."""

    def change(**sizes):
        for name, value in sizes.items():
            monkeypatch.setattr(SIZES, name, value)

    return change


@pytest.fixture
def solver_sizes(monkeypatch):
    """Return a function that changes thresholds of solvers: ``solver_sizes(product=1)``."""

    def change(**sizes):
        for name, value in sizes.items():
            monkeypatch.setattr(LIMITS, name, value)

    return change


@pytest.fixture
def search_sizes(monkeypatch):
    """Return a function that changes sizes of the search: ``search_sizes(rows=60)``."""

    def change(**sizes):
        for name, value in sizes.items():
            monkeypatch.setattr(SEARCH_SIZES, name, value)

    return change


@pytest.fixture
def device_settings(monkeypatch):
    """Return a function that changes assumptions about devices for one test."""

    def change(**settings):
        for name, value in settings.items():
            monkeypatch.setattr(SETTINGS, name, value)

    return change


@pytest.fixture(autouse=True)
def no_network(request):
    """Fail a test that connects to another host, even if it handles the error."""
    before = len(ASKED)
    yield
    if "asks_network" not in request.keywords:
        assert ASKED[before:] == []
