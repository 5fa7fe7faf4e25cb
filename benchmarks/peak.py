"""Print the peak memory of a fit in a new process, without its input."""

from __future__ import annotations

import json
import sys
from time import perf_counter

import data
from memory import highest

from karnet import KARClassifier


def main(hidden: str, m: int, d: int, h: int) -> None:
    """Fit one network and print its memory and time as JSON."""
    X, y = data.table(m, d)
    net = KARClassifier((h,), hidden=hidden, random_state=0)
    before, start = highest(), perf_counter()
    net.fit(X, y)
    print(json.dumps({"seconds": perf_counter() - start, "bytes": highest() - before}))


if __name__ == "__main__":
    hidden, *sizes = sys.argv[1:]
    main(hidden, *map(int, sizes))
