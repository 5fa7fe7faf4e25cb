"""Tables as text, one row a line: encoding, delimiter, column names and cells."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import islice

import pyarrow as pa
from pyarrow import compute
from pyarrow import csv as arrow_csv

from ._names import check_names

# Delimiters, and their names in sentences.
DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}
# Control characters that text files hold.
TEXT_CONTROLS = b"\t\n\v\f\r\x1a"
# Byte order marks of encodings; longer marks come before the shorter ones they begin with.
MARKS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
    b"\xef\xbb\xbf": "utf-8-sig",
}
# Encodings with more than one byte for every character.
WIDE_ENCODINGS = ("utf-16", "utf-32")
# First lines that decide on the delimiter.
FIRST_LINES = 50
# First bytes that decide whether a file is text.
FIRST_BYTES = 2**16
# Share of control characters above which a file is not text.
CONTROL_SHARE = 0.02
# Bytes that are parsed at a time, unless headers are long.
PARSED_BYTES = 2**24
# Headers that fit in the bytes that are parsed at a time.
PARSED_HEADERS = 64
# Most bytes that pyarrow parses at a time.
LARGEST_PARSED = 2**31 - 2


def read_text(data: bytes, name: str, usual: str) -> tuple[pa.Table, list[str]]:
    """Return the cells of a table as text, and a sentence for each assumption made in reading them.

    The delimiter `usual` is the one that the suffix of the file suggests.
    """
    text, notes = _decoded(data, name)
    if not text.strip():
        raise ValueError(f"{name} is empty: a table has a line of column names, and rows below.")
    nonblank = (match[0] for match in re.finditer(r"[^\r\n]+", text) if match[0].strip())
    lines = list(islice(nonblank, FIRST_LINES))
    delimiter = _delimiter(lines, usual, name)
    if delimiter != usual:
        notes.append(
            f"{name} separates columns by {DELIMITERS[delimiter]} and not by {DELIMITERS[usual]}: "
            "it was read that way."
        )
    header, *_ = _parsed(lines, delimiter)
    names = check_names([each.strip() for each in header], name)
    columns = _cells(text, delimiter, names, name)
    if columns.num_rows == 0:
        raise ValueError(f"{name} has a line of column names, but no rows below it.")
    # A comma is the decimal point only where it does not separate columns.
    return (_with_points(columns) if delimiter == ";" else columns), notes


def _decoded(data: bytes, name: str) -> tuple[str, list[str]]:
    """Return the text of a file, and a note on its encoding unless it is UTF-8."""
    encoding = next((code for mark, code in MARKS.items() if data.startswith(mark)), "utf-8")
    wide = encoding in WIDE_ENCODINGS
    if not wide:
        _refuse_binary(data[:FIRST_BYTES], name)
    try:
        return data.decode(encoding), [f"{name} is read as {encoding.upper()}."] if wide else []
    except UnicodeDecodeError as error:
        if wide:
            raise ValueError(
                f"{name} begins as {encoding.upper()} but is not: save it as UTF-8."
            ) from error
    note = (
        f"{name} is not UTF-8: read as Latin-1 (Windows-1252); if letters look wrong, save it as "
        "UTF-8."
    )
    return data.decode("cp1252", errors="replace"), [note]


def _refuse_binary(sample: bytes, name: str) -> None:
    n_controls = sum(sample.count(code) for code in range(32) if code not in TEXT_CONTROLS)
    if b"\0" in sample or n_controls > CONTROL_SHARE * len(sample):
        kind = "an Excel file or zip archive" if sample.startswith(b"PK") else "binary"
        raise ValueError(
            f"{name} is {kind}, not a table of text, Parquet or Arrow: save it as CSV or Parquet."
        )


def _parsed(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return []


def _delimiter(lines: Sequence[str], usual: str, name: str) -> str:
    """Return the delimiter that gives most of the first rows the number of cells of the header."""

    def fit(delimiter: str) -> tuple[float, bool, int]:
        header, *others = _parsed(lines, delimiter) or [[]]
        same = sum(len(row) == len(header) for row in others)
        share = same / len(others) if others else 1.0
        return (share if len(header) > 1 else 0.0), delimiter == usual, len(header)

    best = max(DELIMITERS, key=fit)
    if fit(best)[0] > 0.0:
        return best
    counts = {len(line.split()) for line in lines}
    if len(counts) == 1 and counts != {1}:
        raise ValueError(
            f"{name} separates columns by blanks, {lines[0].strip()[:40]!r}: use commas, tabs, "
            "semicolons or vertical bars."
        )
    return usual


def _cells(text: str, delimiter: str, names: Sequence[str], name: str) -> pa.Table:
    data = text.encode()
    wrong: list[arrow_csv.InvalidRow] = []

    def remember(row: arrow_csv.InvalidRow) -> str:
        wrong.append(row)
        return "error"

    headers = PARSED_HEADERS * sum(len(each) + 4 for each in names)
    size = min(len(data) + 1, max(PARSED_BYTES, headers), LARGEST_PARSED)
    keys = [f"f{k}" for k in range(len(names))]
    try:
        read = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(
                use_threads=False, block_size=size, autogenerate_column_names=True
            ),
            arrow_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=remember
            ),
            arrow_csv.ConvertOptions(column_types=dict.fromkeys(keys, pa.string())),
        )
    except pa.ArrowException as error:
        raise ValueError(_why(wrong, len(names), error, name)) from error
    if read.num_columns != len(names):
        raise ValueError(
            f"the line of column names of {name} cannot be read: check its quotation marks."
        )
    return read.rename_columns(list(names)).slice(1)


def _why(wrong: Sequence[arrow_csv.InvalidRow], n_names: int, error: Exception, name: str) -> str:
    if not wrong:
        reason = str(error).splitlines()[0][:200]
        return f"{name} cannot be read as a table of text ({reason}): check its quotation marks."
    row = wrong[0]
    number = "a row" if row.number is None else f"row {row.number}, the header included,"
    return (
        f"{number} of {name} has {row.actual_columns} cells, but there are {n_names} column names: "
        f"it begins with {row.text[:30]!r}."
    )


def _with_points(columns: pa.Table) -> pa.Table:
    """Return the table with a decimal point instead of the decimal comma in numbers."""
    changed = [
        compute.replace_substring_regex(column, r"^(\s*[-+]?\d+),(\d+\s*)$", r"\1.\2")
        for column in columns.columns
    ]
    return pa.table(changed, names=columns.column_names)
