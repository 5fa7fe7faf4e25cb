"""Names of columns: checks, and sentences about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

from .._util.messages import shown

# The most names that a sentence lists.
MAX_LISTED_NAMES = 8
# A cell that is a number.
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def check_names(names: Sequence[str], where: str) -> list[str]:
    """Return the names; refuse repeated names, and missing names except for the first column's."""
    counts = Counter(names)
    repeated = [name for name in counts if name and counts[name] > 1]
    if repeated:
        places = [str(k + 1) for k, name in enumerate(names) if name == repeated[0]]
        raise ValueError(
            f"{where} has {counts[repeated[0]]} columns of the name {shown(repeated[0])} (numbers "
            f"{', '.join(places[:MAX_LISTED_NAMES])}): give each column a name of its own."
        )
    nameless = [k for k, name in enumerate(names) if not name]
    # Many programs write row numbers as a first column without a name.
    if nameless and nameless != [0]:
        raise ValueError(
            f"column {nameless[-1] + 1} of {where} has no name: write one in the first line."
        )
    return list(names)


def input_names(names: Sequence[str], target: str, where: str) -> list[str]:
    """Return the names of all columns except the target; refuse a table without other columns."""
    others = [name for name in names if name != target]
    if not others:
        raise ValueError(f"{where} has no column other than the target {target!r}.")
    return others


def missing_column(wanted: str, names: Sequence[str], where: str) -> str:
    """Return a sentence that lists the columns of a table that lacks the wanted one."""
    if names and all(NUMBER.fullmatch(name.strip()) for name in names):
        return (
            f"{where} has no column {shown(wanted)}: its first line holds numbers and no names, so "
            "add a line of column names."
        )
    same_letters = [name for name in names if name.casefold() == wanted.casefold()]
    similar = same_letters or get_close_matches(wanted, names, n=1, cutoff=0.6)
    guess = f": did you mean {shown(similar[0])}?" if similar else ":"
    return f"{where} has no column {shown(wanted)}{guess} It has {listed(names)}."


def listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of further ones."""
    n_more = len(names) - MAX_LISTED_NAMES
    more = f" and {n_more} more" if n_more > 0 else ""
    return ", ".join(map(shown, names[:MAX_LISTED_NAMES])) + more
