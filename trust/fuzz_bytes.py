"""Coverage-guided fuzzing of the readers of files, with atheris.

``python -m trust.fuzz_bytes TARGET CASES SEED FOLDER``, like `fuzz_worker`.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["karnet"]):
    import karnet.files
    import karnet.tables

from trust import fuzz_models as models
from trust import fuzz_tables as tables
from trust.fuzz_case import Case, kept_in
from trust.fuzz_worker import Log, limit_memory

# Separator of the parts of a model file. Inputs are parts and not archives, because the checksums
# of an archive would reject every change.
BETWEEN = b"\n\xf0\x9d\x84\x9e\n"
LONGEST = 40_000
WORDS = [*models.NODES, "numpy", "json", "builtins", "list", "dict", "<f8", "shape", "descr"]


def _as_parts(data: bytes) -> bytes:
    held = models.parts(data)
    arrays = sorted(
        (name for name in held if name.endswith(".npy")), key=lambda name: int(name[:-4])
    )
    return BETWEEN.join([held["schema.json"], *(held[name] for name in arrays)])


def _as_file(data: bytes) -> bytes:
    """Return the model file made of some parts, or the bytes themselves if they are an archive."""
    if data.startswith(b"PK"):
        return data
    tree, *arrays = data.split(BETWEEN)
    contents = {f"{k}.npy": array for k, array in enumerate(arrays)}
    header = json.dumps({"format": 2, "karnet": "0.1.0"})
    return models.packed({"karnet.json": header, "schema.json": tree, **contents})


def _model(folder: Path, data: bytes) -> Case:
    path = folder / models.FILE
    path.write_bytes(_as_file(data))

    def run() -> None:
        with warnings.catch_warnings(), kept_in():
            warnings.simplefilter("ignore")
            models.used(karnet.files.load(path), models.X)

    return Case(f"a model file, {data[:300]!r}", run)


def _table(folder: Path, data: bytes) -> Case:
    path = folder / "table.csv"
    path.write_bytes(data)
    return Case(f"a table, {data[:300]!r}", lambda: tables.read_all(path))


def _model_seeds(folder: Path) -> list[bytes]:
    models.warm(folder, models.SEEDS)
    files = [models.saved(name, folder) for name in models.SEEDS[:5]]
    return [files[0], *map(_as_parts, files)]


def _table_seeds(folder: Path) -> list[bytes]:
    return [tables.seed(kind) for kind in tables.SEEDS]


TARGETS: dict[str, tuple[Callable[[Path], list[bytes]], Callable[[Path, bytes], Case]]] = {
    "model files, atheris": (_model_seeds, _model),
    "tables, atheris": (_table_seeds, _table),
}


def _corpus(folder: Path, seeds: list[bytes]) -> Path:
    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for k, data in enumerate(seeds):
        (corpus / str(k)).write_bytes(data)
    words = [word if isinstance(word, str) else json.dumps(word) for word in WORDS]
    escaped = [word.replace("\\", "\\\\").replace('"', '\\"') for word in words]
    (folder / "words").write_text("\n".join(f'"{word}"' for word in escaped) + "\n")
    return corpus


def run(target: str, n_cases: int, number: int, folder: Path) -> None:
    """Run `n_cases` cases of a reader; atheris ends the process."""
    files = folder / "files"
    files.mkdir(exist_ok=True)
    make_seeds, make = TARGETS[target]
    corpus, log = _corpus(folder, make_seeds(files)), Log(folder)

    def one(data: bytes) -> None:
        log.run(make(files, data), files)

    options: list[Any] = [f"-runs={n_cases}", f"-seed={number}", f"-max_len={LONGEST}"]
    options += [f"-dict={folder / 'words'}", "-timeout=0", "-rss_limit_mb=0", "-verbosity=0"]
    atheris.Setup(["fuzz", *options, f"-artifact_prefix={folder}/", str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    limit_memory()
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
