"""Fitted networks as ONNX graphs."""

from ._convert import to_onnx

__all__ = ["to_onnx"]
