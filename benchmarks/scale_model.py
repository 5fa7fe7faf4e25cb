"""A model of the time of a fit, compared with measurements: ``python benchmarks/scale_model.py``.

A random network of d inputs, h units and q outputs is fitted to m rows in two passes. That takes
``m h^2`` multiplications for the products A'A (one half of a symmetric matrix), ``m d h`` in each
pass for the hidden layer and ``3 m h q`` for the right-hand sides, all at the speed of the bare
product ``H.T @ H``, and some time per hidden value and pass for activations and copies. The speed
and that time are taken from one measurement of each machine, and the other measurements, all in
benchmarks/results, are predicted.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
Q = 10
# Bytes per second that a worker reads from its files, and that it sends to others.
READING, SENDING = 1e9, 1e9
# Statistics that one worker merges at a time; numbers per block, and blocks at hand per thread.
TREE, BLOCK, AT_HAND = 8, 2**22, 2


@dataclass(frozen=True)
class Machine:
    """Multiplications per second in matrix products, and seconds per hidden value and pass."""

    name: str
    rate: float
    per_value: float

    @classmethod
    def measured(cls, name: str, product: float, fit: float, m: int, d: int, h: int) -> Machine:
        """Return the machine on which a product and a fit were timed at one size."""
        rate = m * h * h / product
        rest = fit - multiplications(m, d, h) / rate
        return cls(name, rate, max(rest, 0.0) / (2 * m * h))

    def seconds(self, m: float, d: int, h: int, q: int = Q) -> float:
        """Return the predicted time of a fit with rows in memory."""
        return multiplications(m, d, h, q) / self.rate + 2 * m * h * self.per_value


def multiplications(m: float, d: int, h: int, q: int = Q) -> float:
    """Return the number of multiplications of a fit, including the solution for h unknowns."""
    return m * (h * h + 2 * d * h + 3 * h * q) + h**3 / 6


def read(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of results; none if the file does not exist."""
    path = RESULTS / name
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def processors() -> Machine:
    """Return the machine of benchmarks/run.py."""
    rows = [row for row in read("timings.csv") if row["name"] == "fit-random"]
    took = {row["contestant"]: float(row["median_s"]) for row in rows}
    name = rows[0]["machine"]
    return Machine.measured(name, took["H.T @ H"], took["karnet"], 200_000, 50, 1000)


def card() -> Machine:
    """Return the machine of benchmarks/scale_gpu.py."""
    value = {row["what"]: float(row["value"]) for row in read("scale_gpu.csv")}
    took = value["tanh: H.T @ H"], value["tanh: fit on the card"]
    return Machine.measured("NVIDIA H200", *took, 10**6, 100, 1000)


def checked() -> list[tuple[str, float, float]]:
    """Return measured and predicted times in seconds."""
    found = []
    here, there = processors(), card()
    for row in read("scale.csv"):
        m, d, h = (int(size) for size in row["sizes"].split(" x "))
        q = 1 if row["contender"] == "regressor" else Q
        if row["what"] == "rows/s" or row["what"].startswith("rows/s in memory"):
            where = "from Parquet" if row["what"] == "rows/s" else "in memory"
            label = f"{row['contender']} {m:.0e} x {d}, h = {h}, {where}"
            found.append((label, m / float(row["value"]), here.seconds(m, d, h, q)))
    for row in read("scale_dask.csv"):
        share = {"in memory, 2 threads": 1, "2 workers, 1 thread each": 1, "1 worker, 1 thread": 2}
        if row["contestant"] in share:
            seconds = here.seconds(2e6, 50, 500, 1) * share[row["contestant"]]
            found.append(
                (f"2e+06 x 50, h = 500, {row['contestant']}", float(row["median_s"]), seconds)
            )
    for row in read("scale_gpu.csv"):
        if row["what"] == "relu: fit on the card":
            seconds = there.seconds(1e6, 100, 1000)
            found.append(("H200, 1e+06 x 100, h = 1000, on the card", float(row["value"]), seconds))
        if row["what"].startswith("streamed") and row["what"].endswith(": seconds"):
            seconds = there.seconds(1e8, 50, 1000)
            found.append(("H200, 1e+08 x 50, h = 1000, compute", float(row["value"]), seconds))
    return found


def plan(machine: Machine, m: float, workers: int, d: int, h: int, bytes_each: int = 4) -> None:
    """Print the predicted time and memory for m rows on many workers."""
    share = m / workers
    compute = machine.seconds(share, d, h)
    reading = 3 * share * d * bytes_each / READING
    statistic = 8 * h * (h + Q)
    levels = ceil(log(workers, TREE))
    exchange = levels * (TREE - 1) * statistic / SENDING
    memory = AT_HAND * 3 * BLOCK * 8 + 6 * 8 * h * h
    print(f"{m:.0e} x {d} rows, h = {h}, {workers} workers like {machine.name}")
    print(f"  multiplications in total    {multiplications(m, d, h):9.2e}")
    print(f"  bytes read, three passes    {3 * m * d * bytes_each:9.2e}")
    print(f"  compute per worker          {compute:9.1f} s")
    print(f"  reading per worker          {reading:9.1f} s, during computation, at 1 GB/s")
    print(f"  sent by a worker and pass   {statistic / 1e6:9.1f} MB, at most")
    print(f"  merging, {levels} levels of {TREE}     {exchange:9.2f} s at 1 GB/s")
    print(f"  host memory per worker      {memory / 1e9:9.2f} GB, two threads")
    print(f"  total                       {max(compute, reading) + 2 * exchange:9.1f} s")


def main() -> None:
    """Print the model, its predictions of the measurements, and the plan."""
    for machine in (processors(), card()):
        print(
            f"{machine.name}: {machine.rate / 1e9:.0f} 10^9 multiplications/s in H.T @ H, ", end=""
        )
        print(f"{machine.per_value * 1e9:.3g} ns per hidden value and pass")
    print(f"\n{'':52}{'measured':>10}{'model':>10}{'ratio':>8}")
    for label, measured, model in checked():
        print(f"{label:52}{measured:9.4g}s{model:9.4g}s{measured / model:8.2f}")
    print()
    for machine in (processors(), card()):
        plan(machine, 1e11, 1000, 50, 1000)


if __name__ == "__main__":
    main()
