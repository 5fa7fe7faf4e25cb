"""Time and memory of KARClassifierCV on tables of up to 500000 rows and 54 columns.

Ten columns are numbers and 44 are indicators of two categories, as in covertype, and there are
seven classes. Each fit has a process of its own with one thread. Times are CPU seconds. A forest of
200 trees is fitted to the smallest and to the largest table.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from machine import describe_machine, describe_versions
from memory import highest
from sklearn.ensemble import RandomForestClassifier

from karnet import KARClassifierCV

RESULTS = Path(__file__).with_name("results") / "long_scale.csv"
SIZES = (50_000, 100_000, 200_000, 500_000)
N_NEW = 100_000
N_CLASSES = 7
CONTENDERS = ("karnet", "forest")
COLUMNS = ("contender", "rows", "fit", "megabytes", "accuracy", "predict", "one_row")


def table(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and classes: the class with the largest of several wavy scores."""
    fixed, rng = np.random.default_rng(0), np.random.default_rng(seed)
    numbers = rng.standard_normal((n, 10))
    X = np.hstack([numbers, *(np.eye(size)[rng.integers(0, size, n)] for size in (4, 40))])
    waves = np.sin(X @ fixed.normal(0.0, 0.3, (54, 40)) + fixed.uniform(0.0, 6.0, 40))
    scores = waves @ fixed.standard_normal((40, N_CLASSES)) + 0.3 * rng.gumbel(size=(n, N_CLASSES))
    return X, scores.argmax(axis=1)


def measured(contender: str, n: int) -> dict[str, Any]:
    """Return the figures of a fit to n rows."""
    (X, y), (new_X, new_y) = table(n, 1), table(N_NEW, 2)
    ours = KARClassifierCV(random_state=0)
    model = ours if contender == "karnet" else RandomForestClassifier(200, random_state=0)
    before, start = highest(), process_time()
    model.fit(X, y)
    fitted, peak = process_time(), highest()
    found = model.predict(new_X)
    end, times = process_time(), []
    for row in new_X[:50]:
        begin = perf_counter()
        model.predict(row[None])
        times.append(perf_counter() - begin)
    return {
        "contender": contender,
        "rows": n,
        "fit": round(fitted - start, 2),
        "megabytes": round((peak - before) / 1e6),
        "accuracy": round(100.0 * float(np.mean(found == new_y)), 2),
        "predict": round(end - fitted, 2),
        "one_row": round(1e3 * float(np.median(times)), 2),
    }


def in_process(contender: str, n: int) -> dict[str, Any]:
    """Return the figures of a fit in a process of its own."""
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--one", contender, "--sizes", str(n)]
    done = subprocess.run(
        command, env=os.environ | single, stdout=subprocess.PIPE, check=True, text=True
    )
    return dict(json.loads(done.stdout))


def main() -> None:
    """Measure all sizes, print a line for each, and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.sizes[0])))
        return
    print(describe_machine(1), describe_versions(), sep="\n", end="\n\n")
    print(*COLUMNS, sep="\t")
    rows = []
    sizes = sorted(options.sizes)
    compared = sorted({sizes[0], sizes[-1]})  # the sizes of the tables of the forest
    for contender, several in zip(CONTENDERS, (sizes, compared), strict=True):
        for n in several:
            rows.append(in_process(contender, n))
            print(*rows[-1].values(), sep="\t", flush=True)
    with options.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    ours, forests = ({e["rows"]: e for e in rows if e["contender"] == c} for c in CONTENDERS)
    for n, forest in forests.items():
        fit, predict = (ours[n][name] / forest[name] for name in ("fit", "predict"))
        print(f"karnet over the forest, {n} rows: fit {fit:.2f}, predict {predict:.2f}")
    if len(ours) > 1:
        logs = [np.log([row[name] for row in ours.values()]) for name in ("rows", "fit")]
        print(f"Slope of the logarithm of the fit time: {np.polyfit(*logs, 1)[0]:.2f}")


if __name__ == "__main__":
    main()
