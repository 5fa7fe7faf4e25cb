"""Nodes of an ONNX graph, made one call at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Graph", "Value"]

# The name of what a node gives, or a constant.
Value = str | float | NDArray[Any]


class Graph:
    """A graph under construction.

    Parameters
    ----------
    scope, container
        Those that skl2onnx gives to a converter.
    """

    def __init__(self, scope: Any, container: Any) -> None:
        self._scope, self._container = scope, container

    def op(self, kind: str, *inputs: Value, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = self.name(kind.lower())
        self._add(kind, names, output, attributes)
        return output

    def product(self, A: str, B: NDArray[Any], C: Value | None = None) -> str:
        """Return ``A B``, or ``A B + C``.

        No MatMul: onnxruntime joins one with a division before or after it, which it does in
        single precision.
        """
        return self.op("Gemm", A, B, *([] if C is None else [C]))

    def cast(self, x: str, kind: str) -> str:
        """Return x as numbers of a kind of `onnx.TensorProto`."""
        from onnx import TensorProto

        return self.op("Cast", x, to=getattr(TensorProto, kind))

    def constant(self, value: float | NDArray[Any]) -> str:
        """Add a constant, numbers as doubles if they are no integers, and return its name."""
        from onnx import numpy_helper

        name = self.name("constant")
        self._add_constant(numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def name(self, hint: str) -> str:
        """Return a name that nothing else has."""
        return str(self._scope.get_unique_variable_name(f"kar_{hint}"))

    def _add(self, kind: str, inputs: list[str], output: str, attributes: dict[str, Any]) -> None:
        name = self._scope.get_unique_operator_name(f"kar_{kind}")
        self._container.add_node(kind, inputs, [output], name=name, **attributes)

    def _add_constant(self, tensor: Any) -> None:
        if tensor.string_data:
            kind, shape, content = tensor.data_type, tensor.dims, tensor.string_data
            self._container.add_initializer(tensor.name, kind, list(shape), list(content))
        else:
            self._container.add_initializer(tensor.name, None, None, tensor)

    def scan(
        self, body: Callable[..., str], rows: Sequence[Value], state: str | None = None
    ) -> str:
        """Return what a loop over the rows of matrices comes to.

        Parameters
        ----------
        body : callable
            From a graph, the state if there is one, and one row of each matrix, to the next state
            or, without states, to a row of the result.
        rows : sequence of Value
            The matrices, with as many rows each.
        state : str, optional
            The matrix that states start from.

        Returns
        -------
        str
            The last state, or all rows of the result.
        """
        inner = _Body(self._scope, self._container)
        before = [] if state is None else [state]
        states = [inner.name("state") for _ in before]
        parts = [inner.name("row") for _ in rows]
        result = body(inner, *states, *parts)
        sizes = dict.fromkeys(states, 2) | dict.fromkeys(parts, 1)
        loop = inner.finished(sizes, result, 2 if before else 1)
        return self.op("Scan", *before, *rows, body=loop, num_scan_inputs=len(rows))


class _Body(Graph):
    """The graph of one step of a loop."""

    def __init__(self, scope: Any, container: Any) -> None:
        super().__init__(scope, container)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def _add(self, kind: str, inputs: list[str], output: str, attributes: dict[str, Any]) -> None:
        from onnx import helper

        self._nodes.append(helper.make_node(kind, inputs, [output], **attributes))

    def _add_constant(self, tensor: Any) -> None:
        self._constants.append(tensor)

    def finished(self, inputs: dict[str, int], output: str, n_dimensions: int) -> Any:
        """Return the graph; inputs and output are doubles of so many dimensions."""
        from onnx import TensorProto, helper

        def info(name: str, n: int) -> Any:
            return helper.make_tensor_value_info(name, TensorProto.DOUBLE, [None] * n)

        given = [info(name, n) for name, n in inputs.items()]
        return helper.make_graph(
            self._nodes, "step", given, [info(output, n_dimensions)], self._constants
        )
