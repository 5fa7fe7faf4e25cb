"""The short form of `make faults`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_a_few_faults_of_each_kind_leave_nothing_incomplete():
    # The program forks, which is safe only in a process without threads; pytest has threads.
    ended = subprocess.run(
        [sys.executable, "-m", "trust.faults", "--quick"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": ""},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "; 0 failures." in ended.stdout
