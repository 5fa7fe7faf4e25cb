"""Plots of fitted networks, with the interface of scikit-learn's displays.

The method `from_estimator` computes and draws a display. The display stores the numbers that it
shows, and the method `plot` draws them again.
"""

from ._importances import MetricDisplay
from ._path import LooPathDisplay
from ._spectrum import LayerSpectrumDisplay
from ._surface import DecisionSurfaceDisplay

__all__ = ["DecisionSurfaceDisplay", "LayerSpectrumDisplay", "LooPathDisplay", "MetricDisplay"]
