"""A table of results."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TextTable:
    """A title, a header, rows of text, and a note on them."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str

    def __str__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.header))]
        text = [
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in lines
        ]
        text.insert(1, "  ".join("-" * w for w in widths))
        return "\n".join([self.title, "", *(line.rstrip() for line in text), "", self.note])
