"""The names of columns: checked as they are written, before any reader could change them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

from .._util.messages import shown

__all__ = ["check_names", "listed", "missing_column"]

# Names that a sentence lists at most.
SHOWN = 8


def check_names(names: Sequence[str], where: str) -> list[str]:
    """Return the names, or refuse two that are equal and any but the first that is missing."""
    counts = Counter(names)
    twice = [name for name in counts if name and counts[name] > 1]
    if twice:
        places = [str(k + 1) for k, name in enumerate(names) if name == twice[0]]
        raise ValueError(
            f"{where} has {counts[twice[0]]} columns of the name {shown(twice[0])} (numbers "
            f"{', '.join(places[:SHOWN])}): give each column a name of its own."
        )
    nameless = [k for k, name in enumerate(names) if not name]
    # Row numbers are written without a name by many programs.
    if nameless and nameless != [0]:
        raise ValueError(
            f"column {nameless[-1] + 1} of {where} has no name: write one in its first line."
        )
    return list(names)


def missing_column(wanted: str, names: Sequence[str], where: str) -> str:
    """Return a sentence that says which columns there are instead."""
    near = get_close_matches(wanted, names, n=1, cutoff=0.6)
    other_case = [name for name in names if name.casefold() == wanted.casefold()]
    guess = f": did you mean {shown((other_case or near)[0])}?" if near or other_case else ":"
    if names and all(_is_number(name) for name in names):
        return (
            f"{where} has no column {shown(wanted)}: its first line holds numbers and no names, so "
            "add a line of column names."
        )
    return f"{where} has no column {shown(wanted)}{guess} It has {listed(names)}."


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(shown(name) for name in names[:SHOWN]) + more


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
