"""Descriptions of the paper's 42 data sets, and their deviations from the paper."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal, NamedTuple


class Size(NamedTuple):
    """Numbers of rows, features and classes of a data set."""

    rows: int
    features: int
    classes: int


class Widths(NamedTuple):
    """The hidden widths that the paper chose: for its baseline, and for two to four layers."""

    baseline: int | None
    two: int
    three: int
    four: int


@dataclass(frozen=True)
class DataSet:
    """Description of one data set of the paper.

    Parameters
    ----------
    number : int
        The number in the paper's table, from 1 to 42.
    name : str
        The name here, also the stem of the CSV file.
    title : str
        The name at the source.
    printed : tuple of str
        Cases, features and classes as the paper prints them, such as "279(15)": the number used,
        and in brackets the number given.
    here : Size
        The size that `load` returns from sources other than the built-in one.
    class_sizes : tuple of int
        Rows of each class from these sources, the largest first; empty for random data sets.
    missing : {"no", "drop", "value"}
        Treatment of missing values: there are none, their rows are left out, or a gap is a value.
    widths : Widths
        The widths that the paper chose; None where its baseline ran out of memory.
    fixed_split : bool
        Whether the paper uses a given split (marked +) instead of cross-validation.
    test_rows : int or None
        Test rows if the source has a split, even if the paper does not use it.
    built_in : int or None
        Rows of the built-in data set; None if it is not built in.
    categorical : tuple of int
        Indices of the features whose values are categories. Integer codes are numbers unless
        their documentation calls them nominal.
    source, licence : str
        The origin of the data, and their terms.
    openml : int or None
        The pinned id of OpenML; None if the data set is built in or no id is certain.
    left_out : str or None
        A class whose rows are left out.
    deviation : str
        The difference from the paper's data set in plain words; empty if there is none.
    verified : bool
        Whether the id of OpenML has been tested online.
    """

    number: int
    name: str
    title: str
    printed: tuple[str, str, str]
    here: Size
    class_sizes: tuple[int, ...]
    missing: Literal["no", "drop", "value"]
    widths: Widths
    fixed_split: bool
    test_rows: int | None
    built_in: int | None
    categorical: tuple[int, ...]
    source: str
    licence: str
    openml: int | None
    left_out: str | None
    deviation: str
    verified: bool = False

    @property
    def paper(self) -> Size:
        """Rows, features and classes that the paper used."""
        return Size(*(int(cell.partition("(")[0]) for cell in self.printed))


def _parse(row: dict[str, Any]) -> DataSet:
    """Return the data set that a row of table.csv describes."""
    here = Size(*map(int, row["here"].split()))
    baseline, *own = row["widths"].split()
    named = row["categorical"]
    parsed = {
        "number": int(row["number"]),
        "printed": tuple(row.pop("paper").split()),
        "here": here,
        "class_sizes": tuple(map(int, row["class_sizes"].split())),
        "widths": Widths(None if baseline == "-" else int(baseline), *map(int, own)),
        "fixed_split": row["fixed_split"] == "+",
        "categorical": tuple(range(here.features) if named == "all" else map(int, named.split())),
        "left_out": row["left_out"] or None,
    }
    for key in ("test_rows", "built_in", "openml"):
        parsed[key] = int(row[key]) if row[key] else None
    return DataSet(**(row | parsed))


_table = resources.files("karnet.datasets").joinpath("table.csv").read_text(encoding="utf-8")
_sets = map(_parse, csv.DictReader(_table.splitlines()))
DATASETS = MappingProxyType({each.name: each for each in _sets})
