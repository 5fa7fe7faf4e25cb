"""The versions that `karnet.show_versions` prints."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import karnet
from karnet._pages.environment import about
from karnet._util.environment import optional_packages, version_of


def test_the_versions_in_use_are_printed(capsys):
    assert karnet.show_versions() is None
    lines = capsys.readouterr().out.splitlines()
    assert f"  karnet: {karnet.__version__}" in lines
    assert f"  numpy: {np.__version__}" in lines
    assert [line for line in lines if not line.startswith("  ")] == [
        "System",
        "Packages",
        "Optional packages",
        "BLAS and threads",
    ]


def test_nothing_private_is_printed(capsys):
    karnet.show_versions()
    printed = capsys.readouterr().out
    assert str(Path.home()) not in printed
    assert not re.search(r"^.*(/|\\)(lib|site-packages)(/|\\)", printed, re.M)


def test_a_package_that_is_not_installed_has_no_version():
    assert version_of("a-package-that-nobody-made") is None
    assert about(["a-package-that-nobody-made", "numpy"])[-1] == f"Packages: numpy {np.__version__}"


def test_packages_for_developers_are_not_listed():
    assert {"karnet", "pytest", "sphinx", "ruff"}.isdisjoint(optional_packages())
