"""A process that measures what it is told to, line by line, in the environment it runs in."""

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

# What a process ends with when a fit took too much CPU time.
TOO_SLOW = 75


def main() -> None:
    """Answer every line of standard input with a line of JSON, until there are no more."""
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    warnings.simplefilter("ignore")  # of convergence, mostly: peers are run as they are
    watch = Watch()
    with threadpool_limits(1):
        for line in sys.stdin:
            asked = json.loads(line)
            if "contender" in asked:
                answer = {"reason": why_absent(asked["contender"])}
            else:
                watch.allow(asked["limit"])
                answer = asdict(measure(Key(*asked["key"])))
            print(json.dumps(answer), file=answers)


class Watch:
    """A thread that ends this process when a fit takes too much CPU time.

    The system could do it by itself, but while it does, it counts CPU time in ticks.
    """

    def __init__(self) -> None:
        self._end = inf
        Thread(target=self._look, daemon=True).start()

    def allow(self, seconds: float) -> None:
        """Allow so many seconds of CPU time from now on."""
        self._end = process_time() + seconds

    def _look(self) -> None:
        while process_time() < self._end:
            sleep(1.0)
        os._exit(TOO_SLOW)


if __name__ == "__main__":
    main()
