"""Measure time and memory of fits to large tables, each in a separate process."""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from machine import describe_machine, describe_versions
from memory import highest

HERE = Path(__file__).parent
# Environment variables that BLAS reads when it is loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Rows, features and hidden units.
SIZES = {"full": (20_000_000, 50, 500), "tiny": (20_000, 10, 20)}
# Largest number of rows in memory: enough to measure rows per second.
MOST_IN_MEMORY = 4_000_000
TARGETS = {"classifier": "class", "regressor": "number"}


@dataclass(frozen=True)
class Line:
    """One measurement, and its goal as text if there is one."""

    measurement: str
    contender: str
    sizes: str
    what: str
    value: float
    goal: str = ""
    note: str = ""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    options = _parser().parse_args(arguments)
    os.environ |= dict.fromkeys(THREAD_VARIABLES, str(options.threads))
    if options.worker:
        work, *given = options.worker
        print(json.dumps({"fit": _fit, "make": _make_parquet}[work](*given)))
        return
    rows, *others = SIZES[options.scale]
    sizes = (options.rows or rows, *others)
    lines: list[Line] = []
    for name in options.names or MEASUREMENTS:
        lines += MEASUREMENTS[name](sizes)
    for line in lines:
        print("  ".join(f"{value:.4g}" if value is line.value else value for value in _row(line)))
    machine = f"{describe_machine(options.threads)}; {describe_versions()}"
    print(machine)
    if options.out or (options.scale == "full" and not options.names and not options.rows):
        _write(options.out or HERE / "results", lines, machine)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(MEASUREMENTS)}; default: all")
    parser.add_argument("--rows", type=int, help="another number of rows")
    parser.add_argument("--threads", type=int, default=2, help="threads of BLAS")
    parser.add_argument("--out", type=Path, help="folder for the results")
    tiny = {"action": "store_const", "const": "tiny", "default": "full"}
    parser.add_argument("--tiny", dest="scale", help=argparse.SUPPRESS, **tiny)
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    return parser


def _row(line: Line) -> list[Any]:
    return [getattr(line, field.name) for field in fields(line)]


def _write(folder: Path, lines: list[Line], machine: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "scale.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*(field.name for field in fields(Line)), "machine"])
        writer.writeheader()
        writer.writerows(asdict(line) | {"machine": machine} for line in lines)


def parquet(sizes: tuple[int, ...]) -> list[Line]:
    """Fit random networks from a Parquet file with one row group, and from its rows in memory."""
    n_rows, d, h = sizes
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        # In another process, because a child inherits the peak memory of its parent.
        print(f"{_result('make', path, n_rows, d)['size'] / 1e9:.2f} GB on disk", file=sys.stderr)
        for net in TARGETS:
            # Fits in memory before and after show changes of the load of the machine.
            order = ("memory", "parquet", "memory")
            found = [_result("fit", net, kind, path, h, MOST_IN_MEMORY) for kind in order]
            lines += _compared(net, " x ".join(map(str, sizes)), *found)
    return lines


def _make_parquet(path: str, rows: str, features: str) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import parquet as pq

    n_rows, d = int(rows), int(features)
    rng = np.random.default_rng(0)
    X = [rng.random(n_rows, np.float32) for _ in range(d)]
    signal = np.sin(6.0 * X[0]) + X[1] * X[2] + X[3]
    classes = np.searchsorted(np.quantile(signal[:100_000], np.linspace(0.1, 0.9, 9)), signal)
    numbers = signal + np.float32(0.1) * rng.standard_normal(n_rows, np.float32)
    names = [*(f"x{k}" for k in range(d)), *TARGETS.values()]
    pq.write_table(pa.table([*X, classes, numbers], names), path, row_group_size=n_rows)
    return {"size": Path(path).stat().st_size}


def _result(*arguments: Any) -> dict[str, Any]:
    threads = os.environ[THREAD_VARIABLES[0]]
    worker = ["--threads", threads, "--worker", *map(str, arguments)]
    busy, start = os.getloadavg()[0], perf_counter()
    print(*arguments[:3], "...", end=" ", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, __file__, *worker], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"the worker ended with exit code {done.returncode}.\n{done.stderr}")
    print(f"{perf_counter() - start:.0f} s, load before {busy:.1f}", file=sys.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _fit(net: str, kind: str, path: str, h: str, most: str) -> dict[str, Any]:
    """Fit one network in this process; return time, peak memory and a digest of the weights."""
    from pyarrow import parquet as pq

    from karnet import KARClassifier, KARRegressor
    from karnet.blocks import Blocks

    Net = {"classifier": KARClassifier, "regressor": KARRegressor}[net]
    target = TARGETS[net]
    network = Net((int(h),), hidden="random", random_state=0)
    columns = [name for name in Blocks.from_parquet(path, target).names if name.startswith("x")]
    blocks = Blocks.from_parquet(path, target, columns)
    n_rows = pq.read_metadata(path).num_rows
    arrays = _in_memory(blocks, min(n_rows, int(most))) if kind == "memory" else ()
    start, cpu = perf_counter(), os.times()
    network.fit(*arrays) if kind == "memory" else network.fit_blocks(blocks)
    seconds, after = perf_counter() - start, os.times()
    return {
        "rows": len(arrays[0]) if arrays else n_rows,
        "seconds": seconds,
        "cpu": after.user + after.system - cpu.user - cpu.system,
        "peak": highest(),
        "digest": hashlib.sha256(network.coefs_[-1].tobytes()).hexdigest(),
    }


def _in_memory(blocks: Any, n_rows: int) -> tuple[Any, Any]:
    """Return the first rows without a second copy in memory."""
    first, labels, _ = next(iter(blocks))
    X, y = np.empty((n_rows, first.shape[1]), first.dtype), np.empty(n_rows, labels.dtype)
    start = 0
    for some, targets, _ in blocks:
        stop = min(start + len(some), n_rows)
        X[start:stop], y[start:stop] = some[: stop - start], targets[: stop - start]
        start = stop
        if start == n_rows:
            break
    return X, y


def _compared(net: str, sizes: str, *found: dict[str, Any]) -> list[Line]:
    before, parquet, _ = found
    note = f"in memory {before['rows']} rows"
    if before["rows"] == parquet["rows"]:
        same = before["digest"] == parquet["digest"]
        note = "the network of the rows in memory, bit for bit" if same else "other network"
    per_second, per_cpu = (
        [result["rows"] / result[unit] for result in found] for unit in ("seconds", "cpu")
    )
    values = {
        "rows/s in memory, before": per_second[0],
        "rows/s": per_second[1],
        "rows/s in memory, after": per_second[2],
        "rows/s over those in memory": 2 * per_second[1] / (per_second[0] + per_second[2]),
        "the same in processor time": 2 * per_cpu[1] / (per_cpu[0] + per_cpu[2]),
        "peak memory, GB": parquet["peak"] / 1e9,
    }
    goals = {"rows/s over those in memory": ">= 0.7", "peak memory, GB": "<= 1"}
    return [
        Line("parquet", net, sizes, what, value, goals.get(what, ""), note)
        for what, value in values.items()
    ]


# Measurements by name.
MEASUREMENTS: dict[str, Callable[[tuple[int, ...]], list[Line]]] = {"parquet": parquet}


if __name__ == "__main__":
    main()
