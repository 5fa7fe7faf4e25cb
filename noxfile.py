"""Tests on every supported Python and with the oldest supported libraries: `nox`."""

from __future__ import annotations

from pathlib import Path

import nox

nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# The CPU build of torch, for one Python only because it is large; tests are skipped without it.
TORCH_CPU = "torch==2.13.0+cpu"
# One thread for each of two processes, and UTF-8 for files that tests read, on Windows too.
SETTINGS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}


def run_tests(session: nox.Session) -> None:
    """Run all tests, or those that are named after ``--``."""
    session.run("python", "-m", "pytest", "-n", "2", *session.posargs, env=SETTINGS)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests with the newest libraries."""
    if session.python == PYTHONS[0]:
        session.install(TORCH_CPU, success_codes=[0, 1])
    session.install("--editable", ".[test]")
    run_tests(session)


@nox.session(python=PYTHONS[0])
def oldest(session: nox.Session) -> None:
    """Run the tests with the oldest libraries."""
    session.install("--editable", ".[test]", "--constraint", "tests/oldest.txt")
    run_tests(session)


@nox.session(python=PYTHONS[0])
def audit(session: nox.Session) -> None:
    """Look up known vulnerabilities of every package in an extra; needs a network."""
    session.install(".[blocks,dask,files,onnx,paper,play,plot,table]", "pip-audit")
    frozen = Path(session.create_tmp()) / "frozen.txt"
    frozen.write_text(session.run("pip", "freeze", "--exclude", "karnet", silent=True))
    # With --strict, a package that cannot be looked up is a failure too.
    session.run("pip-audit", "--strict", "--no-deps", "--disable-pip", "--requirement", frozen)


@nox.session(python=PYTHONS[0])
def core(session: nox.Session) -> None:
    """Install the wheel with its core dependencies only, and fit networks."""
    session.install(".")
    session.run("python", "tests/laws/alone.py")


@nox.session(python=PYTHONS[1])
def autogluon(session: nox.Session) -> None:
    """Run the tests of the model of AutoGluon, in an environment that AutoGluon supports."""
    session.install("--editable", ".[autogluon]", "pytest")
    session.run("python", "-m", "pytest", "tests/contrib", *session.posargs)


@nox.session(python=PYTHONS[0])
def lint(session: nox.Session) -> None:
    """Check style and types."""
    session.install("--editable", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session(python=PYTHONS[0])
def docs(session: nox.Session) -> None:
    """Build the site and check its links."""
    session.install("--editable", ".[docs]")
    site = "build/docs"
    session.run("python", "-m", "sphinx", "--fail-on-warning", "--jobs", "2", "docs", site)
    session.run("python", "docs/check_links.py", site)
