"""An ONNX graph under construction, to which each call adds a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The name of a node's output, or a constant.
Value = str | float | NDArray[Any]


class Graph:
    """A graph under construction, in the scope and the container of a skl2onnx converter."""

    def __init__(self, scope: Any, container: Any, single: bool) -> None:
        self._scope, self._container = scope, container
        # Whether the inputs of the graph are in single precision.
        self.single = single

    def op(self, kind: str, *inputs: Value, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = self.name(kind.lower())
        name = self._scope.get_unique_operator_name(f"kar_{kind}")
        self._container.add_node(kind, names, [output], name=name, **attributes)
        return output

    def product(self, A: str, B: NDArray[Any], C: Value | None = None) -> str:
        """Return ``A B``, or ``A B + C``.

        The node is not a MatMul, which onnxruntime fuses with a division before or after it and
        then computes in single precision.
        """
        return self.op("Gemm", A, B, *([] if C is None else [C]))

    def cast(self, x: str, kind: str) -> str:
        """Return x in a type of `onnx.TensorProto`."""
        from onnx import TensorProto

        return self.op("Cast", x, to=getattr(TensorProto, kind))

    def largest(self, x: str) -> str:
        """Return the column of the largest value of each row."""
        return self.op("ArgMax", x, axis=1, keepdims=0)

    def constant(self, value: float | NDArray[Any]) -> str:
        """Add a constant and return its name; floating-point numbers are stored as doubles."""
        from onnx import numpy_helper

        tensor = numpy_helper.from_array(np.array(value, order="C"), self.name("constant"))
        if tensor.string_data:
            kind, shape, content = tensor.data_type, list(tensor.dims), list(tensor.string_data)
            self._container.add_initializer(tensor.name, kind, shape, content)
        else:
            self._container.add_initializer(tensor.name, None, None, tensor)
        return str(tensor.name)

    def name(self, hint: str) -> str:
        """Return an unused name."""
        return str(self._scope.get_unique_variable_name(f"kar_{hint}"))

    def scan(
        self, body: Callable[..., str], rows: Sequence[Value], state: str | None = None
    ) -> str:
        """Return the result of a loop over the rows of matrices with equally many rows.

        The body is called with a graph, the state if there is one, and a row of each matrix. It
        returns the next state, and the result is the last one; without a state, it returns a row of
        the result. States are matrices.
        """
        step = _Step()
        inner = Graph(self._scope, step, self.single)
        states = [] if state is None else [state]
        inputs = {inner.name("state"): 2 for _ in states} | {inner.name("row"): 1 for _ in rows}
        result = body(inner, *inputs)
        loop = step.graph(inputs, {result: 2 if states else 1})
        return self.op("Scan", *states, *rows, body=loop, num_scan_inputs=len(rows))


class _Step:
    """The container of one step of a loop, a graph of its own."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add_node(self, kind: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        from onnx import helper

        self._nodes.append(helper.make_node(kind, inputs, outputs, **attributes))

    def add_initializer(self, name: str, kind: None, shape: None, tensor: Any) -> None:
        self._constants.append(tensor)

    def graph(self, inputs: dict[str, int], outputs: dict[str, int]) -> Any:
        """Return the graph of doubles, with the number of dimensions of each input and output."""
        from onnx import TensorProto, helper

        given, returned = (
            [
                helper.make_tensor_value_info(name, TensorProto.DOUBLE, [None] * n)
                for name, n in names.items()
            ]
            for names in (inputs, outputs)
        )
        return helper.make_graph(self._nodes, "step", given, returned, self._constants)
