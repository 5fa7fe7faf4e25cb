"""Follow every link of the built pages that leads to another of them: `check_links.py FOLDER`.

Links to other sites are not fetched, but nothing that a page needs to be shown may come from one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the links and the places of one tag."""
        found = {name: value or "" for name, value in attrs}
        self.places |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        shown = tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload")
        if "src" in found or shown:
            self.loaded.append(found.get("src", found.get("href", "")))


def broken(folder: Path) -> Iterator[str]:
    """Yield a sentence about each link that leads nowhere, and each thing loaded from elsewhere."""
    files = [path for path in folder.rglob("*.html") if "_static" not in path.parts]
    pages = {path.resolve(): Page(path) for path in files}
    if not pages:
        yield f"{folder} holds no pages."
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if link in page.loaded:
                    yield f"{path.relative_to(folder)} loads {link}"
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not there.exists() or (there in pages and place not in pages[there].places):
                yield f"{path.relative_to(folder)} links to {link}"


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    sentences = list(broken(folder))
    sys.exit("\n".join(sentences) if sentences else 0)
