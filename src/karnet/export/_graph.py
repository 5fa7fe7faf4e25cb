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
        self.single = single  # whether the inputs of the graph are in single precision

    def op(self, kind: str, *inputs: Value, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = self.name(kind.lower())
        name = self._scope.get_unique_operator_name(f"kar_{kind}")
        self._container.add_node(kind, names, [output], name=name, **attributes)
        return output

    def product(self, A: str, B: NDArray[Any], C: Value | None = None) -> str:
        """Return ``A B``, or ``A B + C``."""
        # onnxruntime fuses a MatMul with a division next to it, and computes in single precision.
        return self.op("Gemm", A, B, *([] if C is None else [C]))

    def cast(self, x: str, kind: str) -> str:
        """Return x in a type of `onnx.TensorProto`."""
        from onnx import TensorProto

        return self.op("Cast", x, to=getattr(TensorProto, kind))

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
        from onnx import TensorProto, helper

        step = _Step()
        inner = Graph(self._scope, step, self.single)
        states = [] if state is None else [state]
        inputs = {inner.name("state"): 2 for _ in states} | {inner.name("row"): 1 for _ in rows}
        result = body(inner, *inputs)
        given, returned = (
            [helper.make_tensor_value_info(k, TensorProto.DOUBLE, [None] * n) for k, n in each]
            for each in (inputs.items(), [(result, 2 if states else 1)])
        )
        loop = helper.make_graph(step.nodes, "step", given, returned, step.constants)
        return self.op("Scan", *states, *rows, body=loop, num_scan_inputs=len(rows))


class _Step:
    """The container of one step of a loop, a graph of its own."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add_node(self, kind: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, outputs, **attributes))

    def add_initializer(self, name: str, kind: None, shape: None, tensor: Any) -> None:
        self.constants.append(tensor)
