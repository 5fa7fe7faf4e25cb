"""What must be settled before anything else: SciPy's arrays, and no network."""

from __future__ import annotations

import os

import pytest

from tests.offline import ASKED, forbid_network

# scikit-learn computes with arrays of other libraries only if SciPy was told that it may.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
forbid_network()


@pytest.fixture(autouse=True)
def nobody_is_asked(request):
    """See to it that no test asks another host, not even one that would get over the refusal."""
    before = len(ASKED)
    yield
    if "asks_network" not in request.keywords:
        assert ASKED[before:] == []
