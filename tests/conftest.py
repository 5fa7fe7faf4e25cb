"""Settings of all tests: SciPy's array API, and no network."""

from __future__ import annotations

import os

import pytest

from tests.offline import ASKED, forbid_network

# scikit-learn computes with arrays of other libraries only if this was set before SciPy's import.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
forbid_network()


@pytest.fixture(autouse=True)
def no_network(request):
    """Fail a test that connects to another host, even if it handles the error."""
    before = len(ASKED)
    yield
    if "asks_network" not in request.keywords:
        assert ASKED[before:] == []
