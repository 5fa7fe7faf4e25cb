"""The machine and the versions that numbers were measured with."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

__all__ = ["describe_machine", "describe_versions"]

PACKAGES = (
    "karnet",
    "numpy",
    "scipy",
    "scikit-learn",
    "lightgbm",
    "swimnetworks",
    "hpelm",
    "gfdl",
    "pyarrow",
)


def describe_machine(threads: int) -> str:
    """Return processor, cores and threads in words."""
    of_blas = "1 thread" if threads == 1 else f"{threads} threads"
    return f"{_processor()}, {os.cpu_count()} cores, {of_blas}, {platform.system()}"


def describe_versions() -> str:
    """Return the versions of Python and of all packages of the comparison that are there."""
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
