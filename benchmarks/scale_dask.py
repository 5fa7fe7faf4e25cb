"""Times of a fit in one process with two threads, and on one or two Dask workers.

Each worker has one thread. The rows are in files, one per block. Workers load them into memory
before the clock starts (`persist`); in another measurement they read them again in every pass. All
fits give the same network.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# Threads of BLAS, which reads the variables when it is loaded, here and in the workers.
THREADS = 2
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(THREADS))
# Workers keep freed memory for the next chunk, as docs/dask.md advises.
KEPT_MEMORY = {"MALLOC_TRIM_THRESHOLD_": 2**28, "MALLOC_MMAP_THRESHOLD_": 2**25}

import dask.array as da  # noqa: E402
import numpy as np  # noqa: E402
from dask import config, delayed, persist  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402
from machine import describe_machine, describe_versions  # noqa: E402
from timing import Contestant, Timing, race  # noqa: E402

from karnet import KARRegressor  # noqa: E402

D, WIDTH = 50, 500
IN_MEMORY, TWO, ONE = "in memory, 2 threads", "2 workers, 1 thread each", "1 worker, 1 thread"
FROM_FILES = "2 workers, rows read from files in every pass"


def main(arguments: Sequence[str] | None = None) -> None:
    """Time the fits, and print ratios of the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="number of rows")
    parser.add_argument("--blocks", type=int, default=20, help="number of files and blocks")
    parser.add_argument("--repeats", type=int, default=3, help="number of timed fits")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder, ExitStack() as stack:
        paths = write(Path(folder), options.rows, options.blocks)
        rows = [np.concatenate(parts) for parts in zip(*map(read, paths), strict=True)]
        two, one = (stack.enter_context(workers(n)) for n in (2, 1))
        kept = {client: held(client, paths) for client in (two, one)}
        contestants = [
            Contestant(IN_MEMORY, lambda: network().fit(*rows)),
            Contestant(TWO, lambda: fitted(two, *kept[two])),
            Contestant(ONE, lambda: fitted(one, *kept[one])),
            Contestant(
                FROM_FILES, lambda: fitted(two, *lazy([delayed(read)(path) for path in paths]))
            ),
        ]
        timings, networks = race(contestants, options.repeats)
    print(f"{describe_machine(THREADS)}; {describe_versions()}")
    print(f"{options.rows} x {D}, {WIDTH} random hidden units, {options.blocks} blocks")
    for name, timing in timings.items():
        seconds = " ".join(f"{each:.2f}" for each in timing.seconds)
        same = np.array_equal(networks[name].coefs_[-1], networks[IN_MEMORY].coefs_[-1])
        print(f"{name:48} {timing.median:7.2f} s  ({seconds})  same weights: {same}")
    ratio(timings, TWO, IN_MEMORY, "<= 1.25")
    ratio(timings, FROM_FILES, IN_MEMORY, "")
    ratio(timings, ONE, TWO, ">= 1.7")


def ratio(timings: dict[str, Timing], above: str, below: str, goal: str) -> None:
    """Print the ratio of two medians, and the smallest and largest ratio of a round."""
    pairs = zip(timings[above].seconds, timings[below].seconds, strict=True)
    each = sorted(a / b for a, b in pairs)
    median = timings[above].median / timings[below].median
    print(f"{above} / {below}: {median:.2f} ({each[0]:.2f} to {each[-1]:.2f}) {goal}")


def write(folder: Path, n_rows: int, n_blocks: int) -> list[Path]:
    """Write the rows into `n_blocks` files."""
    paths = []
    for k, length in enumerate(block_lengths(n_rows, n_blocks)):
        rng = np.random.default_rng(k)
        X = rng.standard_normal((length, D))
        y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(length)
        paths.append(folder / f"{k}.npz")
        np.savez(paths[-1], X=X, y=y)
    return paths


def block_lengths(n_rows: int, n_blocks: int) -> list[int]:
    """Return block lengths that differ by at most one row."""
    return [len(part) for part in np.array_split(np.arange(n_rows), n_blocks)]


def read(path: Path) -> tuple[Any, Any]:
    """Return the inputs and targets in one file."""
    with np.load(path) as table:
        return table["X"], table["y"]


def lazy(tables: list[Any]) -> tuple[da.Array, da.Array]:
    """Return the rows of all tables as Dask arrays with unknown numbers of rows."""
    pairs = [delayed(table, nout=2) for table in tables]
    X = [da.from_delayed(pair[0], (np.nan, D), meta=np.empty((0, D))) for pair in pairs]
    y = [da.from_delayed(pair[1], (np.nan,), meta=np.empty(0)) for pair in pairs]
    return da.concatenate(X, allow_unknown_chunksizes=True), da.concatenate(y)


def workers(n: int) -> Client:
    """Return a client of a cluster of n processes with one thread each."""
    with config.set(
        {f"distributed.nanny.pre-spawn-environ.{name}": n for name, n in KEPT_MEMORY.items()}
    ):
        cluster = LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0")
    return Client(cluster, set_as_default=False)


def held(client: Client, paths: list[Path]) -> tuple[da.Array, da.Array]:
    """Return the rows of all files as Dask arrays in the memory of the workers."""
    places = cycle(client.scheduler_info()["workers"])
    tables = [client.submit(read, path, workers=next(places)) for path in paths]
    with client.as_current():
        X, y = persist(*lazy(tables))
        return X.compute_chunk_sizes(), y.compute_chunk_sizes()


def network() -> KARRegressor:
    """Return the network to fit."""
    return KARRegressor((WIDTH,), hidden="random", activation="tanh", random_state=0)


def fitted(client: Client, X: da.Array, y: da.Array) -> KARRegressor:
    """Return the network fitted on the workers of a client."""
    with client.as_current():
        return network().fit(X, y)


if __name__ == "__main__":
    main()
