"""The library without optional dependencies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HIDDEN = """
import sys
from alone import OPTIONAL, main

class Hidden:
    @staticmethod
    def find_spec(name, *_):
        if name.partition(".")[0] in OPTIONAL:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden)
main()
"""


def test_the_core_dependencies_are_enough():
    tests = Path(__file__).parent
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", HIDDEN], cwd=tests, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
