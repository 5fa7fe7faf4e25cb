"""How sentences show what was given."""

from __future__ import annotations

from typing import Any

__all__ = ["shown"]

# Most characters of what is shown.
LONGEST = 200


def shown(value: Any) -> str:
    """Return the text of a value as a part of a line, its end left out if it is long."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # an integer of thousands of digits has no text
        text = f"a {type(value).__name__} of very many digits"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
