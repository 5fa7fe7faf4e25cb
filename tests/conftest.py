"""Settings of all tests: SciPy's array API, and no network."""

from __future__ import annotations

import os
from dataclasses import replace

# scikit-learn computes with arrays of other libraries only if this was set before SciPy's import.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import pytest

from karnet._arrays.devices import SETTINGS
from karnet._lstsq.lapack import LIMITS
from karnet._rows.memory import SIZES
from karnet._search import average
from tests.offline import ASKED, forbid_network

forbid_network()


def changes_of(settings, monkeypatch):
    """Return a function that changes attributes of an object for one test."""

    def change(**values):
        for name, value in values.items():
            monkeypatch.setattr(settings, name, value)

    return change


@pytest.fixture
def block_sizes(monkeypatch):
    """Return a function that changes sizes of blocks: ``block_sizes(block=2**13)``."""
    return changes_of(SIZES, monkeypatch)


@pytest.fixture
def solver_sizes(monkeypatch):
    """Return a function that changes thresholds of solvers: ``solver_sizes(product=1)``."""
    return changes_of(LIMITS, monkeypatch)


@pytest.fixture
def settings(monkeypatch):
    """Return a function that changes settings of the search: ``settings(leaf=80)``."""

    def change(**values):
        monkeypatch.setattr(average, "SETTINGS", replace(average.SETTINGS, **values))

    return change


@pytest.fixture
def device_settings(monkeypatch):
    """Return a function that changes assumptions about devices."""
    return changes_of(SETTINGS, monkeypatch)


@pytest.fixture(autouse=True)
def no_network(request):
    """Fail a test that connects to another host, even if it handles the error."""
    before = len(ASKED)
    yield
    if "asks_network" not in request.keywords:
        assert ASKED[before:] == []
