"""Fitted networks as ONNX graphs."""

from __future__ import annotations

from ._convert import to_onnx

__all__ = ["to_onnx"]
