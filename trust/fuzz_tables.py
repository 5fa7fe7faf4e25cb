"""Malformed files of tables, for all functions that read tables."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from pyarrow import ipc, parquet

from karnet import KARRegressor
from karnet.blocks import Blocks
from karnet.tables import find_target, read_table, table_blocks
from trust.fuzz_case import Case, verdict_on

RNG = np.random.default_rng(3)
CELLS = ["1", "-2.5", "", "?", "NA", "x", '"', '""', "'", "1e999", "nan", "inf", " 3 ", "ü", "\x00"]
CELLS += [
    "2020-01-01",
    "True",
    '"a,b"',
    '"a\nb"',
    '"open',
    "1,5",
    "\ufeff",
    "=1+1",
    "9" * 400,
    "\r",
]
NAMES = ["a", "b", "target", "", "a", " c ", "1", '"q"', "é", "x" * 300, "\t", "__index_level_0__"]
ENCODINGS = ["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252", "utf-32", "utf-16-be"]
SUFFIXES = [".csv", ".tsv", ".txt", ".csv.gz", ".parquet", ".arrow", ".feather", "", ".PARQUET"]


def _columns() -> dict[str, Any]:
    return {
        "a": RNG.standard_normal(6),
        "b": np.arange(6),
        "target": ["u", "v", "u", None, "v", "u"],
        "day": pa.array(np.arange(6), pa.timestamp("ns")),
        "flag": [True, False, None, True, False, True],
        "kind": pa.array(["p", "q", "p", "q", None, "p"]).dictionary_encode(),
        "dec": pa.array([1, 2, 3, 4, 5, 6]).cast(pa.decimal128(25, 3)),
        "time": pa.array(np.arange(6), pa.time64("us")),
        "large": pa.array(["x"] * 6, pa.large_string()),
        "list": pa.array([[1], [2], [], None, [3], [4]]),
    }


SEEDS = ("parquet", "parquet, zstd", "arrow", "stream", "csv", "tsv", "gzip")


@cache
def seed(kind: str) -> bytes:
    """Return the bytes of a table."""
    columns = _columns()
    if kind in ("csv", "tsv", "gzip"):
        mark = "\t" if kind == "tsv" else ","
        rows = [mark.join(map(str, row)) for row in zip(*list(columns.values())[:3], strict=True)]
        text = "\n".join([mark.join(list(columns)[:3]), *rows]).encode()
        return gzip.compress(text) if kind == "gzip" else text
    few = {name: columns[name] for name in columns if kind != "arrow" or name != "list"}
    table, sink = pa.table(few), io.BytesIO()
    if kind.startswith("parquet"):
        parquet.write_table(table, sink, compression="zstd" if "zstd" in kind else "snappy")
    else:
        opened = ipc.new_file if kind == "arrow" else ipc.new_stream
        with opened(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def read_all(path: Path) -> None:
    """Read a table in every way, and use the result."""
    table = read_table(path)
    names = table.names
    for act in _uses(table, names):
        _or_sentence(act)
    for _ in table_blocks(path, 2):
        pass


def _uses(table: Any, names: list[str]) -> list[Callable[[], object]]:
    return [
        lambda: find_target(table, names[-1]),
        lambda: find_target(table, names[0], "regression"),
        lambda: find_target(table, names[0], "classification"),
        lambda: table.frame(names),
        lambda: table.frame(names, text=names[:1]),
        lambda: table.numbers(names[:2]),
    ]


def _or_sentence(act: Callable[[], object]) -> None:
    """Call a function that may refuse its input with a one-sentence error."""
    try:
        act()
    except Exception as error:
        if verdict_on(error).broken:
            raise


def _blocks(path: Path, kind: str) -> None:
    make = {"csv": Blocks.from_csv, "parquet": Blocks.from_parquet, "arrow": Blocks.from_arrow}
    KARRegressor((2,), hidden="random", random_state=0).fit_blocks(make[kind](path, "b"))


@st.composite
def _text(draw: Any) -> bytes:
    mark = draw(st.sampled_from([",", ",", "\t", ";", "|", " "]))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=0, max_size=5))
    rows = draw(st.lists(st.lists(st.sampled_from(CELLS), max_size=6), max_size=6))
    if draw(st.booleans()):
        rows = [(row + ["1"] * 6)[: len(names)] for row in rows]
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n", ""]))
    text = end.join(mark.join(row) for row in [names, *rows])
    data = text.encode(draw(st.sampled_from(ENCODINGS)), errors="replace")
    return gzip.compress(data) if draw(st.integers(0, 5)) == 0 else data


@st.composite
def _changed(draw: Any) -> bytes:
    data = bytearray(seed(draw(st.sampled_from(SEEDS))))
    for _ in range(draw(st.integers(1, 4))):
        how = draw(st.sampled_from(["byte", "byte", "cut", "copy", "insert", "number"]))
        place = draw(st.integers(0, len(data) - 1))
        if how == "cut":
            del data[place : place + draw(st.integers(1, 60))]
        elif how == "insert":
            data[place:place] = draw(st.binary(min_size=1, max_size=12))
        elif how == "copy":
            other = draw(st.integers(0, len(data) - 1))
            data[place : place + 8] = data[other : other + 8]
        elif how == "number":
            number = draw(st.sampled_from([0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1]))
            data[place : place + 8] = number.to_bytes(8, "little")
        else:
            data[place] ^= (
                1 << draw(st.integers(0, 7)) if how == "bit" else draw(st.integers(1, 255))
            )
        if not data:
            return b""
    return bytes(data)


@st.composite
def table_cases(draw: Any, folder: Path) -> Case:
    """Draw the bytes of a file and the way in which it is read."""
    data = draw(st.one_of(_text(), _changed(), _changed(), st.binary(max_size=60)))
    suffix, way = draw(st.sampled_from(SUFFIXES)), draw(st.sampled_from(["table"] * 3 + ["blocks"]))
    kind = draw(st.sampled_from(["csv", "parquet", "arrow"]))
    for old in folder.iterdir():
        old.unlink()
    path = folder / f"table{suffix}"
    path.write_bytes(data)

    def run() -> None:
        if way == "table":
            read_all(path)
        else:
            _blocks(path, kind)

    return Case(f"{way} {kind if way == 'blocks' else suffix}: {data[:300]!r}", run)
