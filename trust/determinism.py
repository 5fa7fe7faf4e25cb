"""Whether answers are the same again, on other threads, versions and processors: `make trust`."""

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
SAY = (
    "import numpy, scipy, sklearn; "
    "print(f'NumPy {numpy.__version__}, SciPy {scipy.__version__}, "
    "scikit-learn {sklearn.__version__}')"
)
# Other kernels of OpenBLAS are what other processors would compute with.
KERNELS = ("Haswell", "Sandybridge") if platform.machine() in ("x86_64", "AMD64") else ()


def asked(python: Path | str = sys.executable, **environment: str) -> dict[str, list]:
    """Return the answers of another process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answers.json"
        command = [str(python), "-m", "trust.answers", str(file)]
        settings = os.environ | {"PYTHONPATH": str(ROOT / "src")} | environment
        subprocess.run(command, cwd=ROOT, env=settings, check=True)
        return json.loads(file.read_text())


def threads(n: int) -> dict[str, str]:
    return {"OPENBLAS_NUM_THREADS": str(n), "OMP_NUM_THREADS": str(n)}


def compared(python_oldest: Path) -> dict[str, tuple[dict[str, list], dict[str, list], bool]]:
    """Return pairs of answers by what differs between them, and whether they must be equal."""
    one, two = asked(**threads(1)), asked(**threads(2))
    pairs = {
        "again, 1 thread, other hashes": (asked(PYTHONHASHSEED="7", **threads(1)), one, True),
        "again, 2 threads": (asked(**threads(2)), two, True),
        "2 threads, not 1": (two, one, False),
        "the kept answers": (one, json.loads(GOLDEN.read_text()), False),
    }
    for kernel in KERNELS:
        other = asked(OPENBLAS_CORETYPE=kernel, **threads(1))
        pairs[f"kernels for {kernel}"] = (other, one, False)
    if python_oldest.exists():
        said = subprocess.run([python_oldest, "-c", SAY], capture_output=True, text=True)
        pairs[said.stdout.strip()] = (asked(python_oldest, **threads(1)), one, False)
    return pairs


def shown(off: float) -> str:
    return f"{off:.0e}" if off else "same"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oldest", type=Path, default=OLDEST, help="Python of other versions")
    began = time.perf_counter()
    pairs = compared(parser.parse_args().oldest)
    found = {
        what: {name: difference(some[name], others[name]) for name in CASES}
        for what, (some, others, _) in pairs.items()
    }
    met = all(
        off <= (0.0 if pairs[what][2] else bound(name))
        for what, of in found.items()
        for name, off in of.items()
    )
    rows = [
        [f"**{name}**" if name in STEADY else name, *(shown(of[name]) for of in found.values())]
        for name in CASES
    ]
    parts = [
        "The largest difference of answers (decision values or numbers), over the largest answer. "
        f"In bold: random layers or a ridge, which are to agree to {STEADY_TO:.0e} everywhere, and "
        "bit for bit where a run is only repeated. The others pull back without a ridge: their "
        "layers are singular to rounding, and the figure is what rounding does to them.",
        table(["", *found], rows),
        "All is as it should be." if met else "**Something is not as it should be.**",
    ]
    counts = f"{len(CASES)} networks, {len(pairs)} comparisons, {time.perf_counter() - began:.0f} s"
    page = write_page("determinism", "The same answers again", "make trust", counts, parts)
    print(page.read_text())
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
