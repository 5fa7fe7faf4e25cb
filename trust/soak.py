"""Load: predictions from threads and processes, fits without end, and joblib: `make soak`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import karnet
from trust.joblib_load import BACKENDS, busy_threads
from trust.load import fit_many, models
from trust.record import table, write_page

ROOT = Path(__file__).parents[1]
N_THREADS, N_PROCESSES = 8, 4
FLAT = 0.02
# In one of twenty looks a thread that just ends may be seen beside the one that takes over.
SELDOM = 0.05


def predicting(seconds: float) -> dict[str, dict]:
    """Predict from eight threads of one process and from four other processes at once."""
    with tempfile.TemporaryDirectory() as folder:
        for name, net in models().items():
            karnet.save(net, Path(folder) / f"{name}.karnet")
        threads = {"8 threads of a process": N_THREADS}
        threads |= {f"process {k + 1}": 1 for k in range(N_PROCESSES)}
        running = {
            name: subprocess.Popen(
                [sys.executable, "-m", "trust.load", str(seconds), str(n), folder],
                stdout=subprocess.PIPE,
                cwd=ROOT,
            )
            for name, n in threads.items()
        }
        outputs = {name: process.communicate()[0] for name, process in running.items()}
        return {name: json.loads(output) for name, output in outputs.items()}


def predictions_part(predicted: dict[str, dict], seconds: float) -> list[str]:
    head = ["", "calls", "rows", "other answers", "MB in the end", f"growth (at most {FLAT:.0%})"]
    rows = [
        [name, of["calls"], of["rows"], of["wrong"], f"{of['mb']:.0f}", f"{of['growth']:+.2%}"]
        for name, of in predicted.items()
    ]
    return [
        f"## Predictions for {seconds:.0f} s",
        "Four kinds of network, from files, asked for 1, 50 or 20 000 rows at random, by all of "
        "these at once. Every answer is compared, bit for bit, with the one that a single thread "
        "gave. Growth is that of memory from the second fifth of the time to the last, after as "
        "many threads at once as glibc makes arenas for, eight for each core, have had it make "
        "them: it keeps them all. `MALLOC_ARENA_MAX` limits them where memory is scarce.",
        table(head, rows),
    ]


def fits_part(fitted: dict) -> list[str]:
    head = ["MB in the end", f"growth (at most {FLAT:.0%})", *(f"more {w}" for w in fitted["more"])]
    row = [f"{fitted['mb']:.0f}", f"{fitted['growth']:+.2%}", *fitted["more"].values()]
    return [
        f"## {fitted['calls']} fits in one process",
        "Seven kinds in turn, refused ones among them.",
        table(head, [row]),
    ]


def joblib_part(busy: dict[str, dict], cores: int) -> list[str]:
    head = ["workers", "looks", "mean", "most", f"more than {cores}"]
    rows = [
        [name, of["looks"], f"{of['mean']:.2f}", of["most"], f"{of['more than cores']:.1%}"]
        for name, of in busy.items()
    ]
    return [
        "## Threads under joblib, `n_jobs=-1`",
        f"Cross-validation of a network that alone would use all {cores} cores; how many threads "
        "of the workers wanted a core, looked up every 5 ms. With loky, joblib's default, more of "
        f"them than cores may be seen in {SELDOM:.0%} of the looks. Threads of one process share "
        "BLAS with each other, and whoever is not limited may use a second one.",
        table(head, rows),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="of predictions")
    parser.add_argument("--fits", type=int, default=10_000)
    options = parser.parse_args()
    began = time.perf_counter()
    predicted, fitted = predicting(options.seconds), fit_many(options.fits)
    busy = {backend: busy_threads(backend) for backend in BACKENDS}
    cores = os.cpu_count() or 1
    met = (
        all(of["growth"] <= FLAT and not of["wrong"] for of in predicted.values())
        and fitted["growth"] <= FLAT
        and not any(fitted["more"][what] for what in ("threads", "files"))
        and busy["loky"]["more than cores"] <= SELDOM
    )
    parts = [
        *predictions_part(predicted, options.seconds),
        *fits_part(fitted),
        *joblib_part(busy, cores),
        "All bars are met." if met else "**A bar is missed.**",
    ]
    counts = (
        f"{sum(of['calls'] for of in predicted.values())} predictions, {fitted['calls']} fits, "
        f"{time.perf_counter() - began:.0f} s"
    )
    print(write_page("soak", "Load", "make soak", counts, parts).read_text())
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
