"""A process that measures the fits that are requested on standard input, one per line."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from math import inf
from threading import Thread
from time import process_time, sleep
from typing import Any

from threadpoolctl import threadpool_limits

from .measure import measure, why_absent
from .peers import CONTENDERS
from .store import Key

# Exit code of a process whose fit took too much CPU time.
TOO_SLOW = 75


def main() -> None:
    """Measure the requested fits."""
    serve(_answer)


def _answer(task: dict[str, Any], watch: Watch) -> dict[str, Any]:
    if "contender" in task:
        return {"reason": why_absent(CONTENDERS[task["contender"]])}
    watch.allow(task["limit"])
    return asdict(measure(Key(*task["key"])))


def serve(answer: Callable[[dict[str, Any], Watch], dict[str, Any]]) -> None:
    """Print the answer to every line of standard input; both are lines of JSON."""
    # Output of libraries must not be mixed with the results.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    warnings.simplefilter("ignore")  # mostly about convergence
    watch = Watch()
    with threadpool_limits(1):
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line), watch)), file=output)


class Watch:
    """A thread that ends this process when a fit takes too much CPU time.

    A limit of the operating system would count CPU time only in clock ticks.
    """

    def __init__(self) -> None:
        self._end = inf
        Thread(target=self._look, daemon=True).start()

    def allow(self, seconds: float) -> None:
        """Allow this number of seconds of CPU time from now on."""
        self._end = process_time() + seconds

    def _look(self) -> None:
        while process_time() < self._end:
            sleep(1.0)
        os._exit(TOO_SLOW)


if __name__ == "__main__":
    main()
