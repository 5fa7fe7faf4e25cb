"""Oldest versions of dependencies, and no network access: every test runs offline."""

from __future__ import annotations

import ast
import socket
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.offline import ASKED, NetworkForbiddenError

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "karnet"
ASKING = {"ftplib", "http", "httpx", "requests", "socket", "ssl", "urllib", "urllib3", "fsspec"}


@pytest.mark.asks_network
@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
def test_connections_to_other_hosts_are_refused(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as line, pytest.raises(NetworkForbiddenError):
        line.connect((host, 80))


@pytest.mark.asks_network
def test_names_of_other_hosts_are_not_looked_up():
    with pytest.raises(NetworkForbiddenError, match="example"):
        socket.create_connection(("example.org", 80))
    assert ASKED[-1].endswith("example.org")


def test_connections_to_this_machine_are_allowed():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


def imports(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_only_data_sets_use_the_network_and_the_page_serves_this_machine():
    asking = {
        file.relative_to(SOURCES).parts[0]
        for file in SOURCES.rglob("*.py")
        for name in imports(file)
        if name.split(".")[0] in ASKING or name.startswith("sklearn.datasets.fetch")
    }
    # The page of `karnet play` listens on the loopback, and asks nobody.
    assert asking == {"datasets", "play"}
    assert set(imports(SOURCES / "play" / "_serve.py")) & {"socket"}
    others = [file for file in (SOURCES / "play").glob("*.py") if file.name != "_serve.py"]
    assert not any(name.split(".")[0] in ASKING for file in others for name in imports(file))


def least_versions():
    """Return the oldest version of every package that a tested extra allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    # torch is tested with its CPU build only.
    tested = ("blocks", "dask", "files", "onnx", "paper", "plot", "table", "test")
    wanted = [*project["dependencies"], *(need for extra in tested for need in extras[extra])]
    for requirement in map(Requirement, wanted):
        for of in requirement.specifier:
            if of.operator == ">=":
                yield requirement.name, Version(of.version)


def test_the_oldest_tested_versions_are_the_oldest_allowed_ones():
    lines = (ROOT / "tests" / "oldest.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    for name, least in least_versions():
        pinned, n = Version(pins[name]), len(least.release)
        assert pinned.release[:n] == (*least.release, *[0] * n)[:n], name
