"""Too little memory: fits in blocks succeed, and a fit that fails changes nothing.

`python -m trust.fault_memory` runs in a process that has loaded few other modules.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from karnet import KARClassifier, KARClassifierCV, KARRegressor, KARRegressorCV
from trust.fault_process import Run, run_all, run_one
from trust.record import table

D = 4
HEADER = ("fit", "address space", "outcome", "as required")
# Rows, units and kind of layers: fits take seconds, in less than half of the layer's memory.
FULL = ((300_000, 1000, "random"), (600_000, 500, "pullback"))
# Megabytes that remain for a fit that needs more.
LEFT = (1, 5, 20)


@dataclass(frozen=True)
class Found:
    """The outcome of a fit with too little memory."""

    name: str
    space: str
    outcome: str
    right: bool

    @property
    def row(self) -> tuple[object, ...]:
        """Return the row of the table."""
        return self.name, self.space, self.outcome, ("no", "yes")[self.right]

    @property
    def wrong(self) -> list[str]:
        """Return the failure, if there was one."""
        return [] if self.right else [f"{self.name}, {self.space}: {self.outcome}"]


def rows(m: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, D))
    return X, np.sin(X[:, 0]) + X[:, 1]


def space() -> int:
    """Return the bytes of address space in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def limit(n_bytes: int) -> None:
    """Limit the address space of this process; it may raise the limit again."""
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, resource.RLIM_INFINITY))


def learn_and_tell(m: int, h: int, hidden: str) -> None:
    """Fit a network, and print a digest of its coefficients and the duration."""
    X, y = rows(m)
    start = time.perf_counter()
    f = "logit" if hidden == "pullback" else "relu"
    net = KARRegressor((h,), activation=f, hidden=hidden, alpha=1.0, random_state=0).fit(X, y)
    digest = hashlib.sha256(b"".join(W.tobytes() for W in net.coefs_)).hexdigest()
    print(digest, f"{time.perf_counter() - start:.1f}")


def blocks_at_half(m: int, h: int, hidden: str) -> list[Found]:
    """Return whether a fit in blocks gives the same network in half of the layer's memory."""
    naive = 8 * m * h
    work = partial(learn_and_tell, m, h, hidden)
    runs = [Run(work, about=None), Run(work, partial(limit, naive // 2), about=naive // 2)]
    free, little = sorted(run_all(runs), key=lambda ended: ended.run.about is not None)
    whole = run_one(partial(np.ones, (m, h)), fault=partial(limit, naive // 2))
    name = f"`KARRegressor`, {hidden}, {m} rows, {h} units"
    half = f"{naive / 2e9:.2f} GB, half of the hidden layer"
    same = bool(little.out) and free.out.split()[:1] == little.out.split()[:1]
    outcome = (
        f"the same network, bit for bit, in {little.out.split()[-1]} s" if same else little.err
    )
    refused = "MemoryError" in whole.err
    return [
        Found(name, half, outcome, same),
        Found(
            "the whole hidden layer",
            half,
            "MemoryError" if refused else "fits, so this shows nothing",
            refused,
        ),
    ]


def estimators() -> list[tuple[Any, int]]:
    """Return estimators that need more memory than they get, and their number of rows."""
    return [
        (KARRegressor((1500,), hidden="random", alpha=1.0, random_state=0), 20_000),
        (KARClassifier((1200,), random_state=0), 20_000),
        (KARRegressor((np.inf,), hidden="random", activation="relu", random_state=0), 1500),
        (KARClassifierCV(random_state=0), 1000),
        (KARRegressorCV(random_state=0), 1000),
    ]


def in_vain(estimator: Any, m: int, megabytes: int) -> None:
    """Fit with too little memory, print the error, and check that the estimator is unchanged."""
    X, y = rows(m)
    targets = np.digitize(y, [0.0]) if "Classifier" in type(estimator).__name__ else y
    small = pickle.loads(pickle.dumps(estimator))
    small.fit(X[:300], targets[:300])
    for net in (estimator, small):
        before = pickle.dumps(vars(net))
        limit(space() + megabytes * 2**20)
        try:
            net.fit(X, targets)
            message = ""
        except MemoryError as error:
            message = str(error)
        finally:
            limit(resource.RLIM_INFINITY)
        assert message, "the fit succeeded, or its error has no message"
        assert "\n" not in message
        assert pickle.dumps(vars(net)) == before, "the estimator has changed"
    print(message)


def too_little(quick: bool = False) -> list[Found]:
    """Return whether fits without enough memory say so and leave the estimator unchanged."""
    runs = [
        Run(partial(in_vain, estimator, m, left), about=(type(estimator).__name__, m, left))
        for estimator, m in estimators()[: 1 if quick else None]
        for left in (LEFT[:1] if quick else LEFT)
    ]
    found = []
    for ended in sorted(run_all(runs), key=lambda ended: ended.run.about):
        kind, m, left = ended.run.about
        lines = (ended.out if ended.code == 0 else ended.err).strip().splitlines() or ["nothing"]
        right = ended.code == 0
        outcome = f"MemoryError: {lines[-1]}" if right else f"{ended.killed} {lines[-1]}"
        found.append(Found(f"`{kind}`, {m} rows", f"{left} MB more", outcome, right))
    return found


def in_fresh_process(quick: bool = False) -> list[Found]:
    """Return all outcomes, measured in a process that has loaded few other modules."""
    command = [sys.executable, "-m", "trust.fault_memory", *(["--quick"] if quick else [])]
    # With more threads, OpenBLAS ends the process if it cannot allocate a buffer.
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    printed = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    return [Found(**each) for each in json.loads(printed.splitlines()[-1])]


def shown(found: list[Found]) -> str:
    """Return the table of the outcomes."""
    return table(HEADER, [each.row for each in found])


def main() -> None:
    """Print all outcomes as JSON."""
    quick = "--quick" in sys.argv
    found = [each for sizes in (() if quick else FULL) for each in blocks_at_half(*sizes)]
    found += too_little(quick)
    print(json.dumps([asdict(each) for each in found]))


if __name__ == "__main__":
    main()
