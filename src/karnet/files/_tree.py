"""An estimator as a tree of nodes, in the format that skops reads.

A node is a JSON object with the kind of the node (`__loader__`), the name of a type or function
(`__module__`, `__class__`) and the values that the object is made from (`content`). Arrays are
stored next to the tree. An object that occurs again is written as its `__id__` alone: skops would
write it out each time, which takes minutes for the vectoriser of a wide table.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import fields
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from .._arrays.namespace import is_foreign, to_numpy
from .types import ALLOWED, DATACLASSES, TIMES, name_of, resolved

Node = dict[str, Any]

# The version of skops' format.
PROTOCOL = 2
# The kinds of NumPy types that a file may hold: numbers, text and times.
ARRAY_KINDS = frozenset("biufUSMm")
# The types of values that are written as JSON text.
JSON_TYPES = (type(None), bool, int, float, str)


class Tree:
    """The nodes of an estimator, from the root down."""

    def __init__(self, estimator: Any) -> None:
        self.arrays: list[NDArray[Any]] = []  # in the order of their numbers
        self.names: set[str] = set()  # of all types and functions in the tree
        # All objects so far with their nodes, None for nodes that are not complete. The objects are
        # kept alive so that their ids stay unique.
        self._nodes: dict[Hashable, tuple[Any, Node | None]] = {}
        self._n_shared = 0
        self.root = {**self._node(estimator, type(estimator).__name__), "protocol": PROTOCOL}

    def _node(self, value: Any, where: str) -> Node:
        """Return the node of a value, or a reference to the node if there is one."""
        key = (type(value), json.dumps(value)) if type(value) in JSON_TYPES else id(value)
        if key not in self._nodes:
            self._nodes[key] = value, None
            node = self._new_node(value, where)
            self._nodes[key] = value, node
            return node
        shared = self._nodes[key][1]
        if shared is None:
            raise ValueError(f"{where} contains itself, and cannot be saved in a model file.")
        if "__id__" not in shared:
            self._n_shared += 1
            shared["__id__"] = self._n_shared
        return {"__id__": shared["__id__"]}

    def _new_node(self, value: Any, where: str) -> Node:
        kind = type(value)
        if kind in JSON_TYPES:
            return _described("JsonNode", str, content=json.dumps(value))
        if kind is list or kind is tuple:
            content = [self._node(each, f"{where}[{k}]") for k, each in enumerate(value)]
            return _described("ListNode" if kind is list else "TupleNode", kind, content=content)
        if kind is dict:
            return self._dict(value, where)
        if kind is slice:
            ends = {end: getattr(value, end) for end in ("start", "stop", "step")}
            return _described("SliceNode", slice, content=ends)
        if isinstance(value, type):
            return self._listed("TypeNode", value, where)
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, where)
        if is_foreign(value):
            return self._array(to_numpy(value), where)
        if callable(value) and hasattr(value, "__name__"):
            return self._listed("FunctionNode", value, where)
        if isinstance(value, np.dtype):
            empty = self._node(np.ndarray(0, dtype=value), where)
            return _described("DTypeNode", np.dtype, content=empty)
        if name_of(kind) in TIMES:
            parts = (value.key,) if isinstance(value, ZoneInfo) else value.__reduce__()[1]
            arguments = self._node(parts, where)
            return self._listed("ConstructorFromReduceNode", kind, where, content=arguments)
        node = self._listed("ObjectNode", kind, where)
        state = _state(value, where)
        return {**node, "content": self._dict(state, where, ".{}")} if state else node

    def _listed(self, loader: str, kind: Any, where: str, **more: Any) -> Node:
        """Return the node of a type or function, if it is on the list."""
        name = name_of(kind)
        if name not in ALLOWED[loader] or resolved(name) is not kind:
            if loader == "FunctionNode":
                raise ValueError(
                    f"{where} is the function {kind.__name__!r}: a model file holds no functions, "
                    "and so no custom activations."
                )
            raise ValueError(f"{where} is of the type {name}, which a model file cannot hold.")
        self.names.add(name)
        return _described(loader, kind, **more)

    def _dict(self, value: dict[Any, Any], where: str, inner: str = "[{!r}]") -> Node:
        # skops converts the text of a key to its type, and bool("False") would be true.
        keys = [int(key) if isinstance(key, bool | np.bool) else key for key in value]
        if len(set(map(str, keys))) < len(keys):
            raise ValueError(f"{where} has keys of equal text, which a model file cannot hold.")
        for key in keys:
            if not isinstance(key, str | int | float | np.integer | np.floating):
                raise ValueError(f"{where} has the key {key!r}, which a model file cannot hold.")
        # skops reads the types first, so they must not refer to nodes in the content.
        types = [self._node(type(key), where) for key in keys]
        content = {
            str(key): self._node(each, where + inner.format(key))
            for key, each in zip(keys, value.values(), strict=True)
        }
        key_types = _described("ListNode", list, content=types)
        return _described("DictNode", dict, key_types=key_types, content=content)

    def _array(self, value: NDArray[Any] | np.generic, where: str) -> Node:
        kind = np.ndarray if type(value) is np.memmap else type(value)
        node = self._listed("NdArrayNode", kind, where)
        if value.dtype == object and value.ndim:
            content = self._node(value.tolist(), where)["content"]
            shape = self._node(value.shape, where)
            return {**node, "type": "json", "content": content, "shape": shape}
        if value.dtype.kind not in ARRAY_KINDS:
            raise ValueError(
                f"{where} is an array of {value.dtype}, which a model file cannot hold."
            )
        self.arrays.append(np.asarray(value))
        return {**node, "type": "numpy", "file": f"{len(self.arrays) - 1}.npy"}


def _described(loader: str, kind: Any, **more: Any) -> Node:
    module, _, name = name_of(kind).rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": name, **more}


def _state(value: Any, where: str) -> dict[str, Any]:
    if name_of(type(value)) in DATACLASSES:
        return {field.name: getattr(value, field.name) for field in fields(value)}
    state = value.__getstate__() or {}
    if not isinstance(state, dict):
        raise ValueError(f"{where} has a state that a model file cannot hold.")
    if state.get("memory") is not None:
        raise ValueError(
            f"{where}.memory is set, but a cache holds pickles: set it to None before saving."
        )
    return state
