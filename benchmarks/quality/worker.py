"""A process that measures the fits that are requested on standard input, one per line."""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import asdict
from math import inf
from threading import Thread
from time import process_time, sleep

from threadpoolctl import threadpool_limits

from .measure import measure, why_absent
from .store import Key

# Exit code of a process whose fit took too much CPU time.
TOO_SLOW = 75


def main() -> None:
    """Print a line of JSON for every line of standard input."""
    # Output of libraries must not be mixed with the results.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    warnings.simplefilter("ignore")  # mostly about convergence
    watch = Watch()
    with threadpool_limits(1):
        for line in sys.stdin:
            task = json.loads(line)
            if "contender" in task:
                result = {"reason": why_absent(task["contender"])}
            else:
                watch.allow(task["limit"])
                result = asdict(measure(Key(*task["key"])))
            print(json.dumps(result), file=output)


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
