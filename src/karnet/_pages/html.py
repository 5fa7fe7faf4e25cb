"""Pieces of an HTML page; whatever text they are given is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from string import Template

from .._util.text_table import TextTable

__all__ = [
    "bullets",
    "command",
    "contents",
    "figure",
    "figures",
    "heading",
    "note",
    "page",
    "paragraph",
    "section",
    "table",
    "verdicts",
]

# A cell that is a number, with a unit or a mark, and goes to the right.
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]\d+)?( %| s| ms)?\*?|-|")
# Cells longer than this may break into lines; tables of more rows are folded.
LONG, MANY = 40, 14


def page(title: str, body: str) -> str:
    """Return the whole page."""
    text = resources.files("karnet._pages").joinpath("page.html").read_text(encoding="utf-8")
    return Template(text).substitute(title=escape(title), body=body)


def heading(text: str) -> str:
    """Return the heading of the page."""
    return f"<h1>{escape(text)}</h1>"


def contents(titles: Mapping[str, str]) -> str:
    """Return links to sections."""
    links = (f'<a href="#{name}">{escape(title)}</a>' for name, title in titles.items())
    return "<nav>\n" + "\n".join(links) + "\n</nav>"


def section(name: str, title: str, *parts: str) -> str:
    """Return a section with a heading that can be linked to; parts are HTML."""
    return "\n".join([f'<section id="{name}">', f"<h2>{escape(title)}</h2>", *parts, "</section>"])


def paragraph(text: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(text)}</p>"


def note(text: str) -> str:
    """Return a paragraph in quieter type."""
    return f'<p class="note">{escape(text)}</p>'


def bullets(items: Iterable[str]) -> str:
    """Return a list."""
    return "<ul>\n" + "\n".join(f"<li>{escape(item)}</li>" for item in items) + "\n</ul>"


def command(text: str) -> str:
    """Return a paragraph in the type of a terminal."""
    return f"<p><code>{escape(text)}</code></p>"


def table(content: TextTable) -> str:
    """Return a table in a box that scrolls by itself, and its note below; folded if it is long.

    Columns of numbers are set to the right; a row without a first cell sums up those above.
    """
    numeric = [
        all(NUMBER.fullmatch(row[k]) for row in content.rows) for k in range(len(content.header))
    ]
    head = "".join(_cell("th", *each) for each in zip(content.header, numeric, strict=True))
    rows = []
    for row in content.rows:
        mark = "" if row[0] else ' class="total"'
        cells = "".join(_cell("td", *each) for each in zip(row, numeric, strict=True))
        rows.append(f"<tr{mark}>{cells}</tr>")
    kind = "named" if content.header[:2] == ("", "data set") else "plain"
    text = _box(content.title, kind, head, rows) + (note(content.note) if content.note else "")
    if len(rows) <= MANY:
        return text
    return f"<details><summary>{escape(content.title)}</summary>\n{text}\n</details>"


def verdicts(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose last column is a verdict; where it is narrow, a row is a paragraph."""
    lines = []
    for row in rows:
        kind = {"met": "met", "not met": "unmet"}.get(row[-1], "open")
        cells = "".join(
            f'<td data-label="{escape(label)}">{escape(cell)}</td>'
            for label, cell in zip(header, row, strict=True)
        )
        lines.append(f'<tr class="{kind}">{cells}</tr>')
    head = "".join(_cell("th", cell, False) for cell in header)
    return _box(title, "verdicts", head, lines)


def _cell(tag: str, text: str, number: bool) -> str:
    kind = ' class="number"' if number else ' class="wide"' if len(text) > LONG else ""
    return f"<{tag}{kind}>{escape(text)}</{tag}>"


def _box(title: str, kind: str, head: str, rows: Iterable[str]) -> str:
    label = escape(title)
    return "\n".join(
        [
            f'<div class="scroll {kind}" role="region" tabindex="0" aria-label="{label}">',
            f"<table><caption>{label}</caption>",
            f"<thead><tr>{head}</tr></thead>",
            "<tbody>",
            *rows,
            "</tbody></table></div>",
        ]
    )


def figure(svg: str, title: str, caption: str) -> str:
    """Return a figure: the drawing, what it is called, and what is to be seen."""
    # Inside HTML the namespaces are known, and the size is the style sheet's.
    head, _, rest = svg.partition(">")
    box = re.search(r'viewBox="[^"]*"', head)
    drawing = f'<svg {box[0] if box else ""} role="img" aria-label="{escape(title)}">{rest}'
    return (
        f"<figure>\n{drawing}\n<figcaption><strong>{escape(title)}.</strong> {escape(caption)}"
        "</figcaption>\n</figure>"
    )


def figures(*parts: str) -> str:
    """Return figures side by side where there is room."""
    return "\n".join(['<div class="figures">', *parts, "</div>"])
