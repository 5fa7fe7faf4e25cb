"""Print the peak memory of a fit in a new process, without its input."""

from __future__ import annotations

import json
import resource
import sys
from time import perf_counter

import data

from karnet import KARClassifier


def main(hidden: str, m: int, d: int, h: int) -> None:
    """Fit one network and print its memory and time as JSON."""
    X, y = data.table(m, d)
    net = KARClassifier((h,), hidden=hidden, random_state=0)
    before, start = highest(), perf_counter()
    net.fit(X, y)
    print(json.dumps({"seconds": perf_counter() - start, "bytes": highest() - before}))


def highest() -> int:
    """Return the peak memory of this process so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    hidden, *sizes = sys.argv[1:]
    main(hidden, *map(int, sizes))
