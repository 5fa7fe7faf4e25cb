"""The machine and the versions of the packages that a report was made with."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def about(packages: Sequence[str]) -> list[str]:
    """Describe the processor, the system, Python and the installed ones of some packages."""
    return [
        f"CPU: {_cpu_model()}, {os.cpu_count()} cores",
        f"System: {platform.system()} {platform.release()}, {platform.machine()}",
        f"Python {platform.python_version()}",
        "Packages: " + ", ".join(filter(None, map(_named, packages))),
    ]


def written() -> str:
    """Return a line with the current date and time."""
    return datetime.now(UTC).strftime("Written on %Y-%m-%d at %H:%M UTC")


def _named(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
