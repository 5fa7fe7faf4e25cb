"""Compare predictions between runs, thread counts, versions and processors: `make trust`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trust.answers import CASES, GOLDEN, STEADY, STEADY_TO, bound, difference
from trust.record import table, write_page

ROOT = Path(__file__).parents[1]
OLDEST = ROOT / ".venv-oldest" / "bin" / "python"
PRINT_VERSIONS = (
    "import numpy, scipy, sklearn; "
    "print(f'NumPy {numpy.__version__}, SciPy {scipy.__version__}, "
    "scikit-learn {sklearn.__version__}')"
)
# Kernels that OpenBLAS selects on other processors.
KERNELS = ("Haswell", "Sandybridge") if platform.machine() in ("x86_64", "AMD64") else ()


def predictions_of(python: Path | str = sys.executable, **environment: str) -> dict[str, list]:
    """Return the predictions of a new process with these environment variables."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "predictions.json"
        command = [str(python), "-m", "trust.answers", str(file)]
        settings = os.environ | {"PYTHONPATH": str(ROOT / "src")} | environment
        subprocess.run(command, cwd=ROOT, env=settings, check=True)
        return json.loads(file.read_text())


def threads(n: int) -> dict[str, str]:
    return {"OPENBLAS_NUM_THREADS": str(n), "OMP_NUM_THREADS": str(n)}


def compared(python_oldest: Path) -> dict[str, tuple[dict[str, list], dict[str, list], bool]]:
    """Return pairs of predictions by the difference in setting, and whether they must be equal."""
    one, two = predictions_of(**threads(1)), predictions_of(**threads(2))
    other_hashes = predictions_of(PYTHONHASHSEED="7", **threads(1))
    pairs = {
        "repeated, 1 thread, other hash seed": (other_hashes, one, True),
        "repeated, 2 threads": (predictions_of(**threads(2)), two, True),
        "2 threads instead of 1": (two, one, False),
        "stored predictions": (one, json.loads(GOLDEN.read_text()), False),
    }
    for kernel in KERNELS:
        other = predictions_of(OPENBLAS_CORETYPE=kernel, **threads(1))
        pairs[f"{kernel} kernels"] = (other, one, False)
    if python_oldest.exists():
        printed = subprocess.run(
            [python_oldest, "-c", PRINT_VERSIONS], capture_output=True, text=True
        )
        pairs[printed.stdout.strip()] = (predictions_of(python_oldest, **threads(1)), one, False)
    return pairs


def formatted(difference: float) -> str:
    return f"{difference:.0e}" if difference else "same"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--oldest", type=Path, default=OLDEST, help="Python with the oldest supported libraries"
    )
    began = time.perf_counter()
    pairs = compared(parser.parse_args().oldest)
    differences = {
        setting: {name: difference(some[name], others[name]) for name in CASES}
        for setting, (some, others, _) in pairs.items()
    }
    met = all(
        value <= (0.0 if pairs[setting][2] else bound(name))
        for setting, by_name in differences.items()
        for name, value in by_name.items()
    )
    rows = [
        [
            f"**{name}**" if name in STEADY else name,
            *(formatted(by_name[name]) for by_name in differences.values()),
        ]
        for name in CASES
    ]
    parts = [
        "Each figure is the largest difference between two sets of predictions (decision values "
        "or regression outputs), relative to the largest prediction. Networks in bold have random "
        f"layers or a ridge: their predictions must agree to {STEADY_TO:.0e} in every comparison, "
        "and bit for bit when a run is repeated. The other networks pull back without a ridge. "
        "Their layers are numerically singular, and the figure shows how far they amplify "
        "rounding errors.",
        table(["", *differences], rows),
        "All comparisons are within their bounds."
        if met
        else "**Some comparisons are out of bounds.**",
    ]
    counts = f"{len(CASES)} networks, {len(pairs)} comparisons, {time.perf_counter() - began:.0f} s"
    page = write_page("determinism", "Reproducibility", "make trust", counts, parts)
    print(page.read_text())
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
