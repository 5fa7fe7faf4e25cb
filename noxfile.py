"""Every Python and the oldest libraries that are supported: `nox`, or `nox -s oldest`."""

from __future__ import annotations

import nox

nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False

PYTHONS = ("3.11", "3.12", "3.13")
# The least that pyproject.toml allows for; checks of the oldest scikit-learn need an older pytest.
OLDEST = (
    *("numpy==2.0.0", "scipy==1.13.0", "scikit-learn==1.6.0", "pandas==2.2.2", "pyarrow==19.0.0"),
    *("dask==2025.5.0", "distributed==2025.5.0", "rich==13.8.0", "typer==0.26.0"),
    *("onnx==1.17.0", "onnxruntime==1.20.0", "skl2onnx==1.18.0", "skops==0.16.0", "skrub==0.11.0"),
    "pytest<9",
)
# The build of torch for processors alone, with one Python only: it is large, and tests without it
# are skipped.
TORCH_CPU = "torch==2.13.0+cpu"
SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def run_tests(session: nox.Session) -> None:
    """Run all tests, or those that are named behind ``--``."""
    session.run("python", "-m", "pytest", "-n", "2", *session.posargs, env=SINGLE_THREADED)


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
    session.install("--editable", ".[test]", *OLDEST)
    run_tests(session)


@nox.session(python=PYTHONS[0])
def core(session: nox.Session) -> None:
    """Install the wheel with what it needs and nothing else, and learn with it."""
    session.install(".")
    session.run("python", "tests/alone.py")


@nox.session(python=PYTHONS[0])
def lint(session: nox.Session) -> None:
    """Check style and types."""
    session.install("--editable", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session(python=PYTHONS[0])
def docs(session: nox.Session) -> None:
    """Build the site and follow its links."""
    session.install("--editable", ".[docs]")
    site = "build/docs"
    session.run("python", "-m", "sphinx", "--fail-on-warning", "--jobs", "2", "docs", site)
    session.run("python", "docs/check_links.py", site)
