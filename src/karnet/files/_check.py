"""The checks of a model file's tree and arrays, before skops reads them.

skops trusts more types than `karnet.files.types` lists, and spends the time and the memory that a
file asks for. The checks read the file as text and refuse it with a reason, before any type is
imported, any object is made or any array is allocated.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from math import prod
from typing import IO, Any

from numpy.lib import format as npy

from ._tree import ARRAY_KINDS, PROTOCOL, Node
from .types import ACTIVATION, ALLOWED, DATACLASSES, resolved

# The largest factor by which following all references, as skops does, may multiply the nodes.
MAX_REPETITION = 100
# The largest number of nodes with all references followed.
MAX_NODES = 10**9
# The largest number of bytes in the header of an array.
MAX_ARRAY_HEADER = 10_000
# The readers of array headers, by the version of the .npy format.
HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class RefusedError(Exception):
    """A file was not written by `karnet.save`; the message is the reason."""


def check_tree(root: Any, files: set[str]) -> set[str]:
    """Check the tree of a file, whose arrays are in `files`, and return all names in it."""
    root = dict(_expect(root, dict, "tree"))
    if root.pop("protocol", None) != PROTOCOL:
        raise RefusedError("its tree is of another version")
    check = _Check()
    _check_number(check.node(root), MAX_REPETITION * check.n_written)
    if root["__loader__"] != "ObjectNode":
        raise RefusedError("it holds no estimator")
    if check.files != files:
        raise RefusedError("its arrays are not the arrays that its tree names")
    return check.names


class _Check:
    """The checks of all nodes; each returns the number of nodes with references followed."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.files: set[str] = set()
        self.n_written = 0
        self._complete: dict[int, tuple[Node, int]] = {}

    def node(self, node: Any, loaders: Collection[str] = ALLOWED) -> int:
        """Check a node and all nodes below it; only some loaders are allowed here."""
        self.n_written += 1
        number = _expect(_expect(node, dict, "node").get("__id__", 0), int, "number")
        if set(node) == {"__id__"}:
            if number not in self._complete:
                raise RefusedError("a node refers to none before it")
            node, size = self._complete[number]
        else:
            size = 1 + self._content(self._loader(node), node)
            _check_number(size, MAX_NODES)
            if number in self._complete:
                raise RefusedError("two nodes have the same id")
            if number:
                self._complete[number] = node, size
        if node["__loader__"] not in loaders:
            raise RefusedError(f"a {node['__loader__']} is not allowed where it is")
        return size

    def _loader(self, node: Node) -> str:
        keys = ("__loader__", "__module__", "__class__")
        loader, module, kind = (_expect(node.get(key), str, key) for key in keys)
        name = f"{module}.{kind}"
        if name not in ALLOWED.get(loader, ()) or "." in kind:
            raise RefusedError(f"it names {name} ({loader}), which is not on the list")
        self.names.add(name)
        return str(loader)

    def _content(self, loader: str, node: Node) -> int:
        match loader:
            case "TypeNode" | "FunctionNode":
                return 0
            case "JsonNode":
                _content(node, str)
                return 0
            case "SliceNode":
                for end in _content(node, dict).values():
                    if end is not None:
                        _expect(end, int, "end of a slice")
                return 0
            case "ListNode" | "TupleNode":
                return sum(map(self.node, _content(node, list)))
            case "DTypeNode" | "ConstructorFromReduceNode":
                return self.node(node.get("content"), ("TupleNode", "NdArrayNode"))
            case "DictNode":
                return self._dict(node)
            case "NdArrayNode":
                return self._array(node)
            case "ObjectNode":
                return self._object(node)
        raise RefusedError(f"a {loader} is not checked")

    def _dict(self, node: Node) -> int:
        kinds = _expect(node.get("key_types"), dict, "list of types")
        # If this list had an id, skops could read another node instead.
        if self._loader(kinds) != "ListNode" or "__id__" in kinds:
            raise RefusedError("the types of keys are no list of their own")
        size = sum(self.node(kind, ("TypeNode",)) for kind in _content(kinds, list))
        return 1 + size + sum(map(self.node, _content(node, dict).values()))

    def _array(self, node: Node) -> int:
        if node.get("type") == "numpy":
            self.files.add(_expect(node.get("file"), str, "file"))
            return 0
        if node.get("type") != "json" or node["__class__"] != "ndarray":
            raise RefusedError("an array is neither a file nor a list")
        values = sum(map(self.node, _content(node, list)))
        return values + self.node(node.get("shape"), ("TupleNode",))

    def _object(self, node: Node) -> int:
        name, state = f"{node['__module__']}.{node['__class__']}", node.get("content")
        size = 0 if state is None else self.node(state, ("DictNode",))
        content = {} if state is None else _content(state, dict)
        if name in DATACLASSES or name == ACTIVATION:
            known = {"name"}
            if name != ACTIVATION:
                known = {each.name for each in fields(resolved(name))}
            if content.keys() != known:
                raise RefusedError(f"a {name} lacks a field, or has one too many")
        memory = content.get("memory")
        if memory is not None and set(memory) == {"__id__"}:
            memory, _ = self._complete[memory["__id__"]]
        if memory is not None and memory.get("content") != "null":
            raise RefusedError("it names a folder of pickles")
        return size


def _check_number(n_nodes: int, most: int) -> None:
    if n_nodes > most:
        raise RefusedError("its nodes refer to each other too often")


def _expect(value: Any, kind: type, description: str) -> Any:
    if type(value) is not kind:
        raise RefusedError(f"a {description} is no {kind.__name__}")
    return value


def _content(node: Node, kind: type) -> Any:
    return _expect(node.get("content"), kind, "content")


def check_array(file: IO[bytes], size: int) -> None:
    """Check that a file of a given size is exactly one array of numbers, text or times."""
    version = npy.read_magic(file)
    if version not in HEADER_READERS:
        raise RefusedError("an array is of another version")
    shape, _, dtype = HEADER_READERS[version](file, max_header_size=MAX_ARRAY_HEADER)
    if dtype.kind not in ARRAY_KINDS or dtype.hasobject:
        raise RefusedError(f"an array holds {dtype}")
    n_values = int(prod(shape))
    n_bytes = n_values * dtype.itemsize
    if n_bytes != size - file.tell() or (n_values and not n_bytes):
        raise RefusedError("an array does not have the size that its header claims")
