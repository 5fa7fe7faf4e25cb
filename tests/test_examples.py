"""The examples run, and show what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_five_sites_get_the_pooled_network(capsys):
    ran = runpy.run_path(str(EXAMPLES / "five_sites.py"))
    assert ran["difference"] < 1e-8
    assert ran["forgotten"] < 1e-8
    assert "difference from the pooled network" in capsys.readouterr().out
