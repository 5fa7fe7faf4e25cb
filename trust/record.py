"""Pages of measurements, with the command, the day, the machine and the counts."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, describe_versions

FOLDER = Path(__file__).parents[1] / "docs" / "trust"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def write_page(
    name: str, title: str, command: str, counts: str, parts: Sequence[str], folder: Path = FOLDER
) -> Path:
    """Write `docs/trust/<name>.md` with the command, day, machine and counts of a measurement.

    Parameters
    ----------
    name : str
        Name of the file, without its suffix.
    title : str
        Heading of the page.
    command : str
        The command that writes the page.
    counts : str
        Extent of the measurement, such as "104 000 cases in 512 s".
    parts : sequence of str
        Paragraphs and tables in Markdown, in order.
    folder : Path
        Folder of the page.
    """
    threads = int(os.environ.get("OPENBLAS_NUM_THREADS", os.cpu_count() or 1))
    measured = (
        f"Written by `{command}` on {datetime.date.today():%d %B %Y}: {counts}. "
        f"{describe_machine(threads)}; {describe_versions()}."
    )
    page = folder / f"{name}.md"
    folder.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join([f"# {title}", measured, *parts]) + "\n", encoding="utf-8")
    return page
