"""The rooms of the package: which may import which, and which may name an optional library."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import pkgutil
import subprocess
import sys
import token
import tokenize
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import karnet

SOURCE = Path(karnet.__file__).parent
# A room may import the rooms named here, and all rooms that these may import.
ARROWS = {
    "_util": [],
    "_arrays": ["_util"],
    "activations": ["_arrays"],
    "kernels": ["_arrays"],
    "_rows": ["_arrays"],
    "blocks": ["_rows"],
    "_lstsq": ["_rows"],
    "accumulate": ["_lstsq"],
    "loo": ["_lstsq"],
    "_network": ["activations", "kernels", "loo"],
    "learner": ["_network"],
    "_columns": ["_rows"],
    "_search": ["learner"],
    "_model": ["_search", "_columns"],
    "_estimator": ["_model", "accumulate", "blocks"],
    "estimators": ["_estimator"],
    "selection": ["_estimator"],
    "inspection": ["estimators", "selection"],
    "files": ["estimators", "selection"],
    "export": ["estimators", "selection"],
    "audit": ["selection"],
    "contrib": ["selection"],
    "_pages": ["_util"],
    "tables": ["files"],
    "reports": ["tables", "inspection", "audit", "_pages"],
    "datasets": ["_util"],
    "paper": ["datasets", "estimators", "selection", "_pages"],
    "play": ["tables", "inspection"],
    "cli": ["paper", "play", "reports", "export"],
}
# Libraries of which the very name may stand in the code of these places only.
WORDS = {
    "torch": ["_arrays/devices.py"],
    "cupy": ["_arrays/devices.py"],
    "cupyx": ["_arrays/devices.py"],
    "dask": ["_rows/dask.py", "_estimator/dask_methods.py"],
    "pyarrow": ["_rows/arrow_files.py", "tables/"],
}
# joblib and threadpoolctl come with scikit-learn.
CORE = {"numpy", "scipy", "sklearn", "joblib", "threadpoolctl", "karnet"}
# Optional libraries of a room; everything else works without them.
EXTRAS = {
    "_arrays": {"torch", "cupy", "cupyx", "array_api_compat"},
    "_rows": {"dask", "cloudpickle", "pandas", "polars", "pyarrow"},
    "_columns": {"pandas", "polars"},
    "_estimator": {"dask"},
    "_pages": {"matplotlib"},
    "cli": {"rich", "typer"},
    "contrib": {"autogluon"},
    "export": {"onnx", "skl2onnx"},
    "files": {"skops"},
    "inspection": {"matplotlib"},
    "paper": {"matplotlib"},
    "play": {"starlette", "uvicorn"},
    "reports": {"matplotlib", "pandas"},
    "tables": {"pandas", "pyarrow", "skrub"},
}
MAY_SUBCLASS_ESTIMATORS = {"_estimator", "estimators", "selection", "files", "paper"}
MODULES = sorted(SOURCE.rglob("*.py"))
every_module = pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: str(path.relative_to(SOURCE))
)


def room(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def reachable(name):
    """Return every room that a room may import."""
    found = set(ARROWS[name])
    return found.union(*map(reachable, found))


def imports(path):
    """Yield the full name of everything that a module imports."""
    package = ("karnet", *path.relative_to(SOURCE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            name = ".".join([*base, *([node.module] if node.module else [])])
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)


def words(path):
    """Yield the names in the code of a module, and strings that are nothing but a name."""
    reader = io.StringIO(path.read_text(encoding="utf-8")).readline
    for each in tokenize.generate_tokens(reader):
        if each.type == token.NAME:
            yield each.string
        elif each.type == token.STRING:
            yield each.string.strip("rbf\"'")


def test_every_room_is_on_the_list():
    assert {room(path) for path in MODULES} == {*ARROWS, "__init__", "_version"}


def test_the_corridor_is_short_and_rooms_are_small():
    assert len(list(SOURCE.glob("*.py"))) <= 11
    for folder in (each for each in SOURCE.iterdir() if each.name.startswith("_")):
        if folder.is_dir() and folder.name != "__pycache__":
            assert 2 <= len([p for p in folder.glob("*.py") if p.name != "__init__.py"]) <= 10


@every_module
def test_rooms_import_only_along_the_arrows(path):
    here = room(path)
    if here in ("__init__", "_version"):
        return
    allowed = reachable(here) | {here, "_version"}
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "karnet" and len(parts) > 1 and parts[1] in ARROWS:
            assert parts[1] in allowed, f"{here} imports {parts[1]}"


@every_module
def test_optional_libraries_are_named_only_in_their_place(path):
    place = path.relative_to(SOURCE).as_posix()
    found = set(words(path))
    for library, places in WORDS.items():
        if not place.startswith(tuple(places)):
            assert library not in found, f"{place} names {library}"


@every_module
def test_only_the_core_dependencies_are_imported(path):
    for name in imports(path):
        top = name.split(".")[0]
        allowed = CORE | EXTRAS.get(room(path), set())
        assert top in allowed or top in sys.stdlib_module_names, f"{path.name} imports {name}"
        if name.startswith(("sklearn.base", "sklearn.utils")):
            assert room(path) in MAY_SUBCLASS_ESTIMATORS


@every_module
def test_only_the_command_line_verbose_and_show_versions_print(path):
    calls = [
        node.func.id
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    printing = [("_util", "environment.py"), ("_util", "progress.py")]
    may_print = room(path) == "cli" or path.parts[-2:] in printing
    assert "print" not in calls or may_print


def modules():
    """Return all modules, but those whose library is not installed in most environments."""
    names = [m.name for m in pkgutil.walk_packages(karnet.__path__, "karnet.")]
    if find_spec("autogluon") is None:
        names.remove("karnet.contrib.autogluon")
    return [importlib.import_module(name) for name in ["karnet", *names]]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_public_names_exist_and_have_docstrings(module):
    assert module.__doc__
    for name in getattr(module, "__all__", ()):
        thing = getattr(module, name)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            assert inspect.getdoc(thing), f"{module.__name__}.{name} has no docstring"


def loaded_by(code):
    """Return the names of the modules that some lines import in a new process."""
    code = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("entrance", ["karnet, karnet.selection", "karnet.tables"])
def test_entrances_load_neither_the_paper_nor_pages(entrance):
    rooms = {name.split(".")[1] for name in loaded_by(f"import {entrance}") if "karnet." in name}
    assert not rooms & {"paper", "_pages", "play", "reports"}


@pytest.mark.parametrize("entrance", ["karnet", "karnet.cli._app"])
def test_scikit_learn_is_imported_when_it_is_needed(entrance):
    assert "sklearn" not in loaded_by(f"import {entrance}")


def test_names_of_the_package_are_imported_when_they_are_used():
    loaded = loaded_by("from karnet import lstsq, load, KARClassifier; import karnet; karnet.loo")
    assert {"karnet.estimators", "karnet.files", "karnet.loo"} <= set(loaded)
    assert set(karnet.__all__) <= set(dir(karnet))
    with pytest.raises(AttributeError, match="no attribute 'KARTransformer'"):
        karnet.KARTransformer  # noqa: B018


def test_the_version_is_written_once():
    project = SOURCE.parents[1] / "pyproject.toml"
    if project.exists():
        content = tomllib.loads(project.read_text(encoding="utf-8"))
        assert "version" in content["project"]["dynamic"]
        assert content["tool"]["hatch"]["version"]["path"] == "src/karnet/_version.py"
