"""The elements of an HTML page; all text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from .._util.atomic_file import whole_file
from .._util.text_table import TextTable

# The text of a cell that is aligned right: a number, with or without a unit or an asterisk.
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]\d+)?( %| s| ms)?\*?|-|")
# The largest number of characters of a cell without line breaks.
MAX_CELL_LENGTH = 40
# The largest number of rows of a table that is not folded.
MAX_UNFOLDED_ROWS = 14


def write(
    path: Path, title: str, introduction: str, sections: Mapping[str, tuple[str, Iterable[str]]]
) -> None:
    """Write a page: a heading, an introduction, links to the sections, and the sections.

    A section has a name, which is the target of its link, a title, and elements of HTML.
    """
    body = [f"<h1>{escape(title)}</h1>", paragraph(introduction), "<nav>"]
    body += [f'<a href="#{name}">{escape(heading)}</a>' for name, (heading, _) in sections.items()]
    body += ["</nav>"]
    for name, (heading, parts) in sections.items():
        body += [f'<section id="{name}">', f"<h2>{escape(heading)}</h2>", *parts, "</section>"]
    page = resources.files("karnet._pages").joinpath("page.html").read_text(encoding="utf-8")
    with whole_file(path) as unfinished:
        text = Template(page).substitute(title=escape(title), body="\n".join(body))
        unfinished.write_text(text, encoding="utf-8", newline="\n")


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
    n = len(content.header)
    numeric = [all(NUMBER.fullmatch(row[k]) for row in content.rows) for k in range(n)]
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
    body = "\n".join(rows)
    return (
        f'<div class="scroll {kind}" role="region" tabindex="0" aria-label="{label}">\n'
        f"<table><caption>{label}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table></div>"
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
