"""An estimator as a tree of nodes, in the format that skops reads.

A node is a JSON object: what makes it (`__loader__`), its name (`__module__`, `__class__`) and what
it is made from (`content`). Arrays lie beside the tree. What is met again is written as its
`__id__` alone: skops itself would write it out each time, which for the vectoriser of a wide table
takes minutes.
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

__all__ = ["KINDS", "PROTOCOL", "Node", "Tree"]

Node = dict[str, Any]

# The version of skops' format.
PROTOCOL = 2
# Kinds of NumPy types that a file holds: numbers, text and times.
KINDS = frozenset("biufUSMm")


class Tree:
    """The nodes of an estimator.

    Attributes
    ----------
    root : dict
        The node of the estimator itself.
    arrays : list of ndarray
        The arrays, in the order of their numbers.
    names : set of str
        The names of all types and functions in it.
    """

    def __init__(self, estimator: Any) -> None:
        self.arrays: list[NDArray[Any]] = []
        self.names: set[str] = set()
        # What was met, with its node: None as long as it is not complete.
        self._met: dict[Hashable, tuple[Any, Node | None]] = {}
        self._n_shared = 0
        self.root = {**self._node(estimator, type(estimator).__name__), "protocol": PROTOCOL}

    def _node(self, value: Any, where: str) -> Node:
        """Return the node of a value, or a reference to it if it was met before."""
        plain = value is None or type(value) in (bool, int, float, str)
        key = (type(value), json.dumps(value)) if plain else id(value)
        if key not in self._met:
            self._met[key] = value, None
            node = self._made(value, where)
            self._met[key] = value, node
            return node
        met = self._met[key][1]
        if met is None:
            raise ValueError(f"{where} holds itself, which a model file cannot.")
        if "__id__" not in met:
            self._n_shared += 1
            met["__id__"] = self._n_shared
        return {"__id__": met["__id__"]}

    def _made(self, value: Any, where: str) -> Node:
        if value is None or type(value) in (bool, int, float, str):
            return self._of("JsonNode", str, content=json.dumps(value))
        if isinstance(value, type):
            return self._listed("TypeNode", value, where)
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, where)
        if is_foreign(value):
            return self._array(to_numpy(value), where)
        if callable(value) and hasattr(value, "__name__"):
            return self._listed("FunctionNode", value, where)
        return self._container(value, where) or self._object(value, where)

    def _container(self, value: Any, where: str) -> Node | None:
        if type(value) in (list, tuple):
            content = [self._node(each, f"{where}[{k}]") for k, each in enumerate(value)]
            return self._of(
                "ListNode" if type(value) is list else "TupleNode", type(value), content=content
            )
        if type(value) is dict:
            return self._dict(value, where)
        if type(value) is slice:
            ends = {end: getattr(value, end) for end in ("start", "stop", "step")}
            return self._of("SliceNode", slice, content=ends)
        return None

    def _object(self, value: Any, where: str) -> Node:
        if isinstance(value, np.dtype):
            empty = self._node(np.ndarray(0, dtype=value), where)
            return self._of("DTypeNode", np.dtype, content=empty)
        if name_of(type(value)) in TIMES:
            parts = (value.key,) if isinstance(value, ZoneInfo) else value.__reduce__()[1]
            content = self._node(parts, where)
            return self._listed("ConstructorFromReduceNode", type(value), where, content=content)
        node = self._listed("ObjectNode", type(value), where)
        state = _state(value, where)
        return {**node, "content": self._dict(state, where, ".{}")} if state else node

    def _of(self, loader: str, kind: Any, **more: Any) -> Node:
        module, _, name = name_of(kind).rpartition(".")
        return {"__loader__": loader, "__module__": module, "__class__": name, **more}

    def _listed(self, loader: str, kind: Any, where: str, **more: Any) -> Node:
        name = name_of(kind)
        if name not in ALLOWED[loader] or resolved(name) is not kind:
            if loader == "FunctionNode":
                raise ValueError(
                    f"{where} is the function {kind.__name__!r}: a model file holds no functions, "
                    "and so no custom activations."
                )
            raise ValueError(f"{where} is of the type {name}, which a model file cannot hold.")
        self.names.add(name)
        return self._of(loader, kind, **more)

    def _dict(self, value: dict[Any, Any], where: str, inner: str = "[{!r}]") -> Node:
        # A key comes back as its type makes it of text: bool("False") would be true.
        keys = [int(key) if isinstance(key, bool | np.bool) else key for key in value]
        if len(set(map(str, keys))) < len(keys):
            raise ValueError(f"{where} has keys of one name, which a model file cannot hold.")
        for key in keys:
            if not isinstance(key, str | int | float | np.integer | np.floating):
                raise ValueError(f"{where} has the key {key!r}, which a model file cannot hold.")
        # skops makes the types first, so none of them may refer to what lies in the content.
        kinds = self._of("ListNode", list, content=[self._node(type(key), where) for key in keys])
        content = {
            str(key): self._node(each, where + inner.format(key))
            for key, each in zip(keys, value.values(), strict=True)
        }
        return self._of("DictNode", dict, key_types=kinds, content=content)

    def _array(self, value: NDArray[Any] | np.generic, where: str) -> Node:
        kind = np.ndarray if type(value) is np.memmap else type(value)
        node = self._listed("NdArrayNode", kind, where)
        if value.dtype == object and value.ndim:
            content = self._node(value.tolist(), where)["content"]
            return {
                **node,
                "type": "json",
                "content": content,
                "shape": self._node(value.shape, where),
            }
        if value.dtype.kind not in KINDS:
            raise ValueError(
                f"{where} is an array of {value.dtype}, which a model file cannot hold."
            )
        self.arrays.append(np.asarray(value))
        return {**node, "type": "numpy", "file": f"{len(self.arrays) - 1}.npy"}


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
