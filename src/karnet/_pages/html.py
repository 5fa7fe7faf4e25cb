"""The elements of an HTML page; all text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from string import Template

from .._util.text_table import TextTable

# The text of a cell that is aligned right: a number, with or without a unit or an asterisk.
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]\d+)?( %| s| ms)?\*?|-|")
# The largest number of characters of a cell without line breaks.
MAX_CELL_LENGTH = 40
# The largest number of rows of a table that is not folded.
MAX_UNFOLDED_ROWS = 14


def page(title: str, body: str) -> str:
    """Return the complete page."""
    text = resources.files("karnet._pages").joinpath("page.html").read_text(encoding="utf-8")
    return Template(text).substitute(title=escape(title), body=body)


def heading(text: str) -> str:
    """Return the heading of the page."""
    return f"<h1>{escape(text)}</h1>"


def contents(titles: Mapping[str, str]) -> str:
    """Return links to the sections."""
    links = (f'<a href="#{name}">{escape(title)}</a>' for name, title in titles.items())
    return "<nav>\n" + "\n".join(links) + "\n</nav>"


def section(name: str, title: str, *parts: str) -> str:
    """Return a section, a target of links, with a heading and elements of HTML."""
    return "\n".join([f'<section id="{name}">', f"<h2>{escape(title)}</h2>", *parts, "</section>"])


def paragraph(text: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(text)}</p>"


def note(text: str) -> str:
    """Return a paragraph in smaller, grey type."""
    return f'<p class="note">{escape(text)}</p>'


def bullets(items: Iterable[str]) -> str:
    """Return a bulleted list."""
    return "<ul>\n" + "\n".join(f"<li>{escape(item)}</li>" for item in items) + "\n</ul>"


def command(text: str) -> str:
    """Return a paragraph in monospaced type."""
    return f"<p><code>{escape(text)}</code></p>"


def table(content: TextTable) -> str:
    """Return a table that scrolls horizontally, followed by its note; a long table is folded.

    Columns of numbers are aligned right. A row whose first cell is empty is a total.
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
    if len(rows) <= MAX_UNFOLDED_ROWS:
        return text
    return f"<details><summary>{escape(content.title)}</summary>\n{text}\n</details>"


def verdicts(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose last column is a verdict; on a narrow screen, rows are paragraphs."""
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
    kind = ' class="number"' if number else ' class="wide"' if len(text) > MAX_CELL_LENGTH else ""
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
    """Return a figure: the drawing, its title and its caption."""
    # An element of HTML needs no namespaces, and the style sheet sets its size.
    head, _, rest = svg[svg.index("<svg") :].partition(">")
    box = re.search(r'viewBox="[^"]*"', head)
    drawing = f'<svg {box[0] if box else ""} role="img" aria-label="{escape(title)}">{rest}'
    return (
        f"<figure>\n{drawing}\n<figcaption><strong>{escape(title)}.</strong> {escape(caption)}"
        "</figcaption>\n</figure>"
    )


def figures(*parts: str) -> str:
    """Return figures, side by side on a wide screen."""
    return "\n".join(['<div class="figures">', *parts, "</div>"])
