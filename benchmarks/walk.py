"""How far one small fit walks through the package: files, calls between files, depth of the stack.

Run `python benchmarks/walk.py`, or with `--calls` to list the calls between files.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from sklearn.datasets import load_iris

import karnet
from karnet import KARClassifier

PACKAGE = Path(karnet.__file__).parent


class Walk:
    """A profiler that follows the frames of karnet only."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.files: set[str] = set()
        self.deepest = 0

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        """Count a call of a function of karnet."""
        own = _file(frame)
        if event != "call" or own is None:
            return
        below = [name for each in _callers(frame) if (name := _file(each)) is not None]
        self.files.add(own)
        self.deepest = max(self.deepest, len(below) + 1)
        if below and below[0] != own:
            self.calls[below[0], own] += 1


def _file(frame: Any) -> str | None:
    path = Path(frame.f_code.co_filename)
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else None


def _callers(frame: Any) -> Any:
    while (frame := frame.f_back) is not None:
        yield frame


def walked() -> Walk:
    """Return the walk of one fit of a network with 10 hidden units to iris, after a first one."""
    X, y = load_iris(return_X_y=True)
    net, walk = KARClassifier((10,), random_state=0).fit(X, y), Walk()
    sys.setprofile(walk)
    try:
        net.fit(X, y)
    finally:
        sys.setprofile(None)
    return walk


def main() -> None:
    """Print the figures."""
    walk = walked()
    print(f"files of karnet entered        {len(walk.files):4}")
    print(f"calls from one file to another {walk.calls.total():4}")
    print(f"deepest stack of own frames    {walk.deepest:4}")
    if "--calls" in sys.argv[1:]:
        for (caller, called), n in walk.calls.most_common():
            print(f"{n:4}  {caller} -> {called}")


if __name__ == "__main__":
    main()
