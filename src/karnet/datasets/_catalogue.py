"""The paper's 42 data sets: what it lists, what is here, and where the two differ."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Literal, NamedTuple, cast

Missing = Literal["no", "drop", "value"]


class Size(NamedTuple):
    """How many rows, features and classes a data set has."""

    rows: int
    features: int
    classes: int


class Widths(NamedTuple):
    """The hidden widths that the paper chose: its baseline's, and its own by number of layers."""

    baseline: int | None
    two: int
    three: int
    four: int


@dataclass(frozen=True)
class DataSet:
    """What is known about one data set of the paper.

    Parameters
    ----------
    number : int
        Its number in the paper's table, from 1 to 42.
    name : str
        What it is called here; also the stem of its CSV file.
    title : str
        What its source calls it.
    printed : tuple of str
        Cases, features and classes as the paper prints them, such as "279(15)": used and, in
        brackets, given.
    here : Size
        What `load` gives, from any source that is not built in.
    class_sizes : tuple of int
        Rows of each class, the largest first, likewise; empty if the set is drawn at random.
    missing : {"no", "drop", "value"}
        What happens to rows with missing values: there are none, they are left out, or the gap
        counts as one more value.
    widths : Widths
        What the paper chose by cross-validation; None where its baseline ran out of memory.
    fixed_split : bool
        Whether the paper measures on a given split (its mark +) and not by cross-validation.
    test_rows : int or None
        Rows of the test part where the source gives a split, also if the paper does not use it.
    built_in : int or None
        Rows of the built-in form; None if there is none.
    categorical : tuple of int
        Positions, counted from 0, of the features whose values are names. Integer codes count as
        numbers unless their documentation calls them nominal.
    source, licence : str
        Where the data come from and under which terms.
    openml : int or None
        The pinned id of OpenML; None if the set is built in or no id is known for certain.
    left_out : str or None
        A class whose rows are left out.
    deviation : str
        In plain words, where the set differs from the paper's; empty if nowhere.
    verified : bool
        Whether the id of OpenML has been tried online.
    """

    number: int
    name: str
    title: str
    printed: tuple[str, str, str]
    here: Size
    class_sizes: tuple[int, ...]
    missing: Missing
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


def _parse(row: dict[str, str]) -> DataSet:
    cases, features, classes = row["paper"].split()
    here = Size(*map(int, row["here"].split()))
    named = row["categorical"]
    return DataSet(
        number=int(row["number"]),
        name=row["name"],
        title=row["title"],
        printed=(cases, features, classes),
        here=here,
        class_sizes=tuple(map(int, row["class_sizes"].split())),
        missing=cast("Missing", row["missing"]),
        widths=_widths(*row["widths"].split()),
        fixed_split=row["fixed_split"] == "+",
        test_rows=_integer(row["test_rows"]),
        built_in=_integer(row["built_in"]),
        categorical=tuple(range(here.features) if named == "all" else map(int, named.split())),
        source=row["source"],
        licence=row["licence"],
        openml=_integer(row["openml"]),
        left_out=row["left_out"] or None,
        deviation=row["deviation"],
    )


def _widths(baseline: str, *own: str) -> Widths:
    return Widths(None if baseline == "-" else int(baseline), *map(int, own))


def _integer(cell: str) -> int | None:
    return int(cell) if cell else None


def _read() -> MappingProxyType[str, DataSet]:
    text = resources.files("karnet.datasets").joinpath("table.csv").read_text(encoding="utf-8")
    sets = map(_parse, csv.DictReader(text.splitlines()))
    return MappingProxyType({each.name: each for each in sets})


DATASETS = _read()
