"""Long load: predictions from many threads and processes, many fits, and joblib: `make soak`."""

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
# Threads of the process with several threads.
N_THREADS = 8
# Other processes that predict at the same time.
N_PROCESSES = 4
# Largest relative growth of memory.
FLAT = 0.02
# Largest share of samples with more threads than cores: a thread that ends may still be counted
# when the next one has started.
SELDOM = 0.05


def predicting(seconds: float) -> dict[str, dict]:
    """Predict from eight threads of one process and from four other processes at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        for name, net in models().items():
            karnet.save(net, Path(folder) / f"{name}.karnet")
        threads = {"8 threads of one process": N_THREADS}
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
    head = ["", "calls", "rows", "different predictions"]
    head += ["MB at the end", f"growth (at most {FLAT:.0%})"]
    rows = [
        [name, of["calls"], of["rows"], of["wrong"], f"{of['mb']:.0f}", f"{of['growth']:+.2%}"]
        for name, of in predicted.items()
    ]
    return [
        f"## Predictions for {seconds:.0f} s",
        "All of these threads and processes predict at the same time, with four kinds of network "
        "loaded from files, for 1, 50 or 20 000 rows at random. Every prediction is compared, bit "
        "for bit, with that of a single thread. Growth is the change of memory from the second "
        "fifth of the time to the last fifth. Before that, eight threads per core run at once, so "
        "that glibc has created all of its memory arenas, which it never frees. "
        "`MALLOC_ARENA_MAX` limits their number where memory is scarce.",
        table(head, rows),
    ]


def fits_part(fitted: dict) -> list[str]:
    additional = [f"additional {things}" for things in fitted["more"]]
    head = ["MB at the end", f"growth (at most {FLAT:.0%})", *additional]
    row = [f"{fitted['mb']:.0f}", f"{fitted['growth']:+.2%}", *fitted["more"].values()]
    return [
        f"## {fitted['calls']} fits in one process",
        "Seven kinds of fit in turn. One of them is refused because of invalid targets.",
        table(head, [row]),
    ]


def joblib_part(busy: dict[str, dict], cores: int) -> list[str]:
    head = ["backend", "samples", "mean", "maximum", f"more than {cores}"]
    rows = [
        [name, of["samples"], f"{of['mean']:.2f}", of["maximum"], f"{of['more than cores']:.1%}"]
        for name, of in busy.items()
    ]
    return [
        "## Threads under joblib, `n_jobs=-1`",
        f"A network that alone would use all {cores} cores is cross-validated. Every 5 ms the "
        "threads of the workers that are running or ready to run are counted. With loky, joblib's "
        f"default, at most {SELDOM:.0%} of these samples may show more threads than cores. With "
        "threading, the workers share one BLAS library, which may use a second thread for those "
        "whose threads are not limited.",
        table(head, rows),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="duration of the predictions")
    parser.add_argument("--fits", type=int, default=10_000, help="number of fits")
    options = parser.parse_args()
    began = time.perf_counter()
    predicted, fitted = predicting(options.seconds), fit_many(options.fits)
    busy = {backend: busy_threads(backend) for backend in BACKENDS}
    cores = os.cpu_count() or 1
    met = (
        all(of["growth"] <= FLAT and not of["wrong"] for of in predicted.values())
        and fitted["growth"] <= FLAT
        and not any(fitted["more"][things] for things in ("threads", "open files"))
        and busy["loky"]["more than cores"] <= SELDOM
    )
    parts = [
        *predictions_part(predicted, options.seconds),
        *fits_part(fitted),
        *joblib_part(busy, cores),
        "All requirements are met." if met else "**A requirement is missed.**",
    ]
    counts = (
        f"{sum(of['calls'] for of in predicted.values())} predictions, {fitted['calls']} fits, "
        f"{time.perf_counter() - began:.0f} s"
    )
    print(write_page("soak", "Load", "make soak", counts, parts).read_text())
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
