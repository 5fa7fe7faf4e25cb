"""The short form of `make faults`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and mounts are Linux's")
def test_a_few_faults_of_each_kind_leave_nothing_half_done():
    # In a process of its own, which starts others by forking: pytest has threads.
    ended = subprocess.run(
        [sys.executable, "-m", "trust.faults", "--quick"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": ""},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert " 0 of them not survived" in ended.stdout
