"""Values in error messages."""

from __future__ import annotations

from typing import Any

# Most characters of a value in a message.
LONGEST_TEXT = 200


def shown(value: Any) -> str:
    """Return the text of a value on one line, cut off if it is long."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python converts no integer of thousands of digits
        text = f"a {type(value).__name__} of very many digits"
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."


def in_per_cent(share: float, error: float | None = None) -> str:
    """Return a share in per cent, with its standard error if it has one."""
    return f"{100 * share:.1f} %" + ("" if error is None else f" ± {100 * error:.1f}")
