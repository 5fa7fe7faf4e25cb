"""Descriptions of the machine and of the versions of libraries."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

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
    """Return the processor and the numbers of cores and threads as text."""
    of_blas = "1 thread" if threads == 1 else f"{threads} threads"
    return f"{_processor()}, {os.cpu_count()} cores, {of_blas}, {platform.system()}"


def describe_versions() -> str:
    """Return the versions of Python and of all installed packages of the comparison."""
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
