"""Processes that measure with different versions of karnet, one thread each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"


class Worker:
    """A process of a script that answers requests with the karnet of a folder.

    Parameters
    ----------
    script : str
        A script that calls `serve` if its argument is ``--serve``.
    source : Path
        The folder that contains the package.
    """

    def __init__(self, script: str, source: Path) -> None:
        single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        path = os.pathsep.join(filter(None, [str(source.resolve()), os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [sys.executable, script, "--serve"],
            env=os.environ | single | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, **request: Any) -> dict[str, float]:
        """Return the answer to a request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())


def serve(answer: Callable[..., dict[str, float]]) -> None:
    """Answer the requests on standard input."""
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), flush=True)
