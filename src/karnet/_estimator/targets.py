"""What a network is taught: its outputs for each class, and the units of numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._lstsq.statistics import Moments
from .._network.layers import Layer
from ..activations import Activation, Array
from ..learner import Plan

__all__ = ["class_targets", "in_target_units"]

# How far inside the interval of the inverse activation class targets of 0 and 1 are put.
CLASS_MARGIN = 0.05


def class_targets(f: Activation, q: int) -> Array:
    """Return the output taught for each class: one column for two classes, else an indicator."""
    Y = np.array([[0.0], [1.0]]) if q == 2 else np.eye(q)
    return f.inside(Y, CLASS_MARGIN)


def in_target_units(plan: Plan, last: Layer, moments: Moments) -> tuple[Plan, Layer]:
    """Return plan and drawn output layer for targets of any unit and offset.

    Weights are drawn for standardised targets, or the inverse activations would saturate.
    """
    mean, variance = moments.centre.mean, moments.squares / moments.centre.weight
    if not plan.fit_intercept:
        mean, variance = np.zeros_like(mean), variance + mean**2
    scale = np.sqrt(variance)
    scale[scale == 0.0] = 1.0
    layer = Layer(last.V * scale, last.w * scale + mean, last.f)
    return replace(plan, centre=mean), layer
