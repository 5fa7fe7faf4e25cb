"""Draw the rooms of karnet and their imports: `python docs/draw_rooms.py` writes docs/rooms.svg.

The picture is made from the import statements of the source. An arrow that follows from others is
left out. Rows of the picture are the depth of the import graph, from the command line at the top
down to the rooms that import nothing.
"""

from __future__ import annotations

import ast
from html import escape
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "karnet"
PICTURE = ROOT / "docs" / "rooms.svg"

# The size of a box, and the distances between boxes and between rows, in pixels.
BOX_WIDTH, BOX_HEIGHT, GAP, ROW_HEIGHT, MARGIN = 96, 30, 22, 66, 20
# Sweeps over the rows that put rooms below the rooms that import them.
N_SWEEPS = 60
# How much more the parts of one long arrow pull at each other than rooms do.
STRAIGHT = 6.0
STYLE = """
rect { fill: #fff; stroke: #2a7fc4; stroke-width: 1.4 }
.private rect { fill: #eef4fa; stroke: #8fa8bd }
text { font: 13px sans-serif; fill: #123; text-anchor: middle }
path { fill: none; stroke: #8a97a3; stroke-width: 1.2 }
"""

Graph = dict[str, set[str]]


def imported_rooms(path: Path) -> set[str]:
    """Return the names below ``karnet`` that a module imports from."""
    package = ("karnet", *path.relative_to(SOURCE).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            name = [*base, *(node.module.split(".") if node.module else [])]
            names = [[*name, alias.name] for alias in node.names]
            found |= {each[1] for each in names if each[0] == "karnet"}
    return found


def rooms() -> Graph:
    """Return for every room the rooms that it imports."""
    graph: Graph = {}
    for path in sorted(SOURCE.rglob("*.py")):
        room = path.relative_to(SOURCE).with_suffix("").parts[0]
        if room not in ("__init__", "_version"):
            graph.setdefault(room, set()).update(imported_rooms(path))
    return {room: (found & graph.keys()) - {room} for room, found in graph.items()}


def reachable(graph: Graph, room: str) -> set[str]:
    """Return all rooms that a room imports, directly or through others."""
    return graph[room].union(*(reachable(graph, other) for other in graph[room]))


def reduced(graph: Graph) -> Graph:
    """Return the graph without the arrows that follow from others."""
    return {
        room: {
            other
            for other in others
            if not any(other in reachable(graph, third) for third in others - {other})
        }
        for room, others in graph.items()
    }


def depths(graph: Graph) -> dict[str, int]:
    """Return the length of the longest chain of imports below every room."""
    found: dict[str, int] = {}

    def depth(room: str) -> int:
        if room not in found:
            found[room] = 1 + max(map(depth, graph[room]), default=-1)
        return found[room]

    for room in graph:
        depth(room)
    return found


def chains(graph: Graph, depth: dict[str, int]) -> list[list[str]]:
    """Return every arrow as a chain of places, one in each row that it crosses."""
    return [
        [room, *(f"{room}>{other}>{k}" for k in range(depth[room] - 1, depth[other], -1)), other]
        for room, others in sorted(graph.items())
        for other in sorted(others)
    ]


def placed(rows: list[list[str]], links: dict[str, list[str]]) -> dict[str, float]:
    """Return the horizontal place of every room and crossing, near the places it is linked to."""
    x = {place: float(k) for row in rows for k, place in enumerate(row)}
    for sweep in range(N_SWEEPS):
        for row in rows if sweep % 2 else reversed(rows):
            wanted = {place: _mean(place, links[place], x) for place in row}
            row.sort(key=lambda place: (wanted[place], place))
            spread(row, wanted, x)
    return x


def _mean(place: str, linked: list[str], x: dict[str, float]) -> float:
    """Return the mean place of the linked places; long arrows are pulled straight."""
    if not linked:
        return x[place]
    weights = [STRAIGHT if ">" in place and ">" in other else 1.0 for other in linked]
    return sum(w * x[other] for w, other in zip(weights, linked, strict=True)) / sum(weights)


def spread(row: list[str], wanted: dict[str, float], x: dict[str, float]) -> None:
    """Put the places of a row near where they are wanted, at least their widths apart."""
    groups: list[tuple[float, list[str]]] = []
    for place in row:
        groups.append((wanted[place], [place]))
        while len(groups) > 1 and _end(*groups[-2]) > _start(*groups[-1]):
            (a, first), (b, second) = groups[-2:]
            size = len(first) + len(second)
            groups[-2:] = [((a * len(first) + b * len(second)) / size, first + second)]
    for centre, places in groups:
        left = _start(centre, places)
        for place in places:
            x[place] = left + _width(place) / 2
            left += _width(place)


def _width(place: str) -> float:
    """Return the width of a room or crossing in units of a box and its gap."""
    return 0.35 if ">" in place else 1.0


def _start(centre: float, places: list[str]) -> float:
    return centre - sum(map(_width, places)) / 2


def _end(centre: float, places: list[str]) -> float:
    return centre + sum(map(_width, places)) / 2


def picture() -> str:
    """Return the picture as SVG."""
    graph = reduced(rooms())
    depth = depths(graph)
    arrows = chains(graph, depth)
    top = max(depth.values())
    rows: list[list[str]] = [[] for _ in range(top + 1)]
    links: dict[str, list[str]] = {}
    for room in sorted(graph):
        rows[depth[room]].append(room)
        links[room] = []
    for chain in arrows:
        for k, place in enumerate(chain[1:-1], start=1):
            rows[depth[chain[0]] - k].append(place)
            links[place] = []
        for one, other in pairwise(chain):
            links[one].append(other)
            links[other].append(one)
    x = placed(rows, links)
    left = min(x.values())
    pixel_x = {p: round(MARGIN + BOX_WIDTH / 2 + (x[p] - left) * (BOX_WIDTH + GAP)) for p in x}
    pixel_y = {
        place: round(MARGIN + BOX_HEIGHT / 2 + (top - k) * ROW_HEIGHT)
        for k, row in enumerate(rows)
        for place in row
    }
    width = max(pixel_x.values()) + BOX_WIDTH // 2 + MARGIN
    height = max(pixel_y.values()) + BOX_HEIGHT // 2 + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>The rooms of karnet and what they import</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" style="fill:#8a97a3"/>'
        "</marker></defs>",
        *(_arrow([(pixel_x[p], pixel_y[p]) for p in chain]) for chain in arrows),
        *(_box(room, pixel_x[room], pixel_y[room]) for room in sorted(graph)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _arrow(points: list[tuple[int, int]]) -> str:
    """Return a smooth line from the bottom of the first box to the top of the last."""
    (x0, y0), *inner, (x1, y1) = points
    stops = [(x0, y0 + BOX_HEIGHT // 2), *inner, (x1, y1 - BOX_HEIGHT // 2 - 1)]
    line = f"M{stops[0][0]} {stops[0][1]}"
    for (a, b), (c, d) in pairwise(stops):
        middle = (b + d) // 2
        line += f" C{a} {middle} {c} {middle} {c} {d}"
    return f'<path d="{line}" marker-end="url(#tip)"/>'


def _box(room: str, x: int, y: int) -> str:
    kind = "private" if room.startswith("_") else "public"
    return (
        f'<g class="{kind}"><rect x="{x - BOX_WIDTH // 2}" y="{y - BOX_HEIGHT // 2}" '
        f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
        f'<text x="{x}" y="{y + 4}">{escape(room)}</text></g>'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
