"""The machine, Python, BLAS and the versions of the packages that karnet works with.

Calls that only some systems have stand here, with another way for the others.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from .._version import __version__

CORE = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")
# Extras for people who change karnet.
FOR_DEVELOPERS = {"dev", "docs", "test", "trust"}


def show_versions() -> None:
    """Print the versions of Python, karnet and its dependencies, and the libraries of BLAS.

    Please add the output to reports of problems. It contains no paths and no names of machines.

    Examples
    --------
    >>> import karnet
    >>> karnet.show_versions()  # doctest: +ELLIPSIS
    System
      python: 3...
    """
    for title, entries in (
        ("System", _system()),
        ("Packages", {"karnet": __version__, **_versions(CORE)}),
        ("Optional packages", _versions(optional_packages())),
        ("BLAS and threads", _blas()),
    ):
        print(title, *(f"  {name}: {text}" for name, text in entries.items()), sep="\n")  # noqa: T201


def version_of(package: str) -> str | None:
    """Return the version of an installed package, and None for one that is not installed."""
    if package == "karnet":
        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def optional_packages() -> list[str]:
    """Return the packages in karnet's extras, without those for developers."""
    try:
        needed = requires("karnet") or []
    except PackageNotFoundError:  # a source tree that is not installed
        return []
    names = set()
    for each in needed:
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", each)
        name = re.match(r"[\w.-]+", each)
        if extra and name and extra[1] not in FOR_DEVELOPERS:
            names.add(name[0])
    return sorted(names - {"karnet"})


def cpu_model() -> str:
    """Return the name of the processor, or at least its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # only Linux has this file
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def memory() -> float:
    """Return the bytes of memory of this machine, or 8 GiB if the system does not tell."""
    try:
        if sys.platform == "win32":
            return _WindowsMemory.total()
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return 2.0**33


class _WindowsMemory(ctypes.Structure):
    """The structure MEMORYSTATUSEX that Windows fills in."""

    _fields_ = (
        ("n_bytes", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total_memory", ctypes.c_uint64),
        ("free_memory", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 5),
    )

    @classmethod
    def total(cls) -> float:
        """Return the bytes of memory of a machine with Windows."""
        status = cls(n_bytes=ctypes.sizeof(cls))
        kernel: Any = vars(ctypes)["windll"].kernel32
        if not kernel.GlobalMemoryStatusEx(ctypes.byref(status)):
            raise OSError("Windows does not tell the size of the memory")
        return float(status.total_memory)


def _system() -> dict[str, str]:
    return {
        "python": sys.version.replace("\n", " "),
        "platform": platform.platform(),
        "processor": f"{cpu_model()}, {os.cpu_count()} cores",
    }


def _versions(packages: tuple[str, ...] | list[str]) -> dict[str, str]:
    found = {package: version_of(package) for package in packages}
    return {package: text for package, text in found.items() if text is not None}


def _blas() -> dict[str, str]:
    """Describe NumPy's BLAS, and each library whose number of threads can be set."""
    import numpy as np
    import scipy.linalg  # noqa: F401  (loads SciPy's own BLAS)
    from threadpoolctl import threadpool_info

    # Apple's Accelerate is not among the libraries that threadpoolctl knows.
    built: dict[str, dict[str, dict[str, str]]] = np.show_config(mode="dicts")  # type: ignore[assignment]
    entries = {"numpy": built.get("Build Dependencies", {}).get("blas", {}).get("name", "unknown")}
    for k, library in enumerate(threadpool_info(), start=1):
        about = (library["internal_api"], library.get("version"), library.get("architecture"))
        threads = f"{library['num_threads']} threads"
        entries[f"library {k}"] = ", ".join([*filter(None, about), threads])
    return entries
