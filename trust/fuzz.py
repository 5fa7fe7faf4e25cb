"""Bad input and attacks: at least 10^5 cases, each of which ends in a result or in a sentence.

``python -m trust.fuzz`` writes `docs/trust/fuzz.md`, in about ten minutes on two cores.
``--seed`` draws other cases, ``--minutes`` as many as fit, ``--quick`` few and no page.
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

# How many cases of each target a full run has, and which process runs them.
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
LEAST = 100_000
WHAT = {
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
# A worker that says nothing for so long hangs in compiled code.
SILENCE = SECONDS + 20.0
# Cases of one process, and how often a crashing target is taken up again.
CHUNK, RESTARTS = 4_000, 25
ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}


@dataclass
class Tally:
    """How the cases of a target ended."""

    kinds: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)

    @property
    def n_cases(self) -> int:
        """All of them."""
        return self.kinds.total()

    def read(self, log: Path) -> None:
        """Add what a worker wrote."""
        for line in log.read_text(errors="replace").splitlines() if log.exists() else []:
            kind, _, told = line.partition("\t")
            self.kinds[kind] += 1
            if told:
                self.told.append(f"{kind}: {told}")

    def add(self, kind: str, told: str) -> None:
        """Add a case that ended its process."""
        self.kinds[kind] += 1
        self.told.append(f"{kind}: {told}")


def run_cases(target: str, n_cases: int, seed: int) -> Tally:
    """Run cases in processes of their own; one that ends one is told, and others go on."""
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
    """Wait for a worker, and return how it ended if not well."""
    module = "fuzz_bytes" if "atheris" in target else "fuzz_worker"
    command = [sys.executable, "-m", f"trust.{module}", target, str(n_cases), str(seed)]
    with (folder / "said").open("wb") as said:
        worker = subprocess.Popen(
            [*command, name := str(folder)],
            stdout=said,
            stderr=said,
            env=os.environ | ALONE | {"TMPDIR": name},
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
    now, said = folder / "now", folder / "said"
    about = now.read_bytes().decode(errors="replace").strip() if now.exists() else "before any"
    return f"{about[:600]} | {said.read_text(errors='replace')[:600]}"


def _runnable(cases: dict[str, int]) -> dict[str, int]:
    """Return the cases, those of atheris drawn by Hypothesis where there is none."""
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
    """Run all cases, each thread of a pool with a process, until a moment at the latest."""
    found = {target: Tally() for target in cases}

    def each(job: tuple[str, int, int]) -> tuple[str, Tally]:
        late = time.monotonic() > until
        return job[0], Tally() if late else run_cases(*job)

    for target, tally in pool.map(each, _jobs(cases, seed)):
        found[target].kinds += tally.kinds
        found[target].told += tally.told
        print(f"{target}: {dict(found[target].kinds)}", *tally.told, sep="\n  ", flush=True)
    return found


def laws(seed: int, times: int = 10) -> str:
    """Return how the laws of `test_properties` fare over many examples drawn by chance."""
    tests = str(Path(__file__).parents[1] / "tests/trust/test_properties.py")
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"--hypothesis-seed={seed}", tests],
        env=os.environ | ALONE | {"KARNET_PROPERTIES": str(times)},
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        return f"broken: {found.stdout[-3000:]}"
    return f"{found.stdout.splitlines()[-1].split(' in ')[0]}, {times} times the short form"


def attack() -> dict[str, str]:
    """Return how each attack by name ended."""
    with tempfile.TemporaryDirectory(prefix="karnet-attack-") as name:
        return {
            attack: f"{verdict.kind}: {verdict.about}".replace(name, "")
            for attack, verdict in attacked(Path(name)).items()
        }


COLUMNS = ("result", "refused", "theirs", "broken", "crash", "hang", "stray")


def _rows(found: dict[str, Tally]) -> Iterator[list[object]]:
    for target, tally in found.items():
        yield [target, WHAT[target], tally.n_cases, *(tally.kinds[kind] for kind in COLUMNS)]
    total = sum((tally.kinds for tally in found.values()), Counter[str]())
    yield ["**all**", "", total.total(), *(total[kind] for kind in COLUMNS)]


def broken(found: dict[str, Tally]) -> list[str]:
    """Return what must not be."""
    return [told for tally in found.values() for told in tally.told]


def _page(
    found: dict[str, Tally], attacks: dict[str, str], held: str, seconds: float, seed: int
) -> None:
    n_cases = sum(tally.n_cases for tally in found.values())
    head = ["Target", "What is called", "Cases", "Result", "Refused", "Theirs", "Other"]
    head += ["Crash", "Hang", "Stray"]
    lines = [[name, said.partition(": ")[0]] for name, said in attacks.items()]
    parts = [
        MEANING,
        table(head, _rows(found)),
        "## Laws",
        f"{LAWS} This run: {held}.",
        "## Attacks by name",
        "Each is refused with a sentence when the file is read; nothing is run, written or filled.",
        table(["Attack", "Ends"], lines),
        "## Found and mended",
        MENDED,
    ]
    if told := broken(found):
        parts += ["## Not as it should be", "\n".join(f"- `{each[:300]}`" for each in told[:20])]
    counts = f"{n_cases} cases in {seconds:.0f} s, seed {seed}"
    write_page("fuzz", "Bad input and attacks", "make fuzz", counts, parts)


MEANING = """\
Cases run in processes of their own, two at a time, with a limit of memory (6 GiB) and of time (20
s), under an audit hook that sees files written, processes, sockets, unpickling and, while a model
file is read, imports and code. Each ends well in two ways only. A *result*: answers are finite,
and no warning about arithmetic was given. *Refused*: an error of a listed type (ValueError,
TypeError, NotFittedError, and few others for one thing each) whose message is one line, raised by a
line of karnet's or of scikit-learn's that says `raise`; the estimator is as it was before. *Theirs*
counts files made by hand whose transformers of scikit-learn or skrub raise an error of their own
when used. *Other* would be any other error, *crash* a process that ends, *hang* one that goes on,
*stray* a file touched, a module imported or code run that was not asked for. Cases are drawn by
Hypothesis, and for the two readers of files by atheris too, which follows the lines that run."""

LAWS = """\
Finite inputs of any shape, type and magnitude give finite answers, or are refused as too large;
labels renamed in order give the same network; random layers with a ridge come out the same to 1e-8
however rows are cut into blocks, added and merged, and to 1e-6 after others were forgotten; weights
are repeats; what is saved comes back bit for bit; and ONNX answers as the network does. Hypothesis
looks for examples to the contrary."""

MENDED = (Path(__file__).parent / "fuzz_found.md").read_text(encoding="utf-8").strip()
QUICK = {target: max(n_cases // 400, 4) for target, n_cases in CASES.items()}


def main(arguments: list[str] | None = None) -> int:
    """Run, write the page, and return 1 if anything is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**6)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args(arguments)
    start = time.monotonic()
    attacks = attack()
    whole = not asked.quick and asked.minutes == float("inf")
    cases, until = _runnable(QUICK if asked.quick else CASES), start + 60.0 * asked.minutes
    with ThreadPoolExecutor(2) as pool:
        held = pool.submit(laws, asked.seed, 10 if whole else 1)
        found = measure(pool, cases, asked.seed, until)
    seconds = time.monotonic() - start
    told = broken(found)
    told += [f"{name}: {said}" for name, said in attacks.items() if said[:7] != "refused"]
    n_cases = sum(tally.n_cases for tally in found.values())
    told += [held.result()] * held.result().startswith("broken")
    if whole:
        _page(found, attacks, held.result(), seconds, asked.seed)
    print(table(["Target", "", "Cases", *COLUMNS], _rows(found)))
    print(*told[:40], f"{n_cases} cases in {seconds:.0f} s, {len(told)} amiss", sep="\n")
    return int(bool(told) or (whole and n_cases < LEAST))


if __name__ == "__main__":
    sys.exit(main())
