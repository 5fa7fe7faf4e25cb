"""The encoder of a table as nodes of an ONNX graph. Empty text stands for a gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._columns.encoder import Labels, Numbers, TableEncoder
from ._graph import Graph

# The domain of the node that looks up text, and its version.
LOOK_UP = {"op_domain": "ai.onnx.ml", "op_version": 2}


def encoded(g: Graph, encoder: TableEncoder, inputs: Sequence[Any]) -> str:
    """Return the numbers of the columns of a table, as doubles."""
    from skl2onnx.common.data_types import StringTensorType

    is_text = [isinstance(each.type, StringTensorType) for each in inputs]
    names = [each.full_name for each in inputs]
    if len(names) == 1 < len(encoder.columns):
        columns = np.arange(len(encoder.columns))
        names = [g.op("Gather", names[0], np.array([k]), axis=1) for k in columns]
        is_text = is_text * len(columns)
    parts = [
        part
        for each in zip(encoder.columns, names, is_text, strict=True)
        for part in _parts(g, *each)
    ]
    return g.op("Concat", *parts, axis=1)


def _parts(g: Graph, column: Any, x: str, is_text: bool) -> list[str]:
    """Return the numbers of one column."""
    if not isinstance(column, Numbers | Labels):
        raise ValueError("dates cannot be exported to ONNX: fit a model without them.")
    if is_text != isinstance(column, Labels):
        raise ValueError(
            "numbers and categories are different inputs of ONNX: give to_onnx a data frame X with "
            "the columns of fit, categories as text."
        )
    if isinstance(column, Labels):
        return _indicators(g, column, x)
    x = g.cast(x, "DOUBLE")
    gaps = g.op("IsNaN", x)
    filled = g.op("Where", gaps, np.array([[column.fill]]), x)
    return [filled, g.cast(gaps, "DOUBLE")] if column.has_gaps else [filled]


def _indicators(g: Graph, column: Labels, x: str) -> list[str]:
    """Return the indicators of the categories of one column."""
    n, places = len(column.labels), column.width
    codes = {str(each): k for k, each in enumerate(column.labels)}
    codes |= dict.fromkeys(map(str, column.rare), n)
    if column.has_gaps:
        codes[""] = places - 1
    keys, values = list(codes), list(codes.values())
    found = g.op(
        "LabelEncoder", x, keys_strings=keys, values_int64s=values, default_int64=-1, **LOOK_UP
    )
    return [g.cast(g.op("Equal", found, np.arange(places)[None]), "DOUBLE")] if places else []
