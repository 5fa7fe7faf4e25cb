"""A name of a class or of a type stands for one thing: it is defined in one module."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import karnet

SOURCE = Path(karnet.__file__).parent
# Names that still stand for two things, with the modules that define them: to be renamed.
STILL_DOUBLE = {
    "Array": {"_util/types.py", "inspection/_common.py"},
    "Clock": {"_search/average.py", "cli/_console.py"},
    "Columns": {"cli/_explain.py", "tables/_columns.py"},
    "Fit": {"_search/fit.py", "paper/store.py"},
    "Function": {"activations.py", "export/_functions.py"},
    "Labels": {"_columns/encoder.py", "_estimator/targets.py"},
    "Part": {"_model/influence.py", "_search/search.py"},
    "Report": {"_util/progress.py", "learner.py"},
    "Settings": {"_search/settings.py", "play/_request.py"},
    "Table": {"_rows/memory.py", "tables/_table.py"},
    "Tree": {"_network/local.py", "files/_tree.py"},
}


def type_names(module):
    """Yield the names of the classes and of the aliases of types that a module defines."""
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [each.id for each in targets if isinstance(each, ast.Name)]
            yield from (name for name in names if is_type_name(name) and not is_variable(node))


def is_type_name(name):
    """Return whether a name is in CamelCase, which constants are not."""
    return name[0].isupper() and not name.isupper()


def is_variable(node):
    """Return whether an assignment makes a `TypeVar`, which modules may name alike."""
    return isinstance(node.value, ast.Call)


def modules_by_name():
    """Return the modules that define a name, for each name of a type."""
    found = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        module = ast.parse(path.read_text(encoding="utf-8"))
        for name in type_names(module):
            found[name].add(path.relative_to(SOURCE).as_posix())
    return found


def test_a_name_of_a_type_is_defined_in_one_module():
    double = {name: places for name, places in modules_by_name().items() if len(places) > 1}
    new = {name: places for name, places in double.items() if places != STILL_DOUBLE.get(name)}
    assert new == {}


def test_the_list_of_double_names_holds_no_name_that_is_single_now():
    found = modules_by_name()
    assert [name for name in STILL_DOUBLE if len(found[name]) < 2] == []


def test_classes_and_aliases_are_found_and_constants_are_not():
    lines = ["class Row: ...", "Pair = tuple[Row, Row]", "Other: TypeAlias = 'Row'", "MOST = 3"]
    module = ast.parse("\n".join([*lines, "Kind = TypeVar('Kind')"]))
    assert list(type_names(module)) == ["Row", "Pair", "Other"]
