"""What a model file must be before skops is given it: every name listed, every array what it says.

skops trusts more than `karnet.files.types` lists, and spends time and memory on what a file claims.
Here everything is read as text and refused with a reason, before anything of it is imported, made
or allocated.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, fields
from math import prod
from typing import IO, Any

from numpy.lib import format as npy

from ._tree import KINDS, PROTOCOL, Node
from .types import ACTIVATION, ALLOWED, DATACLASSES, resolved

__all__ = ["RefusedError", "check_array", "check_tree"]

# How many times as many nodes there may be if those referred to are counted again, as skops goes
# through them each time, and how many at all.
EXPANSION, MOST = 100, 10**9
# Longest header of an array.
HEADER = 10_000
KEYS = ("__loader__", "__module__", "__class__")


class RefusedError(Exception):
    """A file is not what `karnet.save` writes; the message is the reason."""


def check_tree(root: Any, files: set[str]) -> set[str]:
    """Check the tree of a file, and return the names of all types and functions in it.

    Parameters
    ----------
    root : object
        What the JSON text says.
    files : set of str
        The names of the arrays beside it.

    Returns
    -------
    set of str
    """
    root = dict(_expect(root, dict, "tree"))
    if root.pop("protocol", None) != PROTOCOL:
        raise RefusedError("its tree is of another version")
    check = _Check()
    check.limit(check.node(root), EXPANSION * check.n_written)
    if root["__loader__"] != "ObjectNode":
        raise RefusedError("it holds no estimator")
    if check.files != files:
        raise RefusedError("its arrays are not those that its tree names")
    return check.names


class _Check:
    """A walk through all nodes; each returns how many there are if references are followed."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.files: set[str] = set()
        self.n_written = 0
        self._complete: dict[int, tuple[Node, int]] = {}

    def node(self, node: Any, loaders: Collection[str] = ALLOWED) -> int:
        """Check a node that one of some loaders makes, and all below it."""
        self.n_written += 1
        number = _expect(_expect(node, dict, "node").get("__id__", 0), int, "number")
        if set(node) == {"__id__"}:
            if number not in self._complete:
                raise RefusedError("a node refers to none before it")
            node, size = self._complete[number]
        else:
            size = 1 + _WALKS[self._loader(node)](self, node)
            self.limit(size, MOST)
            if number in self._complete:
                raise RefusedError("two nodes have one id")
            if number:
                self._complete[number] = node, size
        if node["__loader__"] not in loaders:
            raise RefusedError(f"a {node['__loader__']} is where it cannot be")
        return size

    @staticmethod
    def limit(size: int, most: int) -> None:
        """Raise an error if there are too many nodes."""
        if size > most:
            raise RefusedError("its nodes refer to each other too often")

    def _loader(self, node: Node) -> str:
        loader, module, kind = (_expect(node.get(key), str, key) for key in KEYS)
        name = f"{module}.{kind}"
        if name not in ALLOWED.get(loader, ()) or "." in kind:
            raise RefusedError(f"it names {name} ({loader}), which is not on the list")
        self.names.add(name)
        return str(loader)

    def _leaf(self, node: Node) -> int:
        return 0

    def _text(self, node: Node) -> int:
        _content(node, str)
        return 0

    def _inner(self, node: Node) -> int:
        return self.node(node.get("content"), ("TupleNode", "NdArrayNode"))

    def _each(self, node: Node) -> int:
        return sum(self.node(each) for each in _content(node, list))

    def _ends(self, node: Node) -> int:
        for end in _content(node, dict).values():
            if end is not None:
                _expect(end, int, "end of a slice")
        return 0

    def _pairs(self, node: Node) -> int:
        kinds = _expect(node.get("key_types"), dict, "list of types")
        # With a number skops could take another node in its place.
        if self._loader(kinds) != "ListNode" or "__id__" in kinds:
            raise RefusedError("the types of keys are no list of their own")
        size = sum(self.node(kind, ("TypeNode",)) for kind in _content(kinds, list))
        return 1 + size + sum(map(self.node, _content(node, dict).values()))

    def _array(self, node: Node) -> int:
        if node.get("type") == "numpy":
            self.files.add(_expect(node.get("file"), str, "file"))
            return 0
        if node.get("type") != "json" or node["__class__"] != "ndarray":
            raise RefusedError("an array is neither numbers nor a list")
        return self._each(node) + self.node(node.get("shape"), ("TupleNode",))

    def _object(self, node: Node) -> int:
        name, state = f"{node['__module__']}.{node['__class__']}", node.get("content")
        size = 0 if state is None else self.node(state, ("DictNode",))
        content = {} if state is None else _content(state, dict)
        _check_keys(name, set(content))
        if "memory" in content and self._value(content["memory"]) != "null":
            raise RefusedError("it names a folder of pickles")
        return size

    def _value(self, node: Node) -> Any:
        """Return what a node that was checked, or the one it refers to, is made of."""
        if set(node) == {"__id__"}:
            node, _ = self._complete[node["__id__"]]
        return node.get("content")


def _expect(value: Any, kind: type, what: str) -> Any:
    if type(value) is not kind:
        raise RefusedError(f"a {what} is no {kind.__name__}")
    return value


def _content(node: Node, kind: type) -> Any:
    return _expect(node.get("content"), kind, "content")


def _check_keys(name: str, keys: set[str]) -> None:
    """Check that a dataclass of ours has all that it needs, and nothing that it does not know."""
    if name in DATACLASSES:
        known = fields(resolved(name))
        needed = {each.name for each in known if each.default is MISSING}
        complete = needed <= keys <= {each.name for each in known}
    else:
        complete = name != ACTIVATION or keys == {"name"}
    if not complete:
        raise RefusedError(f"a {name} lacks a part, or has one too many")


def check_array(file: IO[bytes], size: int) -> None:
    """Check that the bytes of a file are an array of numbers, text or times, and nothing more.

    Parameters
    ----------
    file : binary file
        Where the array starts.
    size : int
        The number of its bytes.
    """
    version = npy.read_magic(file)
    if version not in READERS:
        raise RefusedError("an array is of another version")
    shape, _, dtype = READERS[version](file, max_header_size=HEADER)
    if dtype.kind not in KINDS or dtype.hasobject:
        raise RefusedError(f"an array holds {dtype}")
    n_values = int(prod(shape))
    n_bytes = n_values * dtype.itemsize
    if n_bytes != size - file.tell() or (n_values and not n_bytes):
        raise RefusedError("an array has not the size that it says")


READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_WALKS = {
    "JsonNode": _Check._text,
    "DictNode": _Check._pairs,
    "ListNode": _Check._each,
    "TupleNode": _Check._each,
    "SliceNode": _Check._ends,
    "NdArrayNode": _Check._array,
    "DTypeNode": _Check._inner,
    "TypeNode": _Check._leaf,
    "FunctionNode": _Check._leaf,
    "ConstructorFromReduceNode": _Check._inner,
    "ObjectNode": _Check._object,
}
