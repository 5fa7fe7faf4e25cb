"""Bad input and attacks: at least 10^5 cases, each with a result or a one-sentence error.

``python -m trust.fuzz`` writes `docs/trust/fuzz.md` in about ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from trust.fuzz_attacks import attacked
from trust.fuzz_case import SECONDS
from trust.record import table, write_page

# Number of cases of each target in a full run.
CASES = {
    "arrays": 36_000,
    "arrays, CV": 1_000,
    "parameters": 16_000,
    "parameters, CV": 1_600,
    "model files": 10_000,
    "model files, pipelines": 2_000,
    "model files, atheris": 16_000,
    "tables": 14_000,
    "tables, atheris": 20_000,
    "ONNX": 2_400,
}
# A full run must have at least this number of cases.
LEAST = 100_000
# Functions that each target calls.
CALLED = {
    "arrays": "fit, predict, score, partial_fit, forget, merge, fit_blocks, lstsq, accumulate, loo",
    "arrays, CV": "fit, predict, predict_interval, score",
    "parameters": "KARClassifier, KARRegressor, lstsq, Accumulator, Activation",
    "parameters, CV": "KARClassifierCV, KARRegressorCV, predict_interval",
    "model files": "load, then predict, partial_fit, forget",
    "model files, pipelines": "load with scikit-learn's and skrub's transformers, then predict",
    "model files, atheris": "load, then predict; coverage-guided",
    "tables": "read_table, table_blocks, find_target, Blocks.from_csv, _parquet, _arrow",
    "tables, atheris": "read_table, table_blocks, find_target; coverage-guided",
    "ONNX": "to_onnx",
}
# Seconds without output after which a worker counts as hanging in compiled code.
SILENCE = SECONDS + 20.0
# Cases of one process.
CHUNK = 4_000
# Number of times a crashing target is continued.
RESTARTS = 25
SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}


@dataclass
class Tally:
    """The numbers of cases of a target by outcome, and messages about failures."""

    kinds: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)

    @property
    def n_cases(self) -> int:
        """The number of all cases."""
        return self.kinds.total()

    def read(self, log: Path) -> None:
        """Add the log of a worker."""
        for line in log.read_text(errors="replace").splitlines() if log.exists() else []:
            kind, _, message = line.partition("\t")
            self.kinds[kind] += 1
            if message:
                self.messages.append(f"{kind}: {message}")

    def add(self, kind: str, message: str) -> None:
        """Add a case that ended its process."""
        self.kinds[kind] += 1
        self.messages.append(f"{kind}: {message}")


def run_cases(target: str, n_cases: int, seed: int) -> Tally:
    """Run cases in separate processes; a case that ends its process is recorded."""
    found = Tally()
    for restart in range(RESTARTS):
        left = n_cases - found.n_cases
        if left <= 0:
            break
        with tempfile.TemporaryDirectory(prefix="karnet-fuzz-") as name:
            folder = Path(name)
            kind = _ended(target, left, seed + 1000 * restart, folder)
            found.read(folder / "log")
            if kind is not None:
                found.add(kind, _now(folder))
    return found


def _ended(target: str, n_cases: int, seed: int, folder: Path) -> str | None:
    """Wait for a worker, and return "hang", "crash" or None."""
    module = "fuzz_bytes" if "atheris" in target else "fuzz_worker"
    command = [sys.executable, "-m", f"trust.{module}", target, str(n_cases), str(seed)]
    with (folder / "output").open("wb") as output:
        worker = subprocess.Popen(
            [*command, name := str(folder)],
            stdout=output,
            stderr=output,
            env=os.environ | SINGLE_THREADED | {"TMPDIR": name},
        )
    log, seen, since = folder / "log", -1, time.monotonic()
    while worker.poll() is None:
        time.sleep(0.2)
        size = log.stat().st_size if log.exists() else 0
        if size != seen:
            seen, since = size, time.monotonic()
        elif time.monotonic() - since > SILENCE:
            worker.kill()
            worker.wait()
            return "hang"
    return None if worker.returncode == 0 else "crash"


def _now(folder: Path) -> str:
    now, output = folder / "now", folder / "output"
    about = (
        now.read_bytes().decode(errors="replace").strip()
        if now.exists()
        else "before the first case"
    )
    return f"{about[:600]} | {output.read_text(errors='replace')[:600]}"


def _runnable(cases: dict[str, int]) -> dict[str, int]:
    """Return the cases; without atheris, Hypothesis draws its cases too."""
    if find_spec("atheris") is not None:
        return cases
    drawn: Counter[str] = Counter()
    for target, n_cases in cases.items():
        drawn[target.removesuffix(", atheris")] += n_cases
    return dict(drawn)


def _jobs(cases: dict[str, int], seed: int) -> Iterator[tuple[str, int, int]]:
    for target, n_cases in cases.items():
        for k, start in enumerate(range(0, n_cases, CHUNK)):
            yield target, min(CHUNK, n_cases - start), seed + 100_000 * k


def measure(
    pool: ThreadPoolExecutor, cases: dict[str, int], seed: int, until: float
) -> dict[str, Tally]:
    """Run all cases until a given time at most; each thread of the pool waits for a process."""
    found = {target: Tally() for target in cases}

    def each(job: tuple[str, int, int]) -> tuple[str, Tally]:
        late = time.monotonic() > until
        return job[0], Tally() if late else run_cases(*job)

    for target, tally in pool.map(each, _jobs(cases, seed)):
        found[target].kinds += tally.kinds
        found[target].messages += tally.messages
        print(f"{target}: {dict(found[target].kinds)}", *tally.messages, sep="\n  ", flush=True)
    return found


def properties(seed: int, times: int = 10) -> str:
    """Return whether the properties of `test_properties` hold over many random examples."""
    tests = str(Path(__file__).parents[1] / "tests/trust/test_properties.py")
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"--hypothesis-seed={seed}", tests],
        env=os.environ | SINGLE_THREADED | {"KARNET_PROPERTIES": str(times)},
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        return f"broken: {found.stdout[-3000:]}"
    passed = found.stdout.splitlines()[-1].split(" in ")[0]
    return f"{passed}, with {times} times the examples of the short form"


def attack() -> dict[str, str]:
    """Return the outcome of each known attack."""
    with tempfile.TemporaryDirectory(prefix="karnet-attack-") as name:
        return {
            attack: f"{verdict.kind}: {verdict.about}".replace(name, "")
            for attack, verdict in attacked(Path(name)).items()
        }


COLUMNS = ("result", "refused", "theirs", "broken", "crash", "hang", "stray")


def _rows(found: dict[str, Tally]) -> Iterator[list[object]]:
    for target, tally in found.items():
        yield [target, CALLED[target], tally.n_cases, *(tally.kinds[kind] for kind in COLUMNS)]
    total = sum((tally.kinds for tally in found.values()), Counter[str]())
    yield ["**all**", "", total.total(), *(total[kind] for kind in COLUMNS)]


def broken(found: dict[str, Tally]) -> list[str]:
    """Return the messages about all failures."""
    return [message for tally in found.values() for message in tally.messages]


def _page(
    found: dict[str, Tally], attacks: dict[str, str], held: str, seconds: float, seed: int
) -> None:
    n_cases = sum(tally.n_cases for tally in found.values())
    head = ["Target", "Functions called", "Cases", "Result", "Refused", "Theirs", "Other"]
    head += ["Crash", "Hang", "Stray"]
    lines = [[name, outcome.partition(": ")[0]] for name, outcome in attacks.items()]
    parts = [
        MEANING,
        table(head, _rows(found)),
        "## Properties",
        f"{PROPERTIES} This run: {held}.",
        "## Known attacks",
        "Each file is refused with a one-sentence error when it is read. No code is run, nothing "
        "is written, and memory is not filled.",
        table(["Attack", "Outcome"], lines),
        "## Found and fixed",
        FIXED,
    ]
    if failures := broken(found):
        parts += ["## Failures", "\n".join(f"- `{each[:300]}`" for each in failures[:20])]
    counts = f"{n_cases} cases in {seconds:.0f} s, seed {seed}"
    write_page("fuzz", "Bad input and attacks", "make fuzz", counts, parts)


MEANING = """\
Cases run in separate processes, two at a time, with limits on memory (6 GiB) and time (20 s). An
audit hook observes written files, started processes, sockets, unpickling and, while a model file is
read, imports and executed code. A case may end in one of two ways. *Result*: all predictions are
finite, and there was no warning about arithmetic. *Refused*: an error of a listed type (ValueError,
TypeError, NotFittedError, and a few others for one purpose each) with a message of one line, raised
by a `raise` statement in karnet or scikit-learn; the estimator is unchanged. *Theirs* counts model
files made by hand whose transformers of scikit-learn or skrub raise their own errors when used.
*Other* would be any other error, *crash* a process that ends, *hang* a process that does not end,
and *stray* a file, an import or executed code that the call had no reason for. Cases are drawn by
Hypothesis and, for the two readers of files, also by atheris, which is guided by code coverage."""

PROPERTIES = """\
Finite inputs of any shape, type and magnitude give finite predictions or are refused as too large.
Renaming labels in the same order gives the same network. Random layers with a ridge agree to 1e-8
however rows are split into blocks, added and merged, and to 1e-6 after other rows were forgotten.
Integer sample weights are equivalent to repeated rows. A saved model predicts the same bit for bit
after loading. The ONNX model predicts the same as the network. Hypothesis searches for
counterexamples."""

FIXED = (Path(__file__).parent / "fuzz_found.md").read_text(encoding="utf-8").strip()
QUICK = {target: max(n_cases // 400, 4) for target, n_cases in CASES.items()}


def main(arguments: list[str] | None = None) -> int:
    """Run all cases, write the page, and return 1 if there was a failure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--seed", type=int, default=int(time.time()) % 10**6, help="seed by which cases are drawn"
    )
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="stop after this time; write no page"
    )
    parser.add_argument("--quick", action="store_true", help="run few cases and write no page")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    attacks = attack()
    whole = not options.quick and options.minutes == float("inf")
    cases, until = _runnable(QUICK if options.quick else CASES), start + 60.0 * options.minutes
    with ThreadPoolExecutor(2) as pool:
        held = pool.submit(properties, options.seed, 10 if whole else 1)
        found = measure(pool, cases, options.seed, until)
    seconds = time.monotonic() - start
    failures = broken(found)
    failures += [
        f"{name}: {outcome}" for name, outcome in attacks.items() if outcome[:7] != "refused"
    ]
    n_cases = sum(tally.n_cases for tally in found.values())
    failures += [held.result()] * held.result().startswith("broken")
    if whole:
        _page(found, attacks, held.result(), seconds, options.seed)
    print(table(["Target", "", "Cases", *COLUMNS], _rows(found)))
    print(*failures[:40], f"{n_cases} cases in {seconds:.0f} s, {len(failures)} failures", sep="\n")
    return int(bool(failures) or (whole and n_cases < LEAST))


if __name__ == "__main__":
    sys.exit(main())
