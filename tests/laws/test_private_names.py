"""Private attributes are read in the room that defines them, and in no application."""

from __future__ import annotations

import ast
import re

import pytest

from tests.laws.test_imports import MODULES, SOURCE, every_module, room

# They take a fitted model, and read nothing else than its public names.
APPLICATIONS = {
    *("audit", "cli", "contrib", "datasets", "export", "files", "inspection", "paper"),
    *("play", "reports", "tables"),
}
# Names of other libraries that are public in all but their spelling: those of named tuples, and of
# Dask's and scikit-learn's objects that hold what they were made of.
OTHERS = {
    "": "_fields _make _replace",
    "_arrays/devices.py": "_create_jit_fn",
    "_rows/dask.py": "_meta",
    "files/_fitted.py": (
        "_compute_n_features_outs _default_to_infrequent_mappings _drop_idx_after_grouping "
        "_infrequent_enabled _infrequent_indices _n_features_outs"
    ),
}
READERS = {"delattr", "getattr", "hasattr", "setattr"}


def private_reads(tree):
    """Yield the objects and the names of the private attributes that some code reads or sets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.value, node.attr
        if isinstance(node, ast.Call) and ast.unparse(node.func) in READERS:
            name = node.args[1]
            if isinstance(name, ast.Constant) and is_private(name.value):
                yield node.args[0], name.value


def is_private(name):
    return re.match(r"_[a-z]", name) is not None


def is_own(thing):
    """Return whether an object is the one whose method is running."""
    return re.match(r"(self|cls)$|super\(", ast.unparse(thing)) is not None


def defined(tree):
    """Yield the attributes that the classes of a module define."""
    yield from (name for thing, name in private_reads(tree) if is_own(thing))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from (each.name for each in node.body if isinstance(each, ast.FunctionDef))


def foreign(path):
    """Return the private attributes of other rooms' objects that a module reads."""
    here, place = room(path), path.relative_to(SOURCE).as_posix()
    allowed = {*OTHERS[""].split(), *OTHERS.get(place, "").split()}
    if here not in APPLICATIONS:
        trees = (TREES[other] for other in MODULES if room(other) == here)
        allowed.update(name for tree in trees for name in defined(tree))
    reads = private_reads(TREES[path])
    return {name for thing, name in reads if not is_own(thing)} - allowed


TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


@every_module
def test_no_private_attribute_of_another_room_is_read(path):
    assert not foreign(path)


def test_applications_are_rooms():
    assert set(map(room, MODULES)) >= APPLICATIONS


@pytest.mark.parametrize(
    ("code", "names"),
    [("net._sample.X", {"_sample"}), ("getattr(net, '_sample', None)", {"_sample"})]
    + [(code, set()) for code in ("self._sample", "cls._of()", "net.model_", "net.__dict__")],
)
def test_private_reads_are_found(code, names):
    found = private_reads(ast.parse(code))
    assert {name for thing, name in found if not is_own(thing)} == names
