"""The machine and the versions of the packages that a report was made with."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime

from .._util.environment import cpu_model, version_of


def about(packages: Sequence[str]) -> list[str]:
    """Describe the processor, the system, Python and the installed ones of some packages."""
    versions = [(package, version_of(package)) for package in packages]
    return [
        f"CPU: {cpu_model()}, {os.cpu_count()} cores",
        f"System: {platform.system()} {platform.release()}, {platform.machine()}",
        f"Python {platform.python_version()}",
        "Packages: " + ", ".join(f"{name} {text}" for name, text in versions if text),
    ]


def written() -> str:
    """Return a line with the current date and time."""
    return datetime.now(UTC).strftime("Written on %Y-%m-%d at %H:%M UTC")
