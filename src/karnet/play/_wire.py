"""Messages on the socket: JSON to the server; JSON, or JSON and arrays, back to the page.

An answer with arrays is binary: the length of its JSON as four bytes, little-endian, the JSON
itself, spaces up to a multiple of four bytes, and the arrays as 32-bit floats, in the order of
their shapes in the JSON. Errors are one sentence.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Protocol

import numpy as np

from .._util.json_values import json_value
from .._util.messages import shown
from .._util.types import Array

# The bytes of a 32-bit float, to which arrays are aligned.
FLOAT = 4


class Session(Protocol):
    """The state of one tab."""

    def answer(self, message: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return values and arrays, or raise an error of one sentence."""


class GarbageError(ValueError):
    """A message that is no JSON object."""


def parsed(text: str | None) -> dict[str, Any]:
    """Return the object of a message."""
    try:
        message = json.loads("" if text is None else text)
    except (ValueError, RecursionError) as error:
        raise GarbageError("a message must be a JSON object.") from error
    if not isinstance(message, dict):
        raise GarbageError(f"a message must be a JSON object, but is {shown(message)}.")
    return message


def packed(values: dict[str, Any], arrays: dict[str, Array]) -> bytes | str:
    """Return an answer: text if it has no arrays, and bytes otherwise."""
    if not arrays:
        return json.dumps(json_value(values), allow_nan=False)
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    text = json.dumps(json_value(values | {"arrays": shapes}), allow_nan=False).encode()
    text += b" " * (-len(text) % FLOAT)
    with np.errstate(over="ignore"):
        parts = [np.ascontiguousarray(array, dtype="<f4").tobytes() for array in arrays.values()]
    return struct.pack("<I", len(text)) + text + b"".join(parts)


def unpacked(answer: bytes | str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the values and arrays of an answer, as the page reads them."""
    if isinstance(answer, str):
        return json.loads(answer), {}
    (length,) = struct.unpack_from("<I", answer)
    values = json.loads(answer[FLOAT : FLOAT + length])
    arrays, start = {}, FLOAT + length
    for name, shape in values.pop("arrays").items():
        size = int(np.prod(shape))
        arrays[name] = np.frombuffer(answer, "<f4", size, start).reshape(shape)
        start += FLOAT * size
    return values, arrays


def reply(session: Session, message: dict[str, Any] | GarbageError) -> bytes | str:
    """Return the answer of a session to a message; every error becomes one sentence."""
    named: dict[str, Any] = {}
    try:
        if isinstance(message, GarbageError):
            raise message
        named = {key: message[key] for key in ("id", "kind") if key in message}
        values, arrays = session.answer(message)
        return packed(values | named, arrays)
    except (ValueError, OSError, ImportError) as error:
        sentence = " ".join(str(error).split()) or type(error).__name__
    except MemoryError:
        sentence = "There is not enough memory for this: use fewer points or units."
    except Exception as error:  # the server must answer the next message
        sentence = f"An internal error, {type(error).__name__}: {' '.join(str(error).split())}"
    return packed(_short(named) | {"error": sentence}, {})


def _short(named: dict[str, Any]) -> dict[str, Any]:
    """Return the names of a message that are no garbage."""
    return {
        key: value for key, value in named.items() if isinstance(value, int) or value in ("fit",)
    }
