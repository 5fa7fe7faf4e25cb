"""Every command and function that writes files, and readers for these files."""

from __future__ import annotations

import csv
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pandas as pd
import pytest
from matplotlib import image
from pyarrow import parquet

import karnet
from karnet import KARClassifier
from karnet.cli import main
from karnet.datasets import load
from tests.datasets.openml import plausible, server_in_place_of_openml

# Contents of an old file: no reader accepts them.
OLD = b"old"
ROWS = 3000


@dataclass(frozen=True)
class Writer:
    """A command or a function that writes files.

    Attributes
    ----------
    name : str
        Name in the table.
    work : callable
        Writes into the folder that it is given.
    readers : dict
        A reader for the name of each file; it raises an error if the file is incomplete.
    replaces : bool
        Whether it replaces an old file.
    """

    name: str
    work: Callable[[Path], None]
    readers: dict[str, Callable[[Path], object]] = field(default_factory=dict)
    replaces: bool = True

    def in_folder(self, folder: Path) -> Callable[[], None]:
        """Return the work in a folder, as a function without arguments."""
        return partial(self.work, folder)

    def put_old(self, folder: Path) -> None:
        """Write old files under the names of the output files."""
        for name in self.readers if self.replaces else ():
            (folder / name).write_bytes(OLD)

    def faulty(self, folder: Path) -> list[str]:
        """Return the files of a folder that are incomplete or should not exist."""
        wrong = []
        for name, read in self.readers.items():
            path = folder / name
            if not path.exists() or path.read_bytes() == OLD:
                continue
            try:
                read(path)
            except Exception as error:
                wrong.append(f"{self.name}: {name} is incomplete ({error})")
        # Listed once: another run may create or remove a draft at the same time.
        names = {path.name for path in folder.iterdir() if not path.match(DRAFT)}
        others = names - set(self.readers)
        return wrong + [f"{self.name}: {name} should not exist" for name in sorted(others)]

    def finished(self, folder: Path) -> bool:
        """Return whether all files exist, are complete and are new."""
        paths = [folder / name for name in self.readers]
        return not self.faulty(folder) and all(
            path.exists() and path.read_bytes() != OLD for path in paths
        )


DRAFT = ".karnet-*.part"


def strays(folder: Path) -> list[str]:
    """Return the names of all temporary files in a folder and its subfolders."""
    return sorted(path.name for path in folder.rglob(DRAFT))


def command(*arguments: str) -> Callable[[Path], None]:
    """Return a function that runs the command line with output into a folder."""

    def run(folder: Path) -> None:
        main([each.replace("OUT", str(folder)) for each in arguments])

    return run


def function(call: Callable[[Path], object]) -> Callable[[Path], None]:
    """Return a function that reports errors as the command line does."""

    def run(folder: Path) -> None:
        try:
            call(folder)
        except (OSError, ValueError) as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            raise SystemExit(2) from error

    return run


# Readers


def read_predictions(path: Path) -> None:
    frame = pd.read_csv(path)
    assert len(frame) == ROWS
    assert frame["target"].isin(["yes", "no"]).all()


def read_parquet(path: Path) -> None:
    assert parquet.read_table(path).num_rows == ROWS


def read_onnx(path: Path) -> None:
    onnx.checker.check_model(onnx.load(path))


def read_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!")
    assert text.rstrip().endswith("</html>")


def read_lines(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    lines = list(csv.reader(text.splitlines()))
    assert len({len(line) for line in lines}) == 1


def read_store(path: Path) -> None:
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()


def read_cache(path: Path) -> None:
    assert load("tae", cache=path.parent).source == "cache"


# Readers by the suffix of the file name.
READERS = {
    ".png": image.imread,
    ".svg": ElementTree.parse,
    ".csv": read_lines,
    ".html": read_page,
    ".sqlite": read_store,
}


# Inputs


def write_inputs(folder: Path) -> None:
    """Write the tables and the model that the commands read."""
    rng = np.random.default_rng(0)
    for name, n in (("table", 200), ("rows", ROWS)):
        X = rng.standard_normal((n, 2))
        columns = {
            "a": X[:, 0].round(3),
            "b": X[:, 1].round(3),
            "c": rng.choice(["u", "v", "w"], n),
            "target": np.where(X.sum(axis=1) > 0, "yes", "no"),
        }
        pd.DataFrame(columns).to_csv(folder / f"{name}.csv", index=False)
    fit = ["fit", str(folder / "table.csv"), "--target", "target", "--quiet"]
    main([*fit, "--model", str(folder / "model.karnet")])


@contextmanager
def openml() -> Iterator[None]:
    """Run a stand-in for OpenML in a separate process."""
    with pytest.MonkeyPatch.context() as patch:
        server, stand_in = server_in_place_of_openml(patch)
        stand_in.offer("tae", *plausible("tae"), nominal=("target",))
        pid = os.fork()
        if not pid:
            # A client may be killed before it has the response.
            server.handle_error = lambda *_: None
            server.serve_forever()
        server.server_close()
        try:
            yield
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def large_network() -> KARClassifier:
    """Return a network of several megabytes."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 300)), rng.integers(0, 3, 300)
    return KARClassifier((800,), hidden="random", alpha=1.0, random_state=0).fit(X, y)


def writers(inputs: Path) -> list[Writer]:
    """Return all commands and functions that write single files."""
    table, rows, model = (str(inputs / name) for name in ("table.csv", "rows.csv", "model.karnet"))
    fit = ("fit", table, "--target", "target", "--quiet", "--model", "OUT/m.karnet")
    predict = ("predict", model, rows, "--quiet", "-o")
    network = large_network()
    of_model = {"m.karnet": karnet.load}
    return [
        Writer("karnet fit", command(*fit), of_model),
        Writer(
            "karnet fit --report",
            command(*fit, "--report", "OUT/r.html"),
            {**of_model, "r.html": read_page},
        ),
        Writer("karnet predict, CSV", command(*predict, "OUT/p.csv"), {"p.csv": read_predictions}),
        Writer(
            "karnet predict, Parquet",
            command(*predict, "OUT/p.parquet"),
            {"p.parquet": read_parquet},
        ),
        Writer("karnet export", command("export", model, "OUT/m.onnx"), {"m.onnx": read_onnx}),
        Writer(
            "karnet.save", function(lambda out: karnet.save(network, out / "m.karnet")), of_model
        ),
        Writer(
            "datasets.load, download",
            function(lambda out: load("tae", cache=out, download=True)),
            {"tae.csv": read_cache},
            replaces=False,
        ),
    ]
