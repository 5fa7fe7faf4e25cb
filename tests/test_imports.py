"""The rooms of the house: who may import whom, and what the world sees."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import karnet

SOURCE = Path(karnet.__file__).parent
# From the ground floor up: a room may use only rooms that stand before it.
FLOORS = [
    "_extras",
    "_words",
    "_whole",
    "pages",
    "_array",
    "_algebra",
    "activations",
    "_threads",
    "_worker",
    "_rows",
    "_stream",
    "_device",
    "_runs",
    "_arrow",
    "blocks",
    "_statistics",
    "_dense",
    "_problem",
    "_minimum_norm",
    "_solvers",
    "_lstsq",
    "_forms",
    "_controls",
    "_downdate",
    "accumulate",
    "_ridge_factor",
    "loo",
    "kernels",
    "_loo_blocks",
    "_views",
    "_members",
    "_landmarks",
    "_sensitivity",
    "_search",
    "_budget",
    "_average",
    "_intervals",
    "network",
    "learner",
    "_metric",
    "_infinite",
    "_validation",
    "_parameters",
    "_scan",
    "_dask",
    "_elsewhere",
    "_docs",
    "_layers",
    "_html",
    "_base",
    "_targets",
    "_updates",
    "_partial_fit",
    "estimators",
    "_base_cv",
    "selection",
    "inspection",
    "files",
    "_onnx_graph",
    "_onnx_functions",
    "export",
    "datasets",
    "paper",
    "tables",
    "reports",
    "cli",
]
KNOW_SCIKIT_LEARN_S_BASE = {
    "_validation.py",
    "_parameters.py",
    "_elsewhere.py",
    "_base.py",
    "_html.py",
    "_base_cv.py",
    "_updates.py",
    "estimators.py",
    "selection.py",
    "_fitted.py",
    "baseline.py",
}
# joblib and threadpoolctl come with scikit-learn.
CORE = {"numpy", "scipy", "sklearn", "joblib", "threadpoolctl", "karnet"}
# Extras that a module or a room may use, and that everything else works without.
EXTRAS = {
    "_array.py": {"torch", "cupy", "cupyx", "array_api_compat"},
    "_dask.py": {"dask", "cloudpickle"},
    "_arrow.py": {"pyarrow"},
    "_onnx_graph.py": {"onnx"},
    "cli": {"rich", "typer"},
    "export.py": {"onnx", "skl2onnx"},
    "figures.py": {"matplotlib"},
    "files": {"skops"},
    "inspection": {"matplotlib"},
    "pages": {"matplotlib"},
    "reports": {"matplotlib", "pandas"},
    "tables": {"pandas", "pyarrow", "skrub"},
}
MODULES = sorted(SOURCE.rglob("*.py"))


def room(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imports(path):
    """Yield what a module imports by its full name."""
    package = ("karnet", *path.relative_to(SOURCE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            name = ".".join([*base, *([node.module] if node.module else [])])
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)


def test_every_room_has_its_floor():
    assert {room(path) for path in MODULES} == {*FLOORS, "__init__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_rooms_use_only_what_stands_below(path):
    here = room(path)
    if here == "__init__":
        return
    for name in imports(path):
        if name.startswith("karnet."):
            there = name.split(".")[1]
            if there in FLOORS and there != here:
                assert FLOORS.index(there) < FLOORS.index(here), f"{here} imports {there}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_core_dependencies_are_imported(path):
    import sys

    for name in imports(path):
        top = name.split(".")[0]
        allowed = CORE | EXTRAS.get(path.name, set()) | EXTRAS.get(room(path), set())
        assert top in allowed or top in sys.stdlib_module_names, f"{path.name} imports {name}"
        if name.startswith(("sklearn.base", "sklearn.utils")):
            assert path.name in KNOW_SCIKIT_LEARN_S_BASE


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_command_line_prints(path):
    calls = [
        node.func.id
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    assert "print" not in calls or room(path) == "cli"


def modules():
    names = [m.name for m in pkgutil.walk_packages(karnet.__path__, "karnet.")]
    return [importlib.import_module(name) for name in ["karnet", *names]]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_public_names_exist_and_say_what_they_are(module):
    assert module.__doc__
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            assert inspect.getdoc(thing), f"{module.__name__}.{name} has no docstring"


def test_the_version_is_said_once():
    import tomllib

    project = SOURCE.parents[1] / "pyproject.toml"
    if project.exists():
        assert tomllib.loads(project.read_text())["project"]["version"] == karnet.__version__
