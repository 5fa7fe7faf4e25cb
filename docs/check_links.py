"""Check every link between the pages of the built site: `check_links.py FOLDER`.

Links to other sites are not followed, but a page must not load scripts, styles or images from one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, the resources it loads, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the links and anchors of one tag."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        resource = tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload")
        if "src" in values or resource:
            self.loaded.append(values.get("src", values.get("href", "")))


def broken(folder: Path) -> Iterator[str]:
    """Yield a message for each broken link and each resource loaded from another site."""
    files = [path for path in folder.rglob("*.html") if "_static" not in path.parts]
    pages = {path.resolve(): Page(path) for path in files}
    if not pages:
        yield f"{folder} contains no pages."
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if link in page.loaded:
                    yield f"{path.relative_to(folder)} loads {link}"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.exists() or (target in pages and anchor not in pages[target].anchors):
                yield f"{path.relative_to(folder)} links to {link}"


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    messages = list(broken(folder))
    sys.exit("\n".join(messages) if messages else 0)
